"""A gang starts as a whole or not at all, and members say what it waits for."""

import json

import pytest

from tests.planes.gangs import ganging

FORMS = tuple(ganging.FORMS)


@pytest.mark.parametrize("form", FORMS)
async def test_a_gang_that_fits_starts_whole(gangs, form):
    await gangs.here.node("a")
    if form == "PodGroup":
        await gangs.pod_group("job", 4)
    await gangs.gang("job", 4, form=form)
    await gangs.whole("job", 4)


@pytest.mark.parametrize("form", FORMS)
async def test_no_pod_of_a_gang_that_cannot_be_complete_is_bound(gangs, form):
    await gangs.here.node("a", cpu="3")
    if form == "PodGroup":
        await gangs.pod_group("job", 4)
    await gangs.gang("job", 4, form=form)
    told = await gangs.waits("job", "there is room for 3 of 4 members", reason="InsufficientRoom")
    assert "insufficient cpu" in told.lower()
    await gangs.never("job")
    await gangs.here.node("b", cpu="3")
    await gangs.whole("job", 4)


async def test_members_that_are_created_late_are_waited_for(gangs):
    await gangs.here.node("a")
    await gangs.gang("job", 3, 5)
    await gangs.waits("job", "waits for 2 of 5 members", reason="WaitingForMembers")
    await gangs.never("job")
    await gangs.gang("job", 2, 5, first=3)
    await gangs.whole("job", 5)


async def test_members_wait_for_their_pod_group(gangs):
    await gangs.here.node("a")
    await gangs.gang("job", 3, form="PodGroup")
    await gangs.waits("job", "PodGroup", reason="WaitingForPodGroup")
    await gangs.never("job")
    await gangs.pod_group("job", 3)
    await gangs.whole("job", 3)


async def test_members_beyond_the_minimum_join_a_gang_that_runs(gangs):
    await gangs.here.node("a")
    await gangs.gang("job", 3)
    await gangs.whole("job", 3)
    await gangs.gang("job", 2, 3, first=3)
    await gangs.whole("job", 5)


async def test_a_group_of_gangs_starts_together(gangs):
    await gangs.here.node("a")
    listed = json.dumps([f"{gangs.here.namespace}/job-{one}" for one in ("drivers", "workers")])
    await gangs.gang("job-workers", 3, settings={"groups": listed})
    await gangs.waits("job-workers", "job-drivers", reason="WaitingForGangs")
    await gangs.never("job")
    await gangs.gang("job-drivers", 1, settings={"groups": listed})
    await gangs.whole("job", 4)


@pytest.mark.parametrize("mode", ["Strict", "NonStrict"])
async def test_both_modes_start_whole(gangs, mode):
    await gangs.here.node("a", cpu="3")
    await gangs.gang("job", 4, settings={"mode": mode})
    await gangs.waits("job", "there is room for 3 of 4 members")
    await gangs.never("job")
    await gangs.here.node("b", cpu="1")
    await gangs.whole("job", 4)
