"""Composition root of the agent."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

import aiohttp

from agent import settings as agent_settings
from agent.apply import audit_log
from agent.apply.evictions import evictor
from agent.assembly import effects, feature_gates, gated_parts
from agent.assembly import parts as agent_parts
from agent.informers import (
    kubelet_client,
    kubelet_trust,
    live_switch_informer,
    node_heartbeat,
    node_objects,
    pod_watch,
    settings_map,
)
from agent.informers import pod_source as agent_pods
from agent.loop import attendance, ticks
from agent.observe.node import boot
from agent.report import http_pages, node_metric_reporter
from agent.store import heartbeat, last_enforced
from kube.client import access as accesses
from kube.client import client
from kube.informers import informer_set, reflector
from process.configuration import features
from process.configuration import settings as process_settings
from process.http import health, server
from process.runtime import clock as clocks
from process.runtime import entry, logs, metrics, supervise

LOOP: Final[entry.Loop] = "asyncio"
"""uvloop would cost every node memory, and an agent makes too few calls to gain from it."""
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


@contextlib.asynccontextmanager
async def running(
    settings: agent_settings.Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the agent; yields when it listens, hands the node over on exit."""
    chosen = await _with_config_map(settings, access, clock)
    async with _running(chosen, access=access, clock=clock) as app:
        yield app


async def _with_config_map(
    settings: agent_settings.Settings, access: accesses.Access, clock: clocks.Clock
) -> agent_settings.Settings:
    """Return the settings with those of the ConfigMap that they name below them."""
    if not settings.configmap_name:
        return settings
    namespace = settings.configmap_namespace or settings.namespace
    place = settings_map.Place(settings.configmap_name, namespace, settings.host.state)
    async with client.Client(access, clock=clock, user_agent="koord-agent") as kube:
        text = await settings_map.text(kube, place)
    found = process_settings.below(settings, text, place.told)
    if found.log != settings.log:
        logs.configure(found.log)
    return found


@contextlib.asynccontextmanager
async def _running(
    settings: agent_settings.Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    enabled = feature_gates.enabled(features.Gates(feature_gates.GATES, settings.feature_gates))
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            client.Client(access, clock=clock, user_agent="koord-agent", registry=figures)
        )
        timeout = aiohttp.ClientTimeout(total=settings.kubelet.timeout_seconds)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        store = informer_set.InformerSet(kube, clock, pace=_PACE)
        watched = node_objects.Watched(store, settings.node_name, _memory(settings, figures))
        pods = _pods(settings, _kubelet(settings, access, session, kube, clock), kube, store, clock)
        pods.show(figures)
        parts = agent_parts.Parts(settings, clock, watched, pods, figures, enabled)
        stack.callback(parts.samples.close)
        _recall(parts, figures)
        sender = node_metric_reporter.Reporter(
            kube, clock, settings.node_name, parts.policy, figures
        )
        board = live_switch_informer.Switchboard(
            store, settings.namespace, parts.loop.names, watched.memory
        )
        _obey(board, parts, figures, checks)
        _add_checks(checks, store, parts, sender)
        beyond = effects.Outward(kube, clock, _place(settings), figures, parts.loop)
        _tell(beyond, checks, sender)
        here = _attendance(settings, access, clock, parts)
        here.begin(figures, checks, beyond.tell_gap)
        parts.looked = (lambda: beyond.looked(parts.interference()), here.tick)
        stack.callback(beyond.close)
        # Entered before the tasks, so that the node is handed over after the last of them ended.
        stack.callback(parts.recall.stop)
        stack.push_async_exit(here.end)
        supervisor = await stack.enter_async_context(supervise.Supervisor("agent"))
        store.start(supervisor)
        beyond.start(supervisor)
        parts.reclaim(checks, supervisor, beyond.tell)
        parts.start(supervisor, sender, kube)
        _start_beside(parts, kube, checks, supervisor)
        shown = http_pages.pages(
            checks, figures, parts.loop, beyond.log, beyond.scores, settings.audit.most_events
        )
        site = await stack.enter_async_context(
            server.running_site(
                shown, settings.health, clock=clock, name="health", checks=checks, registry=figures
            )
        )
        yield App(site.url, checks, figures, supervisor, parts.loop)


def _recall(parts: agent_parts.Parts, figures: metrics.Registry) -> None:
    """Take back what an earlier agent has sampled and learned."""
    parts.recall.show(figures)
    parts.recall.load()


def _add_checks(
    checks: health.Health,
    store: informer_set.InformerSet,
    parts: agent_parts.Parts,
    sender: node_metric_reporter.Reporter,
) -> None:
    """Ready once the API server was listed, the node sampled and a first report sent."""
    checks.add("caches", store.health)
    checks.add("tick", lambda: parts.loop.problem)
    checks.add("report", lambda: sender.problem if sender.reported_at is None else None)
    checks.add("kubelet", lambda: None if parts.pods.age is not None else parts.pods.problem)
    checks.warn("last report", lambda: sender.problem or None)
    checks.warn("pods", lambda: parts.pods.problem or None)
    checks.warn("nodeslo", lambda: parts.watched.problem)
    checks.warn("kubelet configuration", parts.kubelet.problem)
    checks.warn("decision", lambda: _undecided(parts.loop))
    checks.warn("given up", parts.loop.enforcer.yielded)
    checks.warn("nri", lambda: parts.runtime.problem or None if parts.runtime else None)
    checks.warn("memory", lambda: parts.recall.problem)
    checks.warn("readings", lambda: _unread(parts.loop))
    checks.warn("strategies failing", lambda: _failing(parts.loop))


def _tell(
    beyond: effects.Outward, checks: health.Health, sender: node_metric_reporter.Reporter
) -> None:
    """Warn of what is lost on the way, and let reports carry the scorecard."""
    beyond.add_checks(checks)
    sender.scorecard = beyond.scores.today


def _start_beside(
    parts: agent_parts.Parts,
    kube: client.Client,
    checks: health.Health,
    supervisor: supervise.Supervisor,
) -> None:
    """Start what runs beside the tick, most of it where a feature gate asks for it."""
    supervisor.start("publish", parts.published(kube, checks).run)
    for own in gated_parts.objects_of(parts.asked, kube):
        checks.warn(own.kind, own.told)
        supervisor.start(own.kind, own.run)
    gated_parts.start_controllers(parts.asked, parts.samples, checks, supervisor)
    proxy = gated_parts.pod_resources_of(parts.asked, parts.pods, supervisor)
    if proxy is not None:
        checks.warn("pod resources", lambda: proxy.problem or None)
        supervisor.start("pod resources", proxy.run)


def _obey(
    board: live_switch_informer.Switchboard,
    parts: agent_parts.Parts,
    figures: metrics.Registry,
    checks: health.Health,
) -> None:
    board.show(figures, parts.loop.mode)
    parts.obey(board)
    checks.warn("switches", lambda: board.problem)


def _memory(
    settings: agent_settings.Settings, figures: metrics.Registry
) -> last_enforced.Remembered:
    boot_id = boot.boot_id(str(settings.host.proc))
    memory = last_enforced.Remembered(settings.host.state, boot_id)
    memory.show(figures)
    return memory


def _attendance(
    settings: agent_settings.Settings,
    access: accesses.Access,
    clock: clocks.Clock,
    parts: agent_parts.Parts,
) -> attendance.Attendance:
    enforces = settings.mode == "enforce"
    place = attendance.Place(settings.namespace, settings.daemon_set, settings.on_stop, enforces)
    beat = heartbeat.Heartbeat(settings.host.state, parts.watched.memory.boot_id)
    here = attendance.Attendance(place, access, clock, parts.loop, beat)
    here.watched = parts.watched
    return here


def _place(settings: agent_settings.Settings) -> effects.Place:
    chosen = settings.evictions
    limits = evictor.Limits(
        chosen.burst,
        chosen.per_minute,
        patience_seconds=chosen.patience_seconds,
        longest_grace_seconds=chosen.longest_grace_seconds,
    )
    kept = settings.audit
    return effects.Place(
        settings.node_name,
        settings.host.state,
        limits,
        audit=kept.folder,
        audit_files=(kept.most_mebibytes << 20) // audit_log.FILE_BYTES,
        kill_at_memory_percent=chosen.kill_at_memory_percent,
    )


def _undecided(loop: ticks.Ticks) -> str | None:
    return None if "allowed-milli" in loop.decided.figures else loop.decided.reason


def _unread(loop: ticks.Ticks) -> str | None:
    problems = loop.picture.problems if loop.picture is not None else {}
    return "; ".join(f"{source}: {reason}" for source, reason in problems.items()) or None


def _failing(loop: ticks.Ticks) -> str | None:
    return "; ".join(f"{what}: {reason}" for what, reason in loop.failing.items())[:1000] or None


def _pods(
    settings: agent_settings.Settings,
    asked: kubelet_client.Kubelet,
    kube: client.Client,
    store: informer_set.InformerSet,
    clock: clocks.Clock,
) -> agent_pods.Source:
    chosen = settings.kubelet
    if chosen.pods_from == "apiServer":
        measured = (kubelet_client.SUMMARY,) if settings.measure.network == "kubelet" else ()
        return pod_watch.WatchedPods(store, settings.node_name, asked.get, measured)
    habits = agent_pods.Habits(
        chosen.interval_seconds, chosen.fall_back_seconds if chosen.fall_back else None
    )
    return agent_pods.Pods(asked, kube, settings.node_name, clock, habits)


def _kubelet(
    settings: agent_settings.Settings,
    access: accesses.Access,
    session: aiohttp.ClientSession,
    kube: client.Client,
    clock: clocks.Clock,
) -> kubelet_client.Kubelet:
    chosen = settings.kubelet
    trusted = _trusted(settings, access)

    async def ready() -> float | None:
        return await node_heartbeat.NodeReady(kube, settings.node_name)()

    trusted.ready, trusted.wall = ready, clock.now
    return kubelet_client.Kubelet(session, chosen.url, trusted, token_file=chosen.token_file)


def _trusted(settings: agent_settings.Settings, access: accesses.Access) -> kubelet_trust.Trust:
    """Return what the kubelet's certificate is held against: its own bundle or the cluster's."""
    chosen = settings.kubelet
    try:
        bundle = chosen.ca_file.read_bytes() if chosen.ca_file else access.ca_data
        known = kubelet_trust.authorities(bundle)
    except (OSError, ValueError) as error:
        raise server.ServerError(
            f"kubelet.caFile {chosen.ca_file}: no usable bundle: {error}"
        ) from error
    if known is None and chosen.verify == "signed":
        raise server.ServerError(
            "kubelet.verify is signed, and no authority is known; name its bundle in kubelet.caFile"
        )
    path = (settings.host.lasting or settings.host.state) / kubelet_trust.NAME
    kubelet_trust.move(settings.host.state / kubelet_trust.NAME, path)
    return kubelet_trust.Trust(chosen.verify, known, path, strict=chosen.ca_file is not None)
