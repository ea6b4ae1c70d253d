"""Conditions of NodeResourceTopologies, which stand in an annotation."""

import json

import pytest

from api import names, resources
from manager.topology import node_topology_plan

KIND = resources.NODE_RESOURCE_TOPOLOGIES
ONLY = {"controllers": ("nodetopology",)}
NOW = 1_700_000_000.0
AMOUNTS = dict.fromkeys(("capacity", "allocatable", "available"), "8")
ZONES = [{"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **AMOUNTS}]}]


def raw(name="n1", **more):
    metadata = {"name": name, "uid": "u", **more.pop("metadata", {})}
    return {"metadata": metadata, "topologyPolicies": ["None"], "zones": ZONES, **more}


OWNED = {"ownerReferences": [{"kind": "Node", "name": "n1", "uid": "x", "apiVersion": "v1"}]}
CASES = {
    "fine": (raw(), True, ("True", "TopologyAccepted")),
    "no cpu": (raw(zones=[{**ZONES[0], "resources": []}]), True, ("False", "ZonesEmpty")),
    "no zones": (raw(zones=[]), True, ("False", "ZonesEmpty")),
    "no list": (raw(zones=7), True, ("False", "TopologyUnreadable")),
    "no node": (raw(), False, ("False", "NoSuchNode")),
    "its node goes": (raw(metadata=OWNED), False, ("True", "TopologyAccepted")),
}


@pytest.mark.parametrize(("given", "has_node", "expected"), CASES.values(), ids=CASES)
def test_whether_the_zones_count(given, has_node, expected):
    found = node_topology_plan.projected(given)
    step, told = node_topology_plan.planned(found, has_node=has_node, now=NOW).steps
    text = step.body["metadata"]["annotations"][names.ANNOTATION_CONDITIONS]
    (said,) = json.loads(text)
    assert (said["status"], said["reason"]) == expected
    assert (told.reason, told.warning) == (expected[1], expected[0] == "False")
    assert step.body.keys() == {"metadata"}, "zones are left to those who know them"
    given["metadata"]["annotations"] = {names.ANNOTATION_CONDITIONS: text}
    again = node_topology_plan.planned(
        node_topology_plan.projected(given), has_node=has_node, now=NOW + 60
    )
    assert [type(one) for one in again.steps] == ([] if expected[0] == "True" else [type(told)])


@pytest.mark.parametrize("text", ["", "{", "7", "null", '["x"]'])
def test_an_annotation_of_any_shape_is_put_right(text):
    given = raw(metadata={"annotations": {names.ANNOTATION_CONDITIONS: text}})
    found = node_topology_plan.projected(given)
    assert len(node_topology_plan.planned(found, has_node=True, now=NOW).steps) == 2


def said(world, name):
    found = world.stored(KIND, name)["metadata"].get("annotations", {})
    return [one["reason"] for one in json.loads(found.get(names.ANNOTATION_CONDITIONS, "[]"))]


async def test_it_follows_topologies_and_their_nodes(world) -> None:
    body = {"apiVersion": KIND.api_version, "kind": KIND.kind, **raw(), "metadata": {"name": "n1"}}
    async with world.manager(**ONLY):
        await world.admin.create(KIND, body)
        await world.until(lambda: said(world, "n1") == ["NoSuchNode"])
        await world.node("n1")
        await world.until(lambda: said(world, "n1") == ["TopologyAccepted"])
        await world.admin.patch(KIND, "n1", {"zones": []})
        await world.until(lambda: said(world, "n1") == ["ZonesEmpty"])
        await world.until(
            lambda: set(world.reasons("n1")) == {"NoSuchNode", "TopologyAccepted", "ZonesEmpty"}
        )
        version = world.stored(KIND, "n1")["metadata"]["resourceVersion"]
        await world.pass_time(30)
        assert world.stored(KIND, "n1")["metadata"]["resourceVersion"] == version
