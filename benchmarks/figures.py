"""Figures, their spread and the machine they were taken on; for people and for tools."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

PREFIX = '{"figure": '
"""What the line of a figure begins with, so that it can be found among a benchmark's output."""

_LIBRARIES = ("aiohttp", "msgspec", "numpy", "orjson", "uvloop")


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One measured claim."""

    figure: str
    what: str
    value: float
    """The median."""
    unit: str
    ratio: float | None
    """The median of the ratios of pairs that were measured side by side."""
    against: str
    """What the ratio compares with, or the goal where there is no ratio."""
    min: float
    """The smallest ratio, or value where there is no ratio."""
    max: float
    runs: int

    def line(self) -> str:
        """Return the figure as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))


def plain(name: str, what: str, unit: str, values: Sequence[float], goal: str = "") -> Figure:
    """Return a figure that stands by itself."""
    return Figure(
        name, what, _short(statistics.median(values)), unit, None, goal,
        _short(min(values)), _short(max(values)), len(values),
    )  # fmt: skip


def paired(
    name: str, what: str, unit: str, values: Sequence[float], others: Sequence[float], against: str
) -> Figure:
    """Return a figure as a ratio of values taken in the same rounds as others."""
    ratios = [value / other for value, other in zip(values, others, strict=True)]
    return Figure(
        name, what, _short(statistics.median(values)), unit, _short(statistics.median(ratios)),
        against, _short(min(ratios)), _short(max(ratios)), len(ratios),
    )  # fmt: skip


def show(*found: Figure) -> None:
    """Print figures one per line."""
    for figure in found:
        print(figure.line(), flush=True)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return a median with its range, for tables."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> str:
    """Describe this machine and how busy it is."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    return (
        f"{_model()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Linux {platform.release()}, Python {platform.python_version()} "
        f"({os.path.realpath(sys.executable)}), {versions}"
    )


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def resident(pid: int | str = "self") -> float:
    """Return the resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no VmRSS of process {pid}")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _short(value: float) -> float:
    return float(f"{value:.4g}")
