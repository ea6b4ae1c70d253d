"""The status of the ClusterNetworkTopology: what it says, how often it is written, what is told."""

import pytest

from api import resources
from domain.topology import tree
from manager.reconcile import actions
from manager.topology import network_object, status_plan
from tests.domain.topology import networks

KIND = resources.CLUSTER_NETWORK_TOPOLOGIES
SPEC = {"networkTopologySpec": [one.model_dump(by_alias=True) for one in networks.LISTED]}
ONLY = {"controllers": ("topologystatus",)}
CLUSTER = {"topologyLayer": "ClusterTopologyLayer", "topologyName": ""}
SPINE = {"topologyLayer": "SpineLayer", "topologyName": "s1"}


def block(name, nodes):
    return {
        "topologyInfo": {"topologyLayer": "BlockLayer", "topologyName": name},
        "parentTopologyInfo": SPINE,
        "childTopologyLayer": "NodeTopologyLayer",
        "nodeNum": nodes,
    }


TWO_BLOCKS = [
    {
        "topologyInfo": CLUSTER,
        "childTopologyLayer": "SpineLayer",
        "childTopologyNames": ["s1"],
        "nodeNum": 3,
    },
    {
        "topologyInfo": SPINE,
        "parentTopologyInfo": CLUSTER,
        "childTopologyLayer": "BlockLayer",
        "childTopologyNames": ["b1", "b2"],
        "nodeNum": 3,
    },
    block("b1", 2),
    block("b2", 1),
]


NOW = 1_700_000_000.0


def first(plan):
    """Return the first step of a plan, a write of the status."""
    step = plan.steps[0]
    assert isinstance(step, actions.PatchStatus)
    return step


def written(**more):
    return network_object.NetworkObject("default", "u", networks.LAYERS, **more)


def test_domains_are_named_depth_first_in_the_order_of_names():
    nodes = [("c", networks.labels("s1", "b2"))]
    nodes += [(name, networks.labels("s1", "b1")) for name in ("b", "a")]
    network = tree.Tree.of(networks.LAYERS, nodes)
    assert status_plan.details(network) == TWO_BLOCKS
    step = first(status_plan.planned(written(), network, NOW))
    assert (step.resource, step.name, step.body["metadata"]) == (KIND, "default", {"uid": "u"})
    assert step.body["status"]["detailStatus"] == TWO_BLOCKS
    said = step.body["status"]["conditions"]
    plan = status_plan.planned(written(written=TWO_BLOCKS, conditions=said), network, NOW + 9)
    assert plan == actions.Plan("status names 4 domains of 3 nodes")
    assert status_plan.details(tree.Tree()) == []


def test_a_status_names_no_more_domains_than_fit_and_says_so():
    nodes = [(f"n{number}", networks.labels(f"s{number % 7}")) for number in range(3000)]
    network = tree.Tree.of(networks.LAYERS, nodes)
    found = status_plan.details(network)
    assert len(found) == status_plan.MOST_DOMAINS
    assert sum(one["topologyInfo"]["topologyLayer"] == "SpineLayer" for one in found) == 7
    told = status_plan.planned(written(), network, NOW).steps[-1]
    assert told.note == "the status leaves 960 domains out"


TOLD = {
    "labels are missing": (
        [("a", {}), ("b", networks.labels("", "b1"))],
        "NodesOutside",
        (
            "2 of 2 nodes lack a label of some layer and take no gang that asks for a topology: "
            "a, b. Label them as the layers say"
        ),
    ),
    "names are shared": (
        [("a", networks.labels("s1", "b")), ("b", networks.labels("s2", "b"))],
        "SharedNames",
        (
            "domains of one layer have the same name and count as several: BlockLayer b below s1 "
            "and s2. Give them names that are unique in their layer"
        ),
    ),
}


@pytest.mark.parametrize(("nodes", "reason", "note"), TOLD.values(), ids=TOLD)
def test_what_is_wrong_with_nodes_is_told(nodes, reason, note):
    plan = status_plan.planned(written(), tree.Tree.of(networks.LAYERS, nodes), NOW)
    told = [step for step in plan.steps if isinstance(step, actions.Tell)]
    assert [(one.reason, one.note) for one in told if one.warning] == [(reason, note)]
    assert {"LayersAccepted"} < {one.reason for one in told}
    said = {one["type"]: one for one in first(plan).body["status"]["conditions"]}
    assert said["Accepted"]["status"] == "True"
    assert [one["reason"] for one in said.values() if one["status"] == "False"] == [reason]


@pytest.mark.parametrize(
    "spec",
    [{"networkTopologySpec": SPEC["networkTopologySpec"][:2]}, {"networkTopologySpec": 7}, {}, 3],
    ids=["broken", "no list", "empty", "no object"],
)
def test_broken_layers_leave_the_status_and_are_told(spec):
    raw = {"metadata": {"name": "default", "uid": "u", "generation": 4}, "spec": spec}
    raw["status"] = {"detailStatus": 1, "conditions": "none"}
    found = network_object.projected(raw)
    assert found.layers is None
    step, told = status_plan.planned(found, tree.Tree(), NOW).steps
    assert (told.reason, told.topic) == ("InvalidLayers", "Accepted")
    assert found.fault in told.note
    (said,) = step.body["status"]["conditions"]
    assert (said["status"], said["message"], said["observedGeneration"]) == ("False", told.note, 4)
    assert "detailStatus" not in step.body["status"]


async def network(world, name="default", spec=SPEC):
    body = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": name}}
    await world.admin.create(KIND, {**body, "spec": spec})


def said(world, name="default"):
    return world.stored(KIND, name).get("status", {}).get("detailStatus")


async def test_it_converges_follows_nodes_and_writes_nothing_then(world) -> None:
    for name, where in (("a", "b1"), ("b", "b1"), ("c", "b2")):
        await world.node(name, labels=networks.labels("s1", where))
    await network(world)
    await network(world, "other")
    async with world.manager(**ONLY):
        await world.until(lambda: said(world) == TWO_BLOCKS)
        before = world.stored(KIND, "default")["metadata"]["resourceVersion"]
        await world.admin.patch(resources.NODES, "a", {"metadata": {"labels": {"other": "x"}}})
        await world.pass_time(30)
        assert world.stored(KIND, "default")["metadata"]["resourceVersion"] == before
        assert said(world, "other") is None
        await world.admin.delete(resources.NODES, "c")
        await world.node("d")
        await world.pass_time(15)
        assert [one["nodeNum"] for one in said(world)] == [2, 2, 2]
        await world.until(lambda: "NodesOutside" in world.reasons("default"))


async def test_a_broken_edit_and_a_foreign_status_do_no_harm(world) -> None:
    await world.node("a", labels=networks.labels("s1", "b1"))
    await network(world)
    async with world.manager(**ONLY):
        await world.until(lambda: said(world))
        right = said(world)
        broken = {"spec": {"networkTopologySpec": SPEC["networkTopologySpec"][:2]}}
        await world.admin.patch(KIND, "default", broken)
        await world.pass_time(12)
        await world.until(lambda: "InvalidLayers" in world.reasons("default"))
        assert said(world) == right
        found = world.stored(KIND, "default")
        (accepted,) = found["status"]["conditions"]
        assert (accepted["status"], accepted["reason"]) == ("False", "InvalidLayers")
        assert accepted["observedGeneration"] == found["metadata"]["generation"] == 2
        forged = {"status": {"detailStatus": right[:1]}}
        await world.admin.patch(KIND, "default", forged, subresource="status")
        await world.admin.patch(KIND, "default", {"spec": SPEC})
        await world.pass_time(15)
        assert said(world) == right
        await world.admin.delete(KIND, "default")
        await world.pass_time(3)
        await network(world)
        await world.pass_time(15)
        assert said(world) == right


async def test_it_may_be_switched_off(world) -> None:
    await world.node("a", labels=networks.labels("s1", "b1"))
    await network(world)
    async with world.manager(controllers=("*", "-topologystatus")):
        await world.pass_time(3)
        assert said(world) is None
