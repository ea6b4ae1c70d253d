"""Who leaves for a pod where Reservations keep capacity: no pod takes what is kept for others."""

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from api import names
from api.plugin_args import job
from domain.cpus import cpulists
from domain.pods import disruption_budgets as budgets
from extender.framework import claim_index, views
from extender.framework.eviction import preemption, trial
from extender.preemption import planner, proposed_victims
from tests.extender.clusters.numa_cluster import topology
from tests.extender.clusters.reservation_cluster import NOW, ReservationCluster

PREEMPTING = {"Reservation": job.ReservationArgs(enablePreemption=True)}
MINE, OTHER = {"app": "mine"}, {"app": "other"}
THEIRS = [{"labelSelector": {"matchLabels": {"app": "theirs"}}}]
BY_NODE = "no victims would help: Insufficient cpu by node"


class Stage(ReservationCluster):
    """One node of ten cores; owners may preempt lesser owners."""

    def __init__(self, arguments=PREEMPTING, **more):
        super().__init__(arguments=arguments)
        self.node(**more)

    def asked(self, name, cpu, **more):
        return views.PodInfo.of(self.pod(name, cpu, **({"priority": 100} | more)))

    def plan(self, name="high", cpu="4", **more):
        view = self.view()
        index = claim_index.ClaimIndex(self.books.cluster.all_claims())
        terms = preemption.Terms(index, more.pop("budgets", budgets.NONE))
        asked = self.asked(name, cpu, **more)
        return planner.plan(self.pipeline, asked, view, np.flatnonzero(view.known), terms, NOW)

    def victims(self, *given, **more):
        found = self.plan(*given, **more)
        if isinstance(found, planner.NoPlan):
            return found.reason
        return sorted(claim.pod.name for claim in found.found.victims)

    def confirmed(self, proposed, cpu="4", **more):
        """Who leaves where kube-scheduler proposes these; None where the node is dropped."""
        view = self.view()
        what_if = trial.Trial(self.pipeline, self.asked("high", cpu, **more), view, 0, NOW)
        uids = [f"uid-{name}" for name in proposed]
        found = proposed_victims.completed(what_if, uids, budgets.NONE)
        return None if found is None else sorted(claim.pod.name for claim in found)


@pytest.fixture
def stage():
    return Stage()


def test_a_pod_that_is_no_owner_takes_nothing_that_is_kept(stage):
    stage.reservation("r", requests={"cpu": "4"})
    assert stage.into("owner", "2", priority=1) == "r"
    stage.put("low", "3", priority=2, **OTHER)
    stage.put("lower", "3", priority=1, **OTHER)
    assert stage.judge("high", "4", priority=100, **OTHER) == "Insufficient cpu by node"
    assert stage.victims(**OTHER) == ["low", "lower"], "the owner would leave in vain"
    assert stage.victims(cpu="3", **OTHER) == ["lower"]
    assert stage.victims(cpu="7", **OTHER) == BY_NODE
    assert stage.victims(priority=2, cpu="4", **OTHER) == BY_NODE


def test_an_owner_takes_the_place_of_a_lesser_owner(stage):
    stage.reservation("r", requests={"cpu": "4"})
    assert stage.into("first", "2", priority=1) == "r"
    assert stage.into("second", "2", priority=2) == "r"
    stage.reservation("s", requests={"cpu": "6"}, owners=THEIRS)
    found = stage.plan(cpu="2")
    assert [claim.pod.name for claim in found.found.victims] == ["first"]
    assert found.granted["Reservation"].name == "r"
    assert stage.victims(cpu="2", priority=1) == BY_NODE
    assert stage.victims(cpu="6") == BY_NODE


def test_owners_stay_where_reservations_do_not_preempt():
    stage = Stage(arguments={})
    stage.reservation("r", requests={"cpu": "4"})
    assert stage.into("first", "4", priority=1) == "r"
    stage.reservation("s", requests={"cpu": "6"}, owners=THEIRS)
    assert stage.victims(cpu="2") == BY_NODE


AFFINITY = {names.ANNOTATION_RESERVATION_AFFINITY: {"name": "r"}}


def test_an_affinity_leaves_only_the_owners_of_that_reservation(stage):
    stage.reservation("r", requests={"cpu": "4"}, allocatePolicy="Restricted")
    assert stage.into("first", "4", priority=9) == "r"
    stage.put("low", "6", priority=1, **OTHER)
    assert stage.victims(cpu="2", annotations=AFFINITY) == ["first"]


PROTECTED = {
    "quota's label": {names.LABEL_QUOTA_PREEMPTIBLE: "false"},
    "reservation's label": {names.LABEL_DISABLE_PREEMPTIBLE: "true"},
}


@pytest.mark.parametrize("labels", PROTECTED.values(), ids=PROTECTED)
def test_a_mark_protects_a_pod(stage, labels):
    stage.reservation("r", requests={"cpu": "4"})
    stage.put("kept", "3", priority=1, labels=labels, **OTHER)
    stage.put("low", "3", priority=2, **OTHER)
    assert stage.victims(cpu="3", **OTHER) == ["low"]
    assert stage.victims(cpu="4", **OTHER) == BY_NODE
    assert stage.confirmed(["kept"], cpu="3", **OTHER) is None


def test_cpus_that_a_reservation_keeps_are_left_and_others_free_their_own():
    stage = Stage(cpu="16")
    stage.topology(topology(cores=4))
    qos = {names.LABEL_QOS: "LSR"}
    held = {names.ANNOTATION_RESOURCE_STATUS: '{"cpuset":"0-1,8-9"}'}
    stage.reservation("r", requests={"cpu": "4"}, annotations=held)
    for priority, name in enumerate(("low", "middle"), 1):
        assert isinstance(stage.place(name, "6", labels=qos, priority=priority, **OTHER), dict)
    found = stage.plan(cpu="4", labels=qos, **OTHER)
    assert [claim.pod.name for claim in found.found.victims] == ["low"]
    taken = cpulists.parse(found.granted["NodeNUMAResource"].cpuset)
    assert taken.isdisjoint({0, 1, 8, 9})
    assert stage.plan(cpu="4", labels=qos).passes, "an owner has it already"


def test_what_kube_scheduler_proposes_in_vain_stays(stage):
    """It counts no Reservations: by its figures one pod is as good as the other."""
    stage.reservation("r", requests={"cpu": "4"})
    assert stage.into("owner", "4", priority=1) == "r"
    stage.put("low", "6", priority=2, **OTHER)
    assert stage.confirmed(["owner"], **OTHER) == ["low"]
    assert stage.confirmed(["low"], **OTHER) == ["low"]
    assert stage.confirmed(["owner"]) == ["owner"], "an owner itself gets its place"


def test_what_is_proposed_for_another_reason_than_resources_leaves(stage):
    """Its own filters have found more than a lack of resources, such as an anti-affinity."""
    stage.reservation("r", requests={"cpu": "4"})
    stage.put("disliked", "1", priority=1, **OTHER)
    stage.put("low", "4", priority=2, **OTHER)
    assert stage.confirmed(["disliked"], **OTHER) == ["disliked", "low"]


def test_what_is_kept_for_an_owner_is_counted_inside_its_reservation(stage):
    stage.reservation("r", requests={"cpu": "4"})
    assert stage.into("first", "4", priority=1) == "r"
    stage.reservation("s", requests={"cpu": "6"}, owners=THEIRS)
    found = stage.plan(cpu="4", priority=10)
    high = stage.pod("high", "4", priority=10)
    stage.books.nominate(high, "n1", evidence="preemption", granted=dict(found.granted))
    stage.release("first")
    assert stage.judge("thief", "1", priority=1) != "", "an owner of lower priority"
    assert stage.judge("alien", "1", priority=100, **OTHER) != ""
    stage.books.withdraw("uid-high")
    assert stage.into("high", "4", priority=10) == "r"


PODS = st.lists(
    st.tuples(
        st.integers(1, 4), st.integers(0, 3), st.sampled_from(["mine", "other"]), st.booleans()
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@hypothesis.given(
    kept=st.integers(1, 6),
    policy=st.sampled_from(["Default", "Aligned", "Restricted"]),
    pods=PODS,
    asked=st.tuples(st.integers(1, 6), st.integers(0, 4), st.sampled_from(["mine", "other"])),
)
def test_victims_are_lower_help_and_none_of_them_is_in_vain(kept, policy, pods, asked):
    stage = Stage()
    policy = {} if policy == "Default" else {"allocatePolicy": policy}
    stage.reservation("r", requests={"cpu": str(kept)}, **policy)
    bound = {}
    for number, (cpu, priority, app, protected) in enumerate(pods):
        labels = {names.LABEL_DISABLE_PREEMPTIBLE: "true"} if protected else {}
        more = {"priority": priority, "app": app, "labels": labels}
        if isinstance(stage.place(f"p{number}", str(cpu), **more), dict):
            bound[f"p{number}"] = (priority, protected)
    cpu, priority, app = asked
    found = stage.plan("high", str(cpu), priority=priority, app=app)
    may_leave = {name for name, (rank, kept) in bound.items() if rank < priority and not kept}

    def passes():
        return not stage.judge("high", str(cpu), priority=priority, app=app)

    if isinstance(found, planner.NoPlan):
        assert found.passes == passes()
        for name in may_leave:
            stage.release(name)
        assert found.passes or not passes()
        return
    chosen = {claim.pod.name: claim for claim in found.found.victims}
    assert chosen.keys() <= may_leave
    for name in chosen:
        stage.release(name)
    assert passes(), "it fits once they have left"
    for name, claim in chosen.items():
        record = msgspec.structs.replace(claim.pod)
        stage.books.pod(None, record, NOW)
        assert not passes(), f"{name} need not leave"
        stage.books.pod(record, None, NOW)
