"""The files of sockets, in whose place a successor may have put its own: all in memory."""

import contextlib
import os
from pathlib import Path


def inode(path: Path) -> int | None:
    """Return what tells the file of a socket from a later one, None where there is no file."""
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - nothing that could block
    except FileNotFoundError:
        return None


def remove(path: Path, made: int | None) -> None:
    """Remove the file of a socket, unless it is that of a successor."""
    if made is not None and inode(path) == made:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - as above
