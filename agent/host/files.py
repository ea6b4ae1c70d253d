"""Bounded access to the files of this host: nothing here trusts a file to exist or to be small."""

import errno
import os
from pathlib import Path

from domain import wording

LIMIT = 64 * 1024
MOST_KEPT = 8192
_PIECE = 64 * 1024
# A list of the kernel ends a read where its next record no longer fits into a page. No record of
# the files that are kept is as long as a KiB, so what is shorter than this was read to its end.
_SURELY_WHOLE = 3 * 1024
_TEMPORARY = ".tmp"
_GONE = {errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ESTALE}
_EXHAUSTED = {errno.EMFILE, errno.ENFILE}


class ReadingError(Exception):
    """A file of this host cannot be read or understood; the text names it."""


class VanishedError(ReadingError):
    """The file, or the group it belongs to, is gone or never was."""


def read(path: str, limit: int = LIMIT) -> bytes:
    """Read a small file once and to its end: one read of a seq_file returns a page at most."""
    try:
        descriptor = _open(path)
        try:
            return _bounded(path, _read(descriptor, limit + 1), limit)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _explained(path, error) from error


def is_text(name: str) -> bool:
    """Tell whether the name of a file, which may be any bytes, can be noted and reported."""
    return name.isprintable()


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


def replace(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file so that there is always the old one or the new one, whole.

    With `mode` the file has these permissions whatever the umask says.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + _TEMPORARY)
    try:
        with temporary.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class Kept:
    """Files that are read again and again, kept open between the readings.

    Those that came first stay: a tick reads all of them in the same order, so that closing the one
    that was not read for longest would close each right before it is read again.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self.problem = ""
        """Why fewer files are kept open than there should be; empty when they are not."""
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
                data = os.pread(descriptor, _PIECE if limit >= _PIECE else limit + 1, 0)
                if len(data) >= _SURELY_WHOLE:
                    data = _whole(descriptor, data, limit + 1)
            except OSError:
                # Its group is gone; another one may have come under the same name.
                self._close(path)
            else:
                self._read.add(path)
                if len(data) <= limit:
                    return data
                return data[:limit] if head else _bounded(path, data, limit)
        return self._first(path, limit, head)

    def reread(self, path: str) -> bytes:
        """Read a file anew; one that is not open is not kept open for that."""
        return self.read(path) if path in self._open else read(path)

    def sweep(self) -> None:
        """Close what was not read since the last sweep."""
        for path in self._open.keys() - self._read:
            self._close(path)
        self._read.clear()

    def close(self) -> None:
        """Close everything."""
        for path in tuple(self._open):
            self._close(path)

    def _first(self, path: str, limit: int, head: bool) -> bytes:
        try:
            descriptor = self._opened(path)
            try:
                data = _reread(descriptor, limit + 1)
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

    def _opened(self, path: str) -> int:
        """Open a file; where the process may open no more, let go of half of those kept."""
        try:
            return _open(path)
        except OSError as error:
            if error.errno not in _EXHAUSTED or not self._open:
                raise
            self._most = len(self._open) // 2
            self.problem = (
                f"{error.strerror}: {wording.count(self._most, 'file is', 'files are')} kept open "
                f"instead of {len(self._open)}"
            )
        for last in tuple(self._open)[self._most :]:
            self._close(last)
        return _open(path)

    def _close(self, path: str) -> None:
        os.close(self._open.pop(path))


def _open(path: str) -> int:
    # A pipe planted where a file belongs must not stop the agent.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def _read(descriptor: int, enough: int) -> bytes:
    """Read from here to the end, or as much as is enough."""
    data = os.read(descriptor, min(enough, _PIECE))
    if not data or len(data) >= enough:
        return data
    pieces, size = [data], len(data)
    while size < enough and (data := os.read(descriptor, min(enough - size, _PIECE))):
        pieces.append(data)
        size += len(data)
    return b"".join(pieces)


def _reread(descriptor: int, enough: int) -> bytes:
    """Read from the start to the end, or as much as is enough."""
    return _whole(descriptor, os.pread(descriptor, min(enough, _PIECE), 0), enough)


def _whole(descriptor: int, data: bytes, enough: int) -> bytes:
    """Return what a first read has given, with the rest of it."""
    if len(data) < _SURELY_WHOLE or len(data) >= enough:
        return data
    pieces, size = [data], len(data)
    while size < enough and (data := os.pread(descriptor, min(enough - size, _PIECE), size)):
        pieces.append(data)
        size += len(data)
    return b"".join(pieces)


def _bounded(path: str, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise ReadingError(f"{path} is larger than {limit} bytes")
    return data


def _explained(path: str, error: OSError) -> ReadingError:
    kind = VanishedError if error.errno in _GONE else ReadingError
    return kind(f"{path}: {error.strerror or error}")
