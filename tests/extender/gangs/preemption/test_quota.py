"""A gang over its quota takes back quota from its own team: what the team lacks, whole or not."""

import pytest

from extender.gangs.planning import planner
from extender.gangs.preemption import candidates, search
from tests.extender.clusters import quota_cluster
from tests.extender.clusters.quota_cluster import NOW


class Teams(quota_cluster.QuotaCluster):
    """Quotas, and gangs without room."""

    def search(self, quota, count, *, cpu=2, priority=100):
        members = tuple(
            planner.Member(self.pod(f"high-{n}", quota, cpu=cpu, priority=priority), "default/high")
            for n in range(count)
        )
        options = planner.Options({"default/high": count})
        case = search.Case(members, count, candidates.Terms(), NOW)

        def make(fork):
            return planner.Planner(self.pipeline, fork, members, options, NOW)

        return search.of(search.Search(self.pipeline, self.state.fork(), case, make))

    def victims(self, *given, **more):
        found = self.search(*given, **more)
        if isinstance(found, search.NoVictims):
            return found.reason
        return sorted(claim.pod.name for claim in found.found.victims)


@pytest.fixture
def teams():
    made = Teams()
    made.node("n1", cpu="16")
    made.node("n2", cpu="4")
    for name in ("team", "other"):
        made.quota(name, least={"cpu": "8"}, most={"cpu": "8"})
    for number in range(4):
        made.pod(f"low-{number}", "team", node="n1", cpu=2, priority=number)
        made.pod(f"other-{number}", "other", node="n1", cpu=2)
    yield made
    assert made.problems() == []


def test_the_least_important_pods_of_the_own_quota_leave_as_many_as_the_whole_gang_needs(teams):
    assert teams.victims("team", 2) == ["low-0", "low-1"]


def test_what_is_short_on_nodes_is_freed_as_well_and_the_minimum_of_others_stays(teams):
    # The team gets its quota back; there is room for one member more than on n2 where they were.
    assert teams.victims("team", 4) == [f"low-{number}" for number in range(4)]
    assert "left" in teams.victims("team", 5)


def test_no_pod_leaves_for_a_gang_of_the_priority_of_its_team(teams):
    assert teams.victims("team", 2, priority=0) == search.NOBODY
