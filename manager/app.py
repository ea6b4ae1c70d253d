"""Composition root of the manager."""

import contextlib
import dataclasses
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Final

from kube.client import access as accesses
from kube.client import client
from kube.controllers import leadership, leases, recorder
from kube.informers import informer_set
from manager import pages, parts, term
from manager.admission import controller as admission
from manager.admission import informers as admissions
from manager.admission import prober as probing
from manager.admission import reach
from manager.admission import registration_controller as registration
from manager.admission import term as guard
from manager.console import informers as console_informers
from manager.console import site as consoles
from manager.daily_sums import term as daily_sums
from manager.devices import term as devices
from manager.explanation import term as expiry
from manager.gangs import controller as pod_groups
from manager.gangs import term as ganging
from manager.overcommit import fleet_metrics
from manager.profiles import term as profiling
from manager.quota import term as quotas
from manager.recommendation import term as recommending
from manager.reconcile import apply
from manager.reservations import controller as reservation
from manager.reservations import term as reserving
from manager.settings import LeaderElectionSettings, Settings
from manager.topology import controller as topology_status
from manager.topology import node_topologies
from manager.topology import term as networking
from process.configuration import features
from process.http import health, running_process, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

SLICES: Final = features.Gate(
    "EnableSyncGPUSharedResource",
    default=True,
    stage=features.Stage.BETA,
    description="Nodes offer slices of their GPUs, 100 for each healthy one.",
)
GATES: Final[tuple[features.Gate, ...]] = (SLICES, profiling.GATE)
"""Features that can be switched."""

_PATIENCE_SECONDS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class App(running_process.RunningProcess):
    """The running manager; its address is that of the console, empty where that is off."""

    leadership: leadership.Leadership


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
        self.duties = parts.nodes(settings, slices=gates.enabled(SLICES.name))
        self.first = informer_set.InformerSet(api, clock)
        self.rest = informer_set.InformerSet(api, clock)
        self.admissions = _admissions(self.first, settings)
        judge = self.admissions.faults if settings.is_on("admission") else _no_faults
        self.term = term.Watched(self.rest, self.duties, judge)
        # Nothing else waits for profiles, or for the kinds that they are about.
        self._expiry: expiry.Expiry | None = None
        if settings.is_on("scheduleexplanation"):
            self._expiry = expiry.Expiry(
                self.rest, self.term.all_pods, self.term.pods, clock, figures
            )
        apart = informer_set.InformerSet(api, clock)
        followed = parts.profiles(settings, gates)
        self.profiles = profiling.Profiles(
            apart, self.admissions, self.term.all_pods, followed, clock, figures
        )
        self.quotas = quotas.Quotas(
            informer_set.InformerSet(api, clock),
            self.term.nodes,
            self.term.all_pods,
            parts.quotas(settings),
            clock,
            figures,
        )
        self.devices = devices.Devices(
            informer_set.InformerSet(api, clock),
            self.term.pods,
            parts.devices(settings),
            clock,
            figures,
        )
        self.reserving = _reservations(api, self.term, settings, clock, figures)
        self.networks = _networks(api, self.term, settings, clock, figures)
        self._topologies = _topologies(self.term, settings, clock, figures)
        self.gangs = _gangs(api, self.term, settings, clock, figures)
        self._sums = _daily_sums(self.term, settings, clock)
        self.recommending = _recommendations(api, self.first, settings, clock)
        if self.recommending is not None:
            self.recommending.follow(self.term.asked, self.term.pods, self.term.metrics)

    def show(self, checks: health.Health) -> None:
        """Say whether the stores are true."""
        checks.add("caches", self.rest.health)
        checks.warn("definitions", self.rest.missing)
        checks.warn("admission-caches", self.first.health)
        checks.warn("profile-caches", self.profiles.members.health)
        checks.warn("quota-caches", self.quotas.members.health)
        checks.warn("device-caches", self.devices.members.health)
        if self.reserving is not None:
            checks.warn("reservation-caches", self.reserving.members.health)
        if self.networks is not None:
            checks.warn("topology-caches", self.networks.members.health)
        if self.gangs is not None:
            checks.warn("gang-caches", self.gangs.members.health)
        if self.recommending is not None:
            checks.warn("recommendation-caches", self.recommending.members.health)

    def work(
        self, tasks: supervise.Supervisor, writer: apply.Writer, reader: client.Client
    ) -> None:
        """Start the enabled tasks beside the controllers of nodes."""
        if (expiring := self._expiry) is not None:
            tasks.start("explanations", lambda: expiring.run(writer))
        tasks.start("profiles", lambda: self.profiles.run(writer, reader))
        tasks.start("quotas", lambda: self.quotas.run(writer, reader))
        tasks.start("devices", lambda: self.devices.run(writer))
        if (placing := self.reserving) is not None:
            tasks.start("reservations", lambda: placing.run(writer, reader))
        if (topologies := self._topologies) is not None:
            tasks.start("node-topologies", lambda: topologies.run(writer))
        if (networks := self.networks) is not None:
            tasks.start("topology", lambda: networks.run(writer))
        if (repairing := self.gangs) is not None:
            tasks.start("gangs", lambda: repairing.run(writer))
        if (summing := self._sums) is not None:
            tasks.start("daily-sums", lambda: summing.run(reader))
        if (advising := self.recommending) is not None:
            tasks.start(
                "recommendations", lambda: advising.run(writer, self._clock, self._registry)
            )

    async def _tell_of_quotas(self) -> None:
        await self.rest.synced()
        await self.quotas.tell()

    async def _follow_gangs(self, following: ganging.Gangs) -> None:
        await self.rest.synced()
        await following.tell()

    async def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        self.first.start(supervisor)
        with contextlib.suppress(TimeoutError):
            async with supervise.deadline(self._clock, _PATIENCE_SECONDS):
                await self.first.synced()
        self.rest.start(supervisor)
        self.profiles.members.start(supervisor)
        self.quotas.members.start(supervisor)
        supervisor.start("quota-metrics", self._tell_of_quotas)
        self.devices.members.start(supervisor)
        supervisor.start("device-metrics", self.devices.tell)
        if self.reserving is not None:
            self.reserving.members.start(supervisor)
            supervisor.start("reservation-metrics", self.reserving.tell)
        if self.networks is not None:
            self.networks.members.start(supervisor)
        if (following := self.gangs) is not None:
            following.start(supervisor)
            supervisor.start("gangs", lambda: self._follow_gangs(following))
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
        console = _shown(api, watched, nodes, settings, clock, figures)

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
        leading = leadership.of(_lease(settings.leader_election, identity), access, clock, figures)
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
        async with site as listening, _console(console, settings, checks, supervisor) as url:
            yield App(url, listening.url, checks, figures, supervisor, leading)


@contextlib.asynccontextmanager
async def _console(
    console: consoles.Console | None,
    settings: Settings,
    checks: health.Health,
    supervisor: supervise.Supervisor,
) -> AsyncIterator[str]:
    """Serve the console, if there is one; yields its address."""
    if console is None:
        yield ""
        return
    console.start(supervisor)
    config = (settings.config_namespace, settings.config_name)
    async with console.serving(config, checks) as url:
        yield url


def _lease(settings: LeaderElectionSettings, identity: str) -> leases.Lease | None:
    if not settings.enabled:
        return None
    return leases.Lease(
        settings.name,
        settings.namespace,
        identity,
        settings.lease_seconds,
        settings.renew_seconds,
        settings.retry_seconds,
    )


def _admissions(first: informer_set.InformerSet, settings: Settings) -> admissions.Admissions:
    unreviewed = frozenset({"kube-system", settings.config_namespace})
    return admissions.Admissions(first, settings.admission.configuration, unreviewed)


def _shown(
    api: client.Client,
    watched: _Watched,
    nodes: pages.Nodes,
    settings: Settings,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> consoles.Console | None:
    if not settings.console.enabled:
        return None
    kept, gangs, networks = watched.term, watched.gangs, watched.networks
    shared = console_informers.Shared(
        kept.nodes,
        kept.metrics,
        kept.all_pods,
        nodes.document,
        forest=lambda: watched.quotas.book.forest,
        devices=lambda: watched.devices.book.nodes,
        pod_groups=tuple if gangs is None else gangs.pod_groups,
        reservations=None if watched.reserving is None else watched.reserving.written,
        network=(lambda: ((), None)) if networks is None else networks.told,
    )
    return consoles.Console(api, shared, settings.console, clock, figures)


def _daily_sums(
    watched: term.Watched, settings: Settings, clock: clocks.Clock
) -> daily_sums.DailySums | None:
    if not settings.is_on(daily_sums.NAME):
        return None
    namespace = settings.config_namespace
    return daily_sums.DailySums(watched.all_pods, watched.nodes, watched.metrics, namespace, clock)


def _recommendations(
    api: client.Client,
    first: informer_set.InformerSet,
    settings: Settings,
    clock: clocks.Clock,
) -> recommending.Recommending | None:
    if not settings.is_on("recommendation"):
        return None
    members = informer_set.InformerSet(api, clock)
    return recommending.Recommending(first, members, parts.recommendations(settings.recommendation))


def _reservations(
    api: client.Client,
    watched: term.Watched,
    settings: Settings,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> reserving.Reservations | None:
    if not settings.is_on(reservation.NAME):
        return None
    members = informer_set.InformerSet(api, clock)
    return reserving.Reservations(
        members, watched.all_pods, watched.nodes, parts.reservations(settings), clock, figures
    )


def _networks(
    api: client.Client,
    watched: term.Watched,
    settings: Settings,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> networking.Networks | None:
    if not settings.is_on(topology_status.NAME):
        return None
    members = informer_set.InformerSet(api, clock)
    return networking.Networks(members, watched.nodes, clock, figures)


def _topologies(
    watched: term.Watched, settings: Settings, clock: clocks.Clock, figures: metrics.Registry
) -> node_topologies.NodeTopologies | None:
    if not settings.is_on(node_topologies.NAME):
        return None
    return node_topologies.NodeTopologies(watched.all_topologies, watched.nodes, clock, figures)


def _gangs(
    api: client.Client,
    watched: term.Watched,
    settings: Settings,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> ganging.Gangs | None:
    if not settings.is_on(pod_groups.NAME):
        return None
    members, native = (informer_set.InformerSet(api, clock) for _ in range(2))
    duties = parts.gangs(settings)
    return ganging.Gangs(members, native, watched.all_pods, duties, clock, figures)


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
