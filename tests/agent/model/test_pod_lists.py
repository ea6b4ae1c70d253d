"""A list of pods in which one cannot be read."""

import json

import pytest

from agent.model import pod_lists

GOOD = {"metadata": {"name": "good", "uid": "u"}}
DEEP = '{"metadata":{"name":"deep"},"status":{"containerStatuses":[{"state":'
DEEP += '{"a":' + "[" * 3000 + "]" * 3000 + "}}]}}"


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
        assert found.problem.startswith("1 pods cannot be read: pod 500 of the list: ")


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
