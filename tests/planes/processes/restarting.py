"""Extender, webhook and manager in this event loop, each of which can be stopped and started."""

import asyncio
import contextlib

from cli.dev import all_in_one
from extender import app as extenders
from extender import settings as extender_settings
from extender.plugins.elastic_quota import elastic_quota
from manager import app as managers
from manager import settings as manager_settings
from process.http import ports
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.planes import raw
from webhook import app as webhooks
from webhook import settings as webhook_settings

NAMES = ("webhook", "manager", "extender")
PATIENCE = 60.0
# There is one scheduler and one extender, so no other scheduler binds anything in a silence.
ALONE_SECONDS = 86_400.0


class Hosted:
    """One process, which lives in a task of its own."""

    def __init__(self, spawn, running):
        self._spawn, self._running = spawn, running
        self._stop = asyncio.Event()
        self._task = None
        self.app = None

    async def start(self):
        """Start it and wait until it listens."""
        self._stop.clear()
        listens = asyncio.get_running_loop().create_future()
        self._task = self._spawn("hosted", self._live(listens))
        await asyncio.wait({listens, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not listens.done():
            await self._task
        self.app = listens.result()

    async def _live(self, listens):
        async with self._running() as app:
            listens.set_result(app)
            await self._stop.wait()

    async def stop(self):
        """Stop it as a kubelet does that is in no hurry."""
        if self._task is not None:
            self._stop.set()
            await self._task
            self._task = self.app = None


class System:
    """The three processes against one API server; they keep their addresses."""

    def __init__(self, spawn, access, folder, scheduling=None, *, manager_clock=None, **manager):
        clock, (port, reviews) = clocks.SystemClock(), ports.take(2)
        where = {"access": access, "clock": clock}
        managed = {"clock": manager_clock or clock}
        verbs = extender_settings.Settings.model_validate(
            {
                "server": {**all_in_one.local(), "port": port},
                "health": all_in_one.local(),
                "freshness": {"idle_seconds": ALONE_SECONDS},
                **(scheduling or {}),
            }
        )
        admission = webhook_settings.Settings.model_validate(
            {
                "server": {**all_in_one.local(), "port": reviews},
                "health": all_in_one.local(),
                "certificates": {
                    "names": (all_in_one.LOCAL, "localhost"),
                    "folder": folder / "webhook",
                },
                "registration": {"url": "self"},
            }
        )
        controllers = manager_settings.Settings.model_validate(
            {"health": all_in_one.local(), **manager}
        )
        self._hosted = {
            "webhook": Hosted(spawn, lambda: webhooks.running(admission, **where)),
            "manager": Hosted(spawn, lambda: managers.running(controllers, **where | managed)),
            "extender": Hosted(spawn, lambda: extenders.running(verbs, **where)),
        }

    @property
    def extender(self):
        return self._hosted["extender"].app

    @property
    def webhook(self):
        return self._hosted["webhook"].app

    @property
    def manager(self):
        return self._hosted["manager"].app

    async def restart(self, *chosen):
        """Stop these processes all at once, and start them one after the other."""
        for name in chosen:
            await self._hosted[name].stop()
        for name in chosen:
            await self._hosted[name].start()

    async def stop(self):
        """Stop all of them."""
        for name in reversed(NAMES):
            await self._hosted[name].stop()

    async def ready(self):
        """Wait until the scheduler may ask the extender."""

        async def check():
            return self.extender.health.ready

        await raw.eventually(check, PATIENCE)

    async def knows(self, *quotas):
        """Tell whether the extender knows these quotas."""
        state = self.extender.books.cluster.view().cluster.get(elastic_quota.NAME)
        return state is not None and all(state.forest.quota(name) for name in quotas)


@contextlib.asynccontextmanager
async def running(access, folder, scheduling=None, **manager):
    """All three, stopped with the block; `scheduling` are more settings of the extender."""
    async with supervise.Supervisor("system", stop_seconds=30.0) as supervisor:
        system = System(supervisor.spawn, access, folder, scheduling, **manager)
        try:
            await system.restart(*NAMES)
            yield system
        finally:
            await system.stop()
