"""An extender that places CPUs and devices, and the scheduler that calls it."""

import contextlib

import aiohttp
import pytest_asyncio

from cli.dev import all_in_one
from extender import app as extenders
from extender.settings import Settings
from kube.client import access as accesses
from process.runtime import clock as clocks
from tests.planes import device_floor, foundation, gate, raw

PATIENCE = 60.0


class Machines(device_floor.Floor):
    """The floor of one test, the extender behind it, and a gate before its API server."""

    def __init__(self, here, page, app, uplink):
        super().__init__(here, page)
        self.app, self.uplink = app, uplink


@pytest_asyncio.fixture(loop_scope="session")
async def machines(plane, here):
    """Nodes of several shapes are created on it; the scheduler runs."""
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(foundation.laid(plane, clock))
        uplink = await stack.enter_async_context(gate.opened(plane.server, plane.ca))
        access = accesses.Access(uplink.url, tokens=accesses.StaticToken(plane.token))
        settings = Settings.model_validate(
            {
                "server": all_in_one.local(),
                "health": all_in_one.local(),
                "plugins": device_floor.PLUGINS,
                "freshness": {"idle_seconds": 86_400.0},
                "nudges": {"pause_seconds": 0.1},
            }
        )
        app = await stack.enter_async_context(
            extenders.running(settings, access=access, clock=clock)
        )

        async def ready():
            return app.health.ready

        await raw.eventually(ready, PATIENCE)
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def page(path):
            async with session.get(app.health_url + path) as answer:
                return answer.status, await answer.text()

        await plane.start_scheduler(app.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        made = Machines(here, page, app, uplink)
        stack.push_async_callback(made.remove)
        yield made
