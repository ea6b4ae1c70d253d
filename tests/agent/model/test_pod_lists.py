"""A list of pods in which one cannot be read."""

import json

import msgspec
import pytest

from agent.model import pod_lists
from api.kubernetes import core

GOOD = {"metadata": {"name": "good", "uid": "u"}}
DEEP = '{"metadata":{"name":"deep"},"status":{"containerStatuses":[{"state":'
# Deeper than any version of Python lets msgspec go.
DEEP += '{"a":' + "[" * 300_000 + "]" * 300_000 + "}}]}}"


def body(*items, meta='{"resourceVersion":"7"}'):
    parts = ",".join(one if isinstance(one, str) else json.dumps(one) for one in items)
    return f'{{"metadata":{meta},"items":[{parts}]}}'.encode()


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param({"metadata": {"labels": {"a": 1}}}, id="label is a number"),
        pytest.param({"spec": {"containers": 3}}, id="containers is a number"),
        pytest.param({"metadata": {"annotations": []}}, id="annotations is a list"),
        pytest.param(json.dumps({"metadata": {"generation": 10**40}}), id="huge number"),
        pytest.param("[]", id="no object"),
    ],
)
def test_one_pod_that_cannot_be_read_hides_no_other(poison):
    found = pod_lists.read(body(*[GOOD] * 500, poison, *[GOOD] * 499))
    assert len(found.pods) >= 999
    assert {pod.metadata.name for pod in found.pods} <= {"good", ""}
    assert found.version == "7"
    if len(found.pods) == 999:
        assert found.problem.startswith("1 pod cannot be read: pod 500 of the list: ")


# The kubelet answers in types of Kubernetes, so that a pod cannot bring levels of its own.
@pytest.mark.parametrize(
    "text",
    [body(DEEP), b"", b"[]", b'{"items":3}', b'{"items":[', b"[" * 5000],
    ids=lambda text: str(text[:12]),
)
def test_an_answer_that_is_no_list_says_so(text):
    with pytest.raises(pod_lists.ListError):
        pod_lists.read(text)


@pytest.mark.parametrize("text", [b"{}", b'{"items":null}', b'{"items":[]}'])
def test_an_empty_list_is_one(text):
    assert pod_lists.read(text) == pod_lists.PodList()


def test_pods_that_are_the_same_stay_the_same_objects():
    def listed(*versions):
        metas = [{"uid": uid, "resourceVersion": version} for uid, version in versions]
        return pod_lists.read(body(*({"metadata": meta} for meta in metas))).pods

    before = listed(("a", "1"), ("b", "1"), ("c", "1"))
    now = listed(("new", "1"), ("c", "1"), ("b", "2"), ("a", "1"))
    kept = pod_lists.unchanged_kept(before, now)
    assert kept == now
    assert [kept[1] is before[2], kept[2] is now[2], kept[3] is before[0]] == [True] * 3
    again = listed(("a", "1"), ("b", "1"), ("c", "1"))
    assert pod_lists.unchanged_kept(before, again) is before
    assert pod_lists.unchanged_kept(before, again[:2]) == again[:2]


def test_pods_too_deep_to_compare_count_as_changed():
    pod = msgspec.convert({"metadata": {"uid": "u"}}, core.Pod)

    def with_depth():
        deep = []
        for _ in range(100_000):
            deep = [deep]
        spec = msgspec.structs.replace(pod.spec, affinity={"a": deep})
        return msgspec.structs.replace(pod, spec=spec)

    before, now = (with_depth(),), (with_depth(),)
    assert pod_lists.unchanged_kept(before, now)[0] is now[0]
