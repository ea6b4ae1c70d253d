"""What agents did by day, in the scorecard of those who may read the sums of the manager."""

import pytest

from api import names, resources
from domain.daily_sums import effects, sums
from manager.console import agent_days
from tests.manager.console import conftest

DAY = "2026-07-01"


async def keep(world, text):
    body = {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP_REPORT}, "data": {sums.KEY: text},
    }  # fmt: skip
    await world.admin.create(resources.CONFIG_MAPS, body, names.NAMESPACE)


def a_day():
    did = effects.Effects(
        watched=7200.0, enforced=3600.0, known=7200.0, over=1800.0, suppressed=5400.0,
        measured=3600.0, throttled=36.0, evicted=3.0, evicted_online=1.0, would_evict=2.0,
        reasons={"memory-evict": effects.Reason(3.0, 2.0)},
    )  # fmt: skip
    days = sums.added((), DAY, sums.Rates(sums.Cluster(1.0), {"secret": sums.Team(held=5.0)}), 60)
    return sums.text(sums.with_effects(days, DAY, did))


async def test_the_days_are_shown_to_those_who_may_get_them(world, opened, rights) -> None:
    await keep(world, a_day())
    for one in (resources.NODES, resources.NODE_METRICS, resources.PODS):
        rights.grant("anyone", one)
    async with opened() as console:
        card = await console.shown("/api/scorecard")
        assert "days" not in await console.shown("/api/scorecard", conftest.ANYONE)
        rights.grant("team-a", resources.CONFIG_MAPS, names.NAMESPACE)
        status, _ = await console.get("/api/scorecard", conftest.TEAM)
        assert status == 403
    (day,) = card["days"]
    assert day == {
        "date": DAY, "enforced": 0.5, "aboveThreshold": 0.25, "heldBack": 1.5, "wouldHoldBack": 0.0,
        "onlineThrottled": 0.01, "evicted": 3, "evictedOnline": 1, "wouldEvict": 2,
        "strategies": [{"name": "memory-evict", "evicted": 3, "wouldEvict": 2}],
    }  # fmt: skip
    # Teams are of the same map, and this page is not about them.
    assert "secret" not in str(card)


@pytest.mark.parametrize("text", ["", "[", '[{"date": 1}]'])
async def test_sums_that_cannot_be_read_stop_no_page(world, opened, text) -> None:
    await keep(world, text)
    async with opened() as console:
        assert (await console.shown("/api/scorecard"))["days"] == []


async def test_they_are_read_once_in_half_a_minute_and_kept_while_nobody_answers(world) -> None:
    await keep(world, a_day())
    days = agent_days.AgentDays(world.admin, names.NAMESPACE, world.clock)
    before = await days.known()
    assert [one.date for one in before] == [DAY]
    await world.admin.delete(resources.CONFIG_MAPS, names.CONFIG_MAP_REPORT, names.NAMESPACE)
    await keep(world, "[")
    assert await days.known() == before
    await world.clock.advance(31)
    # What is there cannot be read: what was known stays.
    assert await days.known() == before
    await world.admin.delete(resources.CONFIG_MAPS, names.CONFIG_MAP_REPORT, names.NAMESPACE)
    await world.clock.advance(31)
    assert await days.known() == ()
