"""A pod that comes twice: applying everything twice is applying it once."""

import copy
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.koordinator import colocation
from tests import draws
from tests.planes.admission import admissions as generated
from webhook import pods, review


def once(pod, picture):
    made = pods.completed(review.Review("CREATE", "default", pod), picture)
    # What is refused is not changed.
    return pod if isinstance(made, review.Refusal) else made.pod


def without_draws(picture):
    """The same picture, but whoever draws again is found out."""

    def draw(name):
        raise AssertionError(f"a second lot was drawn for {name}")

    return dataclasses.replace(picture, draw=draw)


@settings(max_examples=draws.at_least(400))
@given(generated.pods, generated.pictures)
def test_twice_is_once(pod, picture):
    first = once(pod, picture)
    again = without_draws(picture) if names.ANNOTATION_PROFILES in marks(first) else picture
    assert once(first, again) == first


@settings(max_examples=draws.at_least(150))
@given(generated.pods, generated.pictures, generated.injected)
def test_what_others_add_in_between_is_treated_and_then_all_is_still(pod, picture, injected):
    first = copy.deepcopy(once(pod, picture))
    first["spec"]["containers"] += injected
    second = once(first, picture)
    assert once(second, picture) == second


@settings(max_examples=draws.at_least(150))
@given(generated.pods, generated.pictures, st.sampled_from(generated.KEYS), st.text(max_size=3))
def test_a_label_that_others_changed_in_between_is_theirs_or_treated_anew(pod, picture, key, value):
    first = copy.deepcopy(once(pod, picture))
    first["metadata"].setdefault("labels", {})[key] = value
    second = once(first, picture)
    assert once(second, picture) == second


def marks(pod):
    return pod["metadata"].get("annotations") or {}


def picture_of(*specs, **more):
    found = tuple(
        colocation.read_profile({"metadata": {"name": f"p{number}"}, "spec": spec})
        for number, spec in enumerate(specs)
    )
    base = review.Picture(found, {"default": {}}, generated.CLASSES, lambda _: 0)
    return dataclasses.replace(base, **more)


def a_pod(labels=None, annotations=None, **amounts):
    container = {"name": "c", "resources": {"requests": amounts}}
    metadata = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def test_a_suffix_is_appended_once_and_what_was_there_is_told():
    picture = picture_of({"labelSuffixes": {"app": "-batch"}, "schedulerName": "koord-scheduler"})
    first = once(a_pod({"app": "web"}), picture)
    assert first["metadata"]["labels"] == {"app": "web-batch"}
    told = json.loads(marks(first)[names.ANNOTATION_CHANGES])
    assert told == {
        "profiles": {
            "p0": {
                "labels": {"app": ["web", "web-batch"]},
                "spec": {"schedulerName": [None, "koord-scheduler"]},
            }
        }
    }
    assert once(first, picture) == first


def test_what_others_wrote_over_a_profile_is_treated_as_if_they_had_written_it_first():
    picture = picture_of({"labelSuffixes": {"app": "-batch"}})
    first = copy.deepcopy(once(a_pod({"app": "web"}), picture))
    first["metadata"]["labels"]["app"] = "api"
    assert once(first, picture)["metadata"]["labels"] == {"app": "api-batch"}


def test_a_label_given_by_one_profile_does_not_let_another_select_later():
    picture = picture_of({"labels": {"app": "x"}}, {"selector": {"matchLabels": {"app": "x"}},
                                                     "labels": {"late": "yes"}})  # fmt: skip
    first = once(a_pod(), picture)
    assert first["metadata"]["labels"] == {"app": "x"}
    assert once(first, picture) == first


def test_a_forged_record_keeps_no_profile_away():
    forged = json.dumps({"profiles": {"p0": {"labels": {"team": ["other", "web"]}}}})
    pod = a_pod(
        {"team": "web"}, {names.ANNOTATION_PROFILES: "p0", names.ANNOTATION_CHANGES: forged}
    )
    picture = picture_of({"selector": {"matchLabels": {"team": "web"}}, "qosClass": "BE"})
    assert once(pod, picture)["metadata"]["labels"] == {"team": "web", names.LABEL_QOS: "BE"}


def test_a_forged_record_is_not_what_a_suffix_is_appended_to():
    forged = json.dumps({"profiles": {"p0": {"labels": {"app": ["other", "web"]}}}})
    pod = a_pod({"app": "web"}, {names.ANNOTATION_PROFILES: "p0", names.ANNOTATION_CHANGES: forged})
    made = once(pod, picture_of({"labelSuffixes": {"app": "-batch"}}))
    assert made["metadata"]["labels"] == {"app": "web-batch"}


def test_a_forged_record_changes_no_field():
    forged = json.dumps({"profiles": {"p0": {"spec": {"priority": [2_000_001_000, 0]}}}})
    pod = a_pod({}, {names.ANNOTATION_PROFILES: "p0", names.ANNOTATION_CHANGES: forged})
    pod["spec"]["priority"] = 0
    assert once(pod, picture_of({"qosClass": "LS"}))["spec"]["priority"] == 0


def test_a_record_that_cannot_be_read_counts_for_nothing():
    picture = picture_of({"labelSuffixes": {"app": "-x"}})
    for text in ("{", "[]", '{"profiles": [1]}', '{"profiles": {"p0": {"labels": {"app": 1}}}}'):
        marked = {names.ANNOTATION_PROFILES: "p0", names.ANNOTATION_CHANGES: text}
        assert once(a_pod({"app": "web"}, marked), picture)["metadata"]["labels"]["app"] == "web-x"


def test_a_default_of_the_namespace_that_came_back_is_not_moved():
    limits = {"default": [("limits", generated.DEFAULTS)]}
    picture = picture_of({"qosClass": "BE", "priorityClassName": "koord-batch"}, limits=limits)
    first = copy.deepcopy(once(a_pod(cpu="2"), picture))
    requests = first["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {names.BATCH_CPU: "2k"}
    requests["cpu"] = "100m"
    second = once(first, picture)
    assert second["spec"]["containers"][0]["resources"]["requests"] == {
        names.BATCH_CPU: "2k",
        "cpu": "100m",
    }
    # What somebody else asks for is not a default, and is lent like all else if it is more.
    for asked, lent in (("300m", "2k"), ("3", "3k")):
        requests["cpu"] = asked
        third = once(first, picture)
        assert third["spec"]["containers"][0]["resources"]["requests"] == {names.BATCH_CPU: lent}


@pytest.mark.parametrize("group", ["containers", "initContainers"])
@pytest.mark.parametrize("forged", [False, True], ids=["first pass", "forged second pass"])
def test_no_lent_limit_exceeds_the_native_limit_beside_it(group, forged):
    pod = a_pod({}, {names.ANNOTATION_PROFILES: "p0"} if forged else {})
    limits = {"memory": "64Mi", names.BATCH_MEMORY: "1Gi", names.BATCH_CPU: "1k"}
    pod["spec"][group] = [{"name": "x", "resources": {"limits": limits, "requests": {}}}]
    batch = {"qosClass": "BE", "priorityClassName": "koord-batch"}
    made = once(pod, picture_of(batch, limits={"default": []}))
    resources = made["spec"][group][0]["resources"]
    assert resources["limits"] == {names.BATCH_MEMORY: "64Mi", names.BATCH_CPU: "1k"}
    assert resources["requests"] == resources["limits"]


def test_trying_gives_the_same_answer():
    picture = picture_of({"qosClass": "BE", "priorityClassName": "koord-batch"})
    asked = review.Review("CREATE", "default", a_pod(cpu="2"))
    tried = dataclasses.replace(asked, dry_run=True)
    assert pods.mutate(asked, picture) == pods.mutate(tried, picture)
    assert pods.validate(asked, picture) == pods.validate(tried, picture)
