"""Without nodeFit of its plug-in a pod leaves although the scheduler would take no other node."""

import pytest

from descheduler.gain import gain_per_eviction
from descheduler.model import objects
from tests.descheduler import builders, cluster_of_rounds, test_loops

ZONE = "topology.kubernetes.io/zone"
SPREAD = (
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    },
)
GROUPS = [
    {"name": name, "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": name}}}
    for name in "ab"
]
WEB = {"labels": {"app": "web"}, "spread": SPREAD}
CASES = [
    pytest.param("LowNodeLoad", test_loops.HOT[1], "nodeFit", {}, id="LowNodeLoad"),
    pytest.param("CustomPriority", {"evictionOrder": GROUPS}, "nodeFit", {}, id="CustomPriority"),
    pytest.param(
        "ScaleDownBinPack",
        {"strategy": "EvictDirectly", "maxPodsToEvict": 1},
        "nodeFit",
        {},
        id="ScaleDownBinPack",
    ),
    pytest.param("FragmentationAware", {}, "nodeFit", {}, id="FragmentationAware"),
    pytest.param(
        "RemovePodsViolatingTopologySpreadConstraint",
        {},
        "topologyBalanceNodeFit",
        WEB,
        id="RemovePodsViolatingTopologySpreadConstraint",
    ),
]
BY_LOAD_OR_RULE = [case for case in CASES if case.id != "FragmentationAware"]
"""The gain that rounds are played with here counts no fragments."""


def crowded(plugin, arguments, pods, **fields):
    """Two nodes of 10 cores, of which three pods should leave the first; the other has 3 free."""
    nodes = [builders.node(name, cpu="10", labels={ZONE: f"zone-{name}"}) for name in "ab"]
    there = builders.pod("there", "b", cpu="7", memory="60Gi", controller="Job/there")
    return cluster_of_rounds.Cluster(
        test_loops.configured([(plugin, arguments)], **fields),
        nodes,
        [*pods, there],
        uses={"there": "1", **{pod.name: "2700m" for pod in pods}},
    )


@pytest.mark.parametrize(("plugin", "arguments", "field", "fields"), CASES)
@pytest.mark.parametrize("fits", [True, False], ids=["on", "off"])
def test_a_pod_that_fits_nowhere_leaves_only_without_it(plugin, arguments, field, fields, fits):
    pods = test_loops.pods("p", "a", "3100m", 3, **fields)
    plan = crowded(plugin, {**arguments, field: fits}, pods).round()
    assert {move.target for move in plan.moves} == (set() if fits else {""})


@pytest.mark.parametrize(("plugin", "arguments", "field", "fields"), BY_LOAD_OR_RULE)
def test_a_node_that_the_scheduler_takes_comes_first(plugin, arguments, field, fields):
    pods = test_loops.pods("p", "a", "3", 3, **fields)
    plan = crowded(plugin, {**arguments, field: False}, pods).round()
    assert plan.moves[0].target == "b"


def test_a_move_has_to_gain_something_all_the_same():
    cluster = cluster_of_rounds.Cluster(
        test_loops.configured([("LowNodeLoad", {**test_loops.HOT[1], "nodeFit": False})]),
        [*test_loops.nodes("a"), builders.node("b", cpu="5")],
        test_loops.pods("p", "a", "1", 2),
        uses={"p0": "4", "p1": "4"},
    )
    assert cluster.round().moves == ()
    assert cluster.refused() == {gain_per_eviction.NO_GAIN}


def test_members_of_a_gang_leave_together_without_targets():
    gang = "default/train"
    pods = [
        builders.pod(f"m{at}", "a", cpu="4", memory="1Mi", controller="Job/train", gang=gang)
        for at in range(2)
    ]
    arguments = {"evictionOrder": GROUPS, "nodeFit": False}
    cluster = crowded("CustomPriority", arguments, pods, moveWholeGangs=True)
    cluster.gangs = {gang: objects.Gang(gang, 2)}
    plan = cluster.round()
    assert {move.suggestion.pod.name: move.target for move in plan.moves} == {"m0": "", "m1": ""}
