"""An extender that places CPUs and devices, the scheduler that calls it, and a manager."""

import contextlib

import aiohttp
import pytest_asyncio

from cli.dev import all_in_one
from extender import app as extenders
from extender.settings import Settings
from kube.client import access as accesses
from manager import app as managers
from manager import settings as manager_settings
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.devices import device_floor
from tests.planes.processes import gate

PATIENCE = 60.0


class Machines(device_floor.Floor):
    """The floor of one test, the extender behind it, and a gate before its API server."""

    def __init__(self, here, page, app, uplink):
        super().__init__(here, page)
        self.app, self.uplink = app, uplink


@contextlib.asynccontextmanager
async def managing(plane, namespace, *controllers):
    """Run a manager that keeps the status of Devices, and what these controllers keep."""
    chosen = manager_settings.Settings(
        config_namespace=namespace,
        controllers=("devicestatus", *controllers),
        leader_election=manager_settings.LeaderElectionSettings(enabled=False),
        health=manager_settings.HealthSettings(host="127.0.0.1", port=0),
    )
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with managers.running(chosen, access=access, clock=clocks.SystemClock()) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def machines(unmanaged, plane):
    """Nodes of several shapes with a manager, so that the status of Devices agrees as well."""
    async with managing(plane, unmanaged.here.namespace):
        unmanaged.has_status = True
        yield unmanaged


@pytest_asyncio.fixture(loop_scope="session")
async def unmanaged(plane, here):
    """Nodes of several shapes are created on it; the scheduler runs, and no manager."""
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
