"""The migration of pods during one term of leadership, and its metrics on every replica."""

import dataclasses
from collections.abc import Callable

from descheduler.configuration import by_profile, job_profiles
from descheduler.configuration.arguments import migration as arguments
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
from kube.client import client as clients
from kube.controllers import controller as controllers
from kube.controllers import recorder, workqueue
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """How the leader migrates pods."""

    rules: facts.Rules = dataclasses.field(default_factory=facts.Rules)
    pace: evictors.Pace = dataclasses.field(default_factory=evictors.Pace)
    workers: int = 1
    interval_seconds: float = 0.5
    """How often waiting jobs are arbitrated."""
    limits: by_profile.ByProfile[object_limits.Limits] = dataclasses.field(
        default_factory=lambda: by_profile.ByProfile(object_limits.Limits())
    )


def duties(written: job_profiles.Arguments, *, drops_claims: bool = False) -> Duties:
    """Return what the arguments of MigrationController mean; their defaults are filled in."""
    given = written.mapped(lambda one: one.complete())
    shared = given.otherwise
    return Duties(
        rules=facts.Rules(given.mapped(_defaults), drops_claims=drops_claims),
        pace=evictors.Pace(shared.evict_qps, shared.evict_burst),
        workers=shared.max_concurrent_reconciles,
        interval_seconds=shared.arbitration_args.interval,
        limits=given.mapped(_limits),
    )


def _defaults(args: arguments.MigrationControllerArgs) -> facts.Defaults:
    options = args.default_delete_options
    return facts.Defaults(
        mode=args.default_job_mode,
        ttl=args.default_job_ttl,
        eviction_policy=args.eviction_policy,
        delete_options={} if options is None else options.wire(),
    )


def _limits(args: arguments.MigrationControllerArgs) -> object_limits.Limits:
    limiters = {str(name): one for name, one in args.object_limiters.items()}
    return object_limits.Limits(limiters, args.max_migrating_per_workload)


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What migration asks of the rest of the process."""

    seen: stores.Stores
    pictures: arbitration.Pictures
    checks: arbitration.ChecksOf
    """`arbitration_checks.ArbitrationChecks` with the arguments of all profiles."""
    replicas: eviction_history.Replicas
    enforces: Callable[[], bool]
    """Whether pods may be moved at this moment."""


class Migration:
    """Arbitrates jobs, carries them out, and deletes old ones."""

    def __init__(
        self,
        around: Surroundings,
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._around = around
        self._duties = duties
        self._clock = clock
        self._registry = registry
        self._figures = job_metrics.JobMetrics(registry, duties.rules, clock)
        self.arbitration: arbitration.Arbitration | None = None
        """During a term: it knows why jobs wait."""

    async def tell(self) -> None:
        """Export how many jobs there are, on every replica; work until cancelled."""
        await controller.count(self._around.seen, self._figures, self._clock)

    async def run(self, api: clients.Client, events: recorder.EventRecorder) -> None:
        """Work until cancelled; everything is listed before, and `api` ends with the term."""
        around, duties, clock = self._around, self._duties, self._clock
        seen, queue = around.seen, workqueue.Queue(clock)
        arbitrating = self.arbitration = arbitration.Arbitration(
            seen, around.pictures, around.checks, api, events, clock
        )
        counted_seconds = object_limits.memory_seconds(duties.limits.all())
        scavenger = controller.Scavenger(
            seen, api, duties.rules, clock, around.enforces, counted_seconds
        )
        keeping = controllers.Controller(
            controller.NAME,
            self._jobs(api, events).reconcile,
            queue,
            clock,
            workers=duties.workers,
            registry=self._registry,
        )
        stops = [
            keeping.watch(seen.jobs, seen.of_job),
            keeping.watch(seen.reservations, seen.of_reservation),
            keeping.watch(seen.pods, seen.of_pod),
        ]
        try:
            async with supervise.Supervisor("migration") as supervisor:
                keeping.start(supervisor)
                supervisor.start("migration-scavenger", scavenger.run)
                supervisor.start(
                    "migration-switch",
                    lambda: controller.follow_switch(seen, queue, clock, around.enforces),
                )
                supervisor.start(
                    "migration-arbitration",
                    lambda: arbitrating.run(duties.interval_seconds, around.enforces),
                )
                await supervisor.stopped()
        finally:
            self.arbitration = None
            for stop in stops:
                stop()

    def _jobs(self, api: clients.Client, events: recorder.EventRecorder) -> controller.Jobs:
        around, duties, clock = self._around, self._duties, self._clock
        read = reads.Reads(api)
        history = eviction_history.EvictionHistory(
            around.seen, duties.limits, around.replicas, clock
        )
        turn = turns.Turns(around.seen, clock)
        parts = job_writer.Parts(
            api,
            read,
            evictors.Evictors(api, duties.rules, clock, duties.pace),
            events,
            duties.rules,
            clock,
            self._figures,
            turn,
            history,
        )
        return controller.Jobs(
            around.seen,
            job_facts.JobFacts(around.seen, read, history.held_back, turn),
            job_writer.JobWriter(parts),
            duties.rules,
            clock,
            around.enforces,
        )
