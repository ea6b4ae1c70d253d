"""Which new pods wait behind the gate of their gang, and which then need none of their quota."""

import copy

import pytest

from api import names
from domain.quota.tree import quota_trees
from webhook import pods, review

TREES = quota_trees.trees([quota_trees.Member("team", "default")], [])
PICTURE = review.Picture(
    (), {}, {}, lambda _: 0, trees=TREES, opens_gates=True, plans_gangs=True,
    gang_schedulers=frozenset({"koord-scheduler", "default-scheduler"}),
)  # fmt: skip
GANG, QUOTA = {"name": names.GATE_GANG}, {"name": names.GATE_QUOTA}
ANNOTATED = {names.ANNOTATION_GANG_NAME: "g", names.ANNOTATION_GANG_MIN_AVAILABLE: "2"}
NATIVE = {"schedulingGroup": {"podGroupName": "g"}}


def pod(labels=None, notes=ANNOTATED, **spec):
    metadata = {
        "name": "p",
        "labels": {names.LABEL_QUOTA_NAME: "team"} | (labels or {}),
        "annotations": notes,
    }
    spec = {"schedulerName": "koord-scheduler", "containers": [{"name": "c"}]} | spec
    return {"metadata": metadata, "spec": spec}


def gates_of(body, picture=PICTURE, operation="CREATE", namespace="default"):
    decision = pods.mutate(review.Review(operation, namespace, body), picture)
    return (decision.object or body)["spec"].get("schedulingGates", [])


MEMBERS = {
    "by annotation": pod(),
    "by the old label": pod({names.LABEL_POD_GROUP_OLD: "g"}, {}),
    "of a PodGroup": pod({names.LABEL_POD_GROUP: "g"}, {}),
    "without a minimum": pod(notes={names.ANNOTATION_GANG_NAME: "g"}),
    "with a name that no object has": pod(notes={names.ANNOTATION_GANG_NAME: "a,b"}),
    "of the default scheduler": pod(schedulerName=""),
    "of ours and of a native group": pod(**NATIVE),
}


@pytest.mark.parametrize("body", MEMBERS.values(), ids=MEMBERS)
def test_members_of_gangs_wait_for_their_gang_alone(body):
    assert gates_of(body) == [GANG]


OTHERS = {
    "no gang": (pod(notes={}), PICTURE),
    "an empty name": (pod(notes={names.ANNOTATION_GANG_NAME: ""}), PICTURE),
    "another scheduler": (pod(schedulerName="volcano"), PICTURE),
    "nobody opens gates of gangs": (pod(), PICTURE.but(plans_gangs=False)),
    "no scheduler is known": (pod(), PICTURE.but(gang_schedulers=frozenset())),
}


@pytest.mark.parametrize(("body", "picture"), OTHERS.values(), ids=OTHERS)
def test_other_pods_wait_for_their_quota(body, picture):
    assert gates_of(body, picture) == [QUOTA]
    assert gates_of(body, picture.but(opens_gates=False)) == []


def test_kube_scheduler_holds_members_of_native_groups_by_itself():
    assert gates_of(pod(notes={}, **NATIVE)) == []
    assert gates_of(pod(notes={}, schedulerName="volcano", **NATIVE)) == [QUOTA]


def test_pods_with_a_node_are_let_pass():
    assert gates_of(pod(nodeName="n")) == []


def test_the_gate_is_added_once_and_beside_those_of_others():
    other = {"name": "example.com/wait"}
    assert gates_of(pod(schedulingGates=[other])) == [other, GANG]
    assert gates_of(pod(schedulingGates=[GANG, other])) == [GANG, other]
    assert gates_of(pod(), operation="UPDATE") == []


HOSTILE = [None, True, 0, 2**70, 1.5, "", "x" * 10_000, [], {}, [None], [[]], {"podGroupName": {}}]
PATHS = [
    ("spec", "schedulingGates"), ("spec", "schedulerName"), ("spec", "schedulingGroup"),
    ("metadata", "annotations", names.ANNOTATION_GANG_NAME), ("metadata", "labels"),
    ("metadata", "labels", names.LABEL_POD_GROUP),
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("path", PATHS, ids="/".join)
def test_nothing_a_tenant_writes_makes_it_fail(path, value):
    body = copy.deepcopy(pod())
    place = body
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    decision = pods.mutate(review.Review("CREATE", "default", body), PICTURE)
    if decision.object is not None:
        again = pods.mutate(review.Review("CREATE", "default", decision.object), PICTURE)
        assert again.object in (None, decision.object)


def test_the_plan_of_a_gang_is_taken_off_a_new_pod():
    written = pod(notes=ANNOTATED | {names.ANNOTATION_PLAN: "{}"})
    decision = pods.mutate(review.Review("CREATE", "default", written), PICTURE)
    assert decision.object["metadata"]["annotations"] == ANNOTATED
    assert any(names.ANNOTATION_PLAN in text for text in decision.warnings)


def warned(labels=None, notes=ANNOTATED, picture=PICTURE, namespace="default", **spec):
    body = pod(labels, notes, **spec)
    return pods.validate(review.Review("CREATE", namespace, body), picture).warnings


WARNINGS = {
    "no minimum": ({}, {names.ANNOTATION_GANG_NAME: "g"}, "the gang waits for ever"),
    "a minimum that is no number": (
        {}, ANNOTATED | {names.ANNOTATION_GANG_MIN_AVAILABLE: "all"}, "no decimal integer",
    ),
    "a bad minimum in a label": (
        {names.LABEL_POD_GROUP_MIN_AVAILABLE: "all"}, ANNOTATED,
        f"labels[{names.LABEL_POD_GROUP_MIN_AVAILABLE}]: is missing or no decimal",
    ),
    "a minimum of 1": (
        {}, ANNOTATED | {names.ANNOTATION_GANG_MIN_AVAILABLE: "1"}, "do not wait for each other",
    ),
    "a total below the minimum": (
        {}, ANNOTATED | {names.ANNOTATION_GANG_TOTAL: "1"}, "1 is below the minimum; 2 is used",
    ),
    "a bad name": ({}, ANNOTATED | {names.ANNOTATION_GANG_NAME: "a,b"}, "waits for ever"),
    "a minimum without a name": (
        {}, {names.ANNOTATION_GANG_MIN_AVAILABLE: "2"}, "has no effect without the name of a gang",
    ),
    "two names": (
        {names.LABEL_POD_GROUP: "h"}, ANNOTATED,
        f"annotations[{names.ANNOTATION_GANG_NAME}]: g has no effect beside",
    ),
    "a mode": (
        {}, ANNOTATED | {names.ANNOTATION_GANG_MODE: "strict"}, "is none of Strict, NonStrict",
    ),
    "groups": ({}, ANNOTATED | {names.ANNOTATION_GANG_GROUPS: "{"}, "is no JSON list"),
    "a gang elsewhere": (
        {}, ANNOTATED | {names.ANNOTATION_GANG_GROUPS: '["x/g"]'}, "only if it lists the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "part"), WARNINGS.values(), ids=WARNINGS)
def test_doubtful_declarations(labels, notes, part):
    found = [text for text in warned(labels, notes) if part in text]
    assert len(found) == 1, warned(labels, notes)


def test_the_scheduler_of_a_gang_has_to_place_gangs():
    text = (
        "spec.schedulerName: volcano does not place gangs as a whole; name default-scheduler or "
        "koord-scheduler"
    )
    assert text in warned(schedulerName="volcano")
    assert text not in warned(schedulerName="volcano", picture=PICTURE.but(plans_gangs=False))
    assert warned(notes={}, schedulerName="volcano", **NATIVE) == warned(notes={})


def test_a_native_group_has_no_effect_beside_a_gang_of_ours():
    assert any("spec.schedulingGroup: g has no effect" in text for text in warned(**NATIVE))


def test_a_good_declaration_is_not_warned_about():
    assert warned() == warned(notes={})


BACKLOG = PICTURE.but(gang_backlog=True)
SMALL = {
    "by annotation": pod(),
    "by the old label": pod(
        {names.LABEL_POD_GROUP_OLD: "g", names.LABEL_POD_GROUP_MIN_AVAILABLE: "32"}, {}
    ),
    "with a gate of others": pod(schedulingGates=[{"name": "example.com/wait"}]),
}


@pytest.mark.parametrize("body", SMALL.values(), ids=SMALL)
def test_with_a_backlog_members_of_small_gangs_wait_behind_no_gate(body):
    assert gates_of(body) == [*body["spec"].get("schedulingGates", []), GANG]
    assert gates_of(body, BACKLOG) == body["spec"].get("schedulingGates", [])


LARGE = {
    "more members than are soon there": pod(
        notes=ANNOTATED | {names.ANNOTATION_GANG_MIN_AVAILABLE: "33"}
    ),
    "a PodGroup has the minimum": pod({names.LABEL_POD_GROUP: "g"}, ANNOTATED),
    "nobody has the minimum": pod(notes={names.ANNOTATION_GANG_NAME: "g"}),
    "no object has its name": pod(notes=ANNOTATED | {names.ANNOTATION_GANG_NAME: "a,b"}),
    "it starts with another gang": pod(
        notes=ANNOTATED | {names.ANNOTATION_GANG_GROUPS: '["default/g", "default/h"]'}
    ),
    "it has its gate already": pod(schedulingGates=[GANG]),
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
def test_with_a_backlog_members_of_other_gangs_wait_behind_their_gate(body):
    assert gates_of(body, BACKLOG) == [GANG]
