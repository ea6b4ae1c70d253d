"""What a watch of pods says of every team: what runs, what is too much, how long it took. Pure.

Every pod asks for the same, so that a place that one pod leaves is taken by exactly one other.
"""

import collections
import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.plane import pod_events


def pod_name(team: int, number: int) -> str:
    """Return the name of a pod, which tells its team."""
    return f"t{team:03d}-{number:07d}"


def team_of(pod: str) -> int:
    """Return the team that a pod's name tells."""
    return int(pod[1 : pod.index("-")])


class Excess(NamedTuple):
    """A moment at which more pods of a team had a node than its quota allows."""

    team: int
    bound: int
    limit: int
    version: str
    """The resource version at which it was so."""


@dataclasses.dataclass(slots=True)
class Pod:
    """One pod as the watch has shown it; moments in seconds."""

    added_at: float
    gated: bool = False
    opened_at: float | None = None
    """When its gate was seen open after it had been seen closed."""
    bound_at: float | None = None


@dataclasses.dataclass(slots=True)
class Window:
    """What was seen since a moment, in seconds."""

    created_to_bound: list[float] = dataclasses.field(default_factory=list)
    freed_to_opened: list[float] = dataclasses.field(default_factory=list)
    opened_to_bound: list[float] = dataclasses.field(default_factory=list)
    freed_to_bound: list[float] = dataclasses.field(default_factory=list)
    bound_at: list[float] = dataclasses.field(default_factory=list)
    events: int = 0


class Accounts:
    """All pods by name, and the number of those with a node by team, event by event.

    The watch tells every state of the cluster in order, so a team that was above its limit at any
    resource version is found.

    Attributes:
        pods: by name, every pod that exists.
        running: names of the pods with a node by team, the first that got one first.
        excesses: moments at which a team had more.
        window: what was seen since `begin`.
        measures: whether the place of a pod that goes is to be taken by a waiting one.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.running: dict[int, dict[str, None]] = {}
        self.excesses: list[Excess] = []
        self.window = Window()
        self.measures = False
        self._limits: Mapping[int, int] = {}
        self._unopened: dict[int, collections.deque[float]] = {}
        self._unbound: dict[int, collections.deque[float]] = {}

    def limit(self, limits: Mapping[int, int]) -> None:
        """Hold every team to so many pods from now on; no limits where there are none."""
        self._limits = dict(limits)
        for team in self._limits:
            self._check(team, "")

    def begin(self, *, measures: bool) -> Window:
        """Start to count anew; with `measures`, who takes the places of pods that go."""
        self.window = Window()
        self.measures = measures
        self._unopened, self._unbound = {}, {}
        return self.window

    @property
    def pending(self) -> int:
        """How many places were freed and have not been taken."""
        return sum(map(len, self._unbound.values()))

    @property
    def bound(self) -> int:
        """How many pods have a node."""
        return sum(map(len, self.running.values()))

    def take(self, event: pod_events.PodEvent, now: float) -> None:
        """Take in one event that was seen at a moment."""
        self.window.events += 1
        team = team_of(event.name)
        pod = self.pods.get(event.name)
        if event.kind == pod_events.DELETED:
            if pod is not None:
                self._gone(team, event.name, pod, now)
            return
        if pod is None:
            pod = self.pods[event.name] = Pod(now)
            if event.bound:
                # It was created with its node, so no scheduler has placed it.
                pod.bound_at = now
                self._count(team, event)
                return
        if event.gated:
            pod.gated = True
        elif pod.gated and pod.opened_at is None:
            pod.opened_at = now
            _note(self._unopened, team, self.window.freed_to_opened, now)
        if event.bound and pod.bound_at is None:
            pod.bound_at = now
            self._taken(team, pod, now)
            self._count(team, event)

    def _gone(self, team: int, name: str, pod: Pod, now: float) -> None:
        del self.pods[name]
        if pod.bound_at is None:
            return
        del self.running[team][name]
        if self.measures:
            for freed in (self._unopened, self._unbound):
                freed.setdefault(team, collections.deque()).append(now)

    def _taken(self, team: int, pod: Pod, now: float) -> None:
        window = self.window
        window.bound_at.append(now)
        window.created_to_bound.append(now - pod.added_at)
        if pod.opened_at is not None:
            window.opened_to_bound.append(now - pod.opened_at)
        _note(self._unbound, team, window.freed_to_bound, now)

    def _count(self, team: int, event: pod_events.PodEvent) -> None:
        self.running.setdefault(team, {})[event.name] = None
        self._check(team, event.version)

    def _check(self, team: int, version: str) -> None:
        limit, bound = self._limits.get(team), len(self.running.get(team, ()))
        if limit is not None and bound > limit:
            self.excesses.append(Excess(team, bound, limit, version))


def _note(
    freed: Mapping[int, collections.deque[float]], team: int, into: list[float], now: float
) -> None:
    """Let the place that has been free longest be taken."""
    if waiting := freed.get(team):
        into.append(now - waiting.popleft())


def rate(moments: list[float], share: float = 0.1) -> float:
    """Return how many a second there were, the first and the last share of them left out."""
    ordered = sorted(moments)
    low, high = int(len(ordered) * share), int(len(ordered) * (1 - share)) - 1
    if high <= low:
        raise ValueError(f"{len(ordered)} moments are too few for a rate")
    return (high - low) / (ordered[high] - ordered[low])
