"""Pods with a network-topology-selector and without a place in a plan: where they are drawn to."""

import json

import msgspec
import pytest

from domain import persistent
from extender.plugins.coscheduling import selected_pods
from tests.domain.topology import networks
from tests.extender.clusters import gang_cluster

BLOCKS = {"a1": "s1b1", "a2": "s1b1", "b1": "s1b2", "c1": "s2b3"}
NODES = tuple(BLOCKS)
SPEC = json.dumps({"gatherStrategy": [{"layer": networks.BLOCK, "strategy": "PreferGather"}]})
EVEN = dict.fromkeys(NODES, 0)


def _laid(**settings):
    made = gang_cluster.GangCluster(**settings)
    for name, block in BLOCKS.items():
        made.nodes(name, labels=networks.labels(block[:2], block))
    made.nodes("outside")
    made.layers(networks.LAYERS)
    return made


@pytest.fixture
def cluster():
    made = _laid()
    yield made
    assert made.problems() == []
    assert made.rebuilt() == made.value


def _order(scores):
    return sorted(scores, key=scores.get, reverse=True)


def test_a_pod_is_drawn_to_those_with_its_selector(cluster):
    pod = cluster.pod("late", selector="cache")
    assert _order(cluster.scores(pod, *NODES)) == ["c1", "b1", "a1", "a2"], "where few are left"
    cluster.pod("early", selector="cache", node="a2")
    assert cluster.scores(pod, *NODES) == {"a2": 100, "a1": 67, "b1": 34, "c1": 0}
    cluster.pod("early-2", selector="cache", node="c1")
    cluster.pod("early-3", selector="cache", node="c1")
    assert _order(cluster.scores(pod, *NODES)) == ["c1", "a2", "a1", "b1"]


def test_only_candidates_count_as_nodes_that_are_left(cluster):
    """Though most nodes are candidates: a scorer would be asked about all of them."""
    pod = cluster.pod("p", selector="cache")
    assert _order(cluster.scores(pod, "a2", "b1", "c1", "outside")) == ["c1", "a2", "b1", "outside"]
    assert cluster.scores(pod, "b1") == {"b1": 100}


def test_pods_of_other_selectors_and_namespaces_do_not_count(cluster):
    pod = cluster.pod("late", selector="cache")
    before = cluster.scores(pod, *NODES)
    cluster.pod("x", selector="other", node="a2")
    cluster.pod("y", selector="cache", node="a2", namespace="foreign")
    cluster.pod("z", node="a2")
    cluster.pod("w", selector="cache")
    assert cluster.scores(pod, *NODES) == before


def test_a_pod_counts_from_its_bind_until_it_is_gone(cluster):
    pod, other = cluster.pod("late", selector="cache"), cluster.pod("first", selector="cache")
    before = cluster.scores(pod, *NODES)
    asked, granted = cluster.reserve(other, "a2")
    assert (cluster.permission(asked).allowed, granted) == (True, None)
    assumed = cluster.scores(pod, *NODES)
    assert _order(assumed)[0] == "a2"
    shown = cluster.pod("first", selector="cache", node="a2")
    assert cluster.scores(pod, *NODES) == assumed
    relabelled = cluster.pod("first", selector="other", node="a2")
    assert cluster.scores(pod, *NODES) == before
    cluster.pod("first", selector="cache", node="a2")
    assert cluster.scores(pod, *NODES) == assumed
    assert shown.key == relabelled.key
    cluster.gone(shown)
    assert cluster.scores(pod, *NODES) == before
    assert cluster.value.selected == selected_pods.NONE, "what is kept goes with the pods"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"network": False}, id="awareNetworkTopology is false"),
        pytest.param({}, id="no ClusterNetworkTopology"),
    ],
)
def test_without_a_network_no_node_is_better(settings):
    made = _laid(**settings)
    made.layers(None)
    pod = made.pod("late", selector="cache")
    made.pod("early", selector="cache", node="a2")
    assert made.scores(pod, *NODES) == EVEN
    assert made.rebuilt() == made.value


def test_the_network_may_come_after_the_pods(cluster):
    cluster.layers(None)
    pod = cluster.pod("late", selector="cache")
    cluster.pod("early", selector="cache", node="a2")
    assert cluster.scores(pod, *NODES) == EVEN
    cluster.layers(networks.LAYERS)
    assert _order(cluster.scores(pod, *NODES))[0] == "a2"
    cluster.nodes("a2", labels=networks.labels("s2", "s2b3"))
    assert _order(cluster.scores(pod, *NODES)) == ["a2", "c1", "a1", "b1"], "it has moved"


def test_a_pod_without_a_selector_or_with_an_endless_one_is_not_drawn(cluster):
    cluster.pod("early", selector="cache", node="a2")
    cluster.pod("endless", selector="x" * 5000, node="a2")
    for pod in (cluster.pod("p"), cluster.pod("q", selector="x" * 5000)):
        assert cluster.scores(pod, *NODES) == EVEN
    assert list(cluster.value.selected) == [("team", "cache")]


@pytest.mark.parametrize(
    ("topology", "drawn"),
    [pytest.param({}, True, id="none"), pytest.param({"topology": SPEC}, False, id="a topology")],
)
def test_a_member_without_a_place_is_drawn_unless_its_gang_asks_for_a_topology(
    cluster, topology, drawn
):
    for number, node in enumerate(("b1", "b1")):
        cluster.pod(f"job-{number}", "job", least=2, node=node, **topology)
    cluster.pod("early", selector="cache", node="a2")
    extra = cluster.pod("extra", "job", least=2, selector="cache", **topology)
    scores = cluster.scores(extra, *NODES)
    assert (_order(scores)[0] == "a2") is drawn
    assert (scores == EVEN) is not drawn


def test_a_member_that_is_planned_goes_where_its_plan_says(cluster):
    cluster.pod("early", selector="cache", node="a2")
    one, other = cluster.members("job", 2, least=2, selector="cache")
    cluster.plan((one, "b1"), (other, "c1"))
    assert cluster.passing(one) == ["b1"]
    assert cluster.scores(one, "b1") == {"b1": 0}, "no other is compared with it"


def test_it_is_said_how_many_pods_draw_a_pod(cluster):
    pod = cluster.pod("late", selector="cache")
    for number in range(3):
        cluster.pod(f"early-{number}", selector="cache", node=("a1", "a2")[number % 2])
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(gang_cluster.views.PodInfo.of(pod), view)
    found = cluster.pipeline.constraints(asked, view)["Coscheduling"]
    assert found.figures.startswith("3 pods with its network-topology-selector run, on 2 nodes")
    assert found.helps == ()


def test_what_a_change_would_do_is_seen_in_a_changed_view(cluster):
    """As preemption asks: where would the pod go if that one were gone?"""
    pod, early = cluster.pod("p", selector="cache"), cluster.pod("e", selector="cache", node="a2")
    view = cluster.state.view()
    gangs = view.with_claims(view.rows["a2"], remove=(early.uid,)).cluster["Coscheduling"]
    assert gangs.selected == selected_pods.NONE
    assert cluster.value.selected == persistent.Map(
        [(("team", "cache"), persistent.Map([("a2", 1)]))]
    )
    assert msgspec.structs.asdict(pod.requirements)["network_selector"] == "cache"
