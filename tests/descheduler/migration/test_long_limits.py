"""Limits of evictions that are longer than jobs are kept otherwise, over a change of the leader."""

import pytest

from descheduler.configuration import by_profile
from descheduler.configuration.arguments import migration as arguments
from descheduler.migration.plan import facts, object_limits
from process.runtime import clock as clocks
from tests.descheduler.migration import api_double, migrating_process
from tests.descheduler.migration.api_double import JOBS, PODS

PASSED = {"descheduler.koordinator.sh/passed-arbitration": "true"}
AN_HOUR = arguments.ObjectLimiter(duration=3600.0, max_migrating=1)
HOUR = object_limits.Limits({arguments.WORKLOAD: AN_HOUR})
DIRECTLY = facts.Rules(by_profile.ByProfile(facts.Defaults(mode="EvictDirectly")))


class World:
    """Pods of one workload that one replica of the descheduler after the other moves."""

    def __init__(self):
        self.clock = clocks.ManualClock()
        self.api = api_double.ApiDouble(self.clock.now())
        self.lead()

    def lead(self):
        """Let another process take over, which knows what the API server knows."""
        self.process = migrating_process.Process(self.api, self.clock, DIRECTLY, HOUR)

    def pass_by(self, seconds):
        self.clock.jump(seconds)
        self.api.now = self.clock.now()
        self.process.deliver()
        migrating_process.driven(self.process.scavenger.once())
        self.process.deliver()

    def moves(self, name):
        """Let a job move a pod; return whether that was evicted."""
        owner = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
        metadata = {"name": name, "ownerReferences": [owner]}
        spec = {"nodeName": "node-0", "containers": [{"name": "c"}]}
        self.api._create(PODS, {"metadata": metadata, "spec": spec}, "ns")
        spec = {"podRef": {"namespace": "ns", "name": name}}
        self.api._create(JOBS, {"metadata": {"name": name, "annotations": PASSED}, "spec": spec})
        for _ in range(6):
            self.process.deliver()
            self.process.reconcile(name)
        return name in [evicted for evicted, _ in self.api.evictions]


@pytest.mark.parametrize(("minutes", "is_allowed"), [(15, False), (59, False), (62, True)])
def test_a_limit_of_an_hour_holds_for_the_next_leader(minutes, is_allowed):
    world = World()
    assert world.moves("a")
    world.pass_by(60.0 * minutes)
    world.lead()
    assert world.moves("b") is is_allowed


def test_a_job_is_deleted_once_no_limit_counts_its_eviction():
    world = World()
    assert world.moves("a")
    world.pass_by(5390.0)
    assert world.api.listed(JOBS)
    world.pass_by(20.0)
    assert not world.api.listed(JOBS)
