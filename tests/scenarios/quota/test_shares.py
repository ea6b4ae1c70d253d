"""What each of two teams gets of a cluster that both want, with every figure worked out by hand."""

import pytest

from cli.quota import cluster, table
from cli.snapshot import reader
from process.runtime import clock as clocks

SHORT = "quota.koordinator.sh"
pytestmark = pytest.mark.timeout(120)


async def test_each_may_grow_to_the_smaller_of_hard_and_max(teams):
    await teams.here.node("a", cpu="250")
    await teams.here.node("b", cpu="250")
    amounts = {"min": {"cpu": 100}, "max": {"cpu": 300}, "hard": {"cpu": 200}}
    one, two = [await teams.quota(name, group=SHORT, **amounts) for name in ("one", "two")]
    for quota in (one, two):
        await teams.pods(quota, f"{quota}-first", 4, "20")
    await teams.settled(**{one: 4, two: 4})
    for quota in (one, two):
        await teams.pods(quota, f"{quota}-more", 8, "20")
    # 80 + 160 asked each, 340 free: 200 each, 100 of them guaranteed and 100 more.
    await teams.settled(**{one: 10, two: 10})
    sentence = await teams.waits(await teams.waiting(two), "Insufficient quotas")
    assert f"quotaName: {two}" in sentence
    assert "cpu:200" in sentence


async def test_a_missing_minimum_comes_first_and_the_rest_by_priority(teams):
    await teams.here.node("a", cpu="240")
    amounts = {"min": {"cpu": 100}, "max": {"cpu": 300}}
    high = await teams.quota("high", group=SHORT, priority=100, **amounts)
    low = await teams.quota("low", group=SHORT, priority=50, **amounts)
    await teams.pods(high, "high-first", 9, "10")
    await teams.pods(low, "low-first", 10, "10")
    await teams.settled(**{high: 9, low: 10})
    await teams.pods(high, "high-more", 5, "10")
    # 50 free: 10 up to the minimum, 40 by priority.
    await teams.settled(**{high: 14, low: 10})


async def test_the_higher_priority_takes_all_that_is_idle(teams):
    await teams.here.node("a", cpu="250")
    amounts = {"min": {"cpu": 100}, "max": {"cpu": 300}}
    high = await teams.quota("high", group=SHORT, priority=100, **amounts)
    low = await teams.quota("low", group=SHORT, priority=50, **amounts)
    await teams.pods(high, "high-first", 10, "10")
    await teams.pods(low, "low-first", 10, "10")
    # The 50 that are idle are taken until both teams have asked for them.
    other = await teams.quota("other", group=SHORT, min={"cpu": 50}, max={"cpu": 50})
    await teams.pods(other, "other", 5, "10")
    await teams.settled(**{high: 10, low: 10, other: 5})
    await teams.pods(low, "low-more", 4, "10")
    await teams.pods(high, "high-more", 5, "10")
    await teams.waits("low-more-0", "Insufficient quotas")
    await teams.waits("high-more-0", "Insufficient quotas")
    for number in range(5):
        await teams.here.remove(f"other-{number}")
    await teams.settled(**{high: 15, low: 10, other: 0})


async def test_a_changed_priority_says_at_once_who_takes_what_is_idle(teams):
    await teams.here.node("a", cpu="250")
    amounts = {"min": {"cpu": 100}, "max": {"cpu": 300}}
    one = await teams.quota("one", group=SHORT, priority=100, **amounts)
    two = await teams.quota("two", group=SHORT, priority=50, **amounts)
    other = await teams.quota("other", group=SHORT, min={"cpu": 50}, max={"cpu": 50})
    for quota, count in ((one, 10), (two, 10), (other, 5)):
        await teams.pods(quota, quota, count, "10")
    await teams.settled(**{one: 10, two: 10, other: 5})
    for quota in (one, two):
        await teams.pods(quota, f"{quota}-more", 5, "10")
        await teams.waits(f"{quota}-more-0", "Insufficient quotas")
    await teams.api.patch(teams.path(one, SHORT), {"spec": {"priority": 10}})
    for number in range(5):
        await teams.here.remove(f"{other}-{number}")
    await teams.settled(**{one: 10, two: 15, other: 0})


async def test_the_critical_team_gets_the_last_idle_cores_and_batch_keeps_its_minimum(teams):
    await teams.here.node("a", cpu="500")
    critical = await teams.quota(
        "critical", group=SHORT, priority=100, min={"cpu": 300}, max={"cpu": 500}, hard={"cpu": 500}
    )
    batch = await teams.quota(
        "batch", group=SHORT, priority=10, min={"cpu": 100}, max={"cpu": 300}, hard={"cpu": 200}
    )
    other = await teams.quota("other", group=SHORT, min={"cpu": 100}, max={"cpu": 100})
    await teams.pods(critical, "critical-first", 6, "50")
    await teams.pods(batch, "batch-first", 2, "50")
    await teams.pods(other, "other", 2, "50")
    await teams.settled(**{critical: 6, batch: 2, other: 2})
    await teams.pods(batch, "batch-more", 2, "50")
    await teams.pods(critical, "critical-more", 2, "50")
    await teams.waits("batch-more-0", "Insufficient quotas")
    await teams.waits("critical-more-0", "Insufficient quotas")
    for number in range(2):
        await teams.here.remove(f"other-{number}")
    await teams.settled(**{critical: 8, batch: 2, other: 0})


async def test_borrowers_give_back_what_the_owner_asks_for(teams):
    await teams.here.node("a", cpu="10")
    await teams.here.node("b", cpu="10")
    amounts = {"min": {"cpu": 10}, "max": {"cpu": 20}}
    owner, borrower = [await teams.quota(name, **amounts) for name in ("owner", "borrower")]
    await teams.pods(borrower, "borrowed", 10, "2")
    await teams.settled(**{owner: 0, borrower: 10})
    await teams.pods(owner, "owned", 7, "2")
    # 20 in all: each has its minimum, and nothing is left to borrow.
    await teams.settled(**{owner: 5, borrower: 5})
    await teams.waits(await teams.waiting(owner), "Insufficient quotas")


async def test_a_raised_minimum_grows_the_guaranteed_part(teams):
    await teams.here.node("a", cpu="20")
    amounts = {"min": {"cpu": 4}, "max": {"cpu": 20}}
    one, two = [await teams.quota(name, group=SHORT, **amounts) for name in ("one", "two")]
    await teams.pods(one, "one", 10, "2")
    await teams.pods(two, "two", 10, "2")
    await teams.settled(**{one: 5, two: 5})
    # Borrowers that had to leave are gone for good: nobody makes them anew.
    await teams.pods(one, "one-more", 5, "2")
    path = f"/apis/{SHORT}/v1alpha1/namespaces/{teams.here.namespace}/elasticquotas/{one}"
    await teams.api.patch(path, {"spec": {"min": {"cpu": "14"}}})
    await teams.settled(**{one: 7, two: 3})


async def test_the_list_shows_who_holds_what_a_team_misses_and_hard_gives_it_back(teams):
    await teams.here.node("a", cpu="16")
    amounts = {"min": {"cpu": 8}, "max": {"cpu": 16}}
    mine, other = [await teams.quota(name, group=SHORT, **amounts) for name in ("mine", "other")]
    await teams.pods(other, "other", 7, "2")
    await teams.settled(**{mine: 0, other: 7})
    found = await listed(teams)
    assert found[other].borrowed == {"cpu": 6000}
    assert found[mine].lent == {"cpu": 6000}
    assert found[mine].holders == {other: {"cpu": 6000}}
    await teams.api.patch(teams.path(other, SHORT), {"spec": {"hard": {"cpu": "10"}}})
    await teams.pods(mine, "mine", 3, "2")
    # 2 cores are free, and 14 - 10 come back.
    await teams.settled(**{mine: 3, other: 5})
    found = await listed(teams)
    assert found[mine].holders == {other: {"cpu": 2000}}


async def listed(teams):
    """What `koord get quota` lists."""
    snapshot = await reader.taken(teams.kube, clocks.SystemClock())
    return {row.name: row.standing for row in table.rows(cluster.build(snapshot))}
