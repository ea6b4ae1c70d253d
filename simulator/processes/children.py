"""Child processes with a log file each, which never outlive their parent."""

import asyncio
import ctypes
import os
import pathlib
import signal
from collections.abc import Awaitable, Callable, Sequence

from process.configuration import explained_error
from process.runtime import clock as clocks

PR_SET_PDEATHSIG = 1
TAIL_LINES = 25
# Loaded before the fork: a forked child should not load libraries.
LIBC = ctypes.CDLL(None, use_errno=True)


class ChildError(explained_error.ExplainedError):
    """A child process ended or was not ready in time; carries the end of its log."""


class Child:
    """One running program, in a process group of its own."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: pathlib.Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._process.returncode is None

    def tail(self) -> str:
        """The last lines of the log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def failure(self, what: str) -> ChildError:
        """An error that shows what the program said last."""
        return ChildError(f"{self.name} {what}; the end of {self.log}:\n{self.tail()}")

    async def stop(self, grace_seconds: float = 3.0) -> None:
        """End the process group, politely first."""
        if self.alive:
            self._signal(signal.SIGTERM)
            # A stopped process receives no other signal before.
            self.resume()
            try:
                await asyncio.wait_for(asyncio.shield(self._process.wait()), grace_seconds)
            except TimeoutError:
                await self.kill()

    async def kill(self) -> None:
        """End the process group at once."""
        if self.alive:
            self._signal(signal.SIGKILL)
        await self._process.wait()

    def pause(self) -> None:
        """Stop the clock of the process group: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process group go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return


async def start(name: str, command: Sequence[str], folder: pathlib.Path) -> Child:
    """Start a program whose output goes to `folder/name.log`, appended across restarts."""
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    return Child(name, process, log)


async def ready(
    child: Child,
    probe: Callable[[], Awaitable[bool]],
    *,
    clock: clocks.Clock,
    timeout_seconds: float = 60.0,
) -> None:
    """Poll until the probe says yes; fail early when the program has ended."""
    deadline = clock.monotonic() + timeout_seconds
    while not await probe():
        if not child.alive:
            raise child.failure("ended before it was ready")
        if clock.monotonic() > deadline:
            raise child.failure(f"was not ready within {timeout_seconds:.0f} s")
        await clock.sleep(0.1)


def die_with_parent() -> None:
    """Let this process, just forked, be killed when its parent ends, however that ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
