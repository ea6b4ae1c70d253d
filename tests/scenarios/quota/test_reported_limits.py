"""Minimum, maximum and runtime of quotas hold at any moment, also across restarts."""

import asyncio

import pytest

from api import names
from tests.planes import raw

pytestmark = pytest.mark.timeout(120)


async def test_the_minimum_comes_back_from_borrowers_by_itself(teams, interlude):
    """Nobody has to allow that: borrowers leave as soon as, and only while, the owner waits."""
    for node in ("a", "b"):
        await teams.here.node(node, cpu="4")
    amounts = {"min": {"cpu": 4}, "max": {"cpu": 8}}
    owner, borrower = [await teams.quota(name, **amounts) for name in ("owner", "borrower")]
    await teams.pods(borrower, "borrowed", 8)
    await teams.settled(**{owner: 0, borrower: 8})
    await teams.pods(owner, "owned", 3)
    await interlude("webhook", "manager", "extender")
    await teams.settled(**{owner: 3, borrower: 5})
    # Half of what was taken back is idle again, and nobody leaves for what nobody waits for.
    await teams.here.remove("owned-0")
    await teams.settled(**{owner: 2, borrower: 5})


async def test_twenty_creators_at_once_never_use_more_than_the_maximum(teams, interlude):
    await teams.here.node("a", cpu="32")
    team = await teams.quota("team", min={"cpu": 2}, max={"cpu": 5})
    async with teams.peak(team) as peak:
        creators = [teams.pods(team, f"creator-{number}", 1) for number in range(20)]
        await asyncio.gather(*creators, interlude("webhook", "extender", "manager"))
        await teams.settled(**{team: 5})
        for _ in range(3):
            name, *_ = await teams.bound(team)
            await teams.here.remove(name)
            await teams.settled(**{team: 5})
    assert peak.highest == 5


async def test_runtime_follows_every_change_of_a_node_a_quota_and_a_pod(teams, interlude):
    await teams.here.node("a", cpu="10")
    amounts = {"min": {"cpu": 2}, "max": {"cpu": 20}}
    one, two = [await teams.quota(name, **amounts) for name in ("one", "two")]
    await teams.pods(one, "one", 10, "2")
    await teams.runs_on(one, cpu="10")
    await teams.settled(**{one: 5})
    node = await teams.here.node("b", cpu="4")
    await teams.runs_on(one, cpu="14")
    await teams.settled(**{one: 7})
    await teams.api.patch(teams.path(one), {"spec": {"max": {"cpu": "8"}}})
    await teams.runs_on(one, cpu="8")
    await teams.api.patch(teams.path(one), {"spec": {"max": {"cpu": "20"}}})
    await interlude("manager", "extender")
    await teams.runs_on(one, cpu="14")
    await teams.pods(two, "two", 2, "2")
    # Of the 10 above both minimums, two needs 2.
    await teams.runs_on(one, cpu="10")
    await teams.settled(**{one: 5, two: 2})
    for number in range(2):
        await teams.here.remove(f"two-{number}")
    await teams.runs_on(one, cpu="14")
    await teams.settled(**{one: 7, two: 0})
    await teams.api.delete(f"/api/v1/nodes/{node}")
    teams.here.nodes.remove(node)
    await teams.runs_on(one, cpu="10")
    await teams.used(teams.path(one), cpu="10")


async def test_a_parent_that_has_less_than_the_minimums_below_it_shares_what_it_has(
    teams, interlude
):
    await teams.here.node("a", cpu="12")
    parent = await teams.parent("parent", min={"cpu": 6}, max={"cpu": 12})
    other = await teams.quota("other", min={"cpu": 6}, max={"cpu": 6})
    below = {names.LABEL_QUOTA_PARENT: parent}
    amounts = {"min": {"cpu": 6}, "max": {"cpu": 12}}
    left = await teams.quota("left", labels=below, **amounts)
    with pytest.raises(raw.RefusedError, match="with its siblings 12"):
        await teams.quota("right", labels=below, **amounts)
    forced = {**below, names.LABEL_QUOTA_FORCE_UPDATE: "true"}
    right = await teams.quota("right", labels=forced, **amounts)
    await teams.pods(other, "other", 3, "2")
    for quota in (left, right):
        await teams.pods(quota, f"{quota}-first", 3)
    await teams.settled(**{other: 3, left: 3, right: 3})
    for quota in (left, right):
        await teams.pods(quota, f"{quota}-more", 3)
    await interlude("manager", "extender")
    for quota in (left, right):
        await teams.runs_on(quota, cpu="3")
        await teams.waits(await teams.waiting(quota), "Insufficient quotas")
    await teams.settled(**{other: 3, left: 3, right: 3})
    for number in range(3):
        await teams.here.remove(f"other-{number}")
    await teams.settled(**{other: 0, left: 6, right: 6})
    await teams.used(teams.path(parent), cpu="12")
