"""The parts of one agent that look, ask, learn and report, and the tasks that drive them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent import settings as agent_settings
from agent.assembly import feature_gates, gated_parts
from agent.decide import planner, spec_enforcement
from agent.decide.interference import findings
from agent.decide.strategies import pressure
from agent.host import file_descriptors
from agent.informers import live_switch_informer, node_objects
from agent.informers import pod_source as agent_pods
from agent.loop import ticks
from agent.model import capability_matrix, collect_policy, live_switches, state, strategy_settings
from agent.observe import observation
from agent.observe.cgroups import pod_groups
from agent.observe.node import boot, kubelet_cpus
from agent.observe.node import capability_facts as features_of_host
from agent.report import node_metric_reporter, node_slo_status, published_capabilities
from agent.store import learner, peaks, time_series
from kube.client import client
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Parts:
    """The parts of one agent and the eternal tasks that drive them."""

    def __init__(
        self,
        settings: agent_settings.Settings,
        clock: clocks.Clock,
        watched: node_objects.Watched,
        pods: agent_pods.Source,
        figures: metrics.Registry,
        enabled: frozenset[str],
    ) -> None:
        self._memory = memory = watched.memory
        self._settings = settings
        self._clock = clock
        self.watched = watched
        self.pods = pods
        self.kubelet = kubelet_cpus.KubeletTold(
            pods.get, clock, asked=settings.kubelet.configuration, before=memory.kubelet
        )
        self.asked = gated_parts.Asked(
            settings, enabled, figures, clock, self._picture, lambda: watched.node, self.kubelet
        )
        self._summary = gated_parts.summary_of(self.asked)
        self._interference = gated_parts.interference_of(self.asked)
        host = settings.host
        file_descriptors.raise_limit()
        self._observer = observation.Observer(
            _roots(host, enabled),
            settings.tick_seconds,
            collectors=gated_parts.collectors_of(self.asked, self._summary, self._interference),
            samples=gated_parts.samples_of(self.asked),
        )
        self.loop = ticks.Ticks(
            self._observer, self._known, clock, ticks.Figures(figures), habits(settings, enabled)
        )
        self.recall = learner.Recall(
            host.state,
            boot.boot_id(str(host.proc)),
            self._observer.samples,
            rules(settings.prediction),
            clock,
            learner.Habits(settings.prediction.training_seconds, settings.history.keep_seconds),
        )
        self.runtime = gated_parts.runtime_of(self.asked, self.loop, pods)
        """What answers the container runtime, None where nothing may be written."""
        self._newcomers = pod_groups.Newcomers()
        self.ticked = asyncio.Event()
        self.looked: tuple[Callable[[], None], ...] = ()
        """Called after every good look."""
        self.capabilities: Callable[[], tuple[capability_matrix.Row, ...]] = tuple
        """What this host can do, as it was published last."""

    def obey(self, board: live_switch_informer.Switchboard) -> None:
        """Go no further than the live switches allow."""

        def here() -> live_switches.Here | None:
            node = self.watched.node
            return board.here(None if node is None else node.metadata.labels)

        self.loop.switches, board.changed = here, self.loop.switched

    def policy(self) -> collect_policy.Policy | None:
        """How is to be reported: the object's wish, overridden by settings."""
        wanted, override = self.watched.policy, self._settings.report
        if wanted is None:
            return None
        return msgspec.structs.replace(
            wanted,
            interval_seconds=override.interval_seconds or wanted.interval_seconds,
            aggregate_seconds=override.aggregate_seconds or wanted.aggregate_seconds,
        )

    def _known(self) -> observation.Known:
        policy = self.policy() or collect_policy.Policy()
        self._observer.figures.keep_seconds = policy.longest
        self._observer.figures.pod_keep_seconds = policy.aggregate_seconds
        self._observer.figures.with_cache = policy.collect == "usageWithPageCache"
        self._observer.figures.with_hot = policy.collect == "usageWithHotPageCache"
        slo = self.watched.slo
        return observation.Known(
            node=self.watched.node,
            thresholds=slo.thresholds if slo else None,
            pods=self._memory.pods if self.pods.age is None else self.pods.pods,
            host_applications=slo.host_applications if slo else (),
            enforced=slo.enforced if slo else None,
            kubelet=self.kubelet.told,
            heard=self.watched.heard,
            remembered=self.pods.age is None,
        )

    @property
    def samples(self) -> time_series.Histories:
        """What was measured, by series."""
        return self._observer.samples

    def interference(self) -> tuple[findings.Finding, ...]:
        """Return which pods their neighbours slow down at present."""
        return self._interference.found if self._interference is not None else ()

    def _picture(self) -> state.NodeState | None:
        return self.loop.picture

    def published(
        self, kube: client.Client, checks: health.Health
    ) -> published_capabilities.Published:
        """Return who says on the Node what this host can do."""

        def look() -> capability_matrix.Facts | None:
            if self.loop.picture is None:
                return None
            host = self._settings.host
            return features_of_host.facts(self._observer.layout, str(host.proc), str(host.sys))

        made = published_capabilities.Published(
            kube, self._clock, self._settings.node_name, lambda: self.watched.node, look
        )
        checks.warn("strategies", lambda: made.problem)
        self.capabilities = lambda: made.rows
        made.devices = self.asked.devices.lacks
        return made

    def reclaim(
        self,
        checks: health.Health,
        supervisor: supervise.Supervisor,
        tell: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Start to take memory back from batch work, where that is asked for."""
        chosen = self._settings.strategies.reclaim
        if not chosen.enable or "CgroupReconcile" not in self.asked.enabled:
            return
        from agent.decide.strategies import memory_reclaim  # noqa: PLC0415 - 30 KiB
        from agent.loop import memory_reclaimer  # noqa: PLC0415 - 99 KiB

        def wanted() -> memory_reclaimer.Settings:
            slo = self.watched.slo
            enforced = strategy_settings.Strategies() if slo is None else slo.enforced
            return enforced.classes.memory, enforced.overrides

        rules = memory_reclaim.Rules(chosen.most_mebibytes << 20, chosen.pressure_percent)
        made = memory_reclaimer.Reclaimer(self.loop, self._clock, rules, self.asked.figures, wanted)
        made.tell = tell
        checks.warn("reclaim", lambda: made.problem)
        supervisor.start("reclaim", lambda: made.run(chosen.interval_seconds))

    def start(
        self,
        supervisor: supervise.Supervisor,
        sender: node_metric_reporter.Reporter,
        kube: client.Client,
    ) -> None:
        """Start to look, to ask, to learn and to report."""
        status = node_slo_status.NodeSloStatus(kube, self._clock, self._settings.node_name)
        seconds = self._settings.tick_seconds
        self.pods.start(supervisor)
        supervisor.start("kubelet configuration", self.kubelet.run)
        if self._summary is not None:
            supervisor.start("kubelet summary", self._summary.run)
        if self.runtime is not None:
            supervisor.start("nri", self.runtime.run)
        supervisor.start("recall", self.remember)
        supervisor.start("report", lambda: self.report(sender, status))
        supervisor.start("tick", lambda: self.loop.run(seconds, self.after_tick))

    def after_tick(self) -> None:
        """Let reports follow, and ask for pods when their groups have changed."""
        self.ticked.set()
        for follow in self.looked:
            follow()
        if self.pods.age is not None:
            self._memory.keep_pods(self.pods.pods, self._clock.monotonic())
        self._memory.keep_kubelet(self.kubelet.told.configuration)
        if self._newcomers.changed(self._observer.layout):
            self.pods.hurry()

    async def remember(self) -> None:
        """Learn for ever from what is seen, as soon as the pods are known."""
        await self.recall.run(lambda: self.loop.picture if self.pods.age is not None else None)

    async def report(
        self, sender: node_metric_reporter.Reporter, status: node_slo_status.NodeSloStatus
    ) -> None:
        """Report for ever, right after the tick at which it is due."""
        while True:
            await self.ticked.wait()
            self.ticked.clear()
            picture = self.loop.picture
            if picture is None:
                continue
            gpus = self.asked.devices.gpus
            await sender.step(
                self._observer.samples, picture, self.recall.forecast, gpus, self.interference()
            )
            stated, verdict = self.watched.stated, self._verdict()
            if stated is not None and verdict is not None:
                await status.step(stated, verdict, picture.at)

    def _verdict(self) -> spec_enforcement.Verdict | None:
        """Say how much of the NodeSLO is enforced; None until a tick has looked at it."""
        picture, slo = self.loop.picture, self.watched.slo
        if self.watched.problem is not None:
            return spec_enforcement.unreadable(self.watched.problem)
        if slo is None or picture is None or picture.thresholds != slo.thresholds:
            return None
        standing = self.loop.standing
        if standing.strategies not in (None, slo.enforced):
            return None
        unavailable = {
            row.strategy: row.how
            for row in self.capabilities()
            if row.verdict is capability_matrix.Verdict.UNAVAILABLE
        }
        parts = spec_enforcement.configured(slo.thresholds, slo.enforced)
        return spec_enforcement.judge(parts, standing, unavailable)


def _roots(host: agent_settings.HostSettings, enabled: frozenset[str]) -> observation.Roots:
    return observation.Roots(
        str(host.proc),
        str(host.sys),
        str(host.cgroup),
        host.kubelet_root,
        terway=str(host.terway_qos or ""),
        mounting=host.mount_resctrl,
        huge_pages=feature_gates.HUGE_PAGE_REPORT in enabled,
    )


def rules(settings: agent_settings.PredictionSettings) -> peaks.Rules:
    """Return how peaks are learned."""
    return peaks.Rules(
        safety_margin_percent=settings.safety_margin_percent,
        cold_start_seconds=settings.cold_start_seconds,
        cpu_half_life=settings.cpu_half_life_seconds,
        memory_half_life=settings.memory_half_life_seconds,
        expiry_seconds=settings.expiry_seconds,
    )


def habits(settings: agent_settings.Settings, enabled: frozenset[str]) -> ticks.Habits:
    """Return how far the strategies go: suppression as the agent does, the others as they say."""
    chosen = settings.strategies
    modes = {ticks.SUPPRESS: planner.Mode.ENFORCE}
    modes |= {name: planner.Mode(mode) for name, mode in chosen.modes.items()}
    among = planner.enforces(settings.node_name, chosen.enforcing_percent_of_nodes)
    trigger = chosen.pressure
    pressed = frozenset({pressure.FEATURE}) if trigger.enable else frozenset[str]()
    return ticks.Habits(
        settings.host.state,
        writing=settings.mode == "enforce",
        gates=enabled | pressed,
        modes=modes,
        default=planner.Mode(chosen.mode),
        scope=planner.Scope(
            frozenset(chosen.observed_namespaces),
            frozenset(chosen.observed_classes),
            planner.Mode.ENFORCE if among else planner.Mode.OBSERVE,
        ),
        pressure=strategy_settings.Pressure(
            trigger.enable,
            trigger.cpu_percent,
            trigger.memory_percent,
            trigger.suppress_step_percent,
        ),
        tick_seconds=settings.tick_seconds,
    )
