"""Reports drift of cpusets: an event on the pod, gauges, a line of the audit and a warning."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agent.decide.planner import Mode
from agent.loop import ticks
from agent.model import state
from agent.model.cpus import drift
from agent.observe.cgroups import effective_cpusets
from api.wire import durations
from domain.cpus import cpulists
from kube.controllers import recorder
from process.runtime import metrics

REASON: Final = "CPUDrift"
SECONDS: Final = 15.0
"""Distance of two looks; a drift is reported once two of them in a row find it."""
FIRST_SECONDS: Final = 2.5
"""Delay of an agent's first look, chosen so that it never coincides with other periodic looks."""
STRATEGY: Final = "cpuset"
MOST_READ: Final = 64
"""Cgroups that one tick reads; a look at a full node takes several."""
MOST_REPORTED: Final = 100
"""Drifts of one look that get an event; the gauges count all of them."""


class DriftEvents:
    """Looks at cpusets while a pod has exclusive CPUs, and reports each drift once until it ends.

    Reads cgroups only where the strategy `cpuset` writes them: an agent that observes does not
    confine anybody, so that every container may use every CPU.
    """

    def __init__(
        self,
        events: recorder.Recorder,
        tell: Callable[[Mapping[str, Any]], None],
        figures: metrics.Registry,
        not_before: float = 0.0,
    ) -> None:
        """`not_before` is the moment of the first look."""
        self._events = events
        self._tell = tell
        self._confirmed = drift.Confirmed()
        self._told: dict[tuple[str, str, str], drift.Drift] = {}
        self._due = not_before
        self._left: tuple[str, ...] = ()
        """The cgroups that the present look has not read yet."""
        self._cpusets: dict[str, frozenset[int]] = {}
        self._gauge = figures.gauge(
            "koord_agent_cpu_drift",
            "Cgroups that do not respect exclusive CPUs of pods, by kind: moved, shared, pinned.",
            ["kind"],
        )
        self._counted = figures.counter(
            "koord_agent_cpu_drifts_total",
            "Drifts of cpusets that were reported, by kind.",
            ["kind"],
        )
        self._show()

    @property
    def problem(self) -> str | None:
        """Name the first drifts, None while there are none."""
        notes = [f"pod {one.pod.pod.metadata.key}: {one.note}" for one in self._told.values()]
        more = f"; {len(notes) - 3} more" if len(notes) > 3 else ""
        return "; ".join(notes[:3]) + more or None

    def look(self, loop: ticks.Ticks, monotonic: float) -> None:
        """Look at the cpusets of this node when it is time to, at a part of them in each tick."""
        picture, arranged = loop.picture, loop.layout
        if picture is None or arranged is None or (monotonic < self._due and not self._left):
            return
        if not self._left:
            self._due = monotonic + SECONDS

        def enforced(pod: state.PodState) -> bool:
            return loop.reach(STRATEGY, pod) is Mode.ENFORCE

        decision = loop.decisions.get(STRATEGY)
        found: tuple[drift.Drift, ...] = ()
        if decision is not None and decision.decided and drift.owners(picture, enforced):
            if not self._left:
                groups = (one.group for pod in picture.pods for one in pod.inside)
                self._left, self._cpusets = tuple(filter(None, groups)), {}
            now, self._left = self._left[:MOST_READ], self._left[MOST_READ:]
            self._cpusets |= effective_cpusets.effective(arranged, now)
            if self._left:
                return
            online = frozenset(one.cpu for one in picture.processors)
            pinned = effective_cpusets.pinned(arranged, online)
            found = drift.find(picture, self._cpusets, pinned, enforced)
        self._left, self._cpusets = (), {}
        self._take(self._confirmed.step(found), picture.at)

    def _take(self, found: tuple[drift.Drift, ...], at: float) -> None:
        before, self._told = self._told, {one.key: one for one in found}
        new = [one for key, one in self._told.items() if key not in before]
        for one in new:
            self._counted.labels(one.kind.value).inc()
        for one in new[:MOST_REPORTED]:
            self._new(one, at)
        self._show()

    def _new(self, one: drift.Drift, at: float) -> None:
        meta = one.pod.pod.metadata
        regarding = recorder.Regarding("v1", "Pod", meta.name, meta.namespace, meta.uid)
        self._events.event(regarding, "Warning", REASON, one.note, action="Confining")
        self._tell(
            {
                "createdAt": durations.moment(at),
                "type": "pod",
                "reason": "cpu drift",
                "property": "cpuset",
                "pod": meta.key,
                "from": cpulists.text(one.pod.cpus),
                "to": cpulists.text(one.cpus),
                "message": one.note,
            }
        )

    def _show(self) -> None:
        kinds = [one.kind for one in self._told.values()]
        for kind in drift.Kind:
            self._gauge.labels(kind.value).set(kinds.count(kind))
