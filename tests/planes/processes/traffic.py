"""Work that arrives at a steady rate, and hands that hold single calls on their way."""

import asyncio

import aiohttp

from tests.planes import raw


async def arriving(here, prefix, count, rate):
    """Create pods at a rate, whether the API server is there or not; return their names."""
    loop = asyncio.get_running_loop()
    start, jobs = loop.time(), []
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
        jobs.append(f"{prefix}-{number}")
        await insist(here, jobs[-1])
    return jobs


async def insist(here, name):
    """Create a pod; what was not answered is asked again until it is there."""
    while True:
        try:
            async with asyncio.timeout(5):
                answer = await here.api.call("POST", here.path("pods"), here.job(name, cores=0.1))
        except (aiohttp.ClientError, TimeoutError):
            answer = None
        if answer is not None and answer.status in (201, 409):
            return
        await asyncio.sleep(0.1)


async def all_placed(here, timeout):
    """Wait until no pod of the test is without a node."""

    async def nobody_waits():
        query = {"fieldSelector": "spec.nodeName=", "limit": "1"}
        return not (await here.api.get(here.path("pods"), **query))["items"]

    await raw.eventually(nobody_waits, timeout)


class Stopped:
    """Stops calls on their way to the API server; they are lost in the end."""

    def __init__(self, gate, matches):
        self._matches = matches
        self._go = asyncio.Event()
        self.calls = []
        gate.before = self._hold

    async def _hold(self, call):
        if self._go.is_set() or not self._matches(call):
            return
        self.calls.append(call)
        await self._go.wait()
        raise aiohttp.ClientConnectionError("what was stopped is lost")

    async def complete(self, timeout):
        """Wait until a call was stopped."""

        async def stopped():
            return self.calls

        await raw.eventually(stopped, timeout)

    def lose(self):
        self._go.set()


class Holding:
    """Holds the binding of named pods on its way to the API server, or its answer on the way back.

    What was held is lost in the end, unless it is let go.
    """

    def __init__(self, gate, before=(), after=()):
        self._wanted = {"before": set(before), "after": set(after)}
        self._go = asyncio.Event()
        self._lost = False
        self.held = {}
        gate.before = lambda call: self._hold("before", call)
        gate.after = lambda call: self._hold("after", call)

    async def _hold(self, side, call):
        if not call.is_binding or self._go.is_set():
            return
        pod = call.path.split("/")[-2]
        if pod in self._wanted[side]:
            self.held[pod] = call
            await self._go.wait()
            if self._lost:
                raise aiohttp.ClientConnectionError("what was held is lost")

    async def complete(self, timeout):
        """Wait until all that is to be held is."""
        wanted = self._wanted["before"] | self._wanted["after"]

        async def held():
            return self.held.keys() == wanted

        await raw.eventually(held, timeout)

    def let_go(self):
        self._go.set()

    def lose(self):
        self._lost = True
        self._go.set()
