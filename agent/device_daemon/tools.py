"""Runs the tools of vendors, bounded in time and output: one that hangs or floods is killed."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Final

import msgspec

from agent.host import files

PIECE: Final = 64 * 1024
CHROOT: Final = "/usr/sbin/chroot"


class Tools(msgspec.Struct, frozen=True):
    """How tools are found and how far they may go."""

    path: str
    """Folders that hold tools, as in PATH."""
    root: Path | None = None
    """Where the host's root is mounted; tools then run inside it (chroot)."""
    seconds: float = 10.0
    """How long one call may take."""
    most: int = 1024 * 1024
    """Bytes that one call may print."""

    def run(self, *words: str) -> str:
        """Run one tool and return what it prints; a failure is a ReadingError that names it."""
        command = list(words) if self.root is None else [CHROOT, str(self.root), *words]
        name = " ".join(words)
        try:
            process = subprocess.Popen(  # noqa: S603 - the words are ours, never what others wrote
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": self.path, "LC_ALL": "C", "LANG": "C"},
                start_new_session=True,
            )
        except OSError as error:
            raise files.ReadingError(f"{name}: {error.strerror or error}") from error
        with process:
            try:
                printed, complaint = self._printed(process, name)
            finally:
                # Once it was waited for, its number may be another process's.
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != 0:
            words_ = " ".join((complaint or printed).split())[:200]
            raise files.ReadingError(f"{name}: exit code {process.returncode}: {words_}")
        return printed

    def _printed(self, process: subprocess.Popen[bytes], name: str) -> tuple[str, str]:
        assert process.stdout is not None
        assert process.stderr is not None
        pieces: dict[IO[bytes], bytearray] = {
            process.stdout: bytearray(),
            process.stderr: bytearray(),
        }
        deadline = time.monotonic() + self.seconds
        with selectors.DefaultSelector() as waiting:
            for pipe in pieces:
                waiting.register(pipe, selectors.EVENT_READ)
            while waiting.get_map():
                for key, _ in waiting.select(_left(deadline, name, self.seconds)):
                    pipe = next(one for one in pieces if one is key.fileobj)
                    data = os.read(key.fd, PIECE)
                    pieces[pipe] += data
                    if not data:
                        waiting.unregister(pipe)
                if sum(map(len, pieces.values())) > self.most:
                    raise files.ReadingError(f"{name} prints more than {self.most} bytes")
        try:
            process.wait(_left(deadline, name, self.seconds))
        except subprocess.TimeoutExpired:
            raise files.ReadingError(f"{name} has not ended within {self.seconds:g} s") from None
        printed, complaint = (bytes(one).decode("utf-8", "replace") for one in pieces.values())
        return printed, complaint


def _left(deadline: float, name: str, allowed: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise files.ReadingError(f"{name} has not ended within {allowed:g} s")
    return left
