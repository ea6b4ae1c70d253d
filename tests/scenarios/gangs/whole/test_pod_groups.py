"""The status of a PodGroup follows its members from their creation to their end."""

import pytest

from api import names
from tests.planes import raw
from tests.planes.gangs import ganging

KIND = ganging.KIND
RESTART = {names.ANNOTATION_GANG_REPAIR: "restart"}


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


async def loses_one(gangs, form):
    """Let a gang of four start, let one of its members fail, and wait until no other one stays."""
    has_object = form == "PodGroup"
    if has_object:
        await gangs.pod_group("job", 4, annotations=RESTART)
    await start(gangs, form, terminationGracePeriodSeconds=60)
    await gangs.whole("job", 4)
    await enters(gangs, "Running")
    if has_object:
        await phase(gangs, "Running", running=4)
    path = gangs.here.path("pods", "job-0", "status")
    await gangs.api.patch(path, {"status": {"phase": "Failed"}})

    async def evicted():
        found = {pod["metadata"]["name"]: pod["metadata"] for pod in gangs.members("job")}
        staying = sorted(name for name in found if "deletionTimestamp" not in found[name])
        return staying == ["job-0"]

    await raw.eventually(evicted, ganging.PATIENCE)


async def start(gangs, form, **options):
    """Create four members that ask for restarts."""
    return await gangs.gang("job", 4, form=form, annotations=RESTART, **options)


@pytest.mark.parametrize("form", ["PodGroup", "annotations"])
@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "slowly"])
async def test_a_gang_of_which_one_failed_starts_anew_as_a_whole(gangs, form, slowly):
    await gangs.here.node("a", cpu="4")
    await loses_one(gangs, form)
    lost = [f"job-{number}" for number in range(4)]
    if not slowly:
        # Another pod takes the places that are free now.
        for name in lost:
            await gangs.here.remove(name)
        await gangs.here.pod("other", requests={"cpu": "3"})
        await gangs.here.bound("other")
    await gangs.here.node("b", cpu="1")
    anew = await start(gangs, form, first=4)
    await gangs.waits("job", "there is room for 2 of 4 members")
    await gangs.up_to_date()
    assert not set(gangs.record.of("job")) & set(anew)
    if form == "PodGroup":
        await phase(gangs, "Scheduling", scheduled=0, failed=0)
    for name in lost if slowly else ("other",):
        await gangs.here.remove(name)
    await gangs.whole("job", 4)
