"""What users expect of load-aware rebalancing, one test each, with the figures of the behaviour."""

import numpy as np
import pytest

from api import names
from api.kubernetes import core
from descheduler.configuration.arguments import load as arguments
from descheduler.framework import protocols
from descheduler.framework.nodes import node_load
from descheduler.plugins.low_node_load import classification, pools, thresholds
from tests.descheduler import builders
from tests.descheduler.plugins import driving
from tests.descheduler.plugins.low_node_load import scenes

PROD = {"labels": {names.LABEL_PRIORITY_CLASS: "koord-prod"}}
BATCH = {"labels": {names.LABEL_PRIORITY_CLASS: "koord-batch"}}


def test_misplaced_pods_are_found_from_node_metrics():
    balance = scenes.Rounds(scenes.plugin())
    uneven = scenes.cluster({"hot": {"a": 4, "b": 4}, "cool": {"c": 1}})
    assert scenes.moves(balance(uneven)) == [("a", ["cool"])]
    even = scenes.cluster({"one": {"a": 4}, "two": {"b": 4}})
    assert balance(even) == []


@pytest.mark.parametrize(
    ("load", "moved"),
    [
        pytest.param(6.9, [], id="below"),
        pytest.param(7.0, [], id="at the threshold"),
        pytest.param(7.001, ["a"], id="above"),
    ],
)
def test_a_node_above_its_high_threshold_is_relieved(load, moved):
    seen = scenes.cluster({"hot": {"a": 2, "b": load - 2}, "cool": {}}, pods={"b": PROD})
    found = scenes.Rounds(scenes.plugin())(seen)
    assert driving.names(found) == moved
    if found:
        assert found[0].reason == "node is overutilized, node cpu usage(70.01%)>threshold(70.00%)"
        assert found[0].purpose is protocols.Purpose.BALANCE


def test_each_pool_has_thresholds_of_its_own():
    pools_of = [
        {
            "name": kind,
            "nodeSelector": {"matchLabels": {"kind": kind}},
            "lowThresholds": {"cpu": low},
            "highThresholds": {"cpu": high},
        }
        for kind, low, high in (("online", 20, 40), ("batch", 50, 90))
    ]
    seen = scenes.cluster(
        {
            "online-hot": {"a": 3, "b": 2},
            "online-cool": {"c": 1},
            "batch-warm": {"d": 5, "e": 2},
            "batch-cool": {"f": 1},
        },
        nodes={
            name: {"labels": {"kind": name.partition("-")[0]}}
            for name in ("online-hot", "online-cool", "batch-warm", "batch-cool")
        },
    )
    args = {"lowThresholds": None, "highThresholds": None, "nodePools": pools_of}
    found = scenes.Rounds(scenes.plugin(**args))(seen)
    # Together they would be one pool in which "batch-warm" is hot and "batch-cool" is a target.
    assert scenes.moves(found) == [("b", ["online-cool"])]


def test_a_source_of_one_pool_is_left_out_of_later_ones():
    overlapping = {
        "name": "again",
        "nodeSelector": {"matchLabels": {}},
        "lowThresholds": {"cpu": 5},
        "highThresholds": {"cpu": 20},
    }
    seen = scenes.cluster({"hot": {"a": 4, "b": 4}, "cool": {"c": 1}, "empty": {}})
    alone = driving.names(scenes.Rounds(scenes.plugin())(seen))
    found = scenes.Rounds(scenes.plugin(nodePools=[overlapping]))(seen)
    assert alone == ["a"]
    assert [one.pod.node for one in found].count("hot") == 1


def _classes(loads, pods, nodes=None):
    seen = scenes.cluster(loads, pods=pods, nodes=nodes)
    pool = pools.Pool("p", {"cpu": 40}, {"cpu": 70}, {"cpu": 20}, {"cpu": 40}, {"cpu": 1})
    levels = pools.completed(pool)
    load = node_load.read(seen, seen.nodes.values(), levels.resources, 180.0)
    rows = np.arange(len(load.nodes))
    bounds = thresholds.bounds(levels, load, rows, deviation=False)
    found = classification.classify(load, rows, load.columns(levels.resources), bounds)
    return {
        load.nodes[row].name: kind
        for kind in ("low", "high", "prod_low", "prod_high", "both_low")
        for row in getattr(found, kind)
    }


@pytest.mark.parametrize(
    ("prod", "batch", "kind"),
    [
        pytest.param(1, 1, "both_low", id="both below"),
        pytest.param(3, 0, "low", id="prod between"),
        pytest.param(4.0, 0, "low", id="prod at its high threshold"),
        pytest.param(4.0, 1, None, id="both between"),
        pytest.param(2, 3, "prod_low", id="node between, prod below"),
        pytest.param(5, 1, "prod_high", id="node between, prod above"),
        pytest.param(0, 7.1, "high", id="node above"),
        pytest.param(6, 2, "high", id="both above"),
    ],
)
def test_nodes_are_told_apart_by_their_load_and_that_of_prod_pods(prod, batch, kind):
    found = _classes({"n": {"p": prod, "b": batch}}, {"p": PROD, "b": BATCH})
    assert found == ({"n": kind} if kind else {})


def test_a_cordoned_node_is_a_source_and_never_low():
    cordoned = {"hot": {"schedulable": False}, "cool": {"schedulable": False}}
    found = _classes({"hot": {"b": 8}, "cool": {"c": 1}}, {"b": BATCH}, cordoned)
    assert found == {"hot": "high"}


def _hot_for(pattern, condition):
    """Pods that leave in each round, where a letter says how loaded the node is."""
    balance = scenes.Rounds(scenes.plugin(anomalyCondition=condition))
    loads = {"h": 8, "m": 5, "l": 1}
    return [
        len(
            balance(
                scenes.cluster(
                    {"n": {"a": loads[one] - 1, "b": 1}, "cool": {}},
                    now=builders.NOW + number,
                    usages={name: {"updated_at": builders.NOW + number} for name in ("n", "cool")},
                ),
                driving.stays,
            )
        )
        > 0
        for number, one in enumerate(pattern)
    ]


@pytest.mark.parametrize(
    ("pattern", "acts"),
    [
        pytest.param("hhh", "---", id="three rounds are a peak"),
        pytest.param("hhhh", "---x", id="the fourth acts"),
        pytest.param("hhhhhh", "---xxx", id="and those after it"),
        pytest.param("hhhlhhhh", "-------x", id="below the low threshold it starts anew"),
        pytest.param("hhhmhhhh", "-------x", id="as it does between the thresholds"),
        pytest.param("hlhlhlhlhlhl", "------------", id="peaks never add up"),
        pytest.param("hhhhlhhh", "---x----", id="an end of overload is one for the next too"),
    ],
)
def test_a_node_that_is_hot_for_a_moment_is_no_source(pattern, acts):
    found = _hot_for(pattern, {"consecutiveAbnormalities": 3})
    assert "".join("x" if one else "-" for one in found) == acts


def test_overload_ends_after_its_time_and_has_to_be_seen_anew():
    balance = scenes.Rounds(
        scenes.plugin(anomalyCondition={"consecutiveAbnormalities": 2, "timeout": "60s"})
    )
    acted = []
    for number in range(9):
        now = builders.NOW + 30 * number
        seen = scenes.cluster(
            {"hot": {"a": 4, "b": 4}, "cool": {}},
            now=now,
            usages={name: {"updated_at": now} for name in ("hot", "cool")},
        )
        acted.append(bool(balance(seen, driving.stays)))
    # Seen at 0, 30 and 60 s; acted on until 120 s; seen again at 120, 150 and 180 s.
    assert acted == [False, False, True, True, False, False, True, True, False]


def test_a_node_without_a_report_keeps_its_count_for_a_while():
    condition = {"consecutiveAbnormalities": 1 + 1, "timeout": "60s"}
    hot = {"hot": {"a": 4, "b": 4}, "cool": {}}

    def seen(at, age=0.0):
        now = builders.NOW + at
        usages = {"hot": {"updated_at": now - age}, "cool": {"updated_at": now}}
        return scenes.cluster(hot, now=now, usages=usages)

    for gap, acts in ((240, True), (400, False)):
        balance = scenes.Rounds(scenes.plugin(anomalyCondition=condition))
        balance(seen(0), driving.stays)
        balance(seen(30), driving.stays)
        balance(seen(60, age=900), driving.stays)
        assert bool(balance(seen(30 + gap), driving.stays)) is acts


def test_a_source_whose_load_fell_is_tried_as_normal_again():
    balance = scenes.Rounds(scenes.plugin(anomalyCondition={"consecutiveAbnormalities": 2}))
    hot = scenes.cluster({"hot": {"a": 4, "b": 4}, "cool": {}})
    # The pod that leaves brings the node below its threshold: its count starts anew.
    assert [len(balance(hot)) for _ in range(6)] == [0, 0, 1, 0, 0, 1]
    # Where nothing left, it is still overloaded.
    assert [len(balance(hot, driving.stays)) > 0 for _ in range(4)] == [False, False, True, True]


def test_removable_pods_leave_in_order_and_others_are_set_aside():
    load = {
        "kept": 1,
        "prod": 1,
        "large": 1.5,
        "small": 0.5,
        "batch": 1,
        "other-namespace/x": 1,
        "unselected": 1,
        "selected-cheap": 0.25,
    }
    loads = {"hot": {**load, "rest": 9.9 - sum(load.values())}, "cool": {}, "cold": {}}
    app = {"app": "yes"}
    pods = {
        **{name: {"labels": app, "priority": 9000} for name in ("kept", "large", "small", "prod")},
        "batch": {"labels": {**app, **BATCH["labels"]}},
        "prod": {"labels": app, "priority": 9900},
        "other-namespace/x": {"labels": app},
        "selected-cheap": {
            "labels": app,
            "priority": 9000,
            "annotations": {names.ANNOTATION_EVICTION_COST: "-5"},
        },
    }
    balance = scenes.plugin(
        podSelectors=[{"name": "some", "selector": {"matchLabels": app}}],
        evictableNamespaces={"exclude": ["other-namespace"]},
    )
    found = scenes.Rounds(balance)(scenes.cluster(loads, pods=pods), kept=["kept"])
    # Class, priority, cost, and then what relieves the node best.
    assert driving.names(found) == ["batch", "selected-cheap", "large", "small"]


def test_the_pod_that_is_just_large_enough_leaves_before_larger_and_smaller_ones():
    seen = scenes.cluster({"hot": {"tiny": 0.5, "large": 4, "fits": 1, "rest": 2.5}, "cool": {}})
    assert driving.names(scenes.Rounds(scenes.plugin())(seen)) == ["fits"]


def test_eviction_stops_where_the_source_is_below_its_threshold():
    pods = {f"p{number}": 1 for number in range(10)}
    seen = scenes.cluster({"hot": pods, "cool": {}})
    found = scenes.Rounds(scenes.plugin())(seen)
    assert len(found) == 3
    assert [one.reason.partition("(")[2][:6] for one in found] == ["100.00", "90.00%", "80.00%"]


def test_a_refusal_leaves_the_source_as_loaded_as_it_was():
    pods = {f"p{number}": 1 for number in range(10)}
    seen = scenes.cluster({"hot": pods, "cool": {}})
    found = scenes.Rounds(scenes.plugin())(seen, driving.stays)
    assert len(found) == 10
    assert len({one.reason for one in found}) == 1


@pytest.mark.parametrize(("node_fit", "moved"), [(True, []), (False, ["a"])])
def test_without_node_fit_pods_leave_that_no_node_takes(node_fit, moved):
    seen = scenes.cluster(
        {"hot": {"a": 4, "b": 4}, "cool": {}}, pods={name: {"cpu": 11} for name in "ab"}
    )
    found = scenes.Rounds(scenes.plugin(nodeFit=node_fit))(seen)
    assert driving.names(found) == moved
    assert all(one.targets is None for one in found)


TAINT = core.Taint(key="dedicated", value="x", effect="NoSchedule")


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        pytest.param({"schedulable": False}, {}, id="cordoned"),
        pytest.param({"taints": (TAINT,)}, {}, id="taint"),
        pytest.param({"labels": {"zone": "b"}}, {"selector": {"zone": "a"}}, id="node selector"),
        pytest.param({"cpu": 10}, {"cpu": "9"}, id="cpu is requested by others"),
        pytest.param({"memory": "2Gi"}, {"memory": "3Gi"}, id="memory"),
        pytest.param({"pods": 1}, {}, id="number of pods"),
        pytest.param({}, {"requests": {"example.com/gpu": 1}}, id="a resource it lacks"),
    ],
)
def test_a_node_that_affinity_taints_or_requests_rule_out_is_no_target(node, pod):
    loads = {"hot": {"a": 4, "b": 4}, "cool": {"c": 0.1}, "other": {"d": 0.1}}
    seen = scenes.cluster(
        loads,
        nodes={"cool": node, "other": {"labels": {"zone": "a"}, "more": {"example.com/gpu": 1}}},
        pods={"a": pod, "b": {"priority": 1}, "c": {"cpu": "2"}},
    )
    assert scenes.moves(scenes.Rounds(scenes.plugin())(seen)) == [("a", ["other"])]


def test_a_node_that_the_pod_would_push_over_its_threshold_is_no_target():
    # Each of the nodes is low, and 5 cores more are above 70 % of three of them.
    loads = {"hot": {"a": 5, "b": 4.5}, "half": {"c": 2.1}, "quarter": {"d": 2.0}, "full": {"e": 4}}
    seen = scenes.cluster(loads, pods={"b": PROD | {"priority": 9999}})
    assert scenes.moves(scenes.Rounds(scenes.plugin())(seen)) == [("a", ["quarter"])]


def test_both_the_request_and_the_usage_of_a_pod_have_to_fit():
    loads = {"hot": {"a": 4, "b": 4}, "idle": {"reserved": 0.1}, "busy": {"small": 4}}
    pods = {"a": {"cpu": 6}, "b": {"cpu": 6}, "reserved": {"cpu": 9}, "small": {"cpu": "100m"}}
    assert scenes.Rounds(scenes.plugin())(scenes.cluster(loads, pods=pods)) == []
    roomy = scenes.cluster({**loads, "free": {}}, pods=pods)
    assert scenes.moves(scenes.Rounds(scenes.plugin())(roomy)) == [("a", ["free"])]


def test_pods_that_move_count_on_their_targets():
    pods = {f"p{number}": 2 for number in range(5)}
    seen = scenes.cluster({"hot": pods, "one": {"c": 4}, "two": {"d": 4}, "spare": {"e": 5}})
    found = scenes.Rounds(scenes.plugin())(seen)
    assert scenes.moves(found) == [("p0", ["one", "two"]), ("p1", ["two"])]


def test_where_the_scheduler_puts_a_pod_is_what_counts():
    pods = {f"p{number}": 2 for number in range(5)}
    seen = scenes.cluster({"hot": pods, "one": {"c": 4}, "two": {"d": 4}, "spare": {"e": 5}})
    found = scenes.Rounds(scenes.plugin())(seen, lambda _one: protocols.Target("two"))
    assert scenes.moves(found) == [("p0", ["one", "two"]), ("p1", ["one"])]


def test_defaults_are_those_of_the_reference():
    given = arguments.LowNodeLoadArgs.model_validate(
        {"lowThresholds": {"cpu": 45}, "highThresholds": {"cpu": 70}}
    )
    (pool,) = pools.settings(given).pools
    assert pool.condition == pools.Condition(timeout=60.0, abnormalities=5, normalities=3)
    assert pool.weights == {"cpu": 1, "memory": 1}
    assert pools.settings(given).expiration_seconds == 180
