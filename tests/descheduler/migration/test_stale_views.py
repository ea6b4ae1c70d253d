"""What happened a moment ago, and no watch has shown yet, keeps a pod where it is."""

import pytest

from descheduler.configuration import by_profile
from descheduler.configuration.arguments import migration as arguments
from descheduler.migration.plan import facts, object_limits
from kube.client import errors
from process.runtime import clock as clocks
from tests.descheduler.migration import api_double, migrating_process
from tests.descheduler.migration.api_double import JOBS, KEPT, PODS

PASSED = {"descheduler.koordinator.sh/passed-arbitration": "true"}
TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}


class World:
    """Two pods, each with a job, and the process that carries the jobs out."""

    def __init__(self, *, controller="", **notes):
        self.clock = clocks.ManualClock()
        self.api = api_double.ApiDouble(self.clock.now())
        for name in ("a", "b"):
            uid = controller or name
            owner = {"kind": "ReplicaSet", "name": uid, "uid": uid, "controller": True}
            metadata = {"name": name, "ownerReferences": [owner]}
            spec = {"nodeName": "node-0", "containers": [{"name": "c"}]}
            self.api._create(PODS, {"metadata": metadata, "spec": spec}, "ns")
            metadata = {"name": name, "annotations": {**PASSED, **notes}}
            spec = {"podRef": {"namespace": "ns", "name": name}}
            self.api._create(JOBS, {"metadata": metadata, "spec": spec})
        self.process = migrating_process.Process(self.api, self.clock)

    def job(self, name="a"):
        return self.api.objects["podmigrationjobs", name]

    def held(self, name="a"):
        return self.job(name)["spec"]["reservationOptions"]["reservationRef"]["name"]

    def eviction(self, name="a"):
        told = self.job(name).get("status", {}).get("conditions", ())
        return next((one["reason"] for one in told if one["type"] == "Eviction"), "")

    def scheduled(self, name):
        """Bring a job to where its Reservation has a node, and everything is seen."""
        for _ in range(6):
            self.process.deliver()
            self.process.reconcile(name)
            for one in self.api.listed(KEPT):
                if "status" not in one:
                    self.place(one["metadata"]["name"])
            told = self.job(name).get("status", {}).get("conditions", ())
            if any(one["type"] == "ReservationScheduled" for one in told):
                break
        self.process.deliver()

    def place(self, name, phase="Available"):
        scheduled = {"type": "Scheduled", "status": "True"}
        status = {"phase": phase, "nodeName": "node-1", "conditions": [scheduled]}
        self.api._patch(KEPT, name, {"status": status}, "", "status")

    def abort(self, name):
        self.api._patch(JOBS, name, {"status": {"phase": "Aborted"}}, "", "status")

    def announced(self, name="a"):
        """Bring a job to where its eviction is announced."""
        self.scheduled(name)
        self.process.reconcile(name)
        assert self.eviction(name) == "EvictionBegun"
        self.process.deliver()
        self.process.reconcile(name)
        assert not self.api.evictions
        self.process.deliver()

    def opened(self, name="a"):
        """Whether pods may use the Reservation of a job."""
        return not self.api.objects["reservations", self.held(name)]["spec"]["unschedulable"]


DISTURBANCES = {
    "the job was aborted": lambda world: world.abort("a"),
    "the job was paused": lambda world: world.api._patch(JOBS, "a", {"spec": {"paused": True}}),
    "the job is gone": lambda world: world.api._delete(JOBS, "a"),
    "another pod took the place": lambda world: world.place(world.held(), "Succeeded"),
    "the Reservation is gone": lambda world: world.api._delete(KEPT, world.held()),
}


@pytest.mark.parametrize("disturb", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_pod_is_not_evicted_after(disturb):
    world = World()
    world.announced()
    disturb(world)
    world.process.reconcile("a")
    assert not world.api.evictions


def test_without_a_disturbance_it_is():
    world = World()
    world.announced()
    world.process.reconcile("a")
    assert [name for name, _ in world.api.evictions] == ["a"]
    assert world.eviction() == "Evicting"


@pytest.mark.parametrize(
    "disturb",
    [
        lambda world: world.abort("b"),
        lambda world: world.place(world.held("b"), "Succeeded"),
        lambda world: world.api._delete(KEPT, world.held("b")),
        lambda world: world.api._delete(JOBS, "b"),
        lambda world: world.api._patch(JOBS, "b", {"spec": {"paused": True}}),
    ],
    ids=["aborted", "place taken", "place gone", "deleted", "paused"],
)
def test_a_group_does_not_begin_to_move_after_one_of_it_was(disturb):
    world = World(**TOGETHER)
    world.scheduled("a")
    world.scheduled("b")
    disturb(world)
    world.process.reconcile("a")
    assert world.eviction("a") == ""


@pytest.mark.parametrize(
    ("disturb", "begins"),
    [
        (lambda world: world.abort("a"), False),
        (lambda world: world.place(world.held("a"), "Succeeded"), False),
        (lambda world: world.api._delete(KEPT, world.held("a")), False),
        (lambda world: None, True),
    ],
    ids=["aborted", "place taken", "place gone", "nothing"],
)
def test_nor_after_an_eviction_was_refused(disturb, begins):
    world = World(**TOGETHER)
    world.scheduled("a")
    world.scheduled("b")
    world.api.refuses_evictions = True
    while world.eviction("a") != "FailedEvict":
        world.process.reconcile("a")
        world.process.deliver()
    disturb(world)
    world.process.reconcile("b")
    assert world.eviction("b") == ("EvictionBegun" if begins else "")


def test_a_group_begins_to_move_otherwise():
    world = World(**TOGETHER)
    world.scheduled("a")
    world.scheduled("b")
    world.process.reconcile("a")
    assert world.eviction("a") == "EvictionBegun"


@pytest.mark.parametrize("taken", ["a", "b"], ids=["by its own pod", "by the pod of another job"])
def test_a_job_follows_its_group_after_a_place_was_taken(taken):
    world = World(**TOGETHER)
    world.scheduled("a")
    world.scheduled("b")
    for _ in range(4):
        world.process.reconcile("a")
        world.process.deliver()
    assert [name for name, _ in world.api.evictions] == ["a"]
    world.place(world.held(taken), "Succeeded")
    world.process.deliver()
    for _ in range(4):
        world.process.reconcile("b")
        world.process.deliver()
    assert [name for name, _ in world.api.evictions] == ["a", "b"]


def test_a_write_that_is_not_seen_yet_is_waited_for():
    world = World()
    world.process.reconcile("a")
    assert world.process.reconcile("a").message == "waits to see its own write"
    world.process.deliver()
    assert world.process.reconcile("a").message != "waits to see its own write"


def test_what_a_former_leader_decided_is_refused():
    """Two processes at once: the one that lags writes nothing over the other."""
    world = World()
    world.scheduled("a")
    late = migrating_process.Process(world.api, world.clock)
    world.process.reconcile("a")
    with pytest.raises(errors.Conflict):
        late.reconcile("a")
    assert world.eviction() == "EvictionBegun"


def test_a_job_without_a_known_pod_is_not_given_up_while_the_watch_lags():
    world = World()
    owner = {"kind": "ReplicaSet", "name": "c", "uid": "c", "controller": True}
    metadata = {"name": "c", "ownerReferences": [owner]}
    spec = {"nodeName": "node-0", "containers": [{"name": "c"}]}
    world.api._create(PODS, {"metadata": metadata, "spec": spec}, "ns")
    spec = {"podRef": {"namespace": "ns", "name": "c"}}
    metadata = {"name": "c", "annotations": PASSED}
    world.api._create(JOBS, {"metadata": metadata, "spec": spec})
    world.process.jobs.deliver(10)
    world.process.reconcile("c")
    assert world.job("c")["spec"]["podRef"]["uid"]


def test_an_eviction_that_was_announced_a_moment_ago_counts_in_the_limits():
    world = World(controller="web")
    limiters = {arguments.WORKLOAD: arguments.ObjectLimiter(duration=300.0)}
    rules = facts.Rules(by_profile.ByProfile(facts.Defaults(mode="EvictDirectly")))
    limits = object_limits.Limits(limiters)
    world.process = migrating_process.Process(world.api, world.clock, rules, limits)
    for _ in range(6):
        world.process.deliver()
        for name in ("a", "b"):
            world.process.reconcile(name)
    assert [name for name, _ in world.api.evictions] == ["a"]
    assert world.eviction("b") == ""
