"""Files of a generated host, read and written with as few calls as can be: there are thousands."""

import os
from pathlib import Path

_AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_MOST_BYTES = 1 << 16
"""More than any list of cpus has."""


def read(path: str) -> str:
    """Return the text of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _MOST_BYTES).decode()
    finally:
        os.close(descriptor)


def write(path: Path | str, text: str) -> None:
    """Let a file hold a text, in place, and make the folders above it where they are missing.

    A reader that keeps the file open must see the new figures, as in a kernel's file.
    """
    try:
        descriptor = os.open(path, _AFRESH, 0o666)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _AFRESH, 0o666)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
