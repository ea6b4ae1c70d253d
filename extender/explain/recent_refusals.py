"""What each plug-in refused last, for people who look at one plug-in."""

import collections
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from api.wire import durations
from domain import fairness

_CALLS: Final = 2048
"""Filter calls with refusals that are remembered."""
_SHOWN: Final = 100
"""Pods that are shown of each plug-in; namespaces share them evenly."""


class RecentRefusal(NamedTuple):
    """A pod to which nodes were refused when the scheduler asked last."""

    pod: str
    at: float
    asked: int
    by_plugin: Mapping[tuple[str, str], int]
    """How many nodes were refused, by plug-in and reason."""

    def of(self, plugin: str) -> dict[str, int]:
        """Return how many nodes a plug-in refused, by reason."""
        return {reason: count for (name, reason), count in self.by_plugin.items() if name == plugin}

    def document(self, plugin: str) -> dict[str, Any]:
        """Return what a plug-in refused as a document."""
        return {
            "pod": self.pod,
            "at": durations.precise_moment(self.at),
            "nodesAsked": self.asked,
            "nodesRefused": self.of(plugin),
        }


class RecentRefusals:
    """The latest filter calls in which nodes were refused."""

    def __init__(self, most: int = _CALLS) -> None:
        self._calls: collections.deque[RecentRefusal] = collections.deque(maxlen=most)

    def put(self, refusal: RecentRefusal) -> None:
        """Remember one filter call; what is shown of it is chosen when it is read."""
        self._calls.append(refusal)

    def of(self, plugin: str, most: int = _SHOWN) -> list[RecentRefusal]:
        """Return what a plug-in refused, the latest of each pod and the latest pod first."""
        latest: dict[str, RecentRefusal] = {}
        for call in reversed(self._calls):
            if call.of(plugin):
                latest.setdefault(call.pod, call)
        shown: fairness.Slots[RecentRefusal] = fairness.Slots(most)
        for pod, call in latest.items():
            shown.offer(pod, pod.partition("/")[0], call)
        return sorted(shown.mapping().values(), key=lambda one: -one.at)
