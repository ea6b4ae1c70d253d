"""Cycles that the containers of a node take for an instruction (CPI), counted by the processor.

Nothing waits for a window to end: counters are opened in one tick and read in a later one. A node
may have too many cpus and containers to open all counters at once, so containers take turns.
"""

import errno
import os
from typing import Final, Protocol

import msgspec

from agent.host import files
from agent.model import cgroup_layout
from agent.observe import collectors
from domain.cpus import cpulists
from process.runtime import metrics

MOST_PER_TICK: Final = 256
"""How many counters are opened in one tick, each of which interrupts one cpu."""
_FORBIDDEN: Final = frozenset({errno.EPERM, errno.EACCES})
_LACKING: Final = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.ENOSYS})
_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE})


class Counts(Protocol):
    """What two counters have counted at the same time."""

    @property
    def first(self) -> float:
        """The cycles."""

    @property
    def second(self) -> float:
        """The instructions."""


class Kernel(Protocol):
    """Who opens counters."""

    def open(self, folder: int, cpu: int) -> tuple[int, int]:
        """Begin to count on one cpu what the tasks of a group do; raises OSError."""

    def read(self, pair: tuple[int, int]) -> Counts:
        """Return what was counted since; raises OSError."""

    def close(self, pair: tuple[int, int]) -> None:
        """Stop counting."""


class Habits(msgspec.Struct, frozen=True):
    """How often and how long is counted, with how many open files."""

    seconds: float = 60.0
    window: float = 10.0
    descriptors: int = 2048


class _Counting(msgspec.Struct, frozen=True):
    """The counters of one container, one pair for each cpu."""

    since: float
    labels: tuple[str, str, str]
    pairs: list[tuple[int, int]]


class Performance:
    """Counts for one container after another."""

    name = "performance"
    seconds = 0.0
    """Looked after in every tick: counters are opened and read a few at a time."""

    def __init__(self, figures: metrics.Registry, habits: Habits, kernel: Kernel) -> None:
        self._habits, self._kernel = habits, kernel
        self._table = figures.table(
            "koord_agent_container_cycles_per_instruction",
            "Cycles for one instruction in the last window; more is slower.",
            collectors.LABELS,
        )
        self._open: dict[tuple[str, ...], _Counting] = {}
        self._waiting: list[tuple[str, ...]] = []
        self._rows: dict[tuple[str, ...], tuple[tuple[str, str, str], float]] = {}
        self._next: float | None = None
        self._problem = ""

    def collect(self, sight: collectors.Sight) -> None:
        """Read what has counted long enough, and open what comes next."""
        idle = not self._open and not self._waiting
        if idle and self._next is not None and sight.at < self._next:
            if self._problem:
                raise files.ReadingError(self._problem)
            return
        present = {spot.key: spot for spot in sight.spots() if spot.key[0] == "container"}
        if idle:
            self._next, self._problem = sight.at + self._habits.seconds, ""
            self._waiting = list(present)
        self._read(sight, present)
        cpus = _cpus(sight)
        needed, begun = 2 * len(cpus), 0
        if needed > self._habits.descriptors:
            self._fail(
                f"{needed} counters for one container, and {self._habits.descriptors} may be open: "
                "raise measure.performanceDescriptors, or this process's limit of open files"
            )
        # One container is always begun, however many cpus it takes.
        while self._waiting and (not begun or begun + needed <= MOST_PER_TICK):
            if self.descriptors + needed > self._habits.descriptors:
                break
            key = self._waiting.pop(0)
            if key in present:
                self._begin(sight, present[key], cpus)
                begun += needed
        self._show(present)

    @property
    def descriptors(self) -> int:
        """How many counters are open."""
        return sum(2 * len(one.pairs) for one in self._open.values())

    def close(self) -> None:
        """Close every counter."""
        for key in tuple(self._open):
            self._end(key)
        self._waiting.clear()
        self._table.replace({})

    def _begin(self, sight: collectors.Sight, spot: collectors.Spot, cpus: tuple[int, ...]) -> None:
        counting = self._open[spot.key] = _Counting(sight.at, spot.labels, [])
        try:
            folder = os.open(
                _folder(sight.layout, spot.group), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            )
        except FileNotFoundError as error:
            del self._open[spot.key]
            if os.access(sight.layout.folder(cgroup_layout.File.CPU_SHARES, spot.group), os.F_OK):
                self._fail(f"{error.filename}: containers have no group whose events are counted")
            return
        try:
            for cpu in cpus:
                counting.pairs.append(self._kernel.open(folder, cpu))
        except OSError as error:
            self._end(spot.key)
            self._fail(_reason(error))
        finally:
            os.close(folder)

    def _read(
        self, sight: collectors.Sight, present: dict[tuple[str, ...], collectors.Spot]
    ) -> None:
        for key, counting in tuple(self._open.items()):
            if key not in present:
                self._end(key)
            elif sight.at - counting.since >= self._habits.window:
                try:
                    counts = [self._kernel.read(pair) for pair in counting.pairs]
                except OSError:
                    # The cgroup is gone, or other users of the counters left no turn to these.
                    continue
                finally:
                    self._end(key)
                cycles = sum(one.first for one in counts)
                instructions = sum(one.second for one in counts)
                sight.add(key, "cycles", cycles)
                sight.add(key, "instructions", instructions)
                self._rows.pop(key, None)
                if instructions > 0:
                    self._rows[key] = counting.labels, cycles / instructions

    def _end(self, key: tuple[str, ...]) -> None:
        for pair in self._open.pop(key).pairs:
            self._kernel.close(pair)

    def _fail(self, reason: str) -> None:
        """Give up until the next round."""
        self._problem = reason
        self.close()
        self._rows.clear()
        raise files.ReadingError(reason)

    def _show(self, present: dict[tuple[str, ...], collectors.Spot]) -> None:
        self._rows = {key: row for key, row in self._rows.items() if key in present}
        self._table.replace(dict(self._rows.values()))


def _cpus(sight: collectors.Sight) -> tuple[int, ...]:
    path = f"{sight.layout.sys}/devices/system/cpu/online"
    try:
        text = sight.kept.read(path, 4096).decode("ascii").strip()
        return tuple(sorted(cpulists.parse(text)))
    except (UnicodeDecodeError, cpulists.CpuListError) as error:
        raise files.ReadingError(f"{path}: {error}") from error


def _folder(arranged: cgroup_layout.Layout, group: str) -> str:
    """Return the directory whose tasks are counted: where v1 has no such hierarchy, v2 has it."""
    if arranged.version == 2:
        return f"{arranged.root}/{group}"
    first = f"{arranged.root}/perf_event"
    if not arranged.hybrid or os.access(f"{first}/cgroup.procs", os.F_OK):
        return f"{first}/{group}"
    return f"{arranged.root}/unified/{group}"


def _reason(error: OSError) -> str:
    said = error.strerror or str(error)
    if error.errno in _FORBIDDEN:
        return (
            f"perf_event_open: {said}; it takes CAP_PERFMON and a seccomp profile that knows it "
            "(agent.measure.performance of the chart), or kernel.perf_event_paranoid at 0 or less"
        )
    if error.errno in _LACKING:
        return f"perf_event_open: {said}; the processor, or the virtual machine, has no counters"
    if error.errno in _FULL:
        return f"perf_event_open: {said}; lower measure.performanceDescriptors"
    return f"perf_event_open: {said}"
