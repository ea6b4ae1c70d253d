"""The filter chain of a profile: safeguards first, then its filter plug-ins in order. Pure."""

import collections
from collections.abc import Mapping, Sequence

from descheduler.framework import protocols
from descheduler.model import podinfo


class Chain:
    """Asks one filter after another; implements `protocols.Evictability`."""

    __slots__ = ("_filters", "_refused")

    def __init__(self, filters: Sequence[protocols.Evictability]) -> None:
        self._filters = tuple(filters)
        self._refused: dict[str, str] = {}

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay, empty where all filters accept it."""
        for one in self._filters:
            if reason := one.refusal(pod):
                self._refused[pod.uid] = reason
                return reason
        return ""

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return what the check before an eviction (PreEvictionFilter) says."""
        for one in self._filters:
            if reason := one.late_refusal(pod):
                self._refused[pod.uid] = reason
                return reason
        return ""

    def kept(self) -> Mapping[str, int]:
        """Return how many pods must stay by reason, of those that were asked about."""
        return collections.Counter(self._refused.values())
