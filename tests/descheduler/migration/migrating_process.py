"""The real controller of jobs on an API double: one process that lives until it is killed."""

import msgspec

from descheduler.configuration import by_profile
from descheduler.migration import (
    arbitration,
    controller,
    eviction_history,
    evictors,
    job_facts,
    job_metrics,
    job_writer,
    reads,
    stores,
    turns,
)
from descheduler.migration.plan import facts, object_limits
from descheduler.model import object_projection, picture, pod_object, pod_projection
from kube.informers import store
from process.runtime import metrics
from tests.descheduler.migration import api_double
from tests.descheduler.migration.api_double import JOBS, KEPT, PODS


class Allows:
    """Lets every pod move."""

    def permanent_refusal(self, profile, pod):
        return ""

    def present_refusal(self, profile, pod, migrating, along):
        return ""


class Silent:
    """Takes events and posts none."""

    def event(self, regarding, kind, reason, note, action=""):
        return True


def driven(work):
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


class Process:
    """The migration of one process."""

    def __init__(self, api, clock, rules=None, limits=None):
        self.enforced = True
        projector = pod_projection.Projector()

        def pod(raw):
            return projector.pod(msgspec.convert(raw, pod_object.Pod))

        self.jobs = api_double.Watch(api, JOBS, object_projection.job)
        self.pods = api_double.Watch(api, PODS, pod)
        self.kept = api_double.Watch(api, KEPT, object_projection.reservation)
        self.watches = (self.jobs, self.pods, self.kept)
        seen = stores.Stores(self.jobs.store, self.pods.store, self.kept.store, store.Store())
        rules = rules or facts.Rules()
        figures = job_metrics.JobMetrics(metrics.Registry(), rules, clock)
        read = reads.Reads(api)
        pace = evictors.Pace(1e6, 1000)
        limits = by_profile.ByProfile(limits or object_limits.Limits())
        history = eviction_history.EvictionHistory(seen, limits, lambda uid: 10, clock)
        turn = turns.Turns(seen, clock)
        evicting = evictors.Evictors(api, rules, clock, pace)
        parts = job_writer.Parts(
            api, read, evicting, Silent(), rules, clock, figures, turn, history
        )
        self.reconciler = controller.Jobs(
            seen,
            job_facts.JobFacts(seen, read, history.held_back, turn),
            job_writer.JobWriter(parts),
            rules,
            clock,
            lambda: self.enforced,
        )
        seconds = object_limits.memory_seconds(limits.all())
        self.scavenger = controller.Scavenger(
            seen, api, rules, clock, lambda: self.enforced, seconds
        )
        self.arbitration = arbitration.Arbitration(
            seen, self._picture, lambda _: Allows(), api, Silent(), clock
        )

    def _picture(self, now):
        jobs, pods = dict(self.jobs.store.items()), {pod.uid: pod for pod in self.pods.store}
        return picture.Picture(now=now, nodes={}, pods=pods, on_node={}, alike={}, jobs=jobs)

    def reconcile(self, name):
        """Do the next step of a job."""
        return driven(self.reconciler.reconcile(name))

    def deliver(self, count=10**9, *, twice=False):
        """Bring every watch forward by so many changes."""
        for one in self.watches:
            one.deliver(count, twice=twice)
