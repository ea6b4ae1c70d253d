"""What each plug-in refused last, for people who look at one plug-in."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from api.wire import durations
from domain import fairness

_MOST: Final = 100
"""Pods that are remembered of each plug-in; namespaces share them evenly."""


class RecentRefusal(NamedTuple):
    """A pod that a plug-in refused nodes to when the scheduler asked last."""

    pod: str
    at: float
    asked: int
    reasons: Mapping[str, int]
    """How many nodes were refused, by reason."""

    def document(self) -> dict[str, Any]:
        """Return it as a document."""
        return {
            "pod": self.pod,
            "at": durations.precise_moment(self.at),
            "nodesAsked": self.asked,
            "nodesRefused": dict(self.reasons),
        }


class RecentRefusals:
    """The latest refusals of every plug-in, one of each pod."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._by_plugin: dict[str, fairness.Slots[RecentRefusal]] = {}

    def put(
        self, pod: str, at: float, asked: int, by_plugin: Mapping[tuple[str, str], int]
    ) -> None:
        """Remember one filter call: nodes refused by plug-in and reason."""
        found: dict[str, dict[str, int]] = {}
        for (plugin, reason), count in by_plugin.items():
            found.setdefault(plugin, {})[reason] = count
        for plugin, reasons in found.items():
            slots = self._by_plugin.get(plugin)
            if slots is None:
                slots = self._by_plugin[plugin] = fairness.Slots(self._most)
            slots.push(pod, pod.partition("/")[0], RecentRefusal(pod, at, asked, reasons))

    def of(self, plugin: str) -> list[RecentRefusal]:
        """Return what a plug-in refused, the latest first."""
        slots = self._by_plugin.get(plugin)
        found = () if slots is None else slots.mapping().values()
        return sorted(found, key=lambda one: -one.at)
