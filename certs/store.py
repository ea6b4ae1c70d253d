"""Certificate files in a folder: whole or not at all, keys for their owner only."""

import contextlib
import os
import tempfile
from pathlib import Path

from certs import renewal

_MAX_BYTES = 1024 * 1024
_TEMPORARY = ".tmp"
_ENDINGS = (".crt", ".key", renewal.STATE)


class StoreError(OSError):
    """A folder that cannot hold certificates; the text names it and the remedy."""


def load(folder: Path) -> renewal.Keep:
    """Return what a folder holds; an empty or missing one holds nothing."""
    files = {}
    try:
        for file in sorted(folder.iterdir()) if folder.exists() else ():
            if file.name.endswith(_ENDINGS) and file.stat().st_size <= _MAX_BYTES:
                files[file.name] = file.read_bytes()
    except OSError as error:
        raise StoreError(f"certificate folder {folder}: cannot be read: {error}") from error
    return renewal.decode(files)


def save(folder: Path, keep: renewal.Keep) -> None:
    """Write what changed; an interruption at any point leaves a folder that loads.

    The bundle goes before the record of when it was published, and the record of what an
    authority has signed goes before the leaf, so the record errs only on the careful side.
    """
    files = renewal.encode(keep)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in sorted(files, key=_rank):
            write(folder / name, files[name])
        for file in folder.iterdir():
            left_over = file.name.startswith(".") and file.name.endswith(_TEMPORARY)
            if left_over or (file.name.endswith(_ENDINGS) and file.name not in files):
                file.unlink()
    except OSError as error:
        raise StoreError(f"certificate folder {folder}: cannot be written: {error}") from error


def write(file: Path, content: bytes) -> None:
    """Replace a file in one step that survives a power cut; do nothing when it is the same."""
    with contextlib.suppress(FileNotFoundError):
        if file.read_bytes() == content:
            return
    handle, temporary = tempfile.mkstemp(
        dir=file.parent, prefix=f".{file.name}.", suffix=_TEMPORARY
    )
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644 if file.suffix == ".crt" else 0o600)
            os.fsync(stream.fileno())
        Path(temporary).replace(file)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _rank(name: str) -> tuple[int, str]:
    if name.startswith("ca-"):
        return 0, name
    order = {renewal.BUNDLE: 1, renewal.STATE: 2}
    return order.get(name, 3 if name.endswith(".key") else 4), name
