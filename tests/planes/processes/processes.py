"""Processes of the product, with a log of their own, which tests kill and start again."""

import contextlib
import json
import math
import re

import aiohttp

from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children, credentials
from tests.planes import raw
from tests.planes.processes import forking

PROBE = aiohttp.ClientTimeout(total=2)
FIGURE = re.compile(r"^([a-z_]+)(\{[^}]*\})? ([-+0-9.e]+)$", re.MULTILINE)


class Process:
    """One process; it keeps its ports when it is started again."""

    def __init__(self, folder, name, module, server, ca, token, *flags, serves=True):
        self.name = name
        self._folder = folder
        self._port, self._health = ports.take(2)
        self.url = f"http://127.0.0.1:{self._port}"
        self.health_url = f"http://127.0.0.1:{self._health}"
        login = folder / f"{name}-login.json"
        login.touch(mode=0o600)
        login.write_text(json.dumps(credentials.kubeconfig(server, ca, token)))
        self._command = (
            *(module, f"--kubeconfig={login}"),
            *("--health.host=127.0.0.1", f"--health.port={self._health}"),
            *((f"--server.port={self._port}",) if serves else ()),
            *flags,
        )
        self._child = None

    @property
    def alive(self):
        return self._child is not None and self._child.alive

    @property
    def log(self):
        return (self._folder / f"{self.name}.log").read_text(errors="replace")

    async def start(self):
        """Start it; returns before it is ready."""
        self._child = forking.SERVER.start(self.name, self._command, self._folder)

    async def ready(self):
        """Wait until its readiness says yes."""

        async def says_yes():
            status, _ = await self.page("/readyz")
            return status == 200

        await children.ready(self._child, says_yes, clock=clocks.SystemClock())

    async def page(self, path):
        """Return the status and the text of a page on its health port; status 0 without answer."""
        try:
            async with (
                aiohttp.ClientSession(timeout=PROBE) as session,
                session.get(self.health_url + path) as answer,
            ):
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""

    async def failing(self):
        """What its readiness fails for, by the name of the check; None without an answer."""
        status, text = await self.page("/readyz")
        return json.loads(text)["failing"] if status else None

    async def figure(self, name, **labels):
        """The sum of a metric over all label values that are not given.

        Without an answer it is no number, which is equal to nothing: zero would end waits early.
        """
        status, text = await self.page("/metrics")
        if status != 200:
            return math.nan
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(value)
            for found, shown, value in FIGURE.findall(text)
            if found == name and all(label in shown for label in wanted)
        )

    async def measured(self, name, **labels):
        """The same of a process that has to answer: one that is too busy at first is asked again.

        For a figure that is looked at once, and not until it is as wanted.
        """
        found = math.nan

        async def answers():
            nonlocal found
            found = await self.figure(name, **labels)
            return not math.isnan(found)

        await raw.eventually(answers)
        return found

    async def kill(self):
        if self._child is not None:
            await self._child.kill()

    async def stop(self, grace_seconds=30.0):
        """Ask it to stop, as a kubelet does, and wait until it has."""
        if self._child is not None:
            await self._child.stop(grace_seconds)

    def pause(self):
        self._child.pause()

    def resume(self):
        self._child.resume()


@contextlib.asynccontextmanager
async def running(process):
    """A ready process, ended with the block."""
    try:
        await process.start()
        await process.ready()
        yield process
    finally:
        await process.kill()
