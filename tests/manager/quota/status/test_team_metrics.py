"""What teams see of their quotas as gauges."""

import pytest

from api import names
from domain.quota.tree.forest import Forest
from manager.quota.status import team_metrics
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from tests.manager.quota.conftest import Cluster, a_quota


@pytest.fixture
def teams(cluster: Cluster) -> Cluster:
    """Two teams on 20 cores: a borrows what b leaves idle."""
    cluster.node("n1", cpu="20")
    for name in ("a", "b"):
        cluster.quota(a_quota(name, least={"cpu": "10"}, most={"cpu": "20", "pods": "9"}))
    cluster.pod("big", quota="a", cpu="14500m", node="n1")
    cluster.pod("late", quota="b", cpu="2")
    return cluster


def test_what_each_team_has_and_waits_for(teams: Cluster) -> None:
    rows = team_metrics.amounts(teams.book.forest, team_metrics.chosen(teams.book.forest))
    told = {
        (name, quota): value
        for name, values in rows.items()
        for (quota, resource), value in values.items()
        if resource == "cpu" and quota in {"a", "b"}
    }
    assert told == {
        ("entitled", "a"): 14.5,
        ("guaranteed", "a"): 10,
        ("used", "a"): 14.5,
        ("borrowed", "a"): 4.5,
        ("lent", "a"): 0,
        ("waiting", "a"): 0,
        ("entitled", "b"): 2,
        ("guaranteed", "b"): 10,
        ("used", "b"): 0,
        ("borrowed", "b"): 0,
        ("lent", "b"): 4.5,
        ("waiting", "b"): 2,
    }
    assert team_metrics.waiting(teams.book, frozenset({"a", "b"})) == {("a",): 0, ("b",): 1}


async def test_gauges_follow_and_forget_quotas_that_are_gone(teams: Cluster) -> None:
    clock, registry = ManualClock(), metrics.Registry()
    one = {"quota": "b", "resource": "cpu"}
    async with supervise.Supervisor("test") as tasks:
        tasks.start("metrics", team_metrics.TeamMetrics(teams.book, clock, registry).run)
        await clock.settle()
        assert registry.value("koord_quota_waiting", one) == 2
        assert registry.value("koord_quota_waiting_pods", {"quota": "b"}) == 1
        teams.drop_quota("default/b")
        teams.quota(a_quota("a", "other"))
        await clock.advance(team_metrics.PERIOD_SECONDS)
        assert registry.value("koord_quota_waiting", one) is None
        assert registry.value("koord_quota_waiting_pods", {"quota": "b"}) is None
        assert registry.value("koord_quota_waiting_pods", {"quota": names.DEFAULT_QUOTA}) == 1
        assert registry.value("koord_quota_conflicts") == 1


def test_many_quotas_and_resources_make_boundedly_many_series() -> None:
    cluster = Cluster()
    many = {f"example.com/r{number:03}": "1" for number in range(60)}
    cluster.quota(a_quota("old", most=many, created=0.5))
    for number in range(team_metrics.MOST + 20):
        cluster.quota(a_quota(f"q{number}", most={"cpu": "1"}, created=1.0 + number))
    forest = cluster.book.forest
    shown = team_metrics.chosen(forest)
    assert len(shown) == team_metrics.MOST + 2
    assert "old" in shown
    assert f"q{team_metrics.MOST + 10}" not in shown
    rows = team_metrics.amounts(forest, shown)["used"]
    assert sum(quota == "old" for quota, _ in rows) == team_metrics.MOST_RESOURCES


def test_with_very_many_quotas_loans_are_not_worked_out(teams: Cluster) -> None:
    rows = team_metrics.amounts(teams.book.forest, ("a",), most=1)
    assert (rows["used"]["a", "cpu"], rows["lent"], rows["waiting"]) == (14.5, {}, {})


def test_an_empty_cluster_tells_the_reserved_quotas_only() -> None:
    shown = team_metrics.chosen(Forest.empty())
    assert shown == (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA)
