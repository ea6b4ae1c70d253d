"""The example of a Device that users bring along, and pods that need several things at once."""

import copy
import pathlib

import pytest_asyncio
import yaml

from api import names, resources
from tests.planes import raw
from tests.planes.devices import device_recount
from tests.planes.devices.device_recount import annotation, cpuset, minors
from tests.scenarios.devices import conftest

EXAMPLE = pathlib.Path(__file__).parents[2] / "manifests" / "000-device-node-001.yaml"
NODE = "node-001"
PATIENCE = 60.0
OFFERED = {
    **dict.fromkeys((names.GPU, names.GPU_CORE, names.GPU_MEMORY_RATIO), "200"),
    **dict.fromkeys((names.RDMA, names.FPGA), "100"),
    names.GPU_MEMORY: "80Gi",
}


@pytest_asyncio.fixture(loop_scope="session")
async def example(unmanaged):
    """The Device of the example as it is written; the node that it is for is created by tests."""
    (document,) = yaml.safe_load_all(EXAMPLE.read_text())
    await unmanaged.api.post(resources.DEVICES.path(), document)
    yield document
    await unmanaged.api.delete(resources.DEVICES.path(name=NODE))


@pytest_asyncio.fixture(loop_scope="session")
async def managed(unmanaged, plane):
    """Nodes offer what the manager sums up of their devices."""
    async with conftest.managing(plane, unmanaged.here.namespace, "noderesource"):
        yield unmanaged


async def offered(machines, amounts):
    """Wait until the node of the example offers these devices, and no others."""

    def there(node):
        found = node["status"]["allocatable"]
        return amounts == {
            name: found[name] for name in (*OFFERED, names.GPU_SHARED) if name in found
        }

    await machines.api.wait_until(resources.NODES.path(name=NODE), there, PATIENCE)


async def shown(machines, healthy):
    """Wait until the extender knows so many healthy devices of the example."""

    async def there():
        _, page = await machines.pages(NODE)
        return len([one for one in page.get("devices", ()) if one["healthy"]]) == healthy

    await raw.eventually(there, raw.PATIENCE)


def held(pod, kind="gpu"):
    """Identifier and percentage of the only device of a type that a pod has."""
    (one,) = annotation(pod, names.ANNOTATION_DEVICE_ALLOCATED)[kind]
    name = {"gpu": names.GPU_CORE, "rdma": names.RDMA, "fpga": names.FPGA}[kind]
    return one["id"], one["resources"][name]


async def test_devices_of_the_example_are_shared_up_to_the_whole(managed, example):
    machines = managed
    await machines.here.node("", name=NODE)
    await offered(machines, {**OFFERED, names.GPU_SHARED: "200"})
    await shown(machines, healthy=4)
    await machines.share("ml-training-1", 50)
    assert held(await machines.placed("ml-training-1")) == ("gpu-uuid-001", "50")
    await machines.share("ml-training-2", 100)
    assert held(await machines.placed("ml-training-2")) == ("gpu-uuid-002", "100")
    await machines.share("other-half", 50)
    assert held(await machines.placed("other-half")) == ("gpu-uuid-001", "50")
    await machines.share("a-part", 10)
    await machines.here.refused("a-part", "Insufficient")
    for kind, name in (("rdma", names.RDMA), ("fpga", names.FPGA)):
        for percent in ("40", "60"):
            await machines.here.pod(f"{kind}-{percent}", requests={"cpu": "100m", name: percent})
            pod = await machines.placed(f"{kind}-{percent}")
            assert held(pod, kind) == (f"{kind}-uuid-001", percent)
        await machines.here.pod(f"{kind}-more", requests={"cpu": "100m", name: "1"})
        await machines.here.refused(f"{kind}-more", f"Insufficient {name}")
    _, page = await machines.pages(NODE)
    free = page["deviceFreeDetail"]
    assert free["gpu"]["0"][names.GPU_CORE] == free["gpu"]["1"][names.GPU_CORE] == "0"
    assert free["rdma"]["0"] == {names.RDMA: "0"}
    assert page["overused"] == page["withoutRecord"] == []


async def sickened(machines, example):
    """Report all devices as unhealthy but one GPU."""
    sick = copy.deepcopy(example)
    for one in sick["spec"]["devices"]:
        one["health"] = one["uuid"] == "gpu-uuid-002"
    patch = {"spec": sick["spec"]}
    await machines.api.patch(resources.DEVICES.path(name=NODE), patch)
    await shown(machines, healthy=1)


async def test_unhealthy_devices_of_the_example_are_not_offered(managed, example):
    machines = managed
    await machines.here.node("", name=NODE)
    await sickened(machines, example)
    (gpu,) = (one for one in example["spec"]["devices"] if one["uuid"] == "gpu-uuid-002")
    left = dict.fromkeys((names.GPU, names.GPU_CORE, names.GPU_MEMORY_RATIO), "100")
    memory = {names.GPU_MEMORY: gpu["totalMemory"], names.GPU_SHARED: "100"}
    await offered(machines, {**left, **memory})
    await machines.share("one", 50)
    assert held(await machines.placed("one")) == ("gpu-uuid-002", "50")
    await machines.share("two", 60)
    await machines.here.refused("two", f"Insufficient {names.GPU}")
    for kind, name in (("rdma", names.RDMA), ("fpga", names.FPGA)):
        await machines.here.pod(kind, requests={"cpu": "100m", name: "1"})
        await machines.here.refused(kind, f"Insufficient {name}")


async def test_unhealthy_devices_that_a_node_still_offers_are_not_given(machines, example):
    """For as long as no manager has taken them off."""
    await machines.here.node("", name=NODE, more=OFFERED)
    await sickened(machines, example)
    await machines.share("one", 50)
    assert held(await machines.placed("one")) == ("gpu-uuid-002", "50")
    await machines.share("two", 60)
    await machines.here.refused("two", "Insufficient GPU Devices")
    for kind, name in (("rdma", names.RDMA), ("fpga", names.FPGA)):
        await machines.here.pod(kind, requests={"cpu": "100m", name: "1"})
        await machines.here.refused(kind, f"Insufficient {kind} devices")


async def test_cpus_gpu_and_fpga_come_from_one_numa_node_of_the_nodes_that_fit(machines):
    await machines.machine("other", "joined")
    node = await machines.machine("joined", accelerator="a100")
    terms = [{"matchExpressions": [{"key": "accelerator", "operator": "In", "values": ["a100"]}]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    wanted = {names.GPU: "100", names.FPGA: "50"}
    for name in ("first", "second"):
        await machines.exclusive(name, 4, more=wanted, affinity=affinity)
    zones = set()
    for pod in await machines.on(node, "first", "second"):
        zone = {one["id"]: one["node"] for one in machines.shapes[node].cpu_table()}
        (found,) = {zone[cpu] for cpu in cpuset(pod)}
        assert minors(pod) == minors(pod, "fpga") == [found]
        status = annotation(pod, device_recount.STATUS)["numaNodeResources"]
        assert [one["node"] for one in status] == [found]
        zones.add(found)
    assert zones == {0, 1}
    await machines.exclusive("third", 4, more=wanted, affinity=affinity)
    await machines.here.refused("third", "Insufficient")
    await machines.agree()
