"""From what a look finds to the Device in an API server and to the samples."""

import dataclasses
import itertools

import pytest

from agent import settings
from agent.assembly import devices, gated_parts
from agent.devices import (
    device_discovery,
    device_inventory,
    gpus,
    latest_findings,
    rdma,
    vendor_files,
)
from agent.host import files
from agent.model import cgroup_layout, state
from agent.observe import collectors
from agent.report import object_writer
from agent.store import time_series
from api import resources
from api.kubernetes import crds
from kube.client import access, client
from manager.overcommit import inventory
from process.runtime import metrics
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests.planes.devices import gpu_driver, pci_tree

NODE = "node-1"
GIB = 1 << 30


class Agent:
    """The parts of one agent that have to do with devices; every look is taken at once."""

    def __init__(self, world, kube):
        self.figures, self.latest = metrics.Registry(), latest_findings.Latest()
        sys = str(world.tree.sys)
        found = gpus.Gpus(sys, lambda: world.driver)
        files_ = vendor_files.Folder(str(world.folder / "xpus"))
        sources = device_discovery.Sources(found, files_.discover, lambda: rdma.discover(sys))
        self.discovery = device_discovery.Discovery(sources)
        proc = world.folder / "proc"
        self.collector = device_discovery.Collector(self.discovery, self.latest, proc, self.figures)
        place = object_writer.Place(resources.DEVICES, NODE)
        self.own = devices.own(place, self.latest, lambda: world.uid, kube, world.clock)


@dataclasses.dataclass
class World:
    """An API server, a host, and one agent after another."""

    plane: object
    clock: object
    folder: object
    tree: object
    driver: object = dataclasses.field(default_factory=gpu_driver.Scripted)
    samples: object = dataclasses.field(default_factory=time_series.Histories)
    pods: tuple = ()
    uid: str = ""
    kube: object = None
    agent: object = None
    problem: str = ""
    moments: object = dataclasses.field(default_factory=lambda: itertools.count(0, 10))

    def add(self, *found):
        for one in found:
            self.tree.add_gpu(one.bus)
            self.driver.gpus.append(one)

    async def step(self):
        at = float(next(self.moments))
        sight = collectors.Sight(
            at, cgroup_layout.Layout("/", 2, "systemd"), files.Kept(), self.samples, self.pods
        )
        self.problem = ""
        try:
            self.agent.collector.take(self.agent.discovery.look(at), sight)
        except files.ReadingError as error:
            self.problem = str(error)
        await self.clock.advance(10)
        return await self.agent.own.step()

    def stored(self):
        return self.plane.objects.find(resources.DEVICES, NODE)

    def health(self):
        return {one["id"]: one["health"] for one in self.stored()["spec"]["devices"]}

    def change(self, edit):
        self.plane.objects.modify(resources.DEVICES, NODE, "", edit)


@pytest.fixture
async def world(tmp_path):
    clock = ManualClock()
    async with apiserver.running(clock=clock) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] == "Device":
                plane.objects.create(resources.CRDS, definition)
        # Who owns the object must exist, or it goes as its owner did.
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        uid = plane.objects.create(resources.NODES, node)["metadata"]["uid"]
        found = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(found, clock=clock, user_agent="koord-agent") as kube:
            world = World(plane, clock, tmp_path, pci_tree.PciTree(tmp_path / "sys"))
            world.uid, world.kube = uid, kube
            world.restart = lambda: setattr(world, "agent", Agent(world, kube))
            world.restart()
            yield world
            world.agent.collector.close()


async def test_a_node_without_devices_gets_no_object(world):
    assert await world.step()
    assert world.stored() is None
    assert world.problem == ""


async def test_the_object_follows_and_says_nothing_while_nothing_changes(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.tree.add_adapter("0000:d8:00.0", "mlx5_0")
    await world.step()
    offered = inventory.read_devices(world.stored())
    assert offered.gpus["koordinator.sh/gpu-core"] == 200
    assert offered.adapters == {"koordinator.sh/rdma": 100}
    assert offered.labels["node.koordinator.sh/gpu-model"] == "A100-SXM4-80GB"
    world.driver.events.append(device_inventory.Event(79, "GPU-1"))
    await world.step()
    assert world.health() == {"GPU-0": True, "GPU-1": False, "0000:d8:00.0": True}
    assert inventory.read_devices(world.stored()).gpus["koordinator.sh/gpu-core"] == 100
    version = world.stored()["metadata"]["resourceVersion"]
    for _ in range(5):
        assert await world.step()
    assert world.stored()["metadata"]["resourceVersion"] == version
    assert (
        world.agent.figures.value("koord_agent_devices", {"type": "gpu", "health": "unhealthy"})
        == 1
    )


async def test_labels_of_people_and_the_numbers_survive_a_restart(world):
    world.add(gpu_driver.gpu(0))
    world.tree.add_adapter("0000:d8:00.0", "bnxt_re0")
    world.tree.add_adapter("0000:c8:00.0", "bnxt_re1")
    await world.step()
    world.change(lambda found: found["metadata"].setdefault("labels", {}).update(team="a"))
    world.tree.add_adapter("0000:b8:00.0", "bnxt_re2")
    world.restart()
    await world.step()
    metadata = world.stored()["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["labels"]["node.koordinator.sh/gpu-vendor"] == "nvidia"
    minors = {one["id"]: one["minor"] for one in world.stored()["spec"]["devices"]}
    assert minors == {"GPU-0": 0, "0000:c8:00.0": 0, "0000:d8:00.0": 1, "0000:b8:00.0": 2}
    owner = metadata["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Node", world.uid)


async def test_an_object_by_hand_and_discovery_keep_apart_and_say_so(world):
    entry = {"deviceType": "gpu", "uuid": "GPU-0", "totalMemory": "40Gi", "health": True}
    resource = resources.DEVICES
    body = {"apiVersion": resource.api_version, "kind": "Device", "metadata": {"name": NODE}}
    world.plane.objects.create(resource, {**body, "spec": {"devices": [entry]}})
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    await world.step()
    await world.step()
    stored = world.stored()["spec"]["devices"]
    assert entry.items() <= next(one for one in stored if "uuid" in one).items()
    assert [one["id"] for one in stored if "id" in one] == ["GPU-1"]
    assert "GPU-0 was written by hand" in world.problem
    version = world.stored()["metadata"]["resourceVersion"]
    await world.step()
    assert world.stored()["metadata"]["resourceVersion"] == version


async def test_an_edit_of_what_the_agent_wrote_is_undone_and_said(world):
    world.add(gpu_driver.gpu(0))
    await world.step()
    await world.step()
    world.change(lambda found: found["spec"]["devices"][0].update(health=False))
    await world.clock.advance(object_writer.REREAD_SECONDS)
    await world.step()
    assert world.health() == {"GPU-0": True}
    await world.step()
    assert "another client changed the Device" in world.problem
    await world.step()
    assert world.problem == ""


async def test_a_restart_without_the_driver_keeps_what_was_known(world):
    world.add(gpu_driver.gpu(0))
    await world.step()
    world.driver.failure = device_inventory.DriverError("no library", gpu_driver.UNLOADED)
    world.restart()
    await world.step()
    assert world.health() == {"GPU-0": True}
    assert "gpu: no library" in world.problem
    for _ in range(7):
        await world.step()
    assert world.health() == {"GPU-0": False}
    world.driver.failure = None
    await world.step()
    assert world.health() == {"GPU-0": True}


async def test_adapters_alone_are_told_as_well(world):
    world.tree.add_adapter("0000:d8:00.0", "mlx5_0")
    host = settings.HostSettings(sys=world.tree.sys, state=world.folder)
    made = devices.collector(
        host, settings.DeviceSettings(), {"RDMADevices"}, metrics.Registry(), world.agent.latest
    )
    sight = collectors.Sight(
        0.0, cgroup_layout.Layout("/", 2, "systemd"), files.Kept(), time_series.Histories()
    )
    made.collect(sight)
    while world.agent.latest.inventory is None:
        made.collect(sight)
    assert made.close() is None
    assert await world.agent.own.step()
    assert world.health() == {"0000:d8:00.0": True}


async def test_files_take_the_place_of_the_driver(world):
    world.add(gpu_driver.gpu(0))
    (world.folder / "xpus").mkdir()
    (world.folder / "xpus" / "npu").write_text('[{"uuid": "npu-0", "minor": "0", "vendor": "h"}]')
    await world.step()
    assert world.health() == {"npu-0": True}
    assert world.driver.sessions == 0
    (world.folder / "xpus" / "npu").rename(world.folder / "npu")
    await world.step()
    assert world.health() == {"GPU-0": True}
    assert world.driver.open
    (world.folder / "npu").rename(world.folder / "xpus" / "npu")
    await world.step()
    assert world.health() == {"npu-0": True}
    assert not world.driver.open


def pod(new_pod, uid):
    container = state.ContainerState("app", f"kubepods.slice/x/cri-containerd-{uid}.scope")
    return state.PodState(new_pod(uid), "Burstable", containers=(container,))


async def test_what_processes_use_is_told_by_pod(world, new_pod):
    world.add(gpu_driver.gpu(0))
    world.pods = (pod(new_pod, "a"),)
    place = world.folder / "proc" / "4711"
    place.mkdir(parents=True)
    (place / "cgroup").write_text("0::/../../x/cri-containerd-a.scope/inner\n")
    processes = (
        device_inventory.Process(4711, GIB, 30.0),
        device_inventory.Process(1, 2 * GIB, 20.0),
    )
    world.driver.readings["GPU-0"] = device_inventory.Reading("GPU-0", 4 * GIB, 60.0, processes)
    await world.step()
    assert world.problem == ""
    latest = {key: series.newest[1] for key in world.samples.words()
              if (series := world.samples.get(key))}  # fmt: skip
    assert latest == {
        ("node", "gpu", "GPU-0", "core"): 60.0,
        ("node", "gpu", "GPU-0", "memory"): 4.0 * GIB,
        ("pod", "a", "gpu", "GPU-0", "core"): 30.0,
        ("pod", "a", "gpu", "GPU-0", "memory"): GIB,
        ("container", "a", "app", "gpu", "GPU-0", "core"): 30.0,
        ("container", "a", "app", "gpu", "GPU-0", "memory"): GIB,
    }
    (counted,) = world.agent.latest.gpus
    assert (counted.identity, counted.memory) == ("GPU-0", 80 * GIB)


async def test_processes_that_cannot_be_seen_are_named(world):
    world.add(gpu_driver.gpu(0))
    world.driver.readings["GPU-0"] = device_inventory.Reading("GPU-0", GIB, 60.0)
    await world.step()
    assert "hostPID" in world.problem
    assert world.agent.figures.value("koord_agent_device_problems", {"source": "use"}) == 1


@pytest.mark.parametrize(
    ("enabled", "kinds"),
    [(set(), []), ({"Accelerators"}, ["Device"]), ({"RDMADevices"}, ["Device"])],
    ids=["none", "accelerators", "adapters"],
)
async def test_either_gate_asks_for_the_object(world, enabled, kinds):
    asked = gated_parts.Asked(
        settings=settings.Settings(node_name=NODE),
        enabled=enabled,
        figures=metrics.Registry(),
        clock=world.clock,
        picture=lambda: None,
        node=lambda: None,
        kubelet=None,
    )
    owned = gated_parts.objects_of(asked, world.kube)
    assert [one.kind for one in owned] == kinds
    names = [one.name for one in gated_parts.collectors_of(asked)]
    assert ("devices" in names) is bool(kinds)
    for one in owned:
        assert await one.step(), "nothing was found yet, nothing is said"
