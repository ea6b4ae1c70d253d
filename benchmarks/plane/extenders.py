"""Extenders as processes of their own: ours, and a minimal one in Go."""

import asyncio
import contextlib
import dataclasses
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from api.kubernetes import scheduler_config
from benchmarks.plane import golang
from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children
from tests.e2e import binaries as builds

_PATIENCE = 120.0
_DECISIONS = re.compile(
    r'^koord_extender_decisions_total\{left_because="([^"]*)"\} ([\d.e+]+)$', re.MULTILINE
)


@dataclasses.dataclass(frozen=True, slots=True)
class Extender:
    """A running extender."""

    url: str
    pid: int
    health: str = ""
    """Where it serves its metrics, if it has any."""

    async def decided(self) -> dict[str, int]:
        """Return how many calls had several nodes, by why none was chosen; "" where one was."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.health}/metrics") as told,
        ):
            found = _DECISIONS.findall(await told.text())
        return {reason: int(float(count)) for reason, count in found}


def _rendered(url: str) -> Mapping[str, Any]:
    return scheduler_config.render(scheduler_config.Options(extender_url=url))


Configuration = Callable[[str], Mapping[str, Any]]
"""The configuration of a scheduler that calls an extender at a URL."""


def caller(folder: Path, url: str, configuration: Configuration = _rendered) -> dict[str, Any]:
    """Return the extender's settings about the scheduler that calls it, to choose as it would."""
    file = folder / "scheduler.json"
    file.write_text(json.dumps(configuration(url)))
    return {"configFile": str(file), "version": builds.version(), "extenderUrl": url}


@contextlib.asynccontextmanager
async def ours(
    workdir: Path,
    kubeconfig: Path,
    *flags: str,
    program: Sequence[str] = ("extender",),
    configuration: Configuration = _rendered,
    scheme: str = "http",
) -> AsyncIterator[Extender]:
    """Run the extender as a process of its own until it is ready.

    `program` is the module that runs it, with the arguments that come before the extender's own.
    """
    port, health = ports.take(2)
    url = f"{scheme}://127.0.0.1:{port}"
    command = [
        sys.executable, "-m", *program, f"--kubeconfig={kubeconfig}", f"--server.port={port}",
        f"--health.port={health}", "--server.lingerSeconds=0",
        *(
            f"--scheduler.{key}={value}"
            for key, value in caller(workdir, url, configuration).items()
        ),
        *flags,
    ]  # fmt: skip
    child = await children.start("extender", command, workdir)
    try:
        await children.ready(
            child,
            lambda: answers(f"http://127.0.0.1:{health}/readyz"),
            clock=clocks.SystemClock(),
            timeout_seconds=_PATIENCE,
        )
        yield Extender(url, child.pid, f"http://127.0.0.1:{health}")
    finally:
        await child.stop(_PATIENCE)


@contextlib.asynccontextmanager
async def minimal(workdir: Path, kubeconfig: Path, *flags: str) -> AsyncIterator[Extender]:
    """Run the minimal extender in Go."""
    port = ports.take(1)[0]
    command = [
        str(golang.program("goextender")), f"--kubeconfig={kubeconfig}",
        f"--listen=127.0.0.1:{port}", *flags,
    ]  # fmt: skip
    child = await children.start("goextender", command, workdir)
    try:
        await children.ready(child, lambda: listens(port), clock=clocks.SystemClock())
        yield Extender(f"http://127.0.0.1:{port}", child.pid)
    finally:
        await child.stop()


async def answers(url: str) -> bool:
    """Tell whether a URL is answered with success."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def listens(port: int) -> bool:
    """Tell whether a process accepts connections at a port of this machine."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
