"""What nodes offer because of the machine: devices, zones, faster processors, mid capacity."""

import json

import pytest

from api import names, resources
from api.wire import durations, quantity
from domain.devices.requests import accelerators

ON = {"enable": True}
ZONE = {"type": "Node", "resources": [
    {"name": "cpu", "capacity": "32", "allocatable": "32", "available": "32"},
    {"name": "memory", "capacity": "128Gi", "allocatable": "128Gi", "available": "128Gi"},
]}  # fmt: skip
GPU = {"type": "gpu", "health": True, "resources": {
    names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi",
}}  # fmt: skip
RDMA = {"type": "rdma", "health": True, "resources": {names.RDMA: "100"}}
FPGA = {"type": "fpga", "health": True, "resources": {names.FPGA: "100"}}


def offers(world, resource: str) -> int | None:
    status = world.stored(resources.NODES, "n1")["status"]
    assert status["capacity"].get(resource) == status["allocatable"].get(resource)
    written = status["allocatable"].get(resource)
    return None if written is None else quantity.whole(written)


def annotation(world, key: str) -> str | None:
    return (world.stored(resources.NODES, "n1")["metadata"].get("annotations") or {}).get(key)


async def machine(world, *devices, labels=None) -> None:
    body = {
        "apiVersion": resources.DEVICES.api_version,
        "kind": resources.DEVICES.kind,
        "metadata": {"name": "n1", "labels": labels or {}},
        "spec": {"devices": [{**item, "minor": number} for number, item in enumerate(devices)]},
    }
    await world.admin.create(resources.DEVICES, body)


async def topology(world, annotations=None) -> None:
    body = {
        "apiVersion": resources.NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": resources.NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {"name": "n1", "annotations": annotations or {}},
        "topologyPolicies": ["None"],
        "zones": [{"name": f"node-{number}", **ZONE} for number in (0, 1)],
    }
    await world.admin.create(resources.NODE_RESOURCE_TOPOLOGIES, body)


def zones(world) -> list[dict[str, str]]:
    found = world.stored(resources.NODE_RESOURCE_TOPOLOGIES, "n1")["zones"]
    return [{item["name"]: item["allocatable"] for item in zone["resources"]} for zone in found]


async def offered_all(world) -> None:
    """Wait until the node offers one healthy device of each kind, and its labels say so."""
    await world.until(lambda: offers(world, names.GPU_SHARED) == 100)
    for name in (names.GPU, names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA):
        assert offers(world, name) == 100, name
    assert offers(world, names.GPU_MEMORY) == 80 << 30
    node = world.stored(resources.NODES, "n1")
    assert node["metadata"]["labels"][names.LABEL_GPU_MODEL] == "a100"


def offered_none(world) -> bool:
    return all(offers(world, name) is None for name in accelerators.RESOURCES)


A100 = {names.LABEL_GPU_MODEL: "a100"}
EACH = (GPU, RDMA, FPGA)
SETTINGS = {
    "no settings at all": None,
    "off": {"enable": False},
    "off for this node": {"enable": True, "nodeConfigs": [
        {"name": "mine", "nodeSelector": {"matchLabels": {"pool": "mine"}}, "enable": False},
    ]},
    "on": ON,
}  # fmt: skip


@pytest.mark.parametrize("colocation", SETTINGS.values(), ids=SETTINGS)
async def test_devices_follow_their_object_whether_cpus_are_lent_or_not(world, colocation) -> None:
    await world.node("n1", labels={"pool": "mine"})
    if colocation is not None:
        await world.configure(colocation_config=colocation)
    async with world.manager():
        assert offered_none(world)
        await machine(world, *EACH, {**GPU, "health": False}, labels=A100)
        await offered_all(world)
        broken = {"spec": {"devices": [GPU, {**RDMA, "health": False}, FPGA, GPU]}}
        await world.admin.patch(resources.DEVICES, "n1", broken)
        await world.until(lambda: offers(world, names.GPU) == 200)
        assert (offers(world, names.RDMA), offers(world, names.FPGA)) == (None, 100)
        await world.admin.delete(resources.DEVICES, "n1")
        await world.until(lambda: offered_none(world))
        assert annotation(world, names.ANNOTATION_DEVICES_OFFERED) is None


@pytest.mark.parametrize("colocation", [{"enable": False}, ON], ids=["off", "on"])
async def test_devices_that_went_while_no_manager_ran_are_taken_off(world, colocation) -> None:
    await world.node("n1")
    await world.configure(colocation_config=colocation)
    await machine(world, *EACH, labels=A100)
    async with world.manager():
        await offered_all(world)
    await world.admin.delete(resources.DEVICES, "n1")
    async with world.manager():
        await world.until(lambda: offered_none(world))


@pytest.mark.parametrize("colocation", [{"enable": False}, ON], ids=["off", "on"])
async def test_what_others_offer_of_a_node_without_a_device_stays(world, colocation) -> None:
    """A device plug-in of the kubelet writes it again and again."""
    await world.node("n1")
    amounts = {names.NPU_CORE: "100", names.FPGA: "100"}
    theirs = {"status": {"capacity": amounts, "allocatable": amounts}}
    await world.admin.patch(resources.NODES, "n1", theirs, subresource="status")
    await world.configure(colocation_config=colocation)
    async with world.manager():
        await world.quiet()
        assert (offers(world, names.NPU_CORE), offers(world, names.FPGA)) == (100, 100)


async def test_what_an_earlier_version_offered_is_taken_off_too(world) -> None:
    await world.node("n1")
    await machine(world, RDMA)
    amounts = {names.RDMA: "100"}
    theirs = {"status": {"capacity": amounts, "allocatable": amounts}}
    await world.admin.patch(resources.NODES, "n1", theirs, subresource="status")
    async with world.manager():
        await world.until(lambda: annotation(world, names.ANNOTATION_DEVICES_OFFERED) == "true")
        await world.admin.delete(resources.DEVICES, "n1")
        await world.until(lambda: offered_none(world))


async def test_settings_that_were_never_readable_leave_devices_as_they_are(world) -> None:
    await world.node("n1")
    await machine(world, *EACH)
    async with world.manager():
        await world.until(lambda: offers(world, names.GPU) == 100)
    await world.configure(colocation_config="{")
    await world.admin.delete(resources.DEVICES, "n1")
    async with world.manager():
        await world.quiet()
        assert offers(world, names.GPU) == 100
        await world.configure(colocation_config={"enable": False})
        await world.until(lambda: offered_none(world))


async def test_one_of_many_devices_is_missed_at_once(world) -> None:
    await world.node("n1")
    async with world.manager():
        await machine(world, *(GPU for _ in range(16)))
        await world.until(lambda: offers(world, names.GPU_SHARED) == 1600)
        broken = [{**GPU, "health": bool(number)} for number in range(16)]
        await world.admin.patch(resources.DEVICES, "n1", {"spec": {"devices": broken}})
        await world.until(lambda: offers(world, names.GPU_SHARED) == 1500)


async def test_slices_can_be_switched_off(world) -> None:
    await world.node("n1")
    async with world.manager(feature_gates={"EnableSyncGPUSharedResource": False}):
        await machine(world, *EACH)
        await world.until(lambda: offers(world, names.GPU) == 100)
        assert offers(world, names.GPU_SHARED) is None


async def test_zones_follow_their_node(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await topology(world)
        await world.report("n1", "3")
        # 32 cores less the margin of 40 % and half of the 3 in use.
        await world.until(lambda: zones(world)[0].get(names.BATCH_CPU) == "17700")
        assert zones(world)[1][names.BATCH_CPU] == "17700"
        assert offers(world, names.BATCH_CPU) == 35_400
        await world.report("n1", "23")
        await world.until(lambda: zones(world)[1][names.BATCH_CPU] == "7700")
        await world.pass_time(3)
        before = world.plane.objects.version
        await world.pass_time(3)
        assert world.plane.objects.version == before


async def test_a_change_by_the_agent_is_not_lost(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await topology(world)
        await world.report("n1", "3")
        await world.until(lambda: zones(world)[0].get(names.BATCH_CPU))
        fewer = [{"name": f"node-{number}", **ZONE} for number in (0, 1)]
        fewer[0] = {"name": "node-0", "type": "Node", "resources": [
            {"name": "cpu", "capacity": "16", "allocatable": "16", "available": "16"},
        ]}  # fmt: skip
        await world.admin.patch(resources.NODE_RESOURCE_TOPOLOGIES, "n1", {"zones": fewer})
        await world.until(lambda: zones(world)[0].get(names.BATCH_CPU) == "8100")
        assert zones(world)[0][names.CPU] == "16"
        assert zones(world)[1][names.BATCH_CPU] == "17700"


FAST = {"cpuModel": "fast", "hyperThreadEnabled": False, "turboEnabled": False}


async def test_a_faster_node_lends_more_and_says_so(world) -> None:
    await world.node("n1")
    models = {"fast": {"baseRatio": 1.5}}
    await world.configure(
        colocation_config=ON,
        cpu_normalization_config={"enable": True, "ratioModel": models},
        resource_amplification_config={
            "enable": True,
            "resourceAmplificationRatio": {"cpu": 2, "memory": 1.2},
        },
    )
    async with world.manager():
        await world.report("n1", "3")
        # Nobody has said yet what processors it has.
        await world.until(lambda: offers(world, names.BATCH_CPU) == 35_400)
        await world.until(lambda: "NotNormalized" in world.reasons("n1"))
        await topology(world, {names.ANNOTATION_CPU_BASIC_INFO: json.dumps(FAST)})
        await world.until(lambda: offers(world, names.BATCH_CPU) == 53_100)
        await world.until(lambda: zones(world)[0].get(names.BATCH_CPU) == "26550")
        assert annotation(world, names.ANNOTATION_CPU_NORMALIZATION) == "1.50"
        ratios = annotation(world, names.ANNOTATION_AMPLIFICATION)
        assert ratios == '{"cpu":3.00,"memory":1.20}'
        await world.configure(colocation_config={"enable": False})
        await world.until(lambda: annotation(world, names.ANNOTATION_AMPLIFICATION) is None)
        assert annotation(world, names.ANNOTATION_CPU_NORMALIZATION) == "1.50"


async def test_every_node_under_colocation_says_that_it_is_not_normalized(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        said = names.ANNOTATION_CPU_NORMALIZATION
        await world.until(lambda: annotation(world, said) == "1.00")


async def test_mid_pods_get_what_is_predicted_to_stay_unused(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON | {"midUnallocatedPercent": 50})
    async with world.manager():
        await world.pod("p1", "n1", "40")
        usage = {"resources": {"cpu": "30", "memory": "100Gi"}}
        system = {"resources": {"cpu": "4", "memory": "1Gi"}}
        predicted = {"resource": {"resources": {"cpu": "10", "memory": "0"}}}
        status = {
            "updateTime": durations.moment(world.clock.now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": system},
            "prodReclaimableMetric": predicted,
        }
        await world.admin.patch(
            resources.NODE_METRICS, "n1", {"status": status}, subresource="status"
        )
        # 10 reclaimable, and half of the 20 that are neither requested nor used by the system.
        await world.until(lambda: offers(world, names.MID_CPU) == 20_000)
        await world.configure(
            colocation_config=ON | {"midReclaimMode": "static", "midStaticCPUReservedPercent": 25}
        )
        await world.until(lambda: offers(world, names.MID_CPU) == 16_000)
