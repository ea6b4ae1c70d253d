"""Bounded access to the files of this host: nothing here trusts a file to exist or to be small."""

import errno
import os
from pathlib import Path

LIMIT = 64 * 1024
MOST_KEPT = 8192
_TEMPORARY = ".tmp"
_GONE = {errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ESTALE}


class ReadingError(Exception):
    """A file of this host cannot be read or understood; the text names it."""


class VanishedError(ReadingError):
    """The file, or the group it belongs to, is gone or never was."""


def read(path: str, limit: int = LIMIT) -> bytes:
    """Read a small file once."""
    try:
        descriptor = _open(path)
        try:
            return _bounded(path, os.read(descriptor, limit + 1), limit)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _explained(path, error) from error


def write(path: str, text: str) -> None:
    """Write a value into an existing file of the kernel; never creates one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        data = text.encode()
        # The kernel takes a value in one piece or not at all.
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.EIO, "the value was not taken whole", path)
    finally:
        os.close(descriptor)


def replace(path: Path, data: bytes) -> None:
    """Write a file so that there is always the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + _TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class Kept:
    """Files that are read again and again, kept open between the readings."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._open: dict[str, int] = {}
        self._read: set[str] = set()

    def __len__(self) -> int:
        return len(self._open)

    def read(self, path: str, limit: int = LIMIT, *, head: bool = False) -> bytes:
        """Read a file from its start; with `head` the first `limit` bytes are enough."""
        descriptor = self._open.get(path)
        if descriptor is not None:
            try:
                data = os.pread(descriptor, limit + 1, 0)
            except OSError:
                # Its group is gone; another one may have come under the same name.
                self._close(path)
            else:
                self._read.add(path)
                return data[:limit] if head else _bounded(path, data, limit)
        return self._first(path, limit, head)

    def sweep(self) -> None:
        """Close what was not read since the last sweep."""
        for path in [path for path in self._open if path not in self._read]:
            self._close(path)
        self._read.clear()

    def close(self) -> None:
        """Close everything."""
        for path in tuple(self._open):
            self._close(path)

    def _first(self, path: str, limit: int, head: bool) -> bytes:
        try:
            descriptor = _open(path)
            try:
                data = os.pread(descriptor, limit + 1, 0)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise _explained(path, error) from error
        if len(self._open) < self._most:
            self._open[path] = descriptor
            self._read.add(path)
        else:
            os.close(descriptor)
        return data[:limit] if head else _bounded(path, data, limit)

    def _close(self, path: str) -> None:
        os.close(self._open.pop(path))


def _open(path: str) -> int:
    # A pipe planted where a file belongs must not stop the agent.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def _bounded(path: str, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise ReadingError(f"{path} is larger than {limit} bytes")
    return data


def _explained(path: str, error: OSError) -> ReadingError:
    kind = VanishedError if error.errno in _GONE else ReadingError
    return kind(f"{path}: {error.strerror or error}")
