"""The status of a Device says who holds what: the manager keeps it from annotations of pods."""

import pytest

from api import resources
from tests.planes import raw
from tests.planes.devices.device_recount import minors
from tests.scenarios.devices import conftest
from tests.scenarios.devices.conftest import unmanaged  # noqa: F401 - a fixture


@pytest.fixture
def machines(unmanaged):  # noqa: F811
    """The nodes; each test says when a manager runs."""
    return unmanaged


@pytest.fixture
def managed(machines, plane):
    """Return how a manager is started."""
    return lambda: conftest.managing(plane, machines.here.namespace)


def shares(device):
    """Return the shares of each GPU: pod, container and percent."""
    told = ((device or {}).get("status") or {}).get("deviceAllocations") or ()
    return {
        one["device"]["uuid"]: [
            (share["pod"]["name"], share["container"], share["allocated"])
            for share in one["allocations"]
        ]
        for one in told
        if one["device"]["deviceType"] == "gpu"
    }


async def says(machines, node, expected):
    path = resources.DEVICES.path(name=node)
    return await machines.api.wait_until(
        path, lambda found: shares(found) == expected, raw.PATIENCE
    )


async def test_half_a_gpu_is_named_by_pod_and_container_and_the_other_half_is_given(
    machines,
    managed,
):
    node = await machines.machine("pair")
    ids = [f"GPU-{node}-{minor}" for minor in range(2)]
    async with managed():
        await machines.share("ml-training-1", 50)
        (first,) = await machines.on(node, "ml-training-1")
        (half,) = minors(first)
        container = first["spec"]["containers"][0]["name"]
        one = [("ml-training-1", container, "50%")]
        await says(machines, node, {ids[half]: one})
        await machines.share("ml-training-2", 100)
        await machines.on(node, "ml-training-2")
        whole = [("ml-training-2", container, "100%")]
        await says(machines, node, {ids[half]: one, ids[1 - half]: whole})
        await machines.share("other", 50)
        await machines.on(node, "other")
        both = [*one, ("other", container, "50%")]
        await says(machines, node, {ids[half]: both, ids[1 - half]: whole})
    # While no manager runs, a pod leaves and a device fails.
    await machines.here.remove("ml-training-2")
    await machines.report(node, sick=(half,))
    async with managed():
        found = await says(machines, node, {ids[half]: both})
    health = {one["id"]: one["health"] for one in found["spec"]["devices"] if one["type"] == "gpu"}
    assert health == {ids[half]: False, ids[1 - half]: True}
    await machines.agree()


async def test_nothing_is_written_while_nothing_changes(machines, managed):
    node = await machines.machine("pair")
    path = resources.DEVICES.path(name=node)
    async with managed() as manager:
        await machines.share("pod", 30)
        (pod,) = await machines.on(node, "pod")
        container = pod["spec"]["containers"][0]["name"]
        expected = {f"GPU-{node}-{minors(pod)[0]}": [("pod", container, "30%")]}
        before = await says(machines, node, expected)
        again = {"controller": "devicestatus", "result": "unchanged"}
        looked = manager.registry.value("koord_controller_reconciles_total", again) or 0

        async def looked_again():
            now = manager.registry.value("koord_controller_reconciles_total", again) or 0
            return now > looked

        note = {"metadata": {"annotations": {"example.com/note": "looked at"}}}
        answer = await machines.api.patch(path, note)
        version = answer["metadata"]["resourceVersion"]
        assert version != before["metadata"]["resourceVersion"]
        await raw.eventually(looked_again, raw.PATIENCE)
        assert (await machines.api.get(path))["metadata"]["resourceVersion"] == version
