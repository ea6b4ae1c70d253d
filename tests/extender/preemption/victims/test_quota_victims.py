"""Whose quota is freed for whom: victims of the quota plug-in."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from api import names
from domain.pods import disruption_budgets as budgets
from extender.framework import claim_index, views
from extender.framework.eviction import preemption, trial
from extender.framework.eviction import victims as framework
from extender.plugins.elastic_quota import victims
from extender.preemption import planner
from tests import processor_time
from tests.extender.clusters import quota_cluster

NOW = quota_cluster.NOW


def started(second):
    condition = {"type": "PodScheduled", "status": "True"}
    return [condition | {"lastTransitionTime": f"2026-07-01T12:00:{second:02d}Z"}]


class Teams(quota_cluster.QuotaCluster):
    """Quotas, and plans over all nodes."""

    def __init__(self, **rules):
        super().__init__(**rules)
        self.node("n1")
        self.node("n2")
        self.index = claim_index.ClaimIndex(self.state.all_claims())
        self.state.followers.append(self.index.follow)

    def plan(self, name, quota="", **more):
        pod = self.pod(name, quota, **more)
        view = self.state.view()
        terms = preemption.Terms(self.index, more.get("budgets", budgets.NONE))
        asked = views.PodInfo.of(pod)
        return planner.plan(self.pipeline, asked, view, np.flatnonzero(view.known), terms, NOW)

    def victims(self, *given, **more):
        found = self.plan(*given, **more)
        if isinstance(found, planner.NoPlan):
            return found.reason
        return sorted(claim.pod.name for claim in found.found.victims)

    def protected(self, victim, by, **more):
        """Why a bound pod may not leave for one of another quota."""
        pod = views.PodInfo.of(self.record("p", by, **{"priority": 100} | more))
        claim = self.state.claim(f"uid-default-{victim}")
        return framework.spared(self.pipeline, pod, self.state.view(), claim)


@pytest.fixture
def teams():
    made = Teams()
    yield made
    assert made.problems() == []


def three_low(teams, **more):
    for number in range(3):
        teams.pod(
            f"low-{number}", "team", node="n1", cpu=2, priority=10, conditions=started(number),
            **more,
        )  # fmt: skip


def test_of_a_full_quota_one_low_pod_leaves_for_the_high_one(teams):
    teams.quota("team", least={"cpu": "6"}, most={"cpu": "6"})
    three_low(teams)
    found = teams.plan("high", "team", cpu=2, priority=100)
    assert [claim.pod.name for claim in found.found.victims] == ["low-2"]
    assert "quotaName: team, runtime: cpu:6, used: cpu:6, pod's request: cpu:2" in found.refusal


SAME = {"cpu": 2, "priority": 10}
NOT = {
    "of another quota": {"quota": "other"},
    "of equal priority": {"priority": 100},
    "not preemptible": {"preemptible": False},
    "of kube-system": {"namespace": "kube-system"},
    "of a DaemonSet": {
        "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                                          "name": "d", "uid": "d"}]}
    },
}  # fmt: skip


@pytest.mark.parametrize("more", NOT.values(), ids=NOT)
def test_who_does_not_leave_for_a_quota(teams, more):
    for name in ("team", "other"):
        teams.quota(name, least={"cpu": "2"}, most={"cpu": "2"})
    given = dict({"quota": "team"} | SAME | more)
    if "metadata" in given:
        meta = given["metadata"]
        labels = {names.LABEL_QUOTA_NAME: given["quota"]}
        given["metadata"] = meta | {"labels": labels}
    teams.pod("held", given.pop("quota"), node="n1", **given)
    if more.get("quota"):
        teams.pod("mine", "team", node="n1", cpu=2, priority=100)
    assert teams.victims("high", "team", cpu=2, priority=100).startswith("no victims would help")


def test_no_victim_frees_the_minimum_of_pods_that_are_not_preemptible(teams):
    """What exceeds it are other such pods, which nothing preempts."""
    teams.quota("team", least={"cpu": "2"}, most={"cpu": "8"})
    teams.pod("kept", "team", node="n1", cpu=2, priority=10, preemptible=False)
    teams.pod("low", "team", node="n1", cpu=2, priority=10)
    found = teams.victims("high", "team", cpu=1, priority=100, preemptible=False)
    assert "Insufficient non-preemptible quotas" in found


@pytest.mark.parametrize("allowed", [False, True])
def test_pods_without_a_quota_preempt_each_other_only_where_arguments_say_so(allowed):
    teams = Teams(default_max={"cpu": 4000})
    teams.plugin._preempts_default = allowed
    teams.pod("low", node="n1", cpu=4, priority=10)
    found = teams.victims("high", cpu=2, priority=100)
    assert (found == ["low"]) if allowed else found.startswith("no victims would help")


def test_a_quota_that_moved_takes_its_pods_with_it(teams):
    """The index knows labels and namespaces; which quota that is, is asked when it matters."""
    teams.pod("low", "team", node="n1", cpu=2, priority=10)
    teams.plugin.group(teams.state.claim("uid-default-low"))
    teams.index.groups(teams.plugin)
    teams.quota("team", least={"cpu": "2"}, most={"cpu": "2"})
    assert teams.victims("high", "team", cpu=2, priority=100) == ["low"]


def test_pods_that_are_leaving_are_counted_once_and_not_evicted(teams):
    teams.quota("team", least={"cpu": "6"}, most={"cpu": "6"})
    three_low(teams)
    leaving = {"deletionTimestamp": "2026-07-01T12:00:30Z"}
    labels = {"labels": {names.LABEL_QUOTA_NAME: "team"}}
    teams.pod("low-1", "team", node="n1", cpu=2, priority=10, metadata=leaving | labels)
    found = teams.plan("high", "team", cpu=2, priority=100).found
    assert (found.victims, [c.pod.name for c in found.leaving]) == ((), ["low-1"])
    found = teams.plan("high", "team", cpu=4, priority=100).found
    assert [c.pod.name for c in found.victims] == ["low-2"]


PROTECTED = {
    "within what it may use": ({"cpu": 4}, "ours", True),
    "above what it may use": ({"cpu": 6}, "ours", False),
    "of the same quota": ({"cpu": 4}, "theirs", False),
    "no quota of its own": ({"cpu": 4}, "", False),
}


@pytest.mark.parametrize(("held", "by", "expected"), PROTECTED.values(), ids=PROTECTED)
def test_a_quota_protects_what_it_is_entitled_to(teams, held, by, expected):
    teams.quota("theirs", least={"cpu": "4"}, most={"cpu": "5"})
    teams.quota("ours", least={"cpu": "4"}, most={"cpu": "90"})
    teams.pod("held", "theirs", node="n1", priority=10, **held)
    found = teams.protected("held", by)
    assert found == (victims.ENTITLED if expected else None)


def test_a_quota_loses_only_what_is_above_its_share(teams):
    """Proposed one after the other: the second one would be taken from what it is entitled to."""
    teams.quota("theirs", least={"cpu": "4"}, most={"cpu": "4"})
    teams.quota("ours", least={"cpu": "4"}, most={"cpu": "90"})
    teams.pod("first", "theirs", node="n1", priority=10, cpu=3)
    teams.pod("second", "theirs", node="n1", priority=10, cpu=3)
    pod = views.PodInfo.of(teams.record("p", "ours", priority=100))
    view = teams.state.view()
    on = trial.Trial(teams.pipeline, pod, view, view.rows["n1"], NOW)
    first, second = (teams.state.claim(f"uid-default-{name}") for name in ("first", "second"))
    assert framework.spared(teams.pipeline, pod, on.view, first) is None
    on.remove((first,))
    assert framework.spared(teams.pipeline, pod, on.view, second) == victims.ENTITLED


@hypothesis.given(
    pods=st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 4), st.integers(0, 3), st.booleans()),
        max_size=8,
    ),
    asked=st.tuples(st.integers(1, 6), st.integers(0, 4)),
)
def test_after_the_victims_have_left_the_quota_has_room_and_not_before(pods, asked):
    teams = Teams()
    teams.quota("a", least={"cpu": "6"}, most={"cpu": "8"})
    teams.quota("b", least={"cpu": "6"}, most={"cpu": "8"})
    for number, (quota, cpu, priority, preemptible) in enumerate(pods):
        teams.pod(
            f"p{number}", quota, node=f"n{number % 2 + 1}", cpu=cpu, priority=priority,
            preemptible=preemptible,
        )  # fmt: skip
    cpu, priority = asked
    found = teams.plan("high", "a", cpu=cpu, priority=priority)
    pod = teams.pods["default/high"]
    if isinstance(found, planner.NoPlan):
        for key, one in tuple(teams.pods.items()):
            inputs = dict(one.requirements.inputs)
            if (
                one.node
                and inputs.get(names.LABEL_QUOTA_NAME) == "a"
                and one.requirements.priority < priority
                and names.LABEL_QUOTA_PREEMPTIBLE not in inputs
            ):
                teams.gone(key.partition("/")[2])
        assert found.passes or teams.refusal(pod) is not None
        return
    for claim in found.found.victims:
        inputs = dict(claim.pod.requirements.inputs)
        assert inputs[names.LABEL_QUOTA_NAME] == "a"
        assert claim.pod.requirements.priority < priority
        assert names.LABEL_QUOTA_PREEMPTIBLE not in inputs
        assert teams.refusal(pod) is not None, "one of them leaves in vain"
        teams.gone(claim.pod.name)
    assert teams.refusal(pod) is None
    assert teams.problems() == []


def test_planning_stays_short_in_a_large_quota():
    """10,000 pods of one quota among 2,000 nodes: one plan, no more than calls may wait for."""
    teams = Teams()
    teams.quota("team", least={"cpu": "10k"}, most={"cpu": "10k"})
    for number in range(2000):
        teams.node(f"m{number}", cpu="10")
    for number in range(10_000):
        teams.pod(
            f"low-{number}", "team", node=f"m{number % 2000}", cpu=1, priority=number % 50,
        )  # fmt: skip
    teams.index.groups(teams.plugin)
    teams.state.view()
    teams.pod("high", "team", cpu=8, priority=100)
    with processor_time.below(0.1):
        found = teams.plan("high", "team", cpu=8, priority=100)
    assert len(found.found.victims) == 8
    assert {claim.pod.requirements.priority for claim in found.found.victims} == {0}
