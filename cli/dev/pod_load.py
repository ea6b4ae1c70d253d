"""How much the pods of a simulated node use at a moment: a slow wave per pod."""

import math
import zlib
from typing import NamedTuple

WAVE_SECONDS = 180.0
"""One full swing of the online load; short enough to watch."""


class Use(NamedTuple):
    """What a pod uses now."""

    cpu_milli: int
    memory_bytes: int


def online(uid: str, cpu_milli: int, memory_bytes: int, now: float) -> Use:
    """Return what an online pod uses: about half of its request, more or less in its own phase."""
    phase = zlib.crc32(uid.encode()) % 1000 / 1000
    swing = math.sin(2 * math.pi * (now / WAVE_SECONDS + phase))
    return Use(int(cpu_milli * (0.5 + 0.15 * swing)), int(memory_bytes * (0.5 + 0.05 * swing)))


def batch(cpu_milli: int, memory_bytes: int) -> Use:
    """Return what a batch pod uses: nearly all it asked for, all the time."""
    return Use(int(cpu_milli * 0.9), int(memory_bytes * 0.8))
