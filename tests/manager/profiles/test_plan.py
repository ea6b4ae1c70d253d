"""Pods that were there before a profile follow it as far as a pod can still change."""

import copy

import pytest

from api import names
from api.koordinator import colocation
from api.kubernetes import core
from api.kubernetes.patching import patches
from domain.pods import profile_effects
from manager.profiles import plan as plans


def profile(*, labels=None, **spec):
    metadata = {"name": "p", "labels": labels or {}}
    return colocation.read_profile({"metadata": metadata, "spec": spec})


def pod(labels=None, **metadata):
    return {
        "metadata": {
            "name": "a",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "5",
            "labels": {"app": "x"} if labels is None else labels,
            **metadata,
        },
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Pending"},
    }


def followed(stored, wanted):
    body = plans.change(stored, wanted)
    assert body is not None
    assert body["metadata"]["uid"] == "u"
    assert body["metadata"]["resourceVersion"] == "5"
    return patches.merged(stored, body)


WANTED = profile(
    labels={names.LABEL_CONTROLLER_MANAGED: "true"},
    selector={"matchLabels": {"app": "x"}},
    annotations={"note": "1"},
    labelSuffixes={"app": "-batch"},
    labelKeysMapping={"app": "origin"},
    qosClass="BE",
    koordinatorPriority=7,
    schedulerName="koord-scheduler",
    priorityClassName="koord-batch",
)


def test_what_can_still_change_is_changed() -> None:
    after = followed(pod(), WANTED)
    assert after["metadata"]["labels"] == {
        "app": "x-batch",
        "origin": "x",
        names.LABEL_QOS: "BE",
        names.LABEL_PRIORITY: "7",
    }
    assert after["metadata"]["annotations"]["note"] == "1"
    assert after["spec"] == pod()["spec"]


def test_applying_again_changes_nothing() -> None:
    after = followed(pod(), WANTED)
    assert plans.change(after, WANTED) is None


def test_a_changed_profile_starts_from_what_the_pod_was() -> None:
    after = followed(pod(), WANTED)
    other = WANTED.but(spec=WANTED.spec.but(label_suffixes={"app": "-low"}, annotations={}))
    again = followed(after, other)
    assert again["metadata"]["labels"]["app"] == "x-low"
    assert "note" not in again["metadata"]["annotations"]


def test_the_record_of_other_profiles_is_kept() -> None:
    written = '{"profiles":{"other":{"labels":{"a":[null,"b"]}}},"resources":[1]}'
    stored = pod(annotations={names.ANNOTATION_CHANGES: written})
    after = followed(stored, WANTED)
    text = after["metadata"]["annotations"][names.ANNOTATION_CHANGES]
    assert '"other":{"labels":{"a":[null,"b"]}}' in text
    assert '"resources":[1]' in text


@pytest.mark.parametrize("written", ["{", "[]", '{"profiles": 5}', '{"profiles": {"p": 1}}'])
def test_a_record_that_cannot_be_read_is_written_anew(written) -> None:
    after = followed(pod(annotations={names.ANNOTATION_CHANGES: written}), WANTED)
    assert plans.change(after, WANTED) is None


def test_a_patch_is_merged() -> None:
    tolerations = [{"key": "batch", "operator": "Exists"}]
    wanted = profile(selector={}, patch={"spec": {"tolerations": tolerations}})
    after = followed(pod(), wanted)
    assert after["spec"]["tolerations"] == tolerations
    assert plans.change(after, wanted) is None


def test_a_patch_that_fits_no_pod_is_an_error() -> None:
    with pytest.raises(profile_effects.EffectError, match=r"spec\.patch"):
        plans.change(pod(), profile(selector={}, patch=[1]))


def test_a_pod_is_not_changed_by_being_looked_at() -> None:
    stored = pod()
    before = copy.deepcopy(stored)
    plans.change(stored, WANTED)
    assert stored == before


@pytest.mark.parametrize(
    ("written", "by_default", "managed"),
    [
        pytest.param({}, False, False, id="not-asked"),
        pytest.param({}, True, True, id="by-default"),
        pytest.param({names.LABEL_CONTROLLER_MANAGED: "true"}, False, True, id="asked"),
        pytest.param({names.LABEL_CONTROLLER_MANAGED: "yes"}, False, False, id="only-true-counts"),
    ],
)
def test_a_profile_has_to_ask(written, by_default, managed) -> None:
    assert plans.is_managed(profile(labels=written), by_default=by_default) is managed


def test_a_profile_that_is_leaving_does_not_ask() -> None:
    raw = {"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert not plans.is_managed(colocation.read_profile(raw), by_default=True)


POD = plans.Waiting("n", "a", "u", {"app": "x"})


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({}, False, id="no-selector"),
        pytest.param({"selector": {}}, True, id="empty-selector"),
        pytest.param({"selector": {"matchLabels": {"app": "y"}}}, False, id="other-pods"),
        pytest.param(
            {"selector": {}, "namespaceSelector": {"matchLabels": {"team": "t"}}},
            True,
            id="namespace",
        ),
        pytest.param(
            {"selector": {}, "namespaceSelector": {"matchLabels": {"team": "o"}}},
            False,
            id="other-namespace",
        ),
    ],
)
def test_which_pods_are_meant(spec, found) -> None:
    chosen = list(plans.candidates(profile(**spec), [POD], {"n": {"team": "t"}}))
    assert chosen == ([POD] if found else [])


def test_pods_of_an_unknown_namespace_are_left_alone() -> None:
    assert not list(plans.candidates(profile(selector={}), [POD], {}))


def test_only_pods_without_a_node_wait() -> None:
    fresh = core.Pod(metadata=core.ObjectMeta(name="a", namespace="n", uid="u"))
    assert plans.waiting(fresh) == plans.Waiting("n", "a", "u", {})
    assert plans.waiting(core.Pod(spec=core.PodSpec(node_name="n1"))) is None
    assert plans.waiting(core.Pod(status=core.PodStatus(phase="Failed"))) is None
    leaving = core.ObjectMeta(deletion_timestamp="2026-01-01T00:00:00Z")
    assert plans.waiting(core.Pod(metadata=leaving)) is None
    static = core.ObjectMeta(annotations={"kubernetes.io/config.mirror": "x"})
    assert plans.waiting(core.Pod(metadata=static)) is None
