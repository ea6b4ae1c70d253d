"""What a node is told to enforce, and whose fields stay whose."""

import json

import pytest

from api import names, resources
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.nodeslo import plan as node_slo
from manager.reconcile import actions, node_objects
from tests.reference import cases, differences


def specs(case: cases.Case) -> list[dict]:
    metadata = case.given["node"]["metadata"]
    settings, found = None, []
    for data in case.given["configMapDataSequence"]:
        settings = cluster_settings.read(settings, data).settings
        parts = settings.parts(metadata["labels"])
        found.append(node_slo.render(parts, metadata["annotations"]).spec)
    return found


@pytest.mark.vectors
def test_specs_of_the_reference() -> None:
    file = "node_slo"
    cases.check(file, specs, lambda case: case.expected["specs"], differences.of(file))


PARTS = effective.ClusterSettings(effective.DEFAULTS).parts({})
SPEC = node_slo.render(PARTS, {}).spec


ENFORCED = {"type": "Enforced", "status": "False"}


def present(spec, *entries, label=True, effective="", others=()):
    conditions = [
        *others,
        *([{"type": node_objects.EFFECTIVE, "status": effective}] * bool(effective)),
    ]
    labels = {names.LABEL_CREATED_BY: "koord-manager"} if label else {}
    return node_objects.present(
        {
            "metadata": {"name": "n1", "uid": "u", "labels": labels, "managedFields": entries},
            "spec": spec,
            "status": {"conditions": conditions},
        }
    )


def managed(manager, spec, **more):
    return {"manager": manager, "fieldsV1": {"f:spec": spec}, **more}


def planned(there, annotations=None):
    return node_slo.planned("n1", there, PARTS, annotations or {})


def test_made_for_a_new_node() -> None:
    (step,) = planned(None).steps
    assert isinstance(step, actions.Apply)
    assert step.resource == resources.NODE_SLOS
    assert step.body["spec"] == {key: part for key, part in SPEC.items() if part}
    assert step.body["metadata"]["labels"] == {names.LABEL_CREATED_BY: "koord-manager"}


def test_a_section_that_was_ours_and_is_empty_now_is_not_sent() -> None:
    there = present(
        {**SPEC, "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}}},
        managed(
            "koord-manager",
            {"f:resourceQOSStrategy": {"f:beClass": {"f:cpuQOS": {"f:enable": {}}}}},
        ),
    )
    (step,) = planned(there).steps
    assert isinstance(step, actions.Apply)
    assert "resourceQOSStrategy" not in step.body["spec"]


def test_nothing_to_do_when_all_is_there() -> None:
    assert planned(present({**SPEC, "extensions": {"x": 1}})).steps == ()


def test_what_a_person_set_is_left_and_told() -> None:
    spec = {**SPEC, "cpuBurstStrategy": {**SPEC["cpuBurstStrategy"], "policy": "auto"}}
    there = present(spec, managed("kubectl", {"f:cpuBurstStrategy": {"f:policy": {}}}))
    (told,) = planned(there).steps
    assert isinstance(told, actions.Tell)
    assert told.reason == node_objects.FIELDS_LEFT
    assert "cpuBurstStrategy.policy" in told.note


def test_drift_in_our_own_field_is_set_right_without_the_persons_field() -> None:
    burst = {**SPEC["cpuBurstStrategy"], "policy": "auto", "cpuBurstPercent": 1}
    there = present(
        {**SPEC, "cpuBurstStrategy": burst},
        managed("kubectl", {"f:cpuBurstStrategy": {"f:policy": {}}}),
        managed("koord-manager", {"f:cpuBurstStrategy": {"f:cpuBurstPercent": {}}}),
        label=False,
    )
    apply, told = planned(there).steps
    assert isinstance(apply, actions.Apply)
    assert "policy" not in apply.body["spec"]["cpuBurstStrategy"]
    assert apply.body["spec"]["cpuBurstStrategy"]["cpuBurstPercent"] == 1000
    assert "labels" not in apply.body["metadata"]
    assert isinstance(told, actions.Tell)


def test_our_field_that_is_no_longer_wanted_is_given_up() -> None:
    there = present(
        {**SPEC, "hostApplications": [{"name": "a"}]},
        managed("koord-manager", {"f:hostApplications": {}}),
    )
    (step,) = planned(there).steps
    assert isinstance(step, actions.Apply)
    assert "hostApplications" not in step.body["spec"]


def test_thresholds_in_shorthand_are_not_contradicted() -> None:
    spec = {
        "resourceThresholdStrategy": {
            "enable": True,
            "thresholds": {"cpu-suppress-percent": 40, "memory-evict-threshold-percent": 75},
        },
        "resourceQOSStrategy": {"beClass": {"blkIOQOS": {"enable": True}}},
    }
    (step, _) = planned(
        present(spec, managed("kubectl", {"f:resourceThresholdStrategy": {}}))
    ).steps
    assert isinstance(step, actions.Apply)
    assert step.body["spec"]["resourceUsedThresholdWithBE"] == {
        "cpuSuppressPolicy": "cpuset",
        "cpuEvictPolicy": "evictByRealLimit",
    }


def test_fields_of_the_status_belong_to_nobody_here() -> None:
    there = present(SPEC, managed("koord-agent", {"f:cpuBurstStrategy": {}}, subresource="status"))
    assert there.foreign == frozenset()


def test_bandwidth_of_the_node_wins() -> None:
    rendered = node_slo.render(PARTS, {names.ANNOTATION_NETWORK_BANDWIDTH: "10000M"})
    assert rendered.spec["systemStrategy"] == {"totalNetworkBandwidth": "10G"}


def test_unreadable_bandwidth_leaves_the_section_out_and_says_so() -> None:
    made = planned(None, {names.ANNOTATION_NETWORK_BANDWIDTH: "fast"})
    apply, told = made.steps
    assert isinstance(apply, actions.Apply)
    assert "systemStrategy" not in apply.body["spec"]
    assert isinstance(told, actions.Tell)
    assert "fast" in told.note
    assert told.warning


def test_removed_with_its_node_only_if_we_made_it() -> None:
    gone = node_objects.orphaned(resources.NODE_SLOS, "n1", present(SPEC))
    assert gone.steps == (actions.Delete(resources.NODE_SLOS, "n1", "u"),)
    assert node_objects.orphaned(resources.NODE_SLOS, "n1", None).steps == ()


def test_made_by_hand_without_a_node_is_told_once() -> None:
    told = node_objects.orphaned(resources.NODE_SLOS, "n1", present(SPEC, label=False)).steps
    assert [type(step) for step in told] == [actions.SetCondition, actions.Tell]
    again = present(SPEC, label=False, effective="False")
    assert node_objects.orphaned(resources.NODE_SLOS, "n1", again).steps == ()


@pytest.mark.parametrize("effective", ["", "False"], ids=["no node", "node"])
def test_conditions_of_others_are_kept_and_guarded_by_the_version_seen(effective) -> None:
    there = present(SPEC, label=False, effective=effective, others=[ENFORCED])
    seen = node_objects.at_version(there, 7)
    plan = planned(seen) if effective else node_objects.orphaned(resources.NODE_SLOS, "n1", seen)
    (step,) = (one for one in plan.steps if isinstance(one, actions.SetCondition))
    assert (step.present[0], step.version) == (ENFORCED, "7")
    assert node_objects.at_version(there, 0) == there
    assert node_objects.at_version(None, 7) is None


def test_the_status_is_written_before_the_spec_moves_the_version() -> None:
    steps = planned(present({}, label=False, effective="False")).steps
    assert [type(step) for step in steps] == [actions.SetCondition, actions.Apply]


def test_a_node_that_appears_makes_it_effective() -> None:
    (step,) = planned(present(SPEC, label=False, effective="False")).steps
    assert isinstance(step, actions.SetCondition)
    assert step.condition.holds


def test_what_pods_may_ask_for_reaches_the_nodes_that_it_is_meant_for() -> None:
    key = "pod-override-limits-config"
    gold = {"name": "gold", "nodeSelector": {"matchLabels": {"pool": "gold"}}}
    data = {
        "clusterStrategy": {"cpuBurstPercent": 500, "systemNamespaces": ["infra"]},
        "nodeStrategies": [{**gold, "cpuBurstPercent": 2000}],
    }
    reading = cluster_settings.read(None, {key: json.dumps(data)})
    assert not reading.problems
    specs = [
        node_slo.render(reading.settings.parts(labels), {}).spec["podOverrideLimits"]
        for labels in ({}, {"pool": "gold"})
    ]
    assert specs == [
        {"cpuBurstPercent": 500, "systemNamespaces": ["infra"]},
        {"cpuBurstPercent": 2000, "systemNamespaces": ["infra"]},
    ]
    assert "podOverrideLimits" not in SPEC


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"oomScoreAdj": -1000}, "oomScoreAdj: is -1000, must be in -997..1000"),
        ({"cpuBurstPercent": 10**9}, "cpuBurstPercent: is 1000000000, must be in 1..10000"),
        ({"systemNamespaces": "all"}, "systemNamespaces: is"),
    ],
)
def test_limits_that_cannot_be_are_named(written, fault) -> None:
    key = "pod-override-limits-config"
    reading = cluster_settings.read(None, {key: json.dumps({"clusterStrategy": written})})
    assert any(fault in problem.sentence for problem in reading.problems)
