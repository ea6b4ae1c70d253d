"""Since when no agent has restored what others write, for the agent that comes after a gap."""

import logging
import os
from pathlib import Path
from typing import Final

import msgspec

_logger = logging.getLogger(__name__)
NAME: Final = "heartbeat"
MOST_BYTES: Final = 4096


class Mark(msgspec.Struct, frozen=True):
    """The last moment at which an agent looked after this node."""

    boot_id: str
    monotonic: float
    handed_over: bool = False
    """Whether it stopped in order; otherwise it was killed or has crashed."""


class Gap(msgspec.Struct, frozen=True):
    """A time without an agent."""

    seconds: float
    handed_over: bool


class Heartbeat:
    """Leaves a mark after every look; on a file system in memory that costs nothing to speak of."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._path = folder / NAME
        self._boot_id = boot_id
        self._file: int | None = None
        self.problem: str | None = None

    def gap(self, monotonic: float) -> Gap | None:
        """Return how long no agent ran; None where none did since the node booted."""
        try:
            if self._path.stat().st_size > MOST_BYTES:
                return None
            mark = msgspec.json.decode(self._path.read_bytes(), type=Mark)
        except (OSError, msgspec.MsgspecError, ValueError):
            # It is only told from; a mark that a crash cut off says nothing.
            return None
        seconds = monotonic - mark.monotonic
        if mark.boot_id != self._boot_id or seconds < 0:
            return None
        return Gap(seconds, mark.handed_over)

    def mark(self, monotonic: float, *, handed_over: bool = False) -> None:
        """Say that an agent looks after this node."""
        mark = Mark(self._boot_id, round(monotonic, 3), handed_over)
        data = msgspec.json.encode(mark) + b"\n"
        try:
            if self._file is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o600)
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))
        except OSError as error:
            problem = f"{self._path} not written: {error.strerror or error}"
            if problem != self.problem:
                _logger.warning("%s", problem)
            self.problem = problem
        else:
            self.problem = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
