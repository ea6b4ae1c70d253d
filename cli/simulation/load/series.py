"""What online pods use at a moment: as recorded in a file, or a made-up day curve. Pure.

A recorded file is CSV with the columns ``seconds,pod,cpu,memory``, or JSON lines with the same
keys: seconds since the beginning, namespace/name or namespace/* of pods, amounts of one pod as
Kubernetes writes them. A figure holds until the next one.
"""

import bisect
import csv
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from api import names
from api.wire import quantity

MOST_ROWS: Final = 2_000_000
_COLUMNS: Final = ("seconds", "pod", "cpu", "memory")
_NO_ROWS: Final = f"it has no rows: write {','.join(_COLUMNS)} and a row per pod and moment"
_DAY_HOURS: Final = 24.0
_PEAK_HOUR: Final = 14.0
_LOW, _HIGH = 0.2, 0.6
_PHASE_HOURS: Final = 3.0
"""How far apart the peaks of two pods may be."""


class SeriesError(ValueError):
    """Recorded load that cannot be used; names the row, the field and the remedy."""


class Use(NamedTuple):
    """Cores and bytes."""

    cpu: float
    memory: int


class Asks(NamedTuple):
    """What is known of a pod before anything is replayed."""

    key: str
    cpu: float
    """Requested cores."""
    memory: int
    measured: Use | None = None
    """What it used when the snapshot was taken."""


class Source(Protocol):
    """Tells what a pod uses."""

    def use(self, pod: Asks, seconds: float) -> Use:
        """Return what a pod uses so long after the beginning."""


class DayCurve:
    """A made-up day: between 20 and 60 % of the request, the most in the early afternoon.

    Each pod peaks at a time of its own. Memory stays at half the request.
    """

    def use(self, pod: Asks, seconds: float) -> Use:
        """Return what a pod uses so long after midnight."""
        phase = (zlib.crc32(pod.key.encode()) % 1000 / 1000 - 0.5) * _PHASE_HOURS
        hour = seconds / 3600 - _PEAK_HOUR - phase
        share = _LOW + (_HIGH - _LOW) * (0.5 + 0.5 * math.cos(2 * math.pi * hour / _DAY_HOURS))
        return Use(pod.cpu * share, pod.memory // 2)


class Recorded:
    """What was recorded; of other pods what was measured last, else what they request."""

    def __init__(self, rows: Iterable[tuple[float, str, Use]]) -> None:
        self._series: dict[str, tuple[list[float], list[Use]]] = {}
        self.until = 0.0
        for seconds, pod, use in sorted(rows, key=lambda row: (row[1], row[0])):
            times, uses = self._series.setdefault(pod, ([], []))
            times.append(seconds)
            uses.append(use)
            self.until = max(self.until, seconds)

    def use(self, pod: Asks, seconds: float) -> Use:
        """Return the last figure before a moment."""
        found = self._series.get(pod.key)
        if found is None:
            found = self._series.get(f"{pod.key.partition('/')[0]}/*")
        if found is None:
            return pod.measured or Use(pod.cpu, pod.memory)
        times, uses = found
        return uses[max(bisect.bisect_right(times, seconds) - 1, 0)]


def read(text: str) -> Recorded:
    """Read a recorded file of either shape."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise SeriesError(_NO_ROWS)
    rows = _json_rows(lines) if first.lstrip().startswith("{") else _csv_rows(lines)
    found: list[tuple[float, str, Use]] = []
    for number, row in rows:
        if len(found) >= MOST_ROWS:
            raise SeriesError(f"it has more than {MOST_ROWS} rows: record longer intervals")
        found.append(_row(number, row))
    if not found:
        raise SeriesError(
            f"it has no rows: write {','.join(_COLUMNS)} and a row per pod and moment"
        )
    return Recorded(found)


def _csv_rows(lines: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    sheet = csv.DictReader(lines)
    missing = [one for one in _COLUMNS if one not in (sheet.fieldnames or ())]
    if missing:
        raise SeriesError(f"row 1: column {missing[0]} is missing; write {','.join(_COLUMNS)}")
    for row in sheet:
        yield sheet.line_num, row


def _json_rows(lines: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SeriesError(f"row {number}: it is no JSON object ({error})") from error
        if not isinstance(row, dict):
            raise SeriesError(f"row {number}: write a JSON object")
        yield number, row


def _row(number: int, row: Mapping[str, Any]) -> tuple[float, str, Use]:
    field = "seconds"
    try:
        seconds = float(row["seconds"])
        if not 0 <= seconds < math.inf:
            raise ValueError("it is negative or no number")
        field = "pod"
        pod = str(row["pod"])
        if "/" not in pod:
            raise ValueError("write namespace/name or namespace/*")
        field = "cpu"
        cpu = quantity.amount(names.CPU, str(row["cpu"])) / 1000
        field = "memory"
        memory = quantity.amount(names.MEMORY, str(row["memory"]))
    except (KeyError, TypeError, ValueError) as error:
        raise SeriesError(f"row {number}: {field}: {error}") from error
    if cpu < 0 or memory < 0:
        raise SeriesError(f"row {number}: {field}: it is negative")
    return seconds, pod, Use(cpu, memory)
