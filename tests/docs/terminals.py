"""The terminals of a tutorial's reader: one that stays busy, and one for all other commands."""

import asyncio
import contextlib
import os
import signal

from tests.docs import commands

PATIENCE = 150.0
LOOK_SECONDS = 60.0
END = b"-- end of what a command printed: "


class Busy:
    """A terminal in which a command runs until Ctrl-C."""

    def __init__(self, process):
        self._process = process
        self.said = []

    async def until(self, shown):
        """Read until the command has printed what the page shows."""
        async with asyncio.timeout(PATIENCE):
            while not commands.shows(shown, self.said):
                line = await self._process.stdout.readline()
                assert line, f"it ended and did not show {shown}: {self.said}"
                self.said.append(line.decode().rstrip("\n"))

    async def interrupt(self):
        """Press Ctrl-C, which reaches every process of the terminal; return what follows."""
        os.killpg(self._process.pid, signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            rest, _ = await self._process.communicate()
        # Make ends by the signal or with what its command returned, whichever it sees first.
        return rest.decode().splitlines()


class Shell:
    """A terminal in which one command follows another: what one exports, the next ones see."""

    def __init__(self, process):
        self._process = process

    async def run(self, command):
        """Return the exit status of a command, and the lines that it prints."""
        self._process.stdin.write(f"{command}\necho; echo '{END.decode()}'$?\n".encode())
        async with asyncio.timeout(PATIENCE):
            said = await self._process.stdout.readuntil(END)
            status = int(await self._process.stdout.readline())
        return status, said.removesuffix(END).removesuffix(b"\n").decode().splitlines()

    async def shows(self, command, shown):
        """Type a command, and type it again if it only looks, until it prints what is shown."""
        status, said = await self.run(command)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS if command.startswith(commands.LOOKS) else 0):
                while status or not commands.shows(shown, said):
                    await asyncio.sleep(1.0)
                    status, said = await self.run(command)
        assert status == 0, f"{command} ended with {status}: {said}"
        assert commands.shows(shown, said), f"{command}: {said}"


@contextlib.asynccontextmanager
async def _opened(folder, environment, *words):
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            # The whole process group: make does not pass signals on to its commands.
            os.killpg(process.pid, signal.SIGTERM)
        await process.communicate()


@contextlib.asynccontextmanager
async def busy(command, folder, environment):
    """Open a terminal and type a command like `make dev`."""
    async with _opened(folder, environment, "bash", "-c", f"exec {command}") as process:
        yield Busy(process)


@contextlib.asynccontextmanager
async def shell(folder, environment):
    """Open a terminal."""
    async with _opened(folder, environment, "bash", "--noprofile", "--norc") as process:
        yield Shell(process)
