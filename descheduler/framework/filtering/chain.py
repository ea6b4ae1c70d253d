"""The filter chain of a profile: safeguards first, then its filter plug-ins in order. Pure."""

import collections
from collections.abc import Mapping, Sequence
from typing import Final

from descheduler.framework import protocols
from descheduler.framework.filtering import kinds, open_jobs
from descheduler.model import podinfo

_NOT_ASKED: Final = "nobody has been asked yet"


class Chain:
    """Asks one filter after another; implements `protocols.Evictability`."""

    __slots__ = ("_by_kind", "_filters", "_migrating", "_refused")

    def __init__(
        self, filters: Sequence[protocols.Filtering], migrating: open_jobs.OpenJobs
    ) -> None:
        self._filters = tuple(filters)
        self._by_kind = [one for one in filters if isinstance(one, protocols.FilteringByKind)]
        self._migrating = migrating
        self._refused: dict[str, str] = {}

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay, empty where all filters accept it."""
        for one in self._filters:
            if reason := one.refusal(pod):
                self._refused[pod.uid] = reason
                return reason
        return ""

    def refusals(self, pods: Sequence[podinfo.Pod]) -> Sequence[str]:
        """Return what `refusal` says of each; of pods that are alike it is asked once.

        Those that are being moved, and the others of their nodes, are asked each.
        """
        if len(self._by_kind) < len(self._filters):
            return [self.refusal(pod) for pod in pods]
        known: dict[kinds.Kind, str | None] = {}
        found = []
        for pod in pods:
            if self._migrating.concerns(pod):
                found.append(self.refusal(pod))
                continue
            kind = kinds.of(pod)
            reason = known.get(kind, _NOT_ASKED)
            if reason is _NOT_ASKED:
                reason = known[kind] = None if self._varies(pod) else self.refusal(pod)
            if reason is None:
                reason = self.refusal(pod)
            elif reason:
                self._refused[pod.uid] = reason
            found.append(reason)
        return found

    def _varies(self, pod: podinfo.Pod) -> bool:
        return any(one.varies(pod) for one in self._by_kind)

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
