"""What the moves of a simulated day bring, and how often they repeat.

A move gains by how much further apart loads would be without it: the same load at the same minute,
the pod on the node that it has left. That is asked three times. When it is decided, which is all
that a planner can know. Minutes later, with all that has happened since. And minutes later with
that load, but only with the moves that had been decided by then: what is without gain there has
been overtaken by load that changed by itself, and anything else by moves decided afterwards.
"""

import dataclasses
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.descheduling import day_cluster
from descheduler.gain import load_spread

SETTLED: Final = 5
"""Minutes after a move from which its gain is measured ..."""
MEASURED: Final = 5
"""... for so many minutes."""
REST_MINUTES: Final = 30
_At = npt.NDArray[np.int64]
"""Row of the node by line of pods."""
_WEIGHTS: Final = np.array([1.0, 1.0])


@dataclasses.dataclass(frozen=True, slots=True)
class Gain:
    """What one move gained, in points."""

    decided: float
    """By the load of the minute in which it was decided, with all moves decided until then."""
    later: float
    """By the load that came, with all moves."""
    unaided: float
    """By the load that came, with the moves decided until then and none of those afterwards."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Decision:
    """One minute in which moves were decided."""

    used: npt.NDArray[np.int64]
    """What each line of pods uses."""
    outside: npt.NDArray[np.int64]
    """What each node uses besides pods."""
    at: _At
    """Where pods are once all moves are made that have been decided."""


@dataclasses.dataclass(slots=True)
class _Settling:
    """A move that has been made."""

    ended: int
    """Minute."""
    move: day_cluster.Moving
    decision: _Decision
    decided: float
    later: list[float] = dataclasses.field(default_factory=list)
    unaided: list[float] = dataclasses.field(default_factory=list)


class Tally:
    """Counts what moves bring and how often they repeat."""

    def __init__(self) -> None:
        self.gains: list[Gain] = []
        """Of the moves that were measured."""
        self.twice = self.exchanges = self.back = 0
        self._decisions: dict[int, _Decision] = {}
        self._settling: list[_Settling] = []
        self._last: dict[int, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}

    def decided(self, cluster: day_cluster.DayCluster) -> None:
        """Remember the minute in which moves have begun."""
        oldest = cluster.minute - day_cluster.MOVE_MINUTES
        self._decisions = {at: one for at, one in self._decisions.items() if at >= oldest}
        at = cluster.at.copy()
        for one in cluster.moving.values():
            if one.target:
                at[one.line] = cluster.rows[one.target]
        self._decisions[cluster.minute] = _Decision(_used(cluster), _outside(cluster), at)

    def ended(self, cluster: day_cluster.DayCluster, one: day_cluster.Moving) -> None:
        """Take in a move that has ended."""
        if not one.target or one.target == one.source:
            self.back += 1
            return
        minute = cluster.minute
        last = self._last.get(one.line)
        self.twice += last is not None and one.decided - last < REST_MINUTES
        other = self._pairs.get((one.target, one.source))
        self.exchanges += other is not None and one.decided - other < REST_MINUTES
        self._last[one.line] = minute
        self._pairs[one.source, one.target] = minute
        known = self._decisions[one.decided]
        gain = _gain(cluster, known, one)
        self._settling.append(_Settling(minute, one, known, gain))

    def measure(self, cluster: day_cluster.DayCluster) -> None:
        """Measure moves that have settled, unless the pod has moved on meanwhile."""
        self._settling = [
            entry
            for entry in self._settling
            if cluster.names[int(cluster.at[entry.move.line])] == entry.move.target
        ]
        due = [entry for entry in self._settling if cluster.minute - entry.ended >= SETTLED]
        if not due:
            return
        now = _Decision(_used(cluster), _outside(cluster), cluster.at)
        for entry in due:
            alone = dataclasses.replace(now, at=entry.decision.at)
            entry.later.append(_gain(cluster, now, entry.move))
            entry.unaided.append(_gain(cluster, alone, entry.move))
            if len(entry.later) == MEASURED:
                self._settling.remove(entry)
                means = (sum(entry.later) / MEASURED, sum(entry.unaided) / MEASURED)
                self.gains.append(Gain(entry.decided, *means))


def _used(cluster: day_cluster.DayCluster) -> npt.NDArray[np.int64]:
    return np.stack((cluster.cpu, cluster.memory), axis=1).astype(np.int64)


def _outside(cluster: day_cluster.DayCluster) -> npt.NDArray[np.int64]:
    cpu, memory = cluster.trace.system(cluster.minute)
    return np.stack((cpu, np.full_like(cpu, memory)), axis=1).astype(np.int64)


def _gain(cluster: day_cluster.DayCluster, load: _Decision, one: day_cluster.Moving) -> float:
    """Return by how much loads would be further apart with the pod on its old node."""
    size, at = cluster.trace.size, load.at.copy()
    source = at[one.line] = cluster.rows[one.source]
    count = len(cluster.names)
    pods: list[npt.NDArray[Any]] = [np.bincount(at, column, count) for column in load.used.T]
    used = load.outside + np.stack(pods, axis=1).astype(np.int64)
    capacity = np.tile(np.array([size.cores * 1000, size.memory_gib << 30]), (size.nodes, 1))
    spread = load_spread.LoadSpread(cluster.rows, used, capacity, _WEIGHTS)
    target = np.array([cluster.rows[one.target]])
    return float(spread.outlook(load.used[one.line], cluster.names[int(source)], target).gain[0])
