"""A day of 300 machines: how long they are too hot, and what the moves against it bring.

python -m benchmarks.descheduling.day [--nodes 300] [--hours 24] [--seed 1]

The same generated load is played several times, with LowNodeLoad and the high thresholds of the
reference's chart: as the reference does, where whatever fits a node of low load moves and the
scheduler places it, with its low thresholds and with ours; and with our objective, targets on a
fork of the scheduler's state and cool-down. A move takes two minutes. Its gain is the mean of five
minutes that begin five minutes later: by how much loads would be further apart without it.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from benchmarks import figures
from benchmarks.descheduling import day_cluster, day_trace
from descheduler import registry
from descheduler.configuration import document
from descheduler.framework import objective
from descheduler.framework.planning import history, pipeline, profiles, round_plan
from descheduler.gain import gain_per_eviction, load_spread, measured_load
from descheduler.gain.options import Options

HIGH: Final = (75.0, 80.0)
"""Percent of cpu and memory above which a machine is too hot, as in the reference's chart."""
SETTLED: Final = 5
"""Minutes after a move from which its gain is measured ..."""
MEASURED: Final = 5
"""... for so many minutes."""
REFERENCE_LOW: Final = (45, 55)
OUR_LOW: Final = (60, 65)
"""Percent of cpu and memory below which machines take pods. Where every move has to gain, machines
may take pods that are fuller."""
REST_MINUTES: Final = 30
_CONFIGURATION: Final = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 60s
coolDown: {cool_down}
profiles:
- name: day
  plugins:
    balance: {{enabled: [{{name: LowNodeLoad}}]}}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {{cpu: {low[0]}, memory: {low[1]}}}
      highThresholds: {{cpu: 75, memory: 80}}
  - name: MigrationController
    args: {{schedulerNames: [default-scheduler]}}
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """One day."""

    name: str
    hot_hours: float
    """Hours of all machines above a threshold."""
    moves: int
    gains: tuple[float, ...]
    """In points, of the moves that were measured."""
    twice: int
    """Moves of a pod whose line has moved within the last half hour."""
    exchanges: int
    """Moves between two nodes of which one has been made the other way within half an hour."""
    back: int
    """Moves that ended where they had begun, or nowhere."""
    seconds: float
    """Processor time of all rounds."""

    @property
    def idle(self) -> int:
        """Return the moves that gained nothing."""
        return sum(gain <= 0 for gain in self.gains)

    @property
    def gain(self) -> float:
        """Return the points that one move gained on average."""
        return sum(self.gains) / max(len(self.gains), 1)


class Descheduler:
    """Plans rounds, as the reference does or as we do."""

    def __init__(self, low: tuple[int, int], *, is_ours: bool) -> None:
        cool_down = f"{REST_MINUTES}m" if is_ours else "0s"
        found = document.read(_CONFIGURATION.format(cool_down=cool_down, low=low))
        assert found.configuration is not None, found.faults
        self._profiles = [registry.made(one) for one in found.configuration.profiles]
        self._chosen = profiles.options(found.configuration.head)
        self._options = Options(cool_down_seconds=REST_MINUTES * 60)
        self._memory = round_plan.NO_MEMORY
        self._is_ours = is_ours

    def round(self, cluster: day_cluster.DayCluster) -> round_plan.RoundPlan:
        """Plan one round."""
        seen = cluster.picture()
        judge: objective.Objective = objective.ACCEPT_ALL
        if self._is_ours:
            loads = measured_load.Loads(self._options, seen, seen.nodes.values())
            moves = history.followed(self._memory.moves, seen, history.KEPT)
            judge = gain_per_eviction.GainPerEviction(self._options, seen, loads, moves)
        targets = cluster.targets() if self._is_ours else None
        given = profiles.Given(seen, judge, targets, self._memory)
        plan = pipeline.plan_round(self._profiles, self._chosen, given)
        assert not plan.failures, plan.failures
        self._memory = plan.memory
        return plan


class _Tally:
    """Counts what moves bring and how often they repeat."""

    def __init__(self) -> None:
        self.gains: list[float] = []
        self.twice = self.exchanges = self.back = 0
        self._settling: list[tuple[int, day_cluster.Moving, list[float]]] = []
        self._last: dict[int, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}

    def ended(self, one: day_cluster.Moving, minute: int) -> None:
        """Take in a move that has ended."""
        if not one.target or one.target == one.source:
            self.back += 1
            return
        last = self._last.get(one.line)
        self.twice += last is not None and one.decided - last < REST_MINUTES
        other = self._pairs.get((one.target, one.source))
        self.exchanges += other is not None and one.decided - other < REST_MINUTES
        self._last[one.line] = minute
        self._pairs[one.source, one.target] = minute
        self._settling.append((minute, one, []))

    def measure(self, cluster: day_cluster.DayCluster) -> None:
        """Measure moves that have settled, unless the pod has moved on meanwhile."""
        self._settling = [
            entry
            for entry in self._settling
            if cluster.names[int(cluster.at[entry[1].line])] == entry[1].target
        ]
        due = [entry for entry in self._settling if cluster.minute - entry[0] >= SETTLED]
        spread = _spread(cluster) if due else None
        for entry in due:
            assert spread is not None
            entry[2].append(_gain(cluster, spread, entry[1]))
            if len(entry[2]) == MEASURED:
                self._settling.remove(entry)
                self.gains.append(sum(entry[2]) / MEASURED)


def _spread(cluster: day_cluster.DayCluster) -> load_spread.LoadSpread:
    size = cluster.trace.size
    used = np.stack(cluster.loads(), axis=1).astype(np.int64)
    capacity = np.tile(np.array([size.cores * 1000, size.memory_gib << 30]), (size.nodes, 1))
    return load_spread.LoadSpread(cluster.rows, used, capacity, np.array([1.0, 1.0]))


def _gain(
    cluster: day_cluster.DayCluster, spread: load_spread.LoadSpread, one: day_cluster.Moving
) -> float:
    """Return by how much loads would be further apart with the pod on its old node."""
    amounts = np.array([cluster.cpu[one.line], cluster.memory[one.line]]).astype(np.int64)
    back = spread.outlook(amounts, one.target, np.array([cluster.rows[one.source]]))
    return -float(back.gain[0])


def _hot(cluster: day_cluster.DayCluster) -> int:
    size = cluster.trace.size
    cpu, memory = cluster.loads()
    is_hot = (cpu > HIGH[0] * size.cores * 10) | (memory > HIGH[1] / 100 * (size.memory_gib << 30))
    return int(np.count_nonzero(is_hot))


def played(name: str, size: day_trace.Size, seed: int, planner: Descheduler | None) -> Score:
    """Play a day, without a planner as it is if nothing moves."""
    cluster = day_cluster.DayCluster(day_trace.Trace(size, seed), seed)
    tally, hot, moves, seconds = _Tally(), 0, 0, 0.0
    while cluster.minute < size.minutes - 1:
        for one in cluster.tick():
            tally.ended(one, cluster.minute)
        tally.measure(cluster)
        hot += _hot(cluster)
        if planner is None:
            continue
        began = time.process_time()
        plan = planner.round(cluster)
        seconds += time.process_time() - began
        moves += len(plan.moves)
        for move in plan.moves:
            cluster.begin(move.suggestion.pod, move.target)
    gains = tuple(tally.gains)
    return Score(
        name, hot / 60, moves, gains, tally.twice, tally.exchanges, tally.back, seconds
    )  # fmt: skip


def days(size: day_trace.Size, seed: int) -> list[Score]:
    """Play the same day without moves, as the reference does, and as we do."""
    return [
        played("no moves", size, seed, None),
        played(
            _named("as the reference", REFERENCE_LOW),
            size,
            seed,
            Descheduler(REFERENCE_LOW, is_ours=False),
        ),
        played(
            _named("as the reference", OUR_LOW), size, seed, Descheduler(OUR_LOW, is_ours=False)
        ),
        played(_named("ours", OUR_LOW), size, seed, Descheduler(OUR_LOW, is_ours=True)),
    ]


def _named(name: str, low: tuple[int, int]) -> str:
    return f"{name}, low thresholds {low[0]} % and {low[1]} %"


def table(scores: Sequence[Score]) -> str:
    """Return the days as a table."""
    lines = [
        (
            "| | hours above 75 % cpu or 80 % memory | moves | gain of a move | "
            "moves without gain | moved twice within 30 min | nodes exchanging pods |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.hot_hours:.1f} | {one.moves} | {one.gain:.1f} points | {one.idle} | "
        f"{one.twice} | {one.exchanges} |"
        for one in scores
    ]
    return "\n".join(lines)


def main() -> None:
    """Play a day and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    size = day_trace.Size(nodes=given.nodes, minutes=given.hours * 60)
    scores = days(size, given.seed)
    print(table(scores))
    quiet, reference, _, ours = scores
    what = f"{given.nodes} machines, {given.hours} hours of generated load"
    figures.show(
        figures.paired(
            "descheduling.day.hot", f"hours above a threshold, {what}", "h",
            [ours.hot_hours], [max(reference.hot_hours, 0.01)], "as the reference plans",
        ),
        figures.plain("descheduling.day.still", "the same without moves", "h", [quiet.hot_hours]),
        figures.paired(
            "descheduling.day.moves", f"moves, {what}", "moves",
            [float(ours.moves)], [float(max(reference.moves, 1))], "as the reference plans",
        ),
        figures.plain(
            "descheduling.day.idle", "moves without gain five minutes later", "moves",
            [float(ours.idle)], "0",
        ),
        figures.plain(
            "descheduling.day.gain", "gain of a move", "points", [ours.gain],
            f"as the reference plans: {reference.gain:.1f}",
        ),
        figures.plain(
            "descheduling.day.round", "processor time of a round", "ms",
            [1000 * ours.seconds / max(size.minutes - 1, 1)],
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
