"""A running extender over HTTP in virtual time, on a scripted API server."""

import contextlib

import aiohttp

from api import names
from extender import app, settings
from process.runtime import clock
from tests import patience

ANYWHERE = {"port": 0, "linger_seconds": 0}


class Extender:
    """The extender, its API server, and a session as a scheduler has one."""

    def __init__(self, extender, session, server, time, make):
        self.app, self.session, self.server = extender, session, server
        self.time, self.make = time, make

    async def until(self, condition):
        await patience.until(condition, lambda: self.time.advance(0.25))

    async def call(self, verb, body):
        async with self.session.post(f"{self.app.url}/{verb}", json=body) as answer:
            return await answer.json(content_type=None)

    def nudged(self, name, namespace="default"):
        """What the annotation says that wakes a pod, empty without one."""
        pod = self.server.objects["pods"][f"{namespace}/{name}"]
        return pod["metadata"].get("annotations", {}).get(names.ANNOTATION_NUDGE, "")


@contextlib.asynccontextmanager
async def opened(kind, server, make, now, **options):
    """An extender of this class of ours that is ready."""
    made = settings.Settings(server=ANYWHERE, health=ANYWHERE, **options)
    time = clock.ManualClock(now=now)
    async with (
        server.serving() as access,
        aiohttp.ClientSession() as session,
        app.running(made, access=access, clock=time) as extender,
    ):
        found = kind(extender, session, server, time, make)
        await found.until(lambda: extender.health.ready)
        yield found
