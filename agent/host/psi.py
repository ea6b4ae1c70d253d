"""How long tasks wait, as the kernel writes it (PSI): one reader for all callers."""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent.host import files
from agent.model import cgroup_layout

FILES: Final[Mapping[str, cgroup_layout.File]] = {
    "cpu": cgroup_layout.File.CPU_PRESSURE,
    "memory": cgroup_layout.File.MEMORY_PRESSURE,
    "io": cgroup_layout.File.IO_PRESSURE,
}
"""The file of each resource that tasks wait for."""


class Wait(msgspec.Struct, frozen=True):
    """Share of the last ten seconds that was spent waiting, in percent; None where it is unsaid."""

    some: float | None = None
    """The share in which at least one task waited."""
    full: float | None = None
    """The share in which every task did; kernels before 5.13 do not say it of the cpu."""


def parse(data: bytes) -> Wait:
    """Read the two lines of a file."""
    found: dict[bytes, float] = {}
    for line in data.splitlines():
        kind, _, rest = line.partition(b" ")
        for word in rest.split():
            name, _, value = word.partition(b"=")
            if name == b"avg10":
                try:
                    found[kind] = float(value)
                except ValueError:
                    raise files.ReadingError(f"no share of time in {line[:60]!r}") from None
    return Wait(found.get(b"some"), found.get(b"full"))
