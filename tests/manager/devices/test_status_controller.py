"""The status of Devices as it reaches the API server, how often, and the metrics of the same."""

import json

import pytest

from api import names, resources
from kube.client import client
from tests import builders

DEVICES = resources.DEVICES
ONLY = {"controllers": ("devicestatus",)}
SHARE = {"cpu": "1", "memory": "1Gi", names.GPU: "50"}


def gpus(*health):
    return [
        {"deviceType": "gpu", "uuid": f"gpu-{n}", "totalMemory": "40Gi", "health": healthy}
        for n, healthy in enumerate(health)
    ]


async def device(world, *items, **status):
    body = {"apiVersion": DEVICES.api_version, "kind": "Device", "metadata": {"name": "n1"}}
    await world.admin.create(DEVICES, {**body, "spec": {"devices": list(items)}, **status})


async def pod(world, name, minor=0, percent="50", asks=SHARE, record=None):
    half = {"minor": minor, "resources": {names.GPU_CORE: percent, names.GPU_MEMORY_RATIO: percent}}
    notes = {names.ANNOTATION_DEVICE_ALLOCATED: record or json.dumps({"gpu": [half]})}
    raw = builders.a_pod(name, node="n1", requests=asks, limits=asks, annotations=notes)
    await world.admin.create(resources.PODS, raw, "default")


def told(world):
    found = world.stored(DEVICES, "n1").get("status", {}).get("deviceAllocations", ())
    return {
        one["device"]["minor"]: [
            (share["pod"]["name"], share["container"], share["allocated"])
            for share in one["allocations"]
        ]
        for one in found
    }


def version(world):
    return int(world.stored(DEVICES, "n1")["metadata"]["resourceVersion"])


async def test_it_converges_writes_nothing_then_and_survives_a_restart(world) -> None:
    await world.node("n1")
    await device(world, *gpus(True, True))
    await pod(world, "a")
    await pod(world, "b")
    async with world.manager(**ONLY):
        shares = [("a", "app", "50%"), ("b", "app", "50%")]
        await world.until(lambda: told(world) == {0: shares})
        await world.pass_time(8)
        before = version(world)
        await world.pass_time(60)
        assert version(world) == before
    await pod(world, "c", 1)
    await world.admin.delete(resources.PODS, "a", "default", grace_seconds=0)
    async with world.manager(**ONLY):
        now = {0: shares[1:], 1: [("c", "app", "50%")]}
        await world.until(lambda: told(world) == now)
        spec = world.stored(DEVICES, "n1")["spec"]["devices"]
        assert spec == gpus(True, True)


async def test_pods_that_leave_are_taken_out_and_health_stays(world) -> None:
    await world.node("n1")
    await device(world, *gpus(True))
    async with world.manager(**ONLY):
        await pod(world, "a")
        await world.pass_time(2)
        assert told(world)
        change = {"spec": {"devices": gpus(False)}}
        await world.admin.patch(DEVICES, "n1", change)
        await world.pass_time(3)
        assert told(world) == {0: [("a", "app", "50%")]}
        assert world.stored(DEVICES, "n1")["spec"]["devices"][0]["health"] is False
        facts = world.stored(DEVICES, "n1")["status"]["conditions"]
        assert {one["type"]: one["reason"] for one in facts}["Healthy"] == "DevicesUnhealthy"
        assert {"DevicesHealthy", "DevicesUnhealthy"} <= set(world.reasons("n1"))
        await world.admin.delete(resources.PODS, "a", "default", grace_seconds=0)
        await world.pass_time(3)
        assert "deviceAllocations" not in world.stored(DEVICES, "n1")["status"]


async def test_what_a_person_wrote_into_the_status_is_set_right(world) -> None:
    await world.node("n1")
    forged = {"deviceAllocations": [{"device": {"deviceType": "gpu", "uuid": "gpu-0"}}]}
    await device(world, *gpus(True), status={**forged, "conditions": [{"type": "Mine"}]})
    async with world.manager(**ONLY):
        await world.until(lambda: told(world) == {} and version(world))
        await world.pass_time(3)
        status = world.stored(DEVICES, "n1")["status"]
        assert status.keys() == {"conditions"}
        kinds = [one["type"] for one in status["conditions"]]
        assert kinds == ["Mine", "Accepted", "Healthy"]
        await world.admin.patch(DEVICES, "n1", {"status": forged})
        await world.pass_time(3)
        assert world.stored(DEVICES, "n1")["status"] == status


FORGED = {
    "more than it asks for": {"gpu": [{"minor": 0, "resources": {names.GPU_CORE: "100"}}]},
    "another type": {"rdma": [{"minor": 0, "resources": {names.RDMA: "50"}}]},
}


@pytest.mark.parametrize("record", FORGED.values(), ids=FORGED)
async def test_a_record_that_the_requests_do_not_allow_is_not_believed(world, record) -> None:
    await world.node("n1")
    await device(world, *gpus(True))
    await pod(world, "forged", record=json.dumps(record))
    await pod(world, "honest")
    async with world.manager(**ONLY) as manager:
        await world.until(lambda: told(world) == {0: [("honest", "app", "50%")]})
        await world.pass_time(16)
        problems = {"reason": "RecordUnreadable"}
        assert manager.registry.value("koord_device_problems", problems) == 1


async def test_many_changes_of_one_node_are_few_writes(world) -> None:
    await world.node("n1")
    await device(world, *gpus(*[True] * 4))
    async with world.manager(**ONLY) as manager:
        for number in range(20):
            await pod(world, f"p{number}", number % 4, "5", {**SHARE, names.GPU: "5"})
        await world.pass_time(4)
        assert sum(map(len, told(world).values())) == 20
        writes = {"resource": "devices", "write": "merge"}
        assert manager.registry.value("koord_manager_writes_total", writes) <= 4


async def test_a_crd_with_a_subresource_for_its_status_is_written_there(world) -> None:
    path = f"devices.{DEVICES.group}"
    change = [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}]
    await world.admin.patch(resources.CRDS, path, change, kind=client.Patch.JSON)
    await world.node("n1")
    await device(world, *gpus(True))
    await pod(world, "a")
    async with world.manager(**ONLY):
        await world.pass_time(9)
        assert told(world) == {0: [("a", "app", "50%")]}
        before = version(world)
        await world.pass_time(30)
        assert version(world) == before


async def test_switched_off_nothing_is_written_and_metrics_go_on(world) -> None:
    await world.node("n1")
    await device(world, *gpus(True, False))
    await pod(world, "a")
    async with world.manager(controllers=("*", "-devicestatus")) as manager:
        before = version(world)
        await world.pass_time(16)
        assert version(world) == before
        value = manager.registry.value
        labels = {"node": "n1", "type": "gpu", "minor": "0"}
        assert value("koord_device_allocated_ratio", labels) == 0.5
        share = {"pod_namespace": "default", "pod_name": "a", **labels}
        assert value("koord_device_pod_allocated_ratio", share) == 0.5
        assert value("koord_device_present", {"type": "gpu", "health": "unhealthy"}) == 1
        assert value("koord_device_healthy", {**labels, "minor": "1"}) == 0
        assert value("koord_device_in_use", {"type": "gpu"}) == 0.5
        assert value("koord_device_hidden_series") == 0
        await world.admin.delete(resources.PODS, "a", "default", grace_seconds=0)
        await world.pass_time(16)
        assert value("koord_device_pod_allocated_ratio", share) is None
