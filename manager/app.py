"""Composition root of the manager."""

import contextlib
import dataclasses
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Final

from domain.quota.waiting import line
from kube.client import access as accesses
from kube.client import client
from kube.controllers import recorder
from kube.informers import informer_set
from manager import leadership, pages, term
from manager.admission import controller as admission
from manager.admission import informers as admissions
from manager.admission import prober as probing
from manager.admission import reach
from manager.admission import registration_controller as registration
from manager.admission import term as guard
from manager.devices import status_controller as device_status
from manager.devices import term as devices
from manager.explanation import term as expiry
from manager.overcommit import fleet_metrics
from manager.profiles import controller as colocation_profile
from manager.profiles import term as profiling
from manager.quota import enforcement
from manager.quota import term as quotas
from manager.quota.overuse import reclaim as quota_reclaim
from manager.quota.status import defaults, status_controller
from manager.quota.waiting import gates as quota_gates
from manager.quota.waiting import gates_conditions
from manager.recommendation import plan as recommendation
from manager.recommendation import term as recommending
from manager.reconcile import apply
from manager.settings import BY_NODE, RecommendationSettings, Settings
from process.configuration import features, switches
from process.http import health, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

SLICES: Final = features.Gate(
    "EnableSyncGPUSharedResource",
    default=False,
    stage=features.Stage.ALPHA,
    description="Nodes offer slices of their GPUs, 100 for each healthy one.",
)
GATES: Final[tuple[features.Gate, ...]] = (SLICES, profiling.GATE)
"""Features that can be switched."""

_PATIENCE_SECONDS: Final = 5.0
_SETTLE_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class App:
    """The running manager."""

    url: str
    health_url: str
    health: health.Health
    registry: metrics.Registry
    supervisor: supervise.Supervisor
    leadership: leadership.Leadership

    async def stopped(self) -> None:
        """Wait until a supervised task fails and raise its error."""
        await self.supervisor.stopped()


class _Watched:
    """Every store: what pods are judged by comes first, but is not waited for."""

    def __init__(
        self,
        api: client.Client,
        settings: Settings,
        gates: features.Gates,
        clock: clocks.Clock,
        figures: metrics.Registry,
    ) -> None:
        self._clock = clock
        self._registry = figures
        self.duties = _duties(settings, gates)
        self.first = informer_set.InformerSet(api, clock)
        self.rest = informer_set.InformerSet(api, clock)
        unreviewed = frozenset({"kube-system", settings.config_namespace})
        self.admissions = admissions.Admissions(
            self.first, settings.admission.configuration, unreviewed
        )
        tells = settings.is_on("admission")
        judge = self.admissions.faults if tells else _no_faults
        self.term = term.Watched(self.rest, self.duties, judge)
        # Nothing else waits for profiles, or for the kinds that they are about.
        self._expiry: expiry.Expiry | None = None
        if settings.is_on("scheduleexplanation"):
            self._expiry = expiry.Expiry(self.rest, self.term.pods, clock, figures)
        apart = informer_set.InformerSet(api, clock)
        pace = _pace(settings, gates)
        self.profiles = profiling.Profiles(apart, self.admissions, pace, clock, figures)
        self.quotas = quotas.Quotas(
            informer_set.InformerSet(api, clock),
            self.term.nodes,
            _sharing(settings),
            clock,
            figures,
        )
        self.devices = devices.Devices(
            informer_set.InformerSet(api, clock), self.term.pods, _devices(settings), clock, figures
        )
        self.recommending: recommending.Recommending | None = None
        if settings.is_on("recommendation"):
            self.recommending = recommending.Recommending(
                self.first,
                informer_set.InformerSet(api, clock),
                _recommending(settings.recommendation),
            )
            self.recommending.follow(self.term.asked, self.term.pods, self.term.metrics)

    def show(self, checks: health.Health) -> None:
        """Say whether the stores are true."""
        checks.add("caches", self.rest.health)
        checks.warn("definitions", self.rest.missing)
        checks.warn("admission-caches", self.first.health)
        checks.warn("profile-caches", self.profiles.members.health)
        checks.warn("quota-caches", self.quotas.members.health)
        checks.warn("device-caches", self.devices.members.health)
        if self.recommending is not None:
            checks.warn("recommendation-caches", self.recommending.members.health)

    def work(
        self, tasks: supervise.Supervisor, writer: apply.Writer, reader: client.Client
    ) -> None:
        """Start what works beside the controllers of nodes, as far as it is switched on."""
        if (expiring := self._expiry) is not None:
            tasks.start("explanations", lambda: expiring.run(writer))
        tasks.start("profiles", lambda: self.profiles.run(writer, reader))
        tasks.start("quotas", lambda: self.quotas.run(writer))
        tasks.start("devices", lambda: self.devices.run(writer))
        if (advising := self.recommending) is not None:
            tasks.start(
                "recommendations", lambda: advising.run(writer, self._clock, self._registry)
            )

    async def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        self.first.start(supervisor)
        with contextlib.suppress(TimeoutError):
            async with supervise.deadline(self._clock, _PATIENCE_SECONDS):
                await self.first.synced()
        self.rest.start(supervisor)
        self.profiles.members.start(supervisor)
        self.quotas.members.start(supervisor)
        supervisor.start("quota-metrics", self.quotas.tell)
        self.devices.members.start(supervisor)
        supervisor.start("device-metrics", self.devices.tell)
        if self.recommending is not None:
            self.recommending.members.start(supervisor)


@contextlib.asynccontextmanager
async def running(
    settings: Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the manager; yields when listening, drains and stops on exit."""
    gates = features.Gates(GATES, settings.feature_gates)
    identity = settings.leader_election.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
    figures = metrics.Registry(interpreter=True)
    checks = health.Health()
    async with (
        client.Client(access, clock=clock, user_agent="koord-manager", registry=figures) as api,
        supervise.Supervisor("manager") as supervisor,
    ):
        watched = _Watched(api, settings, gates, clock, figures)
        watched.show(checks)
        fleet_metrics.Fleet(watched.term.nodes, watched.term.metrics, clock).show(figures)
        missed = admission.Listing(watched.term.pods, figures)
        nodes = pages.Nodes(watched.term, clock)
        guarding = _guard(settings, watched, clock, figures)

        async def work(writes: client.Client) -> None:
            await watched.rest.synced()
            async with supervise.Supervisor("term") as tasks:
                events = recorder.Recorder(writes, "koord-manager", clock, instance=identity)
                events.start(tasks)
                writer = apply.Writer(writes, events, clock, figures)
                working = term.Term(watched.duties, watched.term, writer, clock, figures)
                tasks.start("controllers", working.run)
                tasks.start("admission", lambda: guarding.run(writer))
                watched.work(tasks, writer, writes)
                with nodes.following(working.observer):
                    await tasks.stopped()

        supervisor.spawn("watch", watched.start(supervisor))
        leading = leadership.of(settings.leader_election, identity, access, clock, figures)
        checks.warn("leader", lambda: None if leading.leading else "another replica leads")
        supervisor.start("lead", lambda: leading.run(api, work))
        site = server.running_site(
            server.health_routes(pages.served(missed, nodes), checks, figures),
            settings.health,
            clock=clock,
            name="health",
            checks=checks,
            registry=figures,
        )
        async with site as listening:
            yield App("", listening.url, checks, figures, supervisor, leading)


def _duties(settings: Settings, gates: features.Gates) -> term.Duties:
    return term.Duties(
        settings.config_namespace,
        settings.config_name,
        tuple(name for name in BY_NODE if settings.is_on(name)),
        settings.workers,
        slices=gates.enabled(SLICES.name),
    )


def _sharing(settings: Settings) -> quotas.Duties:
    chosen = settings.quota
    return quotas.Duties(
        keeps_profiles=settings.is_on("quotaprofile"),
        writes_status=settings.is_on(status_controller.NAME),
        keeps_defaults=settings.is_on(defaults.NAME),
        namespace=settings.config_namespace,
        pace=status_controller.Pace(chosen.status_per_second, chosen.status_burst),
        enforces=_enforcing(settings),
    )


def _devices(settings: Settings) -> devices.Duties:
    chosen = settings.devices
    return devices.Duties(
        settings.is_on(device_status.NAME),
        device_status.Pace(chosen.status_per_second, chosen.status_burst),
    )


def _enforcing(settings: Settings) -> enforcement.Duties:
    opens, reclaims = settings.quota.gates, settings.quota.reclaim
    # Of two leaders the second sees what the first wrote last before it decides.
    settle = _SETTLE_SECONDS if settings.leader_election.enabled else 0.0
    rules = line.LineRules(
        overtakes=opens.overtakes if opens.overtakes >= 0 else None,
        retry_seconds=opens.retry_seconds,
    )
    pace = gates_conditions.Pace(opens.conditions_per_second)
    namespace = settings.config_namespace
    return enforcement.Duties(
        namespace,
        opens=quota_gates.Pace(
            rules, opens.per_second, opens.burst, opens.in_flight, pace, settle, namespace
        ),
        opens_mode=switches.Mode(opens.mode),
        reclaims=quota_reclaim.Pace(
            reclaims.per_second,
            reclaims.burst,
            settle_seconds=settle,
            own_namespace=namespace,
        ),
        reclaims_mode=switches.Mode(reclaims.mode),
    )


def _pace(settings: Settings, gates: features.Gates) -> colocation_profile.Pace | None:
    """Return how waiting pods are changed; None leaves them alone."""
    if not (settings.is_on("colocationprofile") and gates.enabled(profiling.GATE.name)):
        return None
    chosen = settings.colocation_profile
    return colocation_profile.Pace(
        by_default=chosen.by_default,
        interval_seconds=chosen.interval_seconds,
        again_seconds=chosen.again_seconds,
        per_second=chosen.per_second,
        burst=chosen.burst,
    )


def _recommending(chosen: RecommendationSettings) -> recommendation.Rules:
    return recommendation.Rules(
        cpu_percentile=chosen.cpu_percentile / 100,
        memory_percentile=chosen.memory_percentile / 100,
        target_margin=chosen.margin_percent / 100,
        least_cpu_milli=chosen.least_cpu_milli,
        least_memory=chosen.least_memory_bytes,
        period_seconds=chosen.period_seconds,
    )


def _guard(
    settings: Settings, watched: _Watched, clock: clocks.Clock, figures: metrics.Registry
) -> guard.Guard:
    given = settings.admission
    patience = reach.Patience(given.away_seconds, given.back_seconds)
    duties = guard.Duties(
        configuration=given.configuration,
        withdraws=settings.is_on("registration"),
        tells=settings.is_on("admission"),
        rules=registration.Rules(given.withdraw, given.period_seconds, patience),
    )
    probe = probing.Probe(given.probe_url, given.probe_seconds)
    return guard.Guard(duties, watched.admissions, watched.term.pods, probe.ask, clock, figures)


def _no_faults(_pod: object) -> tuple[()]:
    return ()
