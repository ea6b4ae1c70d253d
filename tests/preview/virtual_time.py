"""An event loop in which virtual time passes as soon as nothing is left to do in the present."""

import asyncio
import selectors

from tests.system import world as worlds


class _Selector(selectors.DefaultSelector):
    """Moves a virtual clock where the loop would otherwise wait."""

    def __init__(self):
        super().__init__()
        self.world = None
        self.working = 0
        """How many functions run in threads; what they return belongs to the present."""

    def select(self, timeout=None):
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if self.world is not None and not self.working and self.world.step():
            return []
        return super().select(timeout)


class Loop(asyncio.SelectorEventLoop):
    """Sockets, threads and tasks first, then time."""

    def __init__(self):
        self._idle = _Selector()
        super().__init__(self._idle)

    def follow(self, world):
        """Move the clock of a world from now on."""
        self._idle.world = world

    def run_in_executor(self, executor, func, *args):
        """Let a function run in a thread; time stands still until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self._idle.working += 1
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _future):
        self._idle.working -= 1


class World(worlds.World):
    """A world whose time takes no processor time while nothing happens."""

    def step(self):
        """Move to the next instant at which anything is due, if time may pass."""
        return self._users > 0 and self.clock.skip()

    async def flow(self):
        """Hand time to the event loop."""
        asyncio.get_running_loop().follow(self)
        await asyncio.Event().wait()

    async def until(self, predicate, what, seconds=90.0):
        """Let time pass until a predicate is true; returns what it returned."""
        end = self.clock.monotonic() + seconds
        async with self.flowing():
            while not (found := predicate()):
                assert self.clock.monotonic() < end, f"not in {seconds} s: {what}"
                await self.clock.sleep(worlds.STEP_SECONDS)
        return found

    async def pass_time(self, seconds):
        """Let time pass."""
        async with self.flowing():
            await self.clock.sleep(seconds)
