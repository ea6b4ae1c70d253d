"""Composition root of the agent."""

import asyncio
import contextlib
import dataclasses
import logging
import ssl
from collections.abc import AsyncIterator

import aiohttp

from agent import (
    gates,
    matrix,
    observation,
    outward,
    pages,
    planner,
    published,
    recall,
    report,
    reporter,
    strategies,
    ticks,
    watching,
)
from agent import settings as agent_settings
from agent.apply import evictor
from agent.decide import peaks, pressure
from agent.observe import features as features_of_host
from agent.observe import kubelet, machine
from kube import access as accesses
from kube import caches, client, reflector
from process import clock as clocks
from process import features, health, metrics, server, supervise

_logger = logging.getLogger(__name__)
# Thousands of agents come back to a server that is just up again; a node can wait for its news.
_PACE = reflector.Pace(outage_pause_seconds=30.0)


class App:
    """A running agent."""

    def __init__(
        self,
        url: str,
        checks: health.Health,
        figures: metrics.Registry,
        supervisor: supervise.Supervisor,
        loop: ticks.Ticks,
    ) -> None:
        self.url = url
        self.health_url = url
        self.health = checks
        self.registry = figures
        self.ticks = loop
        self._supervisor = supervisor

    async def stopped(self) -> None:
        """Wait until a task fails and raise its error."""
        await self._supervisor.stopped()


class _Parts:
    """The parts of one agent and the eternal tasks that drive them."""

    def __init__(
        self,
        settings: agent_settings.Settings,
        clock: clocks.Clock,
        watched: watching.Watched,
        pods: kubelet.Kubelet,
        figures: metrics.Registry,
        enabled: frozenset[str],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._watched = watched
        self.pods = pods
        host = settings.host
        self._observer = observation.Observer(
            observation.Roots(str(host.proc), str(host.sys), str(host.cgroup)),
            settings.tick_seconds,
        )
        self.loop = ticks.Ticks(
            self._observer,
            self._known,
            clock,
            ticks.Figures(figures),
            _habits(settings, enabled),
        )
        self.recall = recall.Recall(
            host.state,
            machine.boot_id(str(host.proc)),
            self._observer.samples,
            _rules(settings.prediction),
            clock,
            recall.Habits(settings.prediction.training_seconds, settings.history.keep_seconds),
        )
        self.ticked = asyncio.Event()
        self._applied: int | None = None

    def policy(self) -> report.Policy | None:
        """How is to be reported: the object's wish, overridden by settings."""
        wanted, override = self._watched.policy, self._settings.report
        if wanted is None:
            return None
        return dataclasses.replace(
            wanted,
            interval_seconds=override.interval_seconds or wanted.interval_seconds,
            aggregate_seconds=override.aggregate_seconds or wanted.aggregate_seconds,
        )

    def _known(self) -> observation.Known:
        policy = self.policy() or report.Policy()
        self._observer.keep_seconds = policy.longest
        self._observer.pod_keep_seconds = policy.aggregate_seconds
        self._observer.figures.with_cache = policy.collect == "usageWithPageCache"
        self._observer.figures.with_hot = policy.collect == "usageWithHotPageCache"
        slo = self._watched.slo
        return observation.Known(
            node=self._watched.node,
            thresholds=slo.thresholds if slo else None,
            pods=None if self.pods.age is None else self.pods.pods,
            host_applications=slo.host_applications if slo else (),
            enforced=slo.enforced if slo else None,
        )

    def published(self, kube: client.Client, checks: health.Health) -> published.Published:
        """Return who says on the Node what this host can do."""

        def look() -> matrix.Facts:
            host = self._settings.host
            return features_of_host.facts(self._observer.layout, str(host.proc), str(host.sys))

        made = published.Published(
            kube, self._clock, self._settings.node_name, lambda: self._watched.node, look
        )
        checks.warn("strategies", lambda: made.problem)
        return made

    def start(self, supervisor: supervise.Supervisor, sender: reporter.Reporter) -> None:
        """Start to look, to ask, to learn and to report."""
        seconds = self._settings.tick_seconds
        supervisor.start("kubelet", self.ask_kubelet)
        supervisor.start("recall", self.remember)
        supervisor.start("report", lambda: self.report(sender))
        supervisor.start("tick", lambda: self.loop.run(seconds, self.ticked.set))

    async def remember(self) -> None:
        """Learn for ever from what is seen, as soon as the pods are known."""
        await self.recall.run(lambda: self.loop.picture if self.pods.age is not None else None)

    async def ask_kubelet(self) -> None:
        """Ask for pods for ever, sooner again after a failure."""
        ordinary = self._settings.kubelet.interval_seconds
        while True:
            before = self.pods.problem
            good = await self.pods.refresh()
            if self.pods.problem != before:
                _logger.info("kubelet asked good=%s problem=%r", good, self.pods.problem)
            await self._clock.sleep(ordinary if good else min(1.0, ordinary))

    async def report(self, sender: reporter.Reporter) -> None:
        """Report for ever, right after the tick at which it is due."""
        while True:
            await self.ticked.wait()
            self.ticked.clear()
            picture, slo = self.loop.picture, self._watched.slo
            if picture is None:
                continue
            await sender.step(self._observer.samples, picture, self.recall.forecast)
            if slo is None or not self.loop.enforced or picture.thresholds != slo.thresholds:
                continue
            if self._applied != slo.generation and await sender.applied(picture.at):
                self._applied = slo.generation


@contextlib.asynccontextmanager
async def running(
    settings: agent_settings.Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the agent; yields when it listens, puts the node back and stops on exit."""
    enabled = gates.enabled(features.Gates(gates.GATES, settings.feature_gates))
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            client.Client(access, clock=clock, user_agent="koord-agent", registry=figures)
        )
        timeout = aiohttp.ClientTimeout(total=settings.kubelet.timeout_seconds)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        store = caches.Caches(kube, clock, pace=_PACE)
        watched = watching.Watched(store, settings.node_name)
        pods = kubelet.Kubelet(
            session,
            settings.kubelet.url,
            clock,
            token_file=settings.kubelet.token_file,
            tls=_kubelet_tls(settings.kubelet),
        )
        parts = _Parts(settings, clock, watched, pods, figures, enabled)
        parts.recall.show(figures)
        parts.recall.load()
        sender = reporter.Reporter(kube, clock, settings.node_name, parts.policy, figures)
        _add_checks(checks, store, parts, sender)
        beyond = outward.Outward(kube, clock, _place(settings), figures, parts.loop)
        beyond.add_checks(checks)
        stack.callback(beyond.log.close)
        # Entered before the tasks, so that the node is put back after the last of them ended.
        stack.callback(parts.recall.stop)
        stack.callback(parts.loop.stop)
        supervisor = await stack.enter_async_context(supervise.Supervisor("agent"))
        store.start(supervisor)
        beyond.start(supervisor)
        supervisor.start("publish", parts.published(kube, checks).run)
        parts.start(supervisor, sender)
        site = await stack.enter_async_context(
            server.running_site(
                pages.pages(checks, figures, parts.loop, beyond.log),
                settings.health,
                clock=clock,
                name="health",
                checks=checks,
                registry=figures,
            )
        )
        yield App(site.url, checks, figures, supervisor, parts.loop)


def _add_checks(
    checks: health.Health, store: caches.Caches, parts: _Parts, sender: reporter.Reporter
) -> None:
    """Ready once the API server was listed, the node sampled and a first report sent."""
    checks.add("caches", store.health)
    checks.add("tick", lambda: parts.loop.problem)
    checks.add("report", lambda: sender.problem if sender.reported_at is None else None)
    checks.add("kubelet", lambda: None if parts.pods.age is not None else parts.pods.problem)
    checks.warn("last report", lambda: sender.problem or None)
    checks.warn("pods", lambda: parts.pods.problem or None)
    checks.warn("decision", lambda: _undecided(parts.loop))
    checks.warn("given up", parts.loop.yielded)
    checks.warn("memory", lambda: parts.recall.problem)
    checks.warn("readings", lambda: _unread(parts.loop))


def _place(settings: agent_settings.Settings) -> outward.Place:
    limits = evictor.Limits(settings.evictions.burst, settings.evictions.per_minute)
    return outward.Place(settings.node_name, settings.host.state, limits)


def _rules(settings: agent_settings.PredictionSettings) -> peaks.Rules:
    return peaks.Rules(
        safety_margin_percent=settings.safety_margin_percent,
        cold_start_seconds=settings.cold_start_seconds,
        cpu_half_life=settings.cpu_half_life_seconds,
        memory_half_life=settings.memory_half_life_seconds,
        expiry_seconds=settings.expiry_seconds,
    )


def _undecided(loop: ticks.Ticks) -> str | None:
    return None if "allowed-milli" in loop.decided.figures else loop.decided.reason


def _habits(settings: agent_settings.Settings, enabled: frozenset[str]) -> ticks.Habits:
    """Return how far the strategies go: suppression as the agent does, the others as they say."""
    chosen = settings.strategies
    modes = {ticks.SUPPRESS: planner.Mode.ENFORCE}
    modes |= {name: planner.Mode(mode) for name, mode in chosen.modes.items()}
    default = planner.Mode(chosen.mode)
    if not planner.enforces(settings.node_name, chosen.enforcing_percent_of_nodes):
        modes = {name: planner.held(mode) for name, mode in modes.items()}
        default = planner.held(default)
    trigger = chosen.pressure
    pressed = frozenset({pressure.FEATURE}) if trigger.enable else frozenset[str]()
    return ticks.Habits(
        settings.host.state,
        writing=settings.mode == "enforce",
        gates=enabled | pressed,
        modes=modes,
        default=default,
        scope=planner.Scope(
            frozenset(chosen.observed_namespaces), frozenset(chosen.observed_classes)
        ),
        pressure=strategies.Pressure(
            trigger.enable,
            trigger.cpu_percent,
            trigger.memory_percent,
            trigger.suppress_step_percent,
        ),
        tick_seconds=settings.tick_seconds,
    )


def _unread(loop: ticks.Ticks) -> str | None:
    problems = loop.picture.problems if loop.picture is not None else {}
    return "; ".join(f"{source}: {reason}" for source, reason in problems.items()) or None


def _kubelet_tls(settings: agent_settings.KubeletSettings) -> ssl.SSLContext | bool:
    """What is checked of the kubelet's certificate; see the setting for why nothing may be."""
    if settings.ca_file is None:
        return False
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except OSError as error:
        raise server.ServerError(
            f"kubelet.caFile {settings.ca_file}: no usable bundle: {error}"
        ) from error
