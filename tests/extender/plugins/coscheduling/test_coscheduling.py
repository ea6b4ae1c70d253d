"""Coscheduling: members pass where their plan placed them, and are bound with their quorum."""

import msgspec
import numpy as np
import pytest

from api import names
from extender.framework import verdicts, views
from tests.extender.clusters import gang_cluster
from tests.extender.clusters.gang_cluster import NOW

NODES = ("n1", "n2", "n3")
NO_PLAN = "gang has no plan yet"


@pytest.fixture
def cluster():
    made = gang_cluster.GangCluster()
    made.nodes(*NODES)
    yield made
    assert made.problems() == []
    assert made.rebuilt() == made.value


def _assumed(cluster, members, nodes=NODES):
    """Let members arrive at their nodes; return what Permit says to each."""
    return [cluster.reserve(pod, node)[0] for pod, node in zip(members, nodes, strict=False)]


# -- filter ------------------------------------------------------------------------------------


def test_a_pod_without_a_gang_concerns_nobody(cluster):
    assert cluster.passing(cluster.pod("p")) == list(NODES)
    assert cluster.value.table == cluster.plugin.start().table


def test_a_member_passes_only_where_its_plan_has_placed_it(cluster):
    one, other = cluster.members("job", 2, least=2)
    assert cluster.passing(one) == NO_PLAN
    plan = cluster.plan((one, "n2"), (other, "n3"))
    assert (cluster.passing(one), cluster.passing(other)) == (["n2"], ["n3"])
    cluster.give_up(plan, "node n3 is gone")
    assert cluster.passing(one) == f"{NO_PLAN}: node n3 is gone"
    cluster.plan((one, "n1"), (other, "n1"))
    assert cluster.passing(one) == ["n1"]


def test_what_other_gangs_keep_is_not_left_out_to_judge_a_member_without_a_plan(cluster):
    lesser = cluster.members("lesser", 3, least=3)
    cluster.plan(*zip(lesser, NODES, strict=True))
    (member,) = cluster.members("job", 1, least=2, priority=10)
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(views.PodInfo.of(member), view)
    assert asked.refused.status.everywhere
    rows = np.flatnonzero(view.known)
    # A look without claims would need nodes, which this view cannot show.
    blind = msgspec.structs.replace(view, node=None, values=None)
    outcome = cluster.pipeline.filter(asked, blind, rows, NOW)
    assert [outcome.refusal(place) for place in range(rows.size)] == [asked.refused] * 3


def test_a_member_that_the_plan_leaves_out_does_not_pass(cluster):
    one, other, late = cluster.members("job", 3, least=2)
    cluster.plan((one, "n1"), (other, "n2"))
    assert cluster.passing(late) == NO_PLAN


def test_a_planned_node_that_is_gone_refuses_everywhere(cluster):
    one, other = cluster.members("job", 2, least=2)
    cluster.plan((one, "n1"), (other, "n2"))
    cluster.no_node("n1")
    assert cluster.passing(one) == "gang is planned on another node for this member"


def test_what_the_plan_keeps_for_a_member_does_not_stand_in_its_way(cluster):
    """The node is full but for what is kept: filter and bind look at it without that."""
    cluster.nodes("small", cpu="1")
    one, other = cluster.members("job", 2, least=2)
    cluster.plan((one, "small"), (other, "n1"))
    assert cluster.passing(one) == ["small"]
    asked, _ = cluster.reserve(one, "small")
    assert gang_cluster.waits(cluster.permission(asked)).key == "team/job"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        pytest.param({"least": 5}, "gang team/job waits for 3 of 5 members", id="members"),
        pytest.param({"least": "many"}, "is missing or no number", id="minimum"),
        pytest.param(
            {"least": 2, "groups": '["team/job","team/other"]'},
            "team/other has neither members nor a PodGroup",
            id="group",
        ),
    ],
)
def test_a_gang_that_is_not_complete_says_what_it_waits_for(cluster, declared, told):
    one, _ = cluster.members("job", 2, **declared)
    assert told in cluster.passing(one)


def test_a_pod_that_the_watch_has_not_shown_is_refused_until_it_has(cluster):
    record = cluster.record("early", "job", least=1)
    assert cluster.passing(record) == "pod is not known as a member of its gang yet"
    cluster.pod("early", "job", least=1)
    assert cluster.passing(record) == list(NODES), "a gang of one needs no plan"


# -- permit ------------------------------------------------------------------------------------


def test_members_wait_for_their_quorum_and_are_let_go_together(cluster):
    members = cluster.members("job", 3, least=3, wait="90s")
    cluster.plan(*zip(members, NODES, strict=True))
    first, second = _assumed(cluster, members[:2])
    wait = gang_cluster.waits(cluster.permission(first))
    assert (wait.key, wait.until, wait.together) == ("team/job", NOW + 60, True)
    assert "team/job has 2 of 3" in wait.status.text
    (third,) = _assumed(cluster, members[2:], ["n3"])
    for asked in (first, second, third):
        assert cluster.permission(asked).allowed
        assert cluster.permission(asked).wakes == ("team/job",)


def test_the_waiting_time_of_a_gang_counts_where_it_ends_before_the_plan(cluster):
    members = cluster.members("job", 2, least=2, wait="20s", mode="NonStrict")
    cluster.plan(*zip(members, NODES, strict=False))
    wait = gang_cluster.waits(cluster.arrive(members[0], "n1"))
    assert (wait.until, wait.together) == (NOW + 20, False)


@pytest.mark.parametrize("why", ["a member fits nowhere", ""], ids=["said", "forgotten"])
def test_members_that_wait_are_rejected_with_the_reason_when_the_plan_is_given_up(cluster, why):
    members = cluster.members("job", 3, least=3)
    plan = cluster.plan(*zip(members, NODES, strict=True))
    asked = _assumed(cluster, members[:2])
    cluster.give_up(plan, why or "x")
    for one in asked:
        found = cluster.permission(one)
        assert found.refusal.status.text == (why or "x")
        assert found.wakes == ("team/job",)


def test_a_member_of_an_earlier_plan_is_not_let_wait_for_another_one(cluster):
    members = cluster.members("job", 3, least=3)
    cluster.plan(*zip(members, NODES, strict=True))
    (asked,) = _assumed(cluster, members[:1])
    cluster.plan((members[1], "n2"), (members[2], "n3"))
    assert cluster.permission(asked).refusal.status.text == "plan of the gang was given up"


@pytest.mark.parametrize(
    ("policy", "bound", "arriving", "allowed"),
    [
        pytest.param("only-waiting", 0, 2, False, id="only-waiting: too few"),
        pytest.param("only-waiting", 3, 2, False, id="only-waiting: those that run do not count"),
        pytest.param("only-waiting", 0, 3, True, id="only-waiting: enough"),
        pytest.param("waiting-and-running", 1, 1, False, id="waiting-and-running: too few"),
        pytest.param("waiting-and-running", 1, 2, True, id="waiting-and-running: enough"),
        pytest.param("once-satisfied", 0, 2, False, id="once-satisfied: never yet"),
        pytest.param("once-satisfied", 1, 1, True, id="once-satisfied: one is bound"),
    ],
)
def test_who_counts_is_said_by_the_match_policy(cluster, policy, bound, arriving, allowed):
    running = [
        cluster.pod(f"r{number}", "job", least=3, policy=policy, node="n1")
        for number in range(bound)
    ]
    waiting = cluster.members("job", 3, least=3, policy=policy)
    assert len(running) == bound
    cluster.plan(*((pod, "n2") for pod in waiting))
    asked = [cluster.reserve(pod, "n2")[0] for pod in waiting[:arriving]]
    assert cluster.permission(asked[0]).allowed is allowed


@pytest.mark.parametrize("policy", ["only-waiting", "waiting-and-running", "once-satisfied"])
def test_those_that_were_let_go_first_still_count_for_the_others(cluster, policy):
    members = cluster.members("job", 3, least=3, policy=policy)
    cluster.plan(*zip(members, NODES, strict=True))
    asked = _assumed(cluster, members)
    assert cluster.permission(asked[0]).allowed
    cluster.pod("job-0", "job", least=3, policy=policy, node="n1")
    assert cluster.permission(asked[1]).allowed
    cluster.pod("job-1", "job", least=3, policy=policy, node="n2")
    assert cluster.permission(asked[2]).allowed


def test_a_member_of_a_gang_that_stands_is_placed_as_a_pod_of_its_own(cluster):
    for number, node in enumerate(NODES):
        cluster.pod(f"job-{number}", "job", least=3, node=node)
    extra = cluster.pod("extra", "job", least=3)
    assert cluster.passing(extra) == list(NODES)
    asked, grant = cluster.reserve(extra, "n2")
    assert cluster.permission(asked).allowed
    assert grant.annotations == {}, "it is bound alone"


@pytest.mark.parametrize(
    ("leaving", "passes"),
    [
        pytest.param(1, True, id="one leaves: its successor is placed as a pod of its own"),
        pytest.param(3, False, id="all leave: their successors start as a whole"),
    ],
)
def test_members_that_are_terminating_do_not_count(cluster, leaving, passes):
    for number, node in enumerate(NODES):
        cluster.pod(f"job-{number}", "job", least=3, node=node, leaves=number < leaving)
    successors = [cluster.pod(f"new-{number}", "job", least=3) for number in range(3)]
    assert cluster.passing(successors[0]) == (list(NODES) if passes else NO_PLAN)
    assert cluster.value.table.get("team/job").counts.children == 6 - leaving


def test_the_members_that_are_bound_together_are_noted_on_each(cluster):
    members = cluster.members("job", 2, least=2)
    cluster.plan(*zip(members, NODES, strict=False))
    _, grant = cluster.reserve(members[0], "n1")
    assert grant.annotations[names.ANNOTATION_BIND_GANG_GROUP] == "team/job"
    assert grant.annotations[names.ANNOTATION_BIND_GANG_MEMBERS] == "2"


# -- groups of gangs ---------------------------------------------------------------------------

BOTH = '["other/back","team/front"]'


def test_gangs_of_one_group_in_two_namespaces_are_bound_together(cluster):
    front = cluster.members("front", 2, least=2, groups=BOTH)
    assert "other/back has neither" in cluster.passing(front[0])
    back = cluster.members("back", 1, least=1, groups=BOTH, namespace="other")
    assert cluster.passing(back[0]) == NO_PLAN
    cluster.plan((front[0], "n1"), (front[1], "n2"), (back[0], "n3"))
    asked = _assumed(cluster, front)
    wait = gang_cluster.waits(cluster.permission(asked[0]))
    assert wait.key == "other/back,team/front"
    assert "other/back has 0 of 1" in wait.status.text
    (last,) = _assumed(cluster, back, ["n3"])
    assert all(cluster.permission(one).allowed for one in (*asked, last))


def test_a_gang_that_only_names_another_one_waits_for_it_and_holds_nothing_up(cluster):
    """A list that is not mutual changes nothing for the gang that is named."""
    hostile = cluster.members("hostile", 1, namespace="evil", least=1, groups='["team/job"]')
    members = cluster.members("job", 2, least=2)
    plan = cluster.plan(*zip(members, NODES, strict=False))
    assert plan.group == "team/job"
    assert cluster.passing(members[0]) == ["n1"]
    assert "team/job is not placed yet, and does not list this gang" in cluster.passing(hostile[0])
    asked = _assumed(cluster, members)
    assert all(cluster.permission(one).allowed for one in asked)
    assert cluster.passing(hostile[0]) == list(NODES), "it may follow now"
    assert len(cluster.value.group(("team/job",)).gangs) == 1


@pytest.mark.parametrize("name", ["team/job", "../team/job", "job@scheduling.k8s.io"])
def test_a_name_that_means_another_namespace_counts_nowhere(cluster, name):
    members = cluster.members("job", 2, least=3)
    hostile = cluster.pod("hostile", name, namespace="evil", least=3)
    assert cluster.value.table.get("team/job").counts.children == 2
    assert "waits for 1 of 3" in cluster.passing(members[0])
    assert "create the pods anew" in cluster.passing(hostile)


def test_a_pod_of_another_namespace_with_the_same_name_is_of_another_gang(cluster):
    members = cluster.members("job", 2, least=2)
    hostile = cluster.pod("hostile", "job", namespace="evil", least=2)
    cluster.plan((members[0], "n1"), (members[1], "n2"))
    (asked,) = _assumed(cluster, members[:1])
    assert not cluster.permission(asked).allowed
    assert "waits for 1 of 2" in cluster.passing(hostile)


# -- PodGroups ---------------------------------------------------------------------------------


def test_a_pod_group_says_how_many_members_are_needed(cluster):
    label = {names.LABEL_POD_GROUP: "job"}
    one, other = (cluster.pod(f"p{number}", labels=label) for number in range(2))
    assert "waits for the PodGroup team/job" in cluster.passing(one)
    found = cluster.pod_group("job", 2, timeout=30)
    assert cluster.passing(one) == NO_PLAN
    cluster.plan((one, "n1"), (other, "n2"))
    assert gang_cluster.waits(cluster.arrive(one, "n1")).until == NOW + 30
    fewer = cluster.pod_group("job", 1)
    asked = cluster.pipeline.cycle(_info(other), cluster.state.view())
    assert cluster.permission(asked).allowed
    cluster.no_pod_group(fewer)
    assert not cluster.permission(asked).allowed
    cluster.pod_group("job", found.min_member)


def _info(pod):
    return views.PodInfo.of(pod)


def test_native_members_are_a_gang_of_their_own(cluster):
    cluster.pod_group("job", 3)
    cluster.pod_group("job", 2, native=True)
    one, other = (cluster.pod(f"p{number}", native="job") for number in range(2))
    assert cluster.passing(one) == NO_PLAN
    cluster.plan((one, "n1"), (other, "n2"))
    wait = gang_cluster.waits(cluster.arrive(one, "n1"))
    assert wait.key == "team/job@scheduling.k8s.io"
    assert cluster.arrive(other, "n2").allowed


# -- victims -----------------------------------------------------------------------------------


def test_no_gang_protects_its_members_from_pods_of_higher_priority(cluster):
    """Else a gang of one would make any pod impossible to preempt."""
    three = [cluster.pod(f"job-{n}", "job", least=3, node="n1") for n in range(3)]
    lone = cluster.pod("lone", "lone", least=1, node="n1")
    for pod in (*three, lone, cluster.pod("free", node="n1")):
        assert cluster.protected(pod) is None


def test_a_member_is_kept_while_others_of_its_plan_are_on_their_way(cluster):
    members = cluster.members("job", 3, least=1, policy="only-waiting")
    cluster.plan(*zip(members, NODES, strict=True))
    bound = cluster.pod("job-0", "job", least=1, policy="only-waiting", node="n1")
    assert cluster.protected(bound).text == "its gang is being placed"


# -- waking ------------------------------------------------------------------------------------


def test_a_plan_wakes_its_members_at_once_and_nobody_else(cluster):
    told = []
    cluster.state.followers.append(told.append)
    one, other = cluster.members("job", 2, least=2)
    free, view = cluster.pod("free"), cluster.state.view()
    assert cluster.plugin.line(_info(one), view) == ""
    plan = cluster.plan((one, "n1"), (other, "n2"))
    (made,) = (delta for delta in told if getattr(delta, "kind", "") == "GangPlan")
    view = cluster.state.view()
    assert cluster.plugin.frees(made)
    assert cluster.plugin.line(_info(one), view) == "gang group team/job"
    assert cluster.plugin.line(_info(free), view) == ""
    asked = cluster.pipeline.cycle(_info(one), view).prepared[gang_cluster.NAME]
    assert cluster.plugin.could_help(asked, made)
    assert not cluster.plugin.could_help(None, made)
    told.clear()
    cluster.give_up(plan)
    assert not cluster.plugin.frees(told[0])


# -- pages -------------------------------------------------------------------------------------


def test_a_gang_is_shown_as_tools_know_it(cluster):
    members = cluster.members("job", 2, least=2, wait="90s", policy="only-waiting")
    cluster.plan((members[0], "n1"), (members[1], "n2"))
    cluster.reserve(members[0], "n1")
    found = cluster.plugin.named("team/job", cluster.state.view(), {}, ())
    assert found["name"] == "team/job"
    assert (found["waitTime"], found["minRequiredNumber"]) == (90_000_000_000, 2)
    assert (found["mode"], found["gangMatchPolicy"]) == ("Strict", "only-waiting")
    assert found["children"] == {"team/job-0": {}, "team/job-1": {}}
    assert found["waitingForBindChildren"] == {"team/job-0": {}}
    assert found["pendingChildren"] == {"team/job-1": {}}
    assert found["boundChildren"] == {}
    assert found["gangGroupInfo"]["GangGroupId"] == "team/job"
    assert found["gangGroupInfo"]["WaitingGangIDs"] == ["team/job"]
    assert (found["gangFrom"], found["hasGangInit"]) == ("GangFromPodAnnotation", True)
    assert found["plan"]["nodes"] == {"team/job-0": "n1", "team/job-1": "n2"}
    assert set(cluster.plugin.listed(cluster.state.view(), {}, ())) == {"team/job"}
    assert cluster.plugin.named("team/other", cluster.state.view(), {}, ()) is None


def test_gangs_are_counted_by_how_far_they_have_come(cluster):
    cluster.members("gathering", 1, least=2)
    cluster.members("waiting", 2, least=2)
    planned = cluster.members("planned", 2, least=2)
    cluster.plan(*zip(planned, NODES, strict=False))
    binding = cluster.members("binding", 2, least=2)
    cluster.plan(*zip(binding, NODES, strict=False))
    cluster.reserve(binding[0], "n1")
    cluster.pod("bound-0", "bound", least=1, node="n1")
    phases = dict.fromkeys(("gathering", "waiting", "planned", "binding", "bound"), 1.0)
    assert cluster.plugin.measured(cluster.state.view()) == phases


def test_a_refusal_is_explained_with_the_place_that_is_kept(cluster):
    one, other = cluster.members("job", 2, least=2)
    cluster.plan((one, "n1"), (other, "n2"))
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(_info(one), view)
    told = cluster.plugin.diagnose(asked.prepared[gang_cluster.NAME], view, 0, NOW)
    assert told.figures == (
        "gang team/job: planned on n1, 0 of 2 members have arrived or are bound"
    )
    assert isinstance(told, verdicts.Diagnosis)
