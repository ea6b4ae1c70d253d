"""Reports interference: an event on the victim, a line of the audit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent.decide.interference import findings
from api.wire import durations
from kube.controllers import recorder

REASON: Final = "Interference"
SILENT_SECONDS: Final = 600.0
"""A pod has at most one event of a resource within this time."""
MOST_REPORTED: Final = 20
"""Events of one look."""


class InterferenceEvents:
    """Posts one event for each time of interference that has a suspect."""

    def __init__(
        self, events: recorder.EventRecorder, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._events = events
        self._tell = tell
        self._told: dict[tuple[str, findings.Resource], float] = {}

    def look(self, found: Sequence[findings.Finding], at: float) -> None:
        """Take what interferes at present; `at` is the wall clock."""
        # What lies in the future was told before the clock was set back.
        self._told = {
            key: told for key, told in self._told.items() if 0 <= at - told < SILENT_SECONDS
        }
        new = 0
        for one in found:
            key = (one.uid, one.resource)
            if key in self._told:
                self._told[key] = at
            elif one.confidence is not findings.Confidence.LOW and new < MOST_REPORTED:
                new += 1
                self._told[key] = at
                self._new(one, at)

    def _new(self, one: findings.Finding, at: float) -> None:
        regarding = recorder.Regarding("v1", "Pod", one.name, one.namespace, one.uid)
        self._events.event(regarding, "Warning", REASON, one.note(), action="Detecting")
        self._tell(
            {
                "createdAt": durations.moment(at),
                "type": "pod",
                "reason": "interference",
                "property": one.signal.value,
                "pod": f"{one.namespace}/{one.name}",
                "from": f"{one.usual:.2f}",
                "to": f"{one.value:.2f}",
                "message": one.note(),
            }
        )
