"""Values that a container runtime set at the birth of a cgroup, until the journal has them.

The runtime writes what a hook answered instead of what its client requested. Before the answer
leaves, a line with both goes into a file: it outlives a killed agent, as the cgroup does, and needs
no sync since neither outlives the kernel. Each tick moves the lines into the journal.
"""

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from agent.apply import journal
from agent.model import edits

_logger = logging.getLogger(__name__)
NAME: Final = "deliveries.jsonl"
MOST_BYTES: Final = 4 << 20
"""Beyond this nothing more is delivered until the journal has taken what is there."""


class DeliveryError(Exception):
    """What is delivered cannot be recorded, so that it must not be delivered."""


class Delivered(msgspec.Struct, frozen=True, array_like=True):
    """One property that a runtime sets instead of what its client requested."""

    role: edits.Role
    group: str
    value: str
    """As an edit has it."""
    requested: str | None
    """As an edit has it; None where nothing is requested: then what an earlier request said
    stands, or what a new cgroup has by itself."""

    @property
    def key(self) -> edits.Key:
        """What was set."""
        return self.role, self.group


class Deliveries:
    """Takes what is delivered from one thread, and hands it to the tick in another."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._path = folder / NAME
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._waiting: list[Delivered] = []
        self._file: int | None = None
        self._size = 0

    def add(self, delivered: Iterable[Delivered]) -> None:
        """Record values before the runtime is answered; raises DeliveryError."""
        found = list(delivered)
        if not found:
            return
        line = journal.sealed({"bootId": self._boot_id, "set": msgspec.to_builtins(found)})
        with self._lock:
            if self._size + len(line) > MOST_BYTES:
                raise DeliveryError(f"{self._path} holds {self._size} bytes already")
            try:
                self._append(line)
            except OSError as error:
                raise DeliveryError(f"{self._path} cannot be written: {error}") from error
            self._size += len(line)
            self._waiting += found

    def take(self) -> tuple[Delivered, ...]:
        """Return what was recorded and is not in the journal yet."""
        with self._lock:
            return tuple(self._waiting)

    def done(self, taken: Iterable[Delivered]) -> None:
        """Forget what the journal holds durably by now."""
        count = len(tuple(taken))
        with self._lock:
            del self._waiting[:count]
            if self._file is not None and not self._waiting:
                os.ftruncate(self._file, 0)
                self._size = 0

    def close(self) -> None:
        """Record nothing more."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _append(self, line: bytes) -> None:
        file = self._opened()
        if os.write(file, line) != len(line):
            # What follows a part of a line could not be read.
            os.ftruncate(file, self._size)
            raise OSError("only a part of it was written")

    def _opened(self) -> int:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._file).st_size
        return self._file


def left(folder: Path, boot_id: str) -> tuple[Delivered, ...]:
    """Return what an agent of this boot has delivered and not moved into the journal.

    A line that cannot be read is left out and logged: it names values of containers, which do not
    outlive their containers.
    """
    path = folder / NAME
    try:
        if path.stat().st_size > 2 * MOST_BYTES:
            raise OSError("it is too large for one of ours")
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        _logger.warning("deliveries cannot be read path=%s reason=%s", path, error)
        return ()
    found: list[Delivered] = []
    for number, line in enumerate(lines, 1):
        try:
            found += _read(line, boot_id)
        except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
            _logger.warning("a delivery was left out line=%d reason=%s", number, error)
    return tuple(found)


def remove(folder: Path) -> None:
    """Remove the file, whose lines the journal holds durably by now."""
    (folder / NAME).unlink(missing_ok=True)


def _read(line: bytes, boot_id: str) -> list[Delivered]:
    text = journal.unsealed(line)
    if text is None:
        raise ValueError("its checksum is wrong")
    body: dict[str, Any] = orjson.loads(text)
    return msgspec.convert(body["set"], list[Delivered]) if body["bootId"] == boot_id else []
