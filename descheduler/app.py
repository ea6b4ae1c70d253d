"""Composition root of the descheduler."""

import contextlib
import dataclasses
import functools
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Final

from descheduler.configuration import addresses, by_profile
from descheduler.gain import measured_load
from descheduler.gain.options import EXCHANGE_SECONDS, Options
from descheduler.informers import watched
from descheduler.migration import stores
from descheduler.migration import term as migration
from descheduler.migration.plan import arbitration_checks
from descheduler.model import picture
from descheduler.placement import scheduler_state
from descheduler.receipts import breaker, ledger
from descheduler.receipts import controller as receipting
from descheduler.receipts.settings import ReceiptSettings
from descheduler.rounds import (
    awaited,
    carry_out,
    configured,
    judging,
    pages,
    round_metrics,
    rounds,
    sight,
)
from descheduler.settings import GainSettings, HealthSettings, Settings
from kube.client import access as accesses
from kube.client import client
from kube.controllers import leadership, leases, recorder
from process.configuration import features, switches
from process.http import health, running_process, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise, token_bucket

logger = logging.getLogger(__name__)

NO_CLAIMS: Final = features.Gate(
    "DisablePVCReservation",
    default=False,
    stage=features.Stage.ALPHA,
    description="Reservations of migrations leave out volumes with a PersistentVolumeClaim.",
)
GATES: Final[tuple[features.Gate, ...]] = (NO_CLAIMS,)
"""Features that can be switched."""
_COMPONENT: Final = "koord-descheduler"
_USUAL_QPS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class App(running_process.RunningProcess):
    """The running descheduler."""

    leadership: leadership.Leadership
    rounds: rounds.Rounds


class _Parts:
    """Everything that watches and decides; a term adds what writes."""

    def __init__(
        self,
        api: client.Client,
        settings: Settings,
        chosen: configured.Configured,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        gates = features.Gates(GATES, settings.feature_gates)
        self._clock = clock
        self._chosen = chosen
        self.seen = watched.Watched(api, clock, settings.config_namespace)
        self.live = switches.Switches(rounds.SWITCH, switches.Mode(settings.mode))
        self.seen.switches.listen(
            lambda change: self.live.take(change.new.data if change.new else None)
        )
        self.placing = self._placing(api, settings)
        self._waits = awaited.Awaited()
        self._figures = round_metrics.RoundMetrics(registry)
        self._duties = migration.duties(
            chosen.migration, drops_claims=gates.enabled(NO_CLAIMS.name)
        )
        self.migrating = migration.Migration(self._around(), self._duties, clock, registry)
        weighed = _options(settings.gain, chosen)
        self._books = _books(settings.receipts, weighed, chosen)
        self._receipts = receipting.ReceiptMetrics(registry, self._halted)
        self._namespace = settings.config_namespace
        self.rounds = rounds.Rounds(
            rounds.Parts(
                chosen=chosen,
                sight=sight.WatchedSight(self.seen, self.placing, self._waits, clock),
                judge=judging.LedgerJudge(
                    self._books, weighed, finds_targets=self.placing is not None
                ),
                live=self.live,
                figures=self._figures,
                clock=clock,
                dry_run=settings.dry_run,
            )
        )

    def _placing(
        self, api: client.Client, settings: Settings
    ) -> scheduler_state.SchedulerState | None:
        if not (settings.finds_targets and self._chosen.looks):
            return None
        pods = scheduler_state.Pods(
            self.seen.all_pods, self.seen.members.of(self.seen.all_pods).synced
        )
        return scheduler_state.SchedulerState(
            settings.placement, api, self._clock, settings.config_namespace, pods
        )

    def _around(self) -> migration.Surroundings:
        seen = self.seen
        return migration.Surroundings(
            seen=stores.Stores(seen.jobs, seen.pods, seen.reservations, seen.budgets),
            pictures=seen.picture,
            checks=functools.partial(
                arbitration_checks.ArbitrationChecks,
                self._chosen.migration,
                _nodes(self._chosen),
            ),
            replicas=self._replicas,
            enforces=lambda: self.live.enforces,
        )

    def _replicas(self, workload: str) -> int:
        found = self.seen.workloads.by_uid().get(workload)
        return found.replicas if found is not None else 0

    def _halted(self) -> dict[str, float]:
        halted = self._books.halted(self._clock.now())
        return {one.name: float(one.name in halted) for one in self._chosen.profiles}

    def _why_halted(self) -> str | None:
        return "; ".join(self._books.halted(self._clock.now()).values()) or None

    def _with_fragments(self, now: float) -> picture.Picture:
        """Return the cluster as it is known now, with what is free of devices and CPUs."""
        found = self.seen.picture(now)
        if self.placing is None or self.placing.health() is not None:
            return found
        return dataclasses.replace(found, fragments=self.placing.fragments())

    def show(self, checks: health.Health) -> None:
        """Say whether the stores are true."""
        checks.add("caches", self.seen.members.health)
        checks.warn("definitions", self.seen.members.missing)
        checks.warn("more-caches", self.seen.more.health)
        checks.warn("profiles", self._why_halted)
        if self.placing is not None:
            checks.warn("scheduler-state", self.placing.health)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch, on every replica."""
        self.seen.start(supervisor)
        if self.placing is not None:
            self.placing.start(supervisor)
        supervisor.start("job-metrics", self.migrating.tell)

    async def work(self, writes: client.Client, identity: str) -> None:
        """Run rounds and carry jobs out while this replica leads."""
        await self.seen.members.synced()
        async with supervise.Supervisor("term") as tasks:
            events = recorder.Recorder(writes, _COMPONENT, self._clock, instance=identity)
            events.start(tasks)
            parts = receipting.Parts(
                writes, events, self._clock, self._with_fragments, self._namespace
            )
            settling = receipting.ReceiptController(parts, self._books, self._receipts)
            await settling.restore()
            carrying = self._carrying(writes, events, identity)
            tasks.start("migration", lambda: self.migrating.run(writes, events))
            tasks.start("receipts", settling.run)
            tasks.start("rounds", lambda: self.rounds.run(carrying))
            await tasks.stopped()

    def _carrying(
        self, writes: client.Client, events: recorder.EventRecorder, identity: str
    ) -> carry_out.CarryOut:
        connection = self._chosen.head.client_connection
        pace = token_bucket.ClockedBucket(
            self._clock, connection.qps or _USUAL_QPS, max(connection.burst, 1)
        )
        return carry_out.CarryOut(
            carry_out.Parts(
                *(writes, events, self._clock, pace, self._duties.rules.defaults),
                *(self._waits, self._figures, lambda: self.live.enforces, identity),
            )
        )


@contextlib.asynccontextmanager
async def running(
    settings: Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the descheduler; yields when listening, drains and stops on exit."""
    chosen = configured.load(settings.configuration)
    for warning in chosen.warnings:
        logger.warning("configuration: %s", warning)
    given = settings.leader_election
    identity = given.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
    figures = metrics.Registry(interpreter=True)
    checks = health.Health()
    async with (
        client.Client(access, clock=clock, user_agent=_COMPONENT, registry=figures) as api,
        supervise.Supervisor("descheduler") as supervisor,
    ):
        parts = _Parts(api, settings, chosen, clock, figures)
        parts.show(checks)
        parts.start(supervisor)
        leading = leadership.of(_lease(settings, chosen, identity), access, clock, figures)
        checks.warn("leader", lambda: None if leading.leading else "another replica leads")
        supervisor.start(
            "lead", lambda: leading.run(api, lambda writes: parts.work(writes, identity))
        )
        site = server.running_site(
            server.health_routes(pages.served(parts.rounds, chosen.effective), checks, figures),
            settings.health or _listener(chosen.head.healthz_bind_address),
            clock=clock,
            name="health",
            checks=checks,
            registry=figures,
        )
        async with site as listening:
            yield App("", listening.url, checks, figures, supervisor, leading, parts.rounds)


def _options(given: GainSettings, chosen: configured.Configured) -> Options:
    return Options(
        least_gain_per_cost=given.least_gain_per_cost,
        exchange_seconds=max(chosen.head.cool_down, EXCHANGE_SECONDS),
        resources=given.resources,
        emptied_points=given.emptied_points,
    )


def _nodes(known: configured.Configured) -> arbitration_checks.Nodes:
    return by_profile.ByProfile(None, {one.name: one.node_selector for one in known.profiles})


def _books(
    chosen: ReceiptSettings, weighed: Options, known: configured.Configured
) -> ledger.Ledger:
    """Return the receipts of moves, and when profiles are halted by them."""
    options = breaker.Options(
        chosen.window,
        chosen.least_moves,
        chosen.least_paid,
        chosen.halt_seconds,
        chosen.longest_halt_seconds,
    )

    def loads(seen: picture.Picture) -> measured_load.Loads:
        return measured_load.Loads(weighed, seen, seen.nodes.values())

    profiles = frozenset(one.name for one in known.profiles)
    return ledger.Ledger(options, chosen.settle_seconds, loads, profiles)


def _lease(settings: Settings, chosen: configured.Configured, identity: str) -> leases.Lease | None:
    """Return the lease to hold: settings count before the configuration file."""
    ours, theirs = settings.leader_election, chosen.head.leader_election
    if not (theirs.leader_elect if ours.enabled is None else ours.enabled):
        return None
    return leases.Lease(
        ours.name or theirs.resource_name,
        ours.namespace or theirs.resource_namespace,
        identity,
        ours.lease_seconds or theirs.lease_duration,
        ours.renew_seconds or theirs.renew_deadline,
        ours.retry_seconds or theirs.retry_period,
    )


def _listener(written: str) -> HealthSettings:
    address = addresses.parse(written)
    return HealthSettings(host=address.host, port=address.port)
