"""TCP ports for child processes: below the kernel's ephemeral range, each given out once.

A port of the ephemeral range may become the source port of any connection between the moment it
is chosen and the moment a child listens on it. Here, ports come from below that range, and a lock
on one byte of a shared file keeps other processes of the same user from choosing the same one;
the kernel drops the locks of a process that ends, however it ends.
"""

import contextlib
import dataclasses
import errno
import fcntl
import functools
import itertools
import os
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path

LOWEST = 20_000
"""Below it lie ports that other programs listen on by default."""
HIGHEST = 29_999
"""Above it lie NodePorts, and from 32768 on Linux's default ephemeral range."""
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Fewer than this, and the parallel test processes of one machine could use them up.
_FEW = 1_000


class NoPortError(RuntimeError):
    """Every port of the span is taken."""


@dataclasses.dataclass(slots=True)
class Reservations:
    """Ports that this process holds; `path` is the file whose bytes are locked."""

    path: Path
    span: range
    _file: int = -1
    _held: set[int] = dataclasses.field(default_factory=set)

    def take(self, count: int) -> list[int]:
        """Return ports without a listener, held until this process ends."""
        taken: list[int] = []
        for port in self._candidates():
            if len(taken) == count:
                break
            if port not in self._held and self._lock(port):
                # A port that is in use stays locked: it will not be free much sooner.
                self._held.add(port)
                if _is_free(port):
                    taken.append(port)
        if len(taken) < count:
            raise NoPortError(f"{self.span.start}-{self.span.stop - 1}: no port is free")
        return taken

    def _candidates(self) -> Iterable[int]:
        # Each process begins elsewhere, so that they seldom try the same ports one after another.
        start = os.getpid() * 97 % len(self.span)
        return itertools.chain(self.span[start:], self.span[:start])

    def _lock(self, port: int) -> bool:
        if self._file < 0:
            # Only open: closing any descriptor of the file would drop all locks of this process.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self.path, flags, 0o600)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError as failure:
            if failure.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True


def span(ephemeral: tuple[int, int]) -> range:
    """Return the ports to choose from, given the first and last port of the ephemeral range."""
    low, high = ephemeral
    below = range(LOWEST, min(HIGHEST + 1, low))
    if len(below) >= _FEW:
        return below
    above = range(high + 1, 65_536)
    return above if len(above) >= _FEW else range(LOWEST, HIGHEST + 1)


def take(count: int) -> list[int]:
    """Return ports for children of this process; no other process of this user gets them."""
    return _of_process(os.getpid()).take(count)


@functools.cache
def _of_process(pid: int) -> Reservations:
    # By process, because a fork inherits neither the locks nor what they stand for.
    del pid
    folder = Path(tempfile.gettempdir())
    return Reservations(folder / f"koord-ports-{os.getuid()}.lock", span(_ephemeral()))


def _ephemeral() -> tuple[int, int]:
    low, high = _EPHEMERAL.read_text(encoding="ascii").split()
    return int(low), int(high)


def _is_free(port: int) -> bool:
    for address in ("127.0.0.1", "0.0.0.0"):  # noqa: S104 - bound for a moment, never listened on
        with contextlib.closing(socket.socket()) as probe:
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
