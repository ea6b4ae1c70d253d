"""How many pods a round and an hour may move: the eviction limiter. Pure."""

import collections
import copy
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from descheduler.configuration import head
from descheduler.framework.filtering import workload_replicas
from descheduler.framework.planning import history
from descheduler.model import picture, podinfo

IN_A_ROUND: Final = ""
IN_AN_HOUR: Final = " within an hour"


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Most pods by what they have in common; None does not limit."""

    node: int | None = None
    namespace: int | None = None
    workload: int | None = None
    total: int | None = None

    @property
    def bounds(self) -> bool:
        """Whether there is any."""
        return any(
            one is not None for one in (self.node, self.namespace, self.workload, self.total)
        )


NO_LIMITS: Final = Limits()


def per_round(configured: head.Head) -> Limits:
    """Return the limits of one round that a configuration has."""
    return Limits(
        configured.max_no_of_pods_to_evict_per_node,
        configured.max_no_of_pods_to_evict_per_namespace,
        configured.max_no_of_pods_to_evict_per_workload,
        configured.max_no_of_pods_to_evict_total,
    )


def per_hour(configured: head.Head) -> Limits:
    """Return the limits of an hour that a configuration has."""
    hourly = configured.max_no_of_pods_to_evict_per_hour
    return Limits(hourly.node, hourly.namespace, hourly.workload, hourly.total)


class Limiter:
    """Counts the moves of one round, and those of the hour before it."""

    def __init__(
        self,
        seen: picture.Picture,
        in_round: Limits = NO_LIMITS,
        in_hour: Limits = NO_LIMITS,
        moves: history.History = history.NONE,
    ) -> None:
        self._seen = seen
        self._windows = (_Window(in_round, IN_A_ROUND), _Window(in_hour, IN_AN_HOUR))
        for one in history.within(moves, seen.now, history.HOUR):
            family = workload_replicas.family(one.workload, seen)
            self._windows[1].count(("node", one.node), ("namespace", one.namespace))
            self._windows[1].count(("workload", family), ("total", ""))

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return which limit is reached, empty where the pod may leave."""
        scopes = self._scopes(pod)
        for window in self._windows:
            if reason := window.refusal(scopes):
                return reason
        return ""

    def refusal_of_all(self, pods: Sequence[podinfo.Pod]) -> str:
        """Return which limit is reached if all of these leave, empty where they may."""
        kept = [window.copy() for window in self._windows]
        try:
            for pod in pods:
                if reason := self.refusal(pod):
                    return reason
                self.count(pod)
        finally:
            self._windows = (kept[0], kept[1])
        return ""

    def exhausted(self) -> str:
        """Return which limit of all pods together is reached, empty where some may leave."""
        for window in self._windows:
            if reason := window.refusal((("total", ""),)):
                return reason
        return ""

    def count(self, pod: podinfo.Pod) -> None:
        """Count a pod that leaves, in dry run too."""
        for window in self._windows:
            window.count(*self._scopes(pod))

    def _scopes(self, pod: podinfo.Pod) -> tuple[tuple[str, str], ...]:
        controller = pod.controller
        family = "" if controller is None else workload_replicas.family(controller.uid, self._seen)
        return (
            ("node", pod.node),
            ("namespace", pod.namespace),
            ("workload", family),
            ("total", ""),
        )


class _Window:
    """The moves of some time."""

    def __init__(self, limits: Limits, suffix: str) -> None:
        self._most = {
            name: most
            for name in ("node", "namespace", "workload", "total")
            if (most := getattr(limits, name)) is not None
        }
        self._suffix = suffix
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def refusal(self, scopes: Iterable[tuple[str, str]]) -> str:
        for scope in scopes:
            kind, name = scope
            most = self._most.get(kind)
            if most is None or (not name and kind != "total"):
                continue
            if self._counts[scope] + 1 > most:
                of = f" per {kind}" if kind != "total" else ""
                return f"maximum number of pods{of}{self._suffix} reached"
        return ""

    def count(self, *scopes: tuple[str, str]) -> None:
        self._counts.update(scopes)

    def copy(self) -> "_Window":
        found = copy.copy(self)
        found._counts = self._counts.copy()  # noqa: SLF001 - of its own class
        return found
