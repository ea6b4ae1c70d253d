"""What LowNodeLoad does beyond the reference: it moves nothing that does not help."""

import pytest

from api import names
from descheduler.framework import protocols
from descheduler.plugins.low_node_load import pools
from tests.descheduler import builders
from tests.descheduler.plugins import driving
from tests.descheduler.plugins.low_node_load import scenes

PROD = {"labels": {names.LABEL_PRIORITY_CLASS: "koord-prod"}}
OLD = {"updated_at": builders.NOW - 180}
HOT = {"hot": {"a": 4, "b": 4}, "cool": {"c": 1}}


def _balance(seen, answer=driving.leaves, **args):
    balance = scenes.Rounds(scenes.plugin(**args))
    return balance(seen, answer), balance.notes


def test_nothing_moves_where_every_node_exceeds_its_thresholds():
    seen = scenes.cluster({"one": {"a": 4, "b": 4}, "two": {"c": 4, "d": 5}})
    found, notes = _balance(seen)
    assert found == []
    pool = "pool __default_node_pool__: 2 of 2 nodes exceed thresholds"
    assert notes == (f"{pool}, and no node is below all of them: no pod is moved",)


def test_too_few_low_nodes_are_left_alone():
    found, notes = _balance(scenes.cluster(HOT), numberOfNodes=1)
    assert found == []
    assert "1 is low, where numberOfNodes asks for more than 1" in notes[0]
    assert len(_balance(scenes.cluster({**HOT, "cold": {}}), numberOfNodes=1)[0]) == 1


class _Limit:
    """Lets so many pods leave."""

    def __init__(self, left):
        self._left = left

    def refusal(self, pod):
        return "" if self._left else "maximum number of pods reached"

    def leaves(self, suggestion):
        self._left -= 1
        return driving.leaves(suggestion)


def test_nothing_is_suggested_beyond_a_limit_and_the_round_says_so():
    pods = {f"p{number}": 1 for number in range(10)}
    seen = scenes.cluster({"hot": pods, "cool": {}})
    balance, limit = scenes.Rounds(scenes.plugin()), _Limit(2)
    assert len(balance(seen, limit.leaves, limits=limit)) == 2
    limited = "maximum number of pods reached, 8 pods of overloaded nodes stay"
    assert balance.notes == (f"pool __default_node_pool__: {limited}",)


def test_a_round_that_moves_pods_has_nothing_to_say():
    assert _balance(scenes.cluster(HOT))[1] == ()


@pytest.mark.parametrize("old", ["hot", "cool"])
def test_a_node_with_an_old_report_is_neither_source_nor_target(old):
    found, _ = _balance(scenes.cluster({**HOT, "warm": {"d": 5}}, usages={old: OLD}))
    assert found == []


def test_pods_that_have_ended_neither_leave_nor_count_as_pods():
    args = {"lowThresholds": {"pods": 2}, "highThresholds": {"pods": 2}}
    loads = {"hot": {"a": 4, "b": 4, "c": 1}, "cool": {}}
    ended = {"c": {"phase": "Succeeded"}}
    assert driving.names(_balance(scenes.cluster(loads), **args)[0]) == ["a"]
    assert _balance(scenes.cluster(loads, pods=ended), **args)[0] == []


def test_the_age_of_a_report_can_be_set():
    seen = scenes.cluster(HOT, usages={"hot": OLD})
    assert len(_balance(seen, nodeMetricExpirationSeconds=181)[0]) == 1


@pytest.mark.parametrize("node_fit", [True, False])
def test_a_pod_of_which_nothing_is_measured_stays(node_fit):
    loads = {"hot": {"new": None, "a": 4, "b": 4}, "cool": {}}
    seen = scenes.cluster(loads, pods={"new": {"priority": -10}})
    assert driving.names(_balance(seen, nodeFit=node_fit)[0]) == ["a"]


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param({"pods": {"a": {"leaves_at": builders.NOW + 5}}}, id="terminating"),
        pytest.param({"jobs": [builders.job("j", "a")]}, id="a job waits"),
        pytest.param({"jobs": [builders.job("j", "a", phase="Running")]}, id="a job runs"),
    ],
)
def test_a_pod_that_leaves_already_relieves_its_node(leaving):
    assert _balance(scenes.cluster(HOT, **leaving))[0] == []
    failed = [builders.job("j", "a", phase="Failed")]
    assert len(_balance(scenes.cluster(HOT, jobs=failed))[0]) == 1


def test_a_report_that_still_tells_of_moved_pods_moves_no_others():
    """As long as the agent has not reported again, the node looks as loaded as before."""
    gone = scenes.cluster(HOT, jobs=[builders.job("j", "a", uid="uid-a", phase="Succeeded")])
    left = [pod for pod in gone.on_node["hot"] if pod.name != "a"]
    seen = builders.picture_of(
        gone.nodes.values(), left, gone.usage.values(), jobs=gone.jobs.values()
    )
    assert _balance(seen)[0] == []
    # Without a job nothing says that the descheduler moved it: the report counts.
    seen = builders.picture_of(gone.nodes.values(), left, gone.usage.values())
    assert driving.names(_balance(seen)[0]) == ["b"]


def test_pods_that_have_just_started_count_on_targets_as_what_they_request():
    loads = {"hot": {"a": 4, "b": 4}, "cool": {"new": None}}
    for age, cpu, moved in ((30, 4, []), (30, 3, ["a"]), (7200, 4, ["a"])):
        fresh = {"cpu": cpu, "created": builders.NOW - age}
        found, _ = _balance(scenes.cluster(loads, pods={"new": fresh}))
        assert driving.names(found) == moved


def test_batch_pods_that_have_just_started_count_as_the_batch_resources_they_request():
    loads = {"hot": {"a": 4, "b": 4}, "cool": {"new": None}}
    fresh = {
        "labels": {names.LABEL_PRIORITY_CLASS: "koord-batch"},
        "requests": {names.BATCH_CPU: 4000},
        "created": builders.NOW,
    }
    assert _balance(scenes.cluster(loads, pods={"new": fresh}))[0] == []


def test_pods_on_their_way_count_where_their_place_is_reserved():
    loads = {"hot": {"a": 4, "b": 4}, "other": {"moving": 4}, "cool": {"c": 1}}
    job = builders.job("j", "moving", phase="Running", status={"node_name": "cool"})
    assert scenes.moves(_balance(scenes.cluster(loads))[0]) == [("a", ["cool"])]
    # "other" is low now, and "cool" will not be.
    assert scenes.moves(_balance(scenes.cluster(loads, jobs=[job]))[0]) == [("a", ["other"])]


def _prod_args():
    return {"prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 50}}


def test_prod_pods_leave_a_node_that_prod_pods_use_too_much_of():
    loads = {"hot": {"p": 3, "q": 3, "b": 0.5}, "cool": {"c": 1}}
    seen = scenes.cluster(loads, pods={"p": PROD, "q": PROD, "b": {"priority": 5000}})
    found, _ = _balance(seen, **_prod_args())
    assert scenes.moves(found) == [("p", ["cool"])]
    assert found[0].reason == "node is overutilized, prod cpu usage(60.00%)>threshold(50.00%)"
    assert found[0].of_prod


def test_a_prod_pod_goes_where_neither_load_exceeds_its_threshold():
    batch = {"priority": 5000}
    loads = {"hot": {"p": 3, "q": 3}, "busy": {"b": 4.4}, "prod": {"r": 1.9}, "cool": {"c": 1}}
    pods = {"p": PROD, "q": PROD, "b": batch, "r": PROD, "c": batch}
    found, _ = _balance(scenes.cluster(loads, pods=pods), **_prod_args())
    # "busy" would reach 74 % of all pods, "prod" 49 % of prod pods.
    assert scenes.moves(found) == [("p", ["cool", "prod"])]
    loads["hot"] = {"p": 4, "q": 4}
    found, _ = _balance(scenes.cluster(loads, pods=pods), **_prod_args())
    # Neither does a node that is overloaded as a whole send prod pods where prod is short.
    assert scenes.moves(found) == [("p", ["cool"])]


def test_a_dry_run_is_decided_in_full_and_marked():
    found, _ = _balance(scenes.cluster(HOT), dryRun=True)
    assert [(one.pod.name, one.dry_run) for one in found] == [("a", True)]


def test_a_plugin_that_is_paused_does_nothing():
    assert _balance(scenes.cluster(HOT), paused=True) == ([], ())


def test_a_pool_without_thresholds_does_nothing():
    """Even where the system uses more than is allocatable, which memory alone would show."""
    seen = scenes.cluster(HOT, usages={"hot": {"system": {"memory": "101Gi"}}})
    found, _ = _balance(seen, lowThresholds=None, highThresholds=None)
    assert found == []
    assert len(_balance(seen)[0]) > 0


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [
        pytest.param({"cpu": 40}, {"cpu": 70}, {"cpu": (40, 70), "memory": (100, 100)}, id="both"),
        pytest.param({}, {"cpu": 70}, {"cpu": (100, 100), "memory": (100, 100)}, id="no low one"),
        pytest.param({"cpu": 40}, {}, {"cpu": (40, 100), "memory": (100, 100)}, id="no high one"),
    ],
)
def test_thresholds_are_completed(low, high, levels):
    found = pools.completed(pools.Pool("p", low, high, {}, {}, {}))
    pairs = zip(found.low, found.high, strict=True)
    assert dict(zip(found.resources, pairs, strict=True)) == levels


def test_deviation_thresholds_are_distances_from_the_mean():
    # A mean of 40 %: low up to 30 %, high from 60 %.
    loads = {"hot": {"a": 4, "b": 3}, "mid": {"c": 4}, "low": {"d": 1}}
    args = {
        "useDeviationThresholds": True,
        "lowThresholds": {"cpu": 10},
        "highThresholds": {"cpu": 20},
    }
    found, _ = _balance(scenes.cluster(loads), **args)
    assert scenes.moves(found) == [("b", ["low"])]
    assert found[0].reason == "node is overutilized, node cpu usage(70.00%)>threshold(20.00%)"


def test_amounts_that_no_node_can_have_stop_nothing():
    seen = scenes.cluster(
        {**HOT, "odd": {"x": 0}, "less": {"y": 0}},
        nodes={"odd": {"cpu": 1 << 70, "memory": 1 << 90}},
        pods={"x": {"cpu": 1 << 70}},
    )
    used = {"default/x": {"cpu": 1 << 80, "memory": -(1 << 80)}}
    odd = builders.usage("odd", {"cpu": 1 << 70})
    seen.usage["odd"] = type(odd)("odd", builders.NOW, odd.system, used)
    found, _ = _balance(seen)
    assert ("a", ["cool", "less"]) in scenes.moves(found)


def test_an_empty_cluster_is_balanced():
    assert _balance(builders.picture_of()) == ([], ())


def test_what_is_offered_is_a_collection_of_names():
    seen = scenes.cluster({**HOT, "warm": {"d": 6}, "cold": {}})
    ((one,), _) = _balance(seen)
    assert "cool" in one.targets
    assert "warm" not in one.targets
    assert "gone" not in one.targets
    assert 1 not in one.targets
    assert len(one.targets) == 2
    assert set(one.targets) == {"cold", "cool"}


def test_the_picture_is_not_changed():
    seen, before = scenes.cluster(HOT), scenes.cluster(HOT)
    _balance(seen)
    assert seen == before


def test_closing_a_round_early_is_allowed():
    asked = scenes.plugin().balance(driving.view(scenes.cluster(HOT)), protocols.NO_MEMORY)
    next(asked)
    asked.close()
