"""CPU and memory of the whole node, from /proc."""

import os

import msgspec

from agent.host import files

STAT_HEAD = 4096


class Memory(msgspec.Struct, frozen=True):
    """Memory of the node in bytes."""

    total: int
    available: int
    free: int

    @property
    def used(self) -> int:
        """What is in use and could not be given back."""
        return max(0, self.total - self.available)

    @property
    def used_with_page_cache(self) -> int:
        """What is in use, page cache included."""
        return max(0, self.total - self.free)


class Proc:
    """Readings of one /proc."""

    def __init__(self, root: str, kept: files.Kept) -> None:
        self._stat = f"{root}/stat"
        self._meminfo = f"{root}/meminfo"
        self._kept = kept
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")

    def cpu_seconds(self) -> float:
        """Return the seconds that all cpus together have worked since boot."""
        # The rest of the file counts interrupts and grows with the machine.
        text = self._kept.read(self._stat, STAT_HEAD, head=True)
        return busy_ticks(text) / self._ticks_per_second

    def memory(self) -> Memory:
        """Return the memory of the node."""
        return memory(self._kept.read(self._meminfo))


def busy_ticks(text: bytes) -> int:
    """Add up the working columns of the first line: waiting and stolen time is no work."""
    line = text.partition(b"\n")[0].split()
    try:
        if line[0] != b"cpu":
            raise ValueError
        return sum(_natural(line[column]) for column in (1, 2, 3, 6, 7))
    except (ValueError, IndexError):
        raise files.ReadingError("stat does not begin with a line of cpu counters") from None


def memory(text: bytes) -> Memory:
    """Read the figures that usage is made of."""
    found: dict[bytes, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable", b"MemFree"):
            try:
                found[name] = _natural(rest.split()[0]) * 1024
            except (ValueError, IndexError):
                raise files.ReadingError(f"meminfo has no number for {name.decode()}") from None
    try:
        return Memory(found[b"MemTotal"], found[b"MemAvailable"], found[b"MemFree"])
    except KeyError as error:
        raise files.ReadingError(f"meminfo lacks {error.args[0].decode()}") from None


def _natural(word: bytes) -> int:
    if not word.isdigit() or len(word) > 20:
        raise ValueError(word)
    return int(word)
