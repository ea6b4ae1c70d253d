"""Reports of claims to cpus that do not hold: an event on the pod, a line of the audit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent.model import state
from api.wire import durations
from kube.controllers import recorder
from process.runtime import metrics

REASON: Final = "CPUBindingRefused"
_LONGEST_CLAIM: Final = 256


class BindingEvents:
    """Tells each claim that does not hold once, until it changes or its pod is gone."""

    def __init__(
        self,
        events: recorder.Recorder,
        tell: Callable[[Mapping[str, Any]], None],
        figures: metrics.Registry,
    ) -> None:
        self._events = events
        self._tell = tell
        self._told: dict[str, state.RefusedCpus] = {}
        self._counted = figures.counter(
            "koord_agent_refused_cpu_bindings_total",
            "Claims of pods to cpus of their own (resource-status) that do not hold.",
        )

    def look(self, refused: Sequence[state.RefusedCpus], at: float) -> None:
        """Tell what is new of one tick."""
        before = self._told
        if not refused and not before:
            return
        self._told = {one.uid: one for one in refused}
        for one in refused:
            if before.get(one.uid) != one:
                self._counted.inc()
                self._new(one, at)

    def _new(self, one: state.RefusedCpus, at: float) -> None:
        regarding = recorder.Regarding("v1", "Pod", one.name, one.namespace, one.uid)
        note = f"{one.reason}; it runs on the cpus that its class shares"
        self._events.event(regarding, "Warning", REASON, note, action="Binding")
        self._tell(
            {
                "createdAt": durations.moment(at),
                "type": "pod",
                "reason": "refused cpus",
                "property": "cpuset",
                "pod": one.key,
                "from": one.claim[:_LONGEST_CLAIM],
                "to": "",
                "message": one.reason,
            }
        )
