"""Which places of a plan are judged again when they are kept: those on nodes that have changed."""

import msgspec
import pytest

from extender.framework import pipeline
from extender.gangs import holding
from extender.gangs.planning import changed_nodes, planner
from tests.extender.clusters import quota_cluster
from tests.extender.conftest import NOW
from tests.extender.gangs.stage import gang_cluster

UNTIL = NOW + 60
NODES = {"n0", "n1", "n2"}


class Counting(holding.Holding):
    """Notes for which members plug-ins were asked again."""

    def judged(self, one, now):
        JUDGED.append(one.pod.name)
        return super().judged(one, now)


JUDGED = []


@pytest.fixture
def cluster():
    JUDGED.clear()
    found = gang_cluster.GangCluster()
    found.nodes(3)
    return found


@pytest.fixture
def since(cluster):
    with changed_nodes.following(cluster.cluster) as found:
        yield found


def kept(cluster, plan, since):
    """Keep the places of a plan; returns why that was impossible."""
    judging = pipeline.without(cluster.pipeline, "Coscheduling")
    keeping = Counting(cluster.books, lambda: judging)
    return [why for why in keeping.place(plan.placements, UNTIL, since, NOW) if why]


def test_nothing_is_judged_again_while_only_pods_without_a_node_come(cluster, since):
    plan = cluster.plan(cluster.gang("g", 4))
    cluster.pod("other")
    assert kept(cluster, plan, since) == []
    assert (JUDGED, len(cluster.books.nominations)) == ([], 4)


def test_places_on_a_node_that_has_changed_are_judged_again(cluster, since):
    plan = cluster.plan(cluster.gang("g", 4))
    node = plan.placements[0].node
    cluster.pod("other", node=node, cpu="100m")
    why = kept(cluster, plan, since)
    assert set(JUDGED) <= {one.pod.name for one in plan.placements if one.node == node}
    assert JUDGED
    # Two members of 4 cores fill a node of 8.
    assert "no longer fits" in why[0]


def test_places_elsewhere_stay_as_they_were_found(cluster, since):
    plan = cluster.plan(cluster.gang("g", 2))
    idle = min(NODES - {one.node for one in plan.placements})
    cluster.pod("other", node=idle)
    assert kept(cluster, plan, since) == []
    assert JUDGED == []


def test_without_knowledge_of_the_state_before_everything_is_judged(cluster):
    plan = cluster.plan(cluster.gang("g", 2))
    assert kept(cluster, plan, changed_nodes.ChangedNodes(None)) == []
    assert len(JUDGED) == 2


def test_a_member_with_a_quota_is_judged_again_after_any_change():
    """Its quota is used up by a pod on another node."""
    teams = quota_cluster.QuotaCluster()
    for name in NODES:
        teams.node(name, cpu="4")
    teams.quota("team", least={"cpu": "4"}, most={"cpu": "4"})
    members = [planner.Member(teams.pod(f"g-{n}", "team", cpu=2), "default/g") for n in range(2)]
    with changed_nodes.following(teams.state) as since:
        options = planner.Options({"default/g": 2})
        plan = planner.plan(teams.pipeline, teams.state.fork(), members, options, NOW)
        idle = min(NODES - {one.node for one in plan.placements})
        teams.pod("other", "team", node=idle, cpu=2)
        keeping = holding.Holding(teams.books, lambda: teams.pipeline)
        said = [why for why in keeping.place(plan.placements, UNTIL, since, NOW) if why]
    assert "no longer fits" in said[0]


def test_other_plugins_judge_everything_again(cluster, since):
    plan = cluster.plan(cluster.gang("g", 2))
    view = cluster.cluster.view()
    since.look(msgspec.structs.replace(view, trackers=tuple(view.trackers[1:])))
    assert kept(cluster, plan, since) == []
    assert len(JUDGED) == 2
