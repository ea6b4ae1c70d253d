"""Gangs in the running extender, in a network: the domain that takes all members, or none."""

import json

import msgspec
import pytest

from api import names
from api.kubernetes import core
from api.plugin_args import job
from domain.gangs import declaration, table
from domain.topology import tree
from extender.gangs.network import network_plan
from extender.plugins.coscheduling import coscheduling
from extender.state import deltas, gang_facts
from tests.domain.topology import networks
from tests.extender.conftest import Make
from tests.extender.gangs.stage import gang_stage

SPEC = names.ANNOTATION_GANG_NETWORK_TOPOLOGY
LISTED = [one.model_dump(by_alias=True) for one in networks.LISTED]
BLOCKS = {"s1b1": 1, "s1b2": 2, "s2b3": 2}


def gathered(strategy):
    return json.dumps({"gatherStrategy": [{"layer": networks.BLOCK, "strategy": strategy}]})


def blocks(server, *, topology=True):
    """Add nodes n0 in one block, n1 and n2 in another, n3 and n4 in one of another spine."""
    number, make = 0, Make()
    for block, count in BLOCKS.items():
        for _ in range(count):
            labels = networks.labels(block[:2], block)
            server.put("nodes", make.node(f"n{number}", cpu="8", labels=labels, pods="110"))
            number += 1
    if topology:
        metadata = {"name": "default", "uid": "network"}
        spec = {"networkTopologySpec": LISTED}
        server.put("clusternetworktopologies", {"metadata": metadata, "spec": spec})


def used(stage, gang):
    return {pod["spec"]["nodeName"] for pod in stage.pods(gang)}


@pytest.fixture
def server():
    return gang_stage.GangServer()


async def test_a_gang_that_must_gather_is_bound_in_one_block(server):
    blocks(server)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4, **{SPEC: gathered("MustGather")})
        await stage.until(lambda: stage.bound("a") == 4)
        assert used(stage, "a") in ({"n1", "n2"}, {"n3", "n4"})
        stage.gang("b", 5, cpu="1", **{SPEC: gathered("MustGather")})
        await stage.until(lambda: stage.bound("b") == 5)
        assert used(stage, "b") == {"n0"}


async def test_a_gang_that_no_block_takes_waits_and_says_why(server):
    blocks(server)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 5, **{SPEC: gathered("MustGather")})
        await stage.until(lambda: len(stage.conditions("a")) == 5)
        (said,) = {one["message"] for one in stage.conditions("a")}
        assert "desiredOfferSlot: 5, BlockLayer/s1b2: 4;BlockLayer/s2b3: 4" in said
        assert stage.gated("a") == 5
        assert not stage.claims()
        stage.gang("b", 5, **{SPEC: gathered("PreferGather")})
        await stage.until(lambda: stage.bound("b") == 5)


async def test_without_a_network_who_must_gather_waits_until_there_is_one(server):
    blocks(server, topology=False)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2, **{SPEC: gathered("MustGather")})
        stage.gang("b", 2, **{SPEC: gathered("PreferGather")})
        await stage.until(lambda: stage.bound("b") == 2 and stage.conditions("a"))
        assert "no cluster network topology" in stage.conditions("a")[0]["message"]
        blocks(server)
        await stage.until(lambda: stage.bound("a") == 2)


async def test_members_are_on_neighbouring_nodes_by_their_index(server):
    blocks(server)
    index = names.ANNOTATION_GANG_NETWORK_INDEX
    async with gang_stage.opened(server) as stage:
        for number, rank in enumerate("3120"):
            stage.member("a", number, least=4, **{SPEC: gathered("MustGather"), index: rank})
        await stage.until(lambda: stage.bound("a") == 4)
        nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in stage.pods("a")}
        assert nodes["a-3"] == nodes["a-1"] < nodes["a-2"] == nodes["a-0"]


@pytest.mark.parametrize(
    ("text", "rank"), [("7", 7), ("-1", -1), ("x", -1), ("9" * 30, -1), ("\u0663", -1), ("", -1)]
)
def test_a_rank_that_is_none_counts_as_absent(text, rank):
    raw = Make().pod("a")
    notes = {names.ANNOTATION_GANG_NAME: "a", names.ANNOTATION_GANG_NETWORK_INDEX: text}
    raw["metadata"]["annotations"] = notes
    facts = gang_facts.read(msgspec.convert(raw, core.Pod))
    assert facts is not None
    assert facts.index == rank


def test_the_argument_switches_the_network_off_where_it_is_written():
    written = [{}, {"awareNetworkTopology": True}, {"awareNetworkTopology": False}]
    found = [job.CoschedulingArgs.model_validate(one).places_by_network for one in written]
    assert found == [True, True, False]
    plugin = coscheduling.Coscheduling(declaration.Defaults(), network=False)
    told = deltas.ObjectDelta(deltas.CLUSTER_NETWORK_TOPOLOGY, "default", None, networks.LAYERS)
    assert plugin.cluster(plugin.start(), told).network is None
    aware = coscheduling.Coscheduling(declaration.Defaults())
    assert aware.cluster(aware.start(), told).network == tree.Tree(networks.LAYERS)
    group = table.Group("default/a", ())
    assert network_plan.wanted(group, None) is None
