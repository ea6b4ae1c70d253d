"""How far the members of a plan have come, and when a plan has to be given up."""

import msgspec
import pytest

from api import names
from api.kubernetes import core
from extender.gangs import rounds
from tests.extender.gangs.stage import gang_cluster

NO_PLAN = "0/2 nodes are available: 2 gang has no plan yet."


@pytest.fixture
def cluster():
    found = gang_cluster.GangCluster()
    found.nodes(1)
    return found


def looked(cluster, members, *, assumed=(), now=0.0, excused=lambda _: False):
    slots = {one.pod.uid: rounds.Slot(one.pod, one.gang, "n0") for one in members}
    facts = rounds.Facts(
        cluster.truth.get, lambda uid: uid in assumed, lambda _: "n0", lambda _: True, now, excused
    )
    return rounds.look(rounds.Round("default/g", "1", 0.0, 60.0, slots, {"default/g": 2}), facts)


def test_a_plan_that_is_over_is_given_up_while_members_wait(cluster):
    members = cluster.gang("g", 2)
    assert looked(cluster, members, now=59.0).problem == ""
    found = looked(cluster, members, assumed={members[0].pod.uid}, now=60.0)
    assert found.problem == "default/g-1 did not arrive at its node in time"


def test_a_plan_whose_members_are_all_being_bound_is_not_given_up_at_its_end(cluster):
    members = cluster.gang("g", 2)
    found = looked(cluster, members, assumed={one.pod.uid for one in members}, now=61.0)
    assert (found.problem, found.done) == ("", False)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param(NO_PLAN, "", id="refused before there was a plan"),
        pytest.param(f"{NO_PLAN[:-1]}: node n1 is gone", "", id="refused after another plan"),
        pytest.param(
            "0/2 nodes are available: 2 Insufficient example.com/gpu.",
            "kube-scheduler does not place default/g-0: 0/2 nodes are available: "
            "2 Insufficient example.com/gpu.",
            id="refused by kube-scheduler",
        ),
        pytest.param(
            "0/2 nodes are available: 1 gang is planned on another node for this member.",
            "kube-scheduler does not place default/g-0: 0/2 nodes are available: "
            "1 gang is planned on another node for this member.",
            id="the planned node was not offered",
        ),
    ],
)
def test_what_kube_scheduler_says_of_a_member_ends_its_plan_where_it_is_about_the_plan(
    cluster, message, problem
):
    members = cluster.gang("g", 2)
    raw = cluster.make.pod("g-0", requests={"cpu": "4", "memory": "1Gi"})
    raw["metadata"]["annotations"] = {names.ANNOTATION_GANG_NAME: "g"}
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    raw["status"]["conditions"] = [said | {"message": message}]
    cluster.truth["default/g-0"] = cluster.projector.pod(msgspec.convert(raw, core.Pod))
    assert looked(cluster, members).problem == problem
    assert looked(cluster, members, excused=lambda _: True).problem == ""
