"""When the garbage collector of a Go program ran, from what it writes with GODEBUG=gctrace=1.

On few cores a cycle takes a share of them for tenths of a second and lets goroutines that allocate
help, so that calls which meet one are much slower than the others, whatever they are about.
"""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SWITCH = {"GODEBUG": "gctrace=1"}
"""The environment in which a Go program writes it down."""
_CYCLE = re.compile(r"^gc \d+ @([\d.]+)s \S+ ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock", re.MULTILINE)


class Span(NamedTuple):
    """A stretch of time in seconds of `time.perf_counter`."""

    start: float
    end: float


def cycles(log: str, started: float) -> list[Span]:
    """Return the cycles in the log of a program that started at this time."""
    found = []
    for match in _CYCLE.finditer(log):
        at, *parts = map(float, match.groups())
        found.append(Span(started + at, started + at + sum(parts) / 1e3))
    return found


def started(pid: int) -> float:
    """Return when a process started, in seconds of `time.perf_counter`."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return since_boot - time.clock_gettime(time.CLOCK_BOOTTIME) + time.perf_counter()


def meets(call: Span, spans: Sequence[Span]) -> bool:
    """Tell whether a call was under way during one of the cycles."""
    return any(span.start <= call.end and call.start <= span.end for span in spans)
