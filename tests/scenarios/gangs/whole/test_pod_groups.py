"""The status of a PodGroup follows its members from their creation to their end."""

import pytest

from tests.planes.gangs import ganging

KIND = ganging.KIND


async def phase(gangs, wanted, **counts):
    """Wait until the status of the PodGroup says this; returns it."""

    def says(found):
        status = (found or {}).get("status", {})
        known = all(status.get(key, 0) == value for key, value in counts.items())
        return status.get("phase") == wanted and known

    path = KIND.path(gangs.here.namespace, "job")
    return (await gangs.api.wait_until(path, says, ganging.PATIENCE))["status"]


async def enters(gangs, wanted):
    """Let the kubelet say this phase of every member."""
    for pod in gangs.members("job"):
        path = gangs.here.path("pods", pod["metadata"]["name"], "status")
        await gangs.api.patch(path, {"status": {"phase": wanted}})


@pytest.mark.parametrize(("end", "last"), [("Succeeded", "Finished"), ("Failed", "Failed")])
async def test_the_status_follows_the_members(gangs, end, last):
    await gangs.here.node("a", cpu="2")
    await gangs.pod_group("job", 3)
    await phase(gangs, "Pending")
    await gangs.gang("job", 3, form="PodGroup")
    await phase(gangs, "Scheduling", scheduled=0)
    await gangs.waits("job", "there is room for 2 of 3 members")
    await gangs.here.node("b", cpu="1")
    await phase(gangs, "Scheduled", scheduled=3)
    await enters(gangs, "Running")
    await phase(gangs, "Running", running=3)
    await enters(gangs, end)
    await phase(gangs, last, running=0)
