"""The live switch on an API server: nothing moves while it is off, and jobs go on afterwards."""

import pytest

from api import resources
from process.runtime import clock as clocks
from tests.descheduler.migration import api_double, migrating_process
from tests.descheduler.migration.conftest import BUDGET, JOBS, PODS


async def test_a_switch_stops_what_has_not_begun(world):
    await world.pod()
    async with world.migrating():
        await world.move()
        await world.until(lambda: world.condition("ReservationCreated"))
        world.enforced = False
        await world.reserved()
        await world.passing(30)
        assert world.condition("Eviction") is None
        world.enforced = True
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))


async def test_a_switch_stops_evictions_that_were_refused(world):
    await world.pod(labels={"app": "web"})
    await world.admin.create(resources.POD_DISRUPTION_BUDGETS, BUDGET, "default")
    async with world.migrating():
        await world.move()
        await world.reserved()
        await world.until(lambda: world.condition("Eviction") == ("False", "FailedEvict"))
        world.enforced = False
        await world.admin.delete(resources.POD_DISRUPTION_BUDGETS, "web", "default")
        await world.passing(60)
        assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")
        assert world.condition("Eviction") == ("False", "FailedEvict")
        world.enforced = True
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))


async def test_what_has_left_before_a_switch_is_brought_to_its_end(world):
    await world.pod(terminationGracePeriodSeconds=60)
    async with world.migrating():
        await world.move()
        await world.reserved()
        await world.until(lambda: world.condition("Eviction") == ("False", "Evicting"))
        world.enforced = False
        await world.admin.delete(PODS, "web-0", "default", grace_seconds=0)
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))
        await world.used()
        await world.phase("Succeeded")


@pytest.mark.parametrize("ttl", [None, "0s", "20s"])
async def test_time_that_is_spent_switched_off_counts_for_no_ttl(world, ttl):
    await world.pod()
    async with world.migrating():
        await world.move(**({} if ttl is None else {"ttl": ttl}))
        await world.until(lambda: world.condition("ReservationCreated"))
        world.enforced = False
        await world.passing(700 if ttl else 2000)
        assert world.status()["phase"] == "Running"
        assert world.condition("Suspended") == ("True", "SwitchedOff")
        assert world.reservation()["spec"]["ttl"] == "0s", "its place is kept as long"
        world.enforced = True
        await world.until(lambda: world.condition("Suspended") == ("False", "Resumed"))
        await world.passing(15)
        await world.reserved()
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))


async def test_a_job_that_was_switched_off_for_a_moment_has_its_whole_ttl_anew(world):
    await world.pod()
    world.checks.not_now = "too many pods of its node move"
    async with world.migrating():
        await world.move(ttl="60s")
        await world.passing(40)
        world.enforced = False
        await world.passing(10)
        world.enforced = True
        await world.passing(50)
        assert "phase" not in world.status()
        await world.passing(15)
        assert (await world.phase("Failed"))["reason"] == "Timeout"
        await world.passing(250)
        assert world.stored(JOBS, "j"), "it is deleted five minutes after that ttl"
        await world.passing(120)
        assert world.stored(JOBS, "j") is None


def test_old_jobs_stay_while_they_are_open_and_the_switch_is_off():
    clock = clocks.ManualClock(now=1_700_000_000.0)
    api = api_double.ApiDouble(clock.now())
    for name, phase in (("open", "Running"), ("ended", "Failed")):
        spec = {"podRef": {"namespace": "ns", "name": name}}
        api._create(JOBS, {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}})
    process = migrating_process.Process(api, clock)
    clock.jump(700)
    process.enforced = False
    migrating_process.driven(process.scavenger.once())
    assert [one["metadata"]["name"] for one in api.listed(JOBS)] == ["open"]
    process.enforced = True
    migrating_process.driven(process.scavenger.once())
    assert not api.listed(JOBS)
