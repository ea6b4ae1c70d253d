"""A gang that has to stay in one block of the network is bound in one block, or not at all."""

import contextlib
import json

import pytest

from api import names, resources
from extender.plugins.coscheduling import coscheduling
from tests.domain.topology import networks
from tests.planes import raw

pytestmark = pytest.mark.timeout(120)
KIND = resources.CLUSTER_NETWORK_TOPOLOGIES
MUST = {"gatherStrategy": [{"layer": networks.BLOCK, "strategy": "MustGather"}]}
SPEC = {names.ANNOTATION_GANG_NETWORK_TOPOLOGY: json.dumps(MUST)}


@contextlib.asynccontextmanager
async def network(ganging):
    """The layers of the network, for the time of one test.

    The extender hears of them and of pods by two watches, of which either may be behind the other.
    """
    here, cluster = ganging.here, ganging.extender.books.cluster

    async def is_known():
        return cluster.view().cluster[coscheduling.NAME].network.layers is not None

    async def is_forgotten():
        return not await is_known()

    body = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": "default"}}
    listed = [one.model_dump(by_alias=True) for one in networks.LISTED]
    await here.api.post(KIND.path(), body | {"spec": {"networkTopologySpec": listed}})
    try:
        await raw.eventually(is_known)
        yield
    finally:
        await here.api.delete(KIND.path(name="default"))
        await raw.eventually(is_forgotten)


async def test_a_gang_stays_in_the_one_block_that_takes_it_or_waits(ganging):
    here, blocks = ganging.here, {}
    for block, count in (("s1b1", 2), ("s1b2", 3), ("s2b3", 2)):
        for number in range(count):
            labels = networks.labels(block[:2], block)
            await here.node(f"{block}-{number}", cpu="4", labels=labels)
            blocks[f"{block}-{number}"] = block
    async with network(ganging):
        await ganging.gang("near", 11, more=SPEC)
        await ganging.all_bound("near", 11)
        used = {one["spec"]["nodeName"] for one in await ganging.pods("near")}
        assert {next(b for n, b in blocks.items() if node.endswith(n)) for node in used} == {"s1b2"}
        await ganging.gang("wide", 9, more=SPEC)
        sentence = "no candidate topology nodes can accommodate job, desiredOfferSlot: 9"
        await ganging.says("wide", 9, "InsufficientRoom", sentence)
        assert await ganging.bound("wide") == 0
        await ganging.remove("near")
        await ganging.all_bound("wide", 9)


async def test_a_lone_pod_goes_close_to_those_with_its_selector(ganging):
    """Though its node is the fullest: the scheduler by itself would take any other."""
    here = ganging.here
    for block, count in (("s1b1", 2), ("s1b2", 3), ("s2b3", 3)):
        for number in range(count):
            labels = networks.labels(block[:2], block) | {"place": f"{block}-{number}"}
            await here.node(f"{block}-{number}", cpu="4", labels=labels)
    await here.pod("ballast", requests={"cpu": "1"}, nodeSelector={"place": "s1b1-1"})
    notes = {names.ANNOTATION_NETWORK_TOPOLOGY_SELECTOR: "cache"}
    first = {"annotations": notes, "nodeSelector": {"place": "s1b1-0"}}
    await here.pod("early", requests={"cpu": "4"}, **first)
    for name in ("ballast", "early"):
        await here.bound(name)
    async with network(ganging):
        await here.pod("late", requests={"cpu": "1"}, annotations=notes)
        assert (await here.bound("late"))["spec"]["nodeName"].endswith("s1b1-1")
        await here.pod("other", requests={"cpu": "1"})
        assert not (await here.bound("other"))["spec"]["nodeName"].endswith("s1b1-1")
