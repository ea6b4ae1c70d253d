"""The kernel's counters of what a processor does, for control groups (perf_event_open).

Imported only where events are counted: the call has no other way into Python than `ctypes`.
"""

import ctypes
import os
import platform
import struct
from typing import Final

import msgspec

HARDWARE, SOFTWARE = 0, 1
CYCLES, INSTRUCTIONS = 0, 1
CPU_CLOCK = 0
_NUMBERS: Final = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")
_ENABLED, _RUNNING, _GROUP = 1, 2, 8
_OF_CGROUP, _CLOSE_ON_EXEC = 4, 8
_ANSWER: Final = struct.Struct("=5Q")


class Events(msgspec.Struct, frozen=True):
    """The two events that are counted together."""

    kind: int = HARDWARE
    first: int = CYCLES
    second: int = INSTRUCTIONS


class Counts(msgspec.Struct, frozen=True):
    """What was counted, made up for the time in which others had the counters."""

    first: float
    second: float


class Kernel:
    """Opens pairs of counters, which the kernel always counts at the same time."""

    def __init__(self, events: Events | None = None) -> None:
        self._events = events or Events()
        self._number = _NUMBERS.get(platform.machine())
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def open(self, folder: int, cpu: int) -> tuple[int, int]:
        """Begin to count on one cpu what the tasks of a group do; raises OSError."""
        leader = self._open(self._events.first, folder, cpu, -1)
        try:
            return leader, self._open(self._events.second, folder, cpu, leader)
        except OSError:
            os.close(leader)
            raise

    def read(self, pair: tuple[int, int]) -> Counts:
        """Return what was counted since; raises OSError."""
        _, enabled, running, first, second = _ANSWER.unpack(os.read(pair[0], _ANSWER.size))
        scale = enabled / running if enabled and running else 1.0
        return Counts(first * scale, second * scale)

    def close(self, pair: tuple[int, int]) -> None:
        """Stop counting."""
        for descriptor in pair:
            os.close(descriptor)

    def _open(self, event: int, folder: int, cpu: int, leader: int) -> int:
        if self._number is None:
            raise OSError(38, f"not known how to ask on {platform.machine()}")
        form = _ENABLED | _RUNNING | _GROUP
        attributes = _ATTRIBUTES.pack(
            self._events.kind, _ATTRIBUTES.size, event, 0, 0, form, 0, 0, 0, 0
        )
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        flags = ctypes.c_ulong(_OF_CGROUP | _CLOSE_ON_EXEC)
        number = ctypes.c_long(self._number)
        found = int(self._call(number, buffer, folder, cpu, leader, flags))
        if found < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return found
