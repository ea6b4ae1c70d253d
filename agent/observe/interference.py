"""Looks for interference: gathers what the detector compares, and exports what it finds."""

from typing import Final

from agent.decide.interference import detector, findings, suspects
from agent.model import state
from agent.observe import collectors
from agent.observe.cgroups import cgroup_files, effective_cpusets
from process.runtime import clock as clocks
from process.runtime import metrics

MOST_SHOWN: Final = 100
"""Findings that have a series of their own; the strongest come first."""


class Interference:
    """Takes one look at a time, after the collectors of pressure and of cycles."""

    name = "interference"

    def __init__(
        self,
        figures: metrics.Registry,
        clock: clocks.Clock,
        seconds: float = 10.0,
        rules: detector.Rules | None = None,
    ) -> None:
        self.seconds = seconds
        self.found: tuple[findings.Finding, ...] = ()
        """What interferes at present, the strongest first."""
        self._clock = clock
        self._detector = detector.Detector(rules)
        self._counters: dict[str, tuple[int, int]] = {}
        self._table = figures.table(
            "koord_agent_interference_deviations",
            "How far a signal of a pod or container is above its own baseline, in standard "
            "deviations, while its neighbours interfere.",
            [*collectors.LABELS, "signal"],
        )
        self._victims = figures.gauge(
            "koord_agent_interfered_pods",
            "Online pods whose neighbours interfere with them, by resource.",
            ["resource"],
        )
        self._counted = figures.counter(
            "koord_agent_interferences_total",
            "Times at which interference with a pod began, by resource and confidence.",
            ["resource", "confidence"],
        )
        figures.gauge(
            "koord_agent_interference_baselines", "Pods whose baselines are kept."
        ).set_function(lambda: float(len(self._detector)))
        self._show()

    def collect(self, sight: collectors.Sight) -> None:
        """Take one look."""
        cpus = _cpus(sight) if self._detector.suspicious else {}
        scene = suspects.Scene(
            sight.pods, sight.samples, sight.at, sight.processors, cpus, sight.host_applications
        )
        before = {one.episode for one in self.found}
        look = detector.Look(scene, self._clock.now(), self._throttled(sight))
        self.found = self._detector.step(look)
        for one in self.found:
            if one.episode not in before:
                self._counted.labels(one.resource.value, one.confidence.value).inc()
        self._show()

    def close(self) -> None:
        """Export nothing any more."""
        self.found = ()
        self._table.replace({})

    def _throttled(self, sight: collectors.Sight) -> frozenset[str]:
        """Return the online pods of which a container was held back by its own limit."""
        cgroups = cgroup_files.Cgroups(sight.layout, sight.kept)
        before, self._counters = self._counters, {}
        found = set()
        for pod in filter(detector.is_online, sight.pods):
            for container in pod.containers:
                if not (container.group and container.container.resources.limits.get("cpu")):
                    continue
                now, last = cgroups.throttled(container.group), before.get(container.group)
                if now is None:
                    continue
                self._counters[container.group] = now
                if last is not None and _share(last, now) > detector.THROTTLED:
                    found.add(pod.pod.metadata.uid)
        return frozenset(found)

    def _show(self) -> None:
        self._table.replace(
            {
                (one.namespace, one.name, one.container, one.signal.value): one.deviations
                for one in self.found[:MOST_SHOWN]
            }
        )
        for resource in findings.Resource:
            pods = {one.uid for one in self.found if one.resource is resource}
            self._victims.labels(resource.value).set(len(pods))


def _share(before: tuple[int, int], now: tuple[int, int]) -> float:
    periods, throttled = now[0] - before[0], now[1] - before[1]
    return throttled / periods if periods > 0 and throttled > 0 else 0.0


def _cpus(sight: collectors.Sight) -> dict[str, frozenset[int]]:
    """Return the CPUs that the containers of each pod may run on."""
    return {pod.pod.metadata.uid: cpus for pod in sight.pods if (cpus := _allowed(sight, pod))}


def _allowed(sight: collectors.Sight, pod: state.PodState) -> frozenset[int]:
    groups = [one.group for one in pod.inside if one.group and one.running]
    allowed = effective_cpusets.effective(sight.layout, groups)
    return frozenset().union(*allowed.values())
