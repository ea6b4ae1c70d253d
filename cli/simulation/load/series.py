"""What online pods use at a moment: as recorded in a file, or a made-up day curve. Pure.

A recorded file is CSV with the columns ``seconds,pod,cpu,memory``, or JSON lines with the same
keys: seconds since the beginning, whose use it is, and amounts of one pod as Kubernetes writes
them. Whose: namespace/name of a pod, namespace/workload-* or namespace/* of pods without rows of
their own. A row with ``node`` instead of ``pod`` says what a node uses outside pods. A figure
holds until the next one.
"""

import bisect
import csv
import io
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from api import names
from api.wire import quantity

MOST_ROWS: Final = 2_000_000
_COLUMNS: Final = ("seconds", "pod", "cpu", "memory")
_WHOSE: Final = "namespace/name, namespace/workload-* or namespace/*"
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of these characters Kubernetes makes the random part of a name."""
_CREATED: Final = re.compile(rf"(.+?)(?:-[{_SAFE}]{{7,10}})?-[{_SAFE}]{{5}}")
"""A pod of a Deployment, or of another controller that names its pods at random."""
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


Row = tuple[float, str, Use]
"""Seconds, whose use it is, and the use; a name without a namespace is a node's."""


class Source(Protocol):
    """Tells what pods and nodes use."""

    def use(self, pod: Asks, seconds: float) -> Use:
        """Return what a pod uses so long after the beginning."""

    def system(self, node: str, seconds: float) -> Use | None:
        """Return what a node uses outside pods; None for what was measured of it last."""


def workload(pod: str) -> str | None:
    """Return namespace/workload-* of a pod, by how controllers name what they create."""
    namespace, _, name = pod.partition("/")
    found = _CREATED.fullmatch(name)
    return None if found is None else f"{namespace}/{found.group(1)}-*"


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

    def system(self, node: str, seconds: float) -> Use | None:  # noqa: ARG002 - of the protocol
        """Return nothing: what was measured of a node last stays."""
        return None


class _Series:
    """Figures of one name in order of time."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.uses: list[Use] = []

    def at(self, seconds: float) -> Use:
        """Return the last figure before a moment, else the first."""
        return self.uses[max(bisect.bisect_right(self.times, seconds) - 1, 0)]


class Recorded:
    """What was recorded; of other pods what was measured last, else what they request."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._series: dict[str, _Series] = {}
        self._of_pods: dict[str, tuple[_Series, ...]] = {}
        self.until = 0.0
        for seconds, name, use in sorted(rows, key=lambda row: (row[1], row[0])):
            one = self._series.setdefault(name, _Series())
            one.times.append(seconds)
            one.uses.append(use)
            self.until = max(self.until, seconds)

    def use(self, pod: Asks, seconds: float) -> Use:
        """Return the last figure before a moment: the pod's, else the workload's, the namespace's.

        Where none is so old, the first of the nearest holds.
        """
        found = self._of_pods.get(pod.key)
        if found is None:
            found = self._of_pods[pod.key] = tuple(self._nearest(pod.key))
        for one in found:
            if one.times[0] <= seconds:
                return one.at(seconds)
        return found[0].at(seconds) if found else pod.measured or Use(pod.cpu, pod.memory)

    def system(self, node: str, seconds: float) -> Use | None:
        """Return the last figure of a node before a moment."""
        found = self._series.get(node)
        return None if found is None else found.at(seconds)

    def _nearest(self, pod: str) -> Iterator[_Series]:
        for name in (pod, workload(pod), f"{pod.partition('/')[0]}/*"):
            if name is not None and name in self._series:
                yield self._series[name]


def read(text: str) -> Recorded:
    """Read a recorded file of either shape."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise SeriesError(_NO_ROWS)
    rows = _json_rows(lines) if first.lstrip().startswith("{") else _csv_rows(lines)
    found: list[Row] = []
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


def _row(number: int, row: Mapping[str, Any]) -> Row:
    field = "seconds"
    try:
        seconds = float(row["seconds"])
        if not 0 <= seconds < math.inf:
            raise ValueError("it is negative or no number")
        field = "node" if row.get("node") else "pod"
        name = _node(row) if field == "node" else _pod(str(row["pod"]))
        field = "cpu"
        cpu = quantity.amount(names.CPU, str(row["cpu"])) / 1000
        field = "memory"
        memory = quantity.amount(names.MEMORY, str(row["memory"]))
    except (KeyError, TypeError, ValueError) as error:
        raise SeriesError(f"row {number}: {field}: {error}") from error
    if cpu < 0 or memory < 0:
        raise SeriesError(f"row {number}: {field}: it is negative")
    return seconds, name, Use(cpu, memory)


def _pod(written: str) -> str:
    namespace, _, name = written.partition("/")
    if not namespace or not name or "*" in namespace:
        raise ValueError(f"write {_WHOSE}")
    if "*" in name and name != "*" and (name.count("*") > 1 or not name.endswith("-*")):
        raise ValueError(f"write {_WHOSE}")
    return written


def _node(row: Mapping[str, Any]) -> str:
    name = str(row["node"])
    if row.get("pod"):
        raise ValueError("a row is of a pod or of a node: leave one of them empty")
    if "/" in name:
        raise ValueError("write the name of a node")
    return name


def text(rows: Iterable[Row]) -> str:
    """Return the file with these rows."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(("seconds", "pod", "node", "cpu", "memory"))
    for seconds, name, use in rows:
        whose = (name, "") if "/" in name else ("", name)
        at = f"{seconds:.3f}".rstrip("0").rstrip(".")
        sheet.writerow((at, *whose, f"{round(use.cpu * 1000)}m", use.memory))
    return out.getvalue()
