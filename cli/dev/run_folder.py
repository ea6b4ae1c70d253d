"""The folder of a development run: one run at a time, nothing left behind."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from cli import reading
from process.configuration import explained_error

PID = "koord.pid"
LOG = "koord.log"
KUBECONFIG = "kubeconfig"
_TAIL = 12


class FolderError(explained_error.ExplainedError):
    """The folder cannot be used; says what to do."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Own the folder for the time of a run and remove it afterwards."""
    if folder.exists():
        _clear(folder)
    try:
        folder.mkdir(parents=True, mode=0o700)
        owner = (folder / PID).open("w", encoding="ascii")
    except OSError as error:
        raise FolderError(
            f"{folder} cannot be made ({reading.refusal(error)}); name another one: --state"
        ) from error
    with owner:
        # The lock ends with the process, however that ends; a number may belong to another process
        # later.
        fcntl.flock(owner, fcntl.LOCK_EX)
        owner.write(f"{os.getpid()}\n")
        owner.flush()
        try:
            yield
        finally:
            shutil.rmtree(folder)


def tail(folder: Path) -> str:
    """Return the last lines of the run's log, for its error message."""
    with contextlib.suppress(OSError):
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL:])
    return ""


def _clear(folder: Path) -> None:
    """Remove what a killed run left; refuse what is not ours or still in use."""
    pid = _owner(folder)
    if not folder.is_dir() or (pid is None and any(folder.iterdir())):
        raise FolderError(f"{folder} holds something else; name another folder: --state")
    if pid is not None and _is_locked(folder / PID):
        raise FolderError(
            f"process {pid} already runs from {folder}; stop it with Ctrl-C or `kill {pid}`, "
            "or name another folder: --state"
        )
    shutil.rmtree(folder)


def _owner(folder: Path) -> int | None:
    """Return the process that made the folder, None if none of ours did."""
    try:
        return int((folder / PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _is_locked(file: Path) -> bool:
    """Tell whether the run that made this file still lives."""
    with file.open("rb") as owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
