"""Series whose older samples lie on disk: long windows in full resolution, for little memory.

The latest samples of a series stay in memory; what came before them is written in blocks into a
file that has no name, so that nothing is left of it however the agent ends. What has to outlive
the agent is kept as with series in memory.
"""

import bisect
import contextlib
import logging
import sqlite3
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from agent.store import time_series

TAIL: Final = 512
"""Samples of a series in memory, at most ..."""
BLOCK: Final = 256
"""... of which so many go to disk at once."""
MOST_SAMPLES: Final = 1 << 20
"""Of one series: twelve days of a sample per second."""
SAMPLE_BYTES: Final = 16
NAME: Final = "series"
_logger = logging.getLogger(__name__)


class _Block(msgspec.Struct, frozen=True, gc=False):
    number: int
    first: float
    last: float
    count: int


class Blocks:
    """The file; without one, older samples are lost and the problem says so."""

    def __init__(self, folder: Path) -> None:
        self.problem = ""
        self._connection: sqlite3.Connection | None = None
        self._number = 0
        path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.execute("CREATE TABLE blocks (number INTEGER PRIMARY KEY, body BLOB)")
            path.unlink()
        except (sqlite3.Error, OSError) as error:
            self._failed(f"{path}: {error}")
            self.close()

    def put(self, times: "array[float]", values: "array[float]") -> int | None:
        """Write a block; return its number, None where that failed."""
        self._number += 1
        body = times.tobytes() + values.tobytes()
        done = self._run("INSERT INTO blocks VALUES (?, ?)", (self._number, body))
        return None if done is None else self._number

    def get(self, number: int) -> "tuple[array[float], array[float]]":
        """Read the times and values of a block; none where that failed."""
        found = self._run("SELECT body FROM blocks WHERE number = ?", (number,))
        body = found[0][0] if found else b""
        times, values = array("d"), array("d")
        times.frombytes(body[: len(body) // 2])
        values.frombytes(body[len(body) // 2 :])
        return times, values

    def drop(self, number: int) -> None:
        """Remove a block; later ones take its place."""
        self._run("DELETE FROM blocks WHERE number = ?", (number,))

    def close(self) -> None:
        """Close the file, which removes it."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def series(self, keep_seconds: float, most: int) -> "DiskSeries":
        """Return a new series."""
        return DiskSeries(self, keep_seconds, most)

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[bytes]] | None:
        if self._connection is None:
            return None
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._failed(f"older samples are lost: {error}")
            return None

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            _logger.warning("series on disk reason=%s", problem)
        self.problem = problem


class DiskSeries(time_series.Series):
    """A series whose tail is in memory."""

    __slots__ = ("_blocks", "_file", "_on_disk")

    def __init__(self, file: Blocks, keep_seconds: float, most: int) -> None:
        super().__init__(keep_seconds, most)
        self._file = file
        self._blocks: list[_Block] = []
        self._on_disk = 0

    def __len__(self) -> int:
        return self._on_disk + super().__len__()

    def add(self, at: float, value: float) -> None:
        """Take in a sample; one that is older than the newest, or no number, is dropped."""
        super().add(at, value)
        if super().__len__() > TAIL:
            self._spill()
        self._drop_before(at - self.keep_seconds)

    def window(self, start: float, end: float) -> Sequence[float]:
        """Return the values sampled in the closed interval."""
        return self._piece(start, end)[1]

    def covered(self, start: float, end: float) -> float:
        """Return the seconds between the first and the last sample of the interval."""
        times, _ = self._piece(start, end)
        return times[-1] - times[0] if times else 0.0

    def thin(self, most: int) -> None:
        """Keep the latest so many samples from now on, each as it was taken."""
        self.most = most
        while self._blocks and len(self) - self._blocks[0].count >= most:
            self._drop()
        if not self._blocks and super().__len__() > most:
            first = len(self._times) - most
            self._times, self._values, self._start = self._times[first:], self._values[first:], 0

    def kept(self, key: tuple[str, ...]) -> time_series.Kept:
        """Return a copy of the latest samples, as many as a series in memory has."""
        times, values = self._piece(float("-inf"), float("inf"))
        most = time_series.MOST_SAMPLES
        return time_series.Kept(key, self.keep_seconds, times[-most:], values[-most:])

    def restore(self, kept: time_series.Kept, later: float, now: float) -> None:
        """Take in samples of an earlier run, so much later; none may lie in the future."""
        super().restore(kept, later, now)
        while super().__len__() > TAIL:
            self._spill()

    def close(self) -> None:
        """Give back the room on disk."""
        while self._blocks:
            self._drop()

    def _spill(self) -> None:
        start, end = self._start, self._start + BLOCK
        times, values = self._times[start:end], self._values[start:end]
        del self._times[:end]
        del self._values[:end]
        self._start = 0
        number = self._file.put(times, values)
        if number is not None:
            self._blocks.append(_Block(number, times[0], times[-1], len(times)))
            self._on_disk += len(times)

    def _drop_before(self, moment: float) -> None:
        while self._blocks and self._blocks[0].last < moment:
            self._drop()

    def _drop(self) -> None:
        block = self._blocks.pop(0)
        self._on_disk -= block.count
        self._file.drop(block.number)

    def _piece(self, start: float, end: float) -> "tuple[array[float], array[float]]":
        # A block leaves the disk only with its last sample.
        start = max(start, self._latest_at - self.keep_seconds)
        times, values = array("d"), array("d")
        for block in self._blocks:
            if block.last >= start and block.first <= end:
                more, their = self._file.get(block.number)
                times += more
                values += their
        first, last = self._start, len(self._times)
        times += self._times[first:last]
        values += self._values[first:last]
        low = bisect.bisect_left(times, start)
        high = bisect.bisect_right(times, end, low)
        return times[low:high], values[low:high]
