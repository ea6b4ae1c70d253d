"""The story of a PodMigrationJob: why, how far, what it has brought; hostile jobs break nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from cli.explain import migration_story, stories

NOW = 1_800_000_000.0
CREATED = "2027-01-15T07:58:00Z"
"""Two minutes before."""


def a_job(name="j", *, pod="web-1", created=CREATED, notes=None, status=None, **spec):
    return {
        "metadata": {"name": name, "creationTimestamp": created, "annotations": notes or {}},
        "spec": {"podRef": {"namespace": "shop", "name": pod}, "ttl": "5m", **spec},
        "status": status or {},
    }


def story(*jobs, name="j", events=()):
    return migration_story.told(migration_story.Facts(name, jobs, NOW, events))


def chapter(found, name):
    return "\n".join(one for each in found.chapters if each.name == name for one in each.sentences)


def a_condition(kind, status="True", reason="", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        pytest.param({}, "Pod shop/web-1 is to move: the job waits for its turn.", id="new"),
        pytest.param(
            {"phase": "Running", "reason": "Evicting", "message": "evicts it", "nodeName": "n2"},
            "Pod shop/web-1 is being moved to node n2: evicts it.",
            id="running",
        ),
        pytest.param(
            {"phase": "Succeeded", "nodeName": "n2"},
            "Pod shop/web-1 has been moved to node n2.",
            id="moved",
        ),
        pytest.param(
            {"phase": "Succeeded"}, "Pod shop/web-1 has been moved off its node.", id="evicted"
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Timeout", "message": "took more than 5m"},
            "Pod shop/web-1 was not moved (Timeout): took more than 5m.",
            id="failed",
        ),
        pytest.param({"phase": "Aborted"}, "The move of pod shop/web-1 was aborted.", id="aborted"),
    ],
)
def test_the_verdict_says_how_far_it_is(status, verdict):
    found = story(a_job(status=status))
    assert found.found
    assert found.verdict == verdict


def test_it_says_which_plug_in_moves_the_pod_for_what():
    notes = {
        names.ANNOTATION_EVICT_TRIGGER: "LowNodeLoad",
        names.ANNOTATION_EVICT_REASON: "node cpu usage(81.00%)>threshold(70.00%)",
        names.ANNOTATION_MIGRATION_PROFILE: "hot-spots",
        names.ANNOTATION_MIGRATION_TARGET: "n2",
        names.ANNOTATION_MIGRATION_GAIN: "spread 31 % to 29 %",
        names.ANNOTATION_MIGRATION_GROUP: "shop/train",
    }
    assert chapter(story(a_job(notes=notes)), "why").splitlines() == [
        "LowNodeLoad moves it: node cpu usage(81.00%)>threshold(70.00%).",
        "It names profile hot-spots of the descheduler.",
        "The round chose node n2, on which the scheduler would place it.",
        "Expected gain: spread 31 % to 29 %.",
        "It moves together with the other pods of shop/train, or not at all.",
    ]


def test_steps_stand_in_the_order_in_which_they_are_taken():
    conditions = [
        a_condition("Eviction", "False", "FailedEvict", "the budget web allows none"),
        a_condition("ReservationScheduled"),
        a_condition("ReservationCreated"),
    ]
    status = {"phase": "Running", "conditions": conditions}
    found = story(a_job(status=status, mode="ReservationFirst"))
    assert chapter(found, "progress").splitlines() == [
        "Its new place is reserved before the pod is evicted.",
        "Done: a Reservation for its new place exists.",
        "Done: the Reservation has a node.",
        "Not yet: the pod has left its node (FailedEvict: the budget web allows none).",
        "It fails in 3m0s unless it is done before (ttl).",
    ]


def test_a_paused_job_says_how_it_goes_on():
    found = story(a_job(paused=True))
    assert "It is paused" in chapter(found, "progress")
    assert found.helps == ('kubectl patch pmj j --type=merge -p \'{"spec":{"paused":false}}\'',)


@pytest.mark.parametrize(
    ("status", "since", "said"),
    [
        ("True", "2027-01-15T07:59:00Z", "It stands still (SwitchedOff): the live switch"),
        ("False", "2027-01-15T07:59:00Z", "It fails in 4m0s unless it is done before (ttl)."),
        ("False", None, "It fails in 3m0s unless it is done before (ttl)."),
    ],
    ids=["suspended", "resumed", "resumed at no known time"],
)
def test_a_suspended_job_has_its_whole_ttl_anew(status, since, said):
    suspended = a_condition("Suspended", status, "SwitchedOff") | {"lastTransitionTime": since}
    found = chapter(story(a_job(status={"conditions": [suspended]})), "progress")
    assert said in found
    assert ("It fails in" in found) is (status == "False")


def test_a_pod_finds_the_latest_of_its_jobs_by_either_name():
    replaced = {"phase": "Succeeded", "podRef": {"namespace": "shop", "name": "web-2"}}
    jobs = (
        a_job("old", created="2027-01-14T00:00:00Z", status={"phase": "Failed"}),
        a_job("new", status=replaced),
        a_job("other", pod="db-0"),
    )
    for name in ("shop/web-1", "shop/web-2"):
        assert story(*jobs, name=name).subject == "migration new"
    found = story(*jobs, name="shop/web-1")
    assert chapter(found, "earlier moves") == "2027-01-14T00:00:00Z: PodMigrationJob old, Failed."
    assert "Pod shop/web-2 replaces it." in chapter(found, "progress")


def test_what_does_not_exist_names_what_is_near():
    found = story(a_job("rebalance-1"), name="rebalance")
    assert not found.found
    assert found.verdict == (
        "There is no PodMigrationJob rebalance among 1; there are rebalance-1."
    )
    assert story(name="shop/web-9").verdict == (
        "No PodMigrationJob moves pod shop/web-9 or has moved it here."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"sentence": "paid: node n1 81 % to 64 %"}', "paid: node n1 81 % to 64 %."),
        pytest.param("[" * 5000, "The receipt on it cannot be read."),
        pytest.param("[1]", "The receipt on it cannot be read."),
        pytest.param('{"sentence": 7}', ""),
    ],
    ids=["measured", "deep", "no object", "no sentence"],
)
def test_the_receipt_is_read_within_bounds(text, said):
    found = story(a_job(notes={names.ANNOTATION_MIGRATION_RECEIPT: text}))
    assert chapter(found, "receipt") == said


def test_warnings_are_repeated():
    events = [{"type": "Warning", "reason": "FailedEvict", "message": "the budget allows none"}]
    assert "Event FailedEvict" in chapter(story(a_job(), events=events), "events")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "podRef", "name", "annotations", "phase"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON), max_size=3))
def test_no_object_breaks_the_story(jobs):
    found = story(a_job(), *jobs)
    assert found.found
    json.dumps(stories.document(found))
    assert list(stories.lines(found))
