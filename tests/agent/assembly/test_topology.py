"""The NodeResourceTopology of a node, on an API server and beside others who write in it."""

import json

import msgspec
import pytest

from agent.assembly import topology
from agent.model.cpus import kubelet_cpu_manager
from agent.observe import observation
from agent.report import node_resource_topology, object_writer
from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core, crds
from domain.lending import colocation, zones
from kube.client import access, client
from manager.cluster_settings import strategy
from manager.model import projections
from manager.overcommit import calculation, inventory, zones_plan
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.kubelet import machines, nodefs

GIB = 1 << 30
NODE = "node-1"
TWO = machines.Machine(machines.grid(2, 1, 2, 2), caches=False, siblings=False)
NONE = kubelet_cpu_manager.Told(kubelet_cpu_manager.Configuration("none", topology="None"))
OLD = resources.NODE_RESOURCE_TOPOLOGIES
NEW = node_resource_topology.RESOURCE


class World:
    """An API server and a host with an agent's observer; `step` looks and tells once."""

    def __init__(self, plane, kube, clock, observer):
        self.plane, self.kube, self.clock, self.observer = plane, kube, clock, observer
        amounts = {"cpu": "8", "memory": "16Gi"}
        raw = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        node = msgspec.convert(plane.objects.create(resources.NODES, raw), core.Node)
        self.known = observation.Known(node=node, pods=(), kubelet=NONE)
        self.start()

    def start(self):
        """An agent that remembers nothing begins."""
        place = object_writer.Place(NEW, NODE, topology.SECONDS)
        wanted = topology.Wanted(lambda: self.picture)
        self.picture = None
        self.own = object_writer.Own(self.kube, self.clock, place, wanted, chance=lambda: 0.0)

    def know(self, **changes):
        self.known = msgspec.structs.replace(self.known, **changes)

    async def step(self, seconds=topology.SECONDS):
        await self.clock.advance(seconds)
        at = self.clock.monotonic()
        self.picture = self.observer.observe(self.known, observation.Moment(1.7e9, at))
        return await self.own.step()

    def stored(self, resource=OLD):
        return self.plane.objects.find(resource, NODE)

    def version(self):
        return self.stored()["metadata"]["resourceVersion"]

    def pools(self):
        text = self.stored()["metadata"]["annotations"][names.ANNOTATION_CPU_SHARED_POOLS]
        return [pool["cpuset"] for pool in json.loads(text)]

    def change(self, alter):
        self.plane.objects.modify(NEW, NODE, "", alter)


@pytest.fixture
async def world(tmp_path):
    tree = nodefs.HostTree(tmp_path / "host", 8, 16 * GIB)
    tree.build(TWO)
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    observer, clock = observation.Observer(roots, 1.0), ManualClock()
    async with apiserver.running(clock=clock) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] == NEW.kind:
                plane.objects.create(resources.CRDS, definition)
        found = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(found, clock=clock, user_agent="test") as kube:
            yield World(plane, kube, clock, observer)
    observer.close()


def bound(new_pod, uid, cpuset):
    written = json.dumps({"cpuset": cpuset})
    return new_pod(uid, "Guaranteed", **{names.ANNOTATION_RESOURCE_STATUS: written})


async def test_it_is_told_once_the_kubelet_and_its_pods_are_known(world, new_pod):
    world.know(kubelet=kubelet_cpu_manager.Told(), pods=None)
    assert await world.step()
    world.know(kubelet=NONE)
    assert await world.step()
    assert world.stored() is None
    world.know(pods=(bound(new_pod, "a", "0,4"),))
    assert await world.step()
    found = world.stored()
    assert world.pools() == ["1,5", "2-3,6-7"]
    assert [zone["name"] for zone in found["zones"]] == ["node-0", "node-1"]
    assert found["metadata"]["ownerReferences"][0]["uid"] == world.known.node.metadata.uid
    version = world.version()
    for _ in range(3):
        assert await world.step()
    assert world.version() == version


async def test_pools_follow_pods_and_what_a_static_kubelet_hands_out(world, new_pod):
    world.know(pods=(bound(new_pod, "a", "0,4"), new_pod("own", "Guaranteed")))
    await world.step()
    static = kubelet_cpu_manager.Configuration(
        "static", reserved="3", topology="RestrictedPodLevel"
    )
    world.know(kubelet=kubelet_cpu_manager.Told(static, {"own": frozenset({7})}))
    await world.step()
    assert world.pools() == ["1,5", "2-3,6"]
    assert world.stored()["topologyPolicies"] == ["RestrictedPodLevel"]
    world.know(pods=(), kubelet=NONE)
    await world.step()
    assert world.pools() == ["0-1,4-5", "2-3,6-7"]


async def test_what_cannot_be_known_of_a_static_kubelet_is_named(world):
    static = kubelet_cpu_manager.Configuration("static", reserved="99")
    world.know(kubelet=kubelet_cpu_manager.Told(static))
    assert await world.step()
    problem = world.picture.problems[kubelet_cpu_manager.SOURCE]
    assert "not online: 99" in problem
    assert "kubeletState" in problem
    assert world.stored() is not None


async def test_an_agent_that_starts_anew_writes_nothing_where_nothing_changed(world):
    await world.step()
    version = world.version()
    world.start()
    assert await world.step()
    assert world.version() == version


async def test_it_comes_back_when_somebody_deletes_it(world, new_pod):
    await world.step()
    world.plane.objects.delete(OLD, NODE)
    world.know(pods=(bound(new_pod, "a", "0,4"),))
    assert not await world.step(), "what it wanted to change is gone"
    assert await world.step()
    assert world.pools() == ["1,5", "2-3,6-7"]
    world.plane.objects.delete(OLD, NODE)
    assert await world.step(object_writer.REREAD_SECONDS)
    assert world.stored() is not None


async def test_what_others_write_in_it_stays(world, new_pod):
    await world.step()

    def others(found):
        found["metadata"]["annotations"]["theirs"] = "x"
        found["attributes"] = [{"name": "theirs", "value": "y"}]
        found["zones"][1]["costs"] = [{"name": "node-0", "value": 21}]

    world.change(others)
    world.know(pods=(bound(new_pod, "a", "0,4"),))
    assert not await world.step(), "it knew an older version"
    assert await world.step()
    assert world.pools() == ["1,5", "2-3,6-7"]
    found = world.stored(NEW)
    assert found["metadata"]["annotations"]["theirs"] == "x"
    assert found["attributes"] == [{"name": "theirs", "value": "y"}]
    assert found["zones"][1]["costs"] == [{"name": "node-0", "value": 21}]


def lending(node, there):
    """What the manager plans for the zones of a node that lends everything it has."""
    demand = colocation.demand
    request = colocation.Amount(2_000, 2 * GIB)
    prod = demand(qos.Band.PROD, request, None, exclusive=False)
    seen = calculation.Seen(
        node=projections.node(node),
        report=projections.Report(1.0, colocation.Amount(0, 0), {}),
        demand=colocation.NO_DEMAND,
        rules=strategy.read({"enable": True, "cpuReclaimThresholdPercent": 100}),
        enabled=True,
        now=2.0,
        since_write=None,
    )
    (step,) = zones_plan.planned(seen, there, (zones.Held(prod, (1,)),), 0).steps
    return step.body["zones"]


async def test_the_manager_lends_by_zone_what_the_agent_told_and_the_agent_leaves_it(
    world, new_pod
):
    await world.step()
    there = inventory.read_topology(world.stored())
    assert [zone.capacity for zone in there.zones] == [colocation.Amount(4_000, 8 * GIB)] * 2
    assert there.processors.vendor_id == "GenuineIntel"
    offered = lending(world.known.node, there)
    world.change(lambda found: found.update(zones=offered))
    world.know(pods=(bound(new_pod, "a", "0,4"),))
    await world.step()
    assert await world.step()
    listed = [
        {item["name"]: item["allocatable"] for item in zone["resources"]}
        for zone in world.stored()["zones"]
    ]
    assert [zone[names.BATCH_CPU] for zone in listed] == ["4k", "2k"]
    assert world.pools() == ["1,5", "2-3,6-7"]
    assert inventory.read_topology(world.stored()).written == tuple(world.stored()["zones"])


async def test_it_goes_with_its_node(world):
    await world.step()
    world.plane.objects.delete(resources.NODES, NODE)
    assert world.stored() is None
