"""The whole system on one control plane, and teams that share its nodes by elastic quotas."""

import contextlib

import pytest_asyncio

from cli.install import apply
from process.runtime import clock as clocks
from tests.planes import foundation
from tests.planes.processes import restarting
from tests.planes.quota import teams as planes_teams

SCHEDULERS = ("default-scheduler", "koord-scheduler")
# Nodes without an agent: nobody waits for a report of their load.
CONTROLLERS = ["*", "-nodemetric"]


@pytest_asyncio.fixture(loop_scope="session")
async def teams(plane, here, tmp_path):
    """Extender, webhook, manager and a scheduler that calls them."""
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        kube, access = await stack.enter_async_context(foundation.laid(plane, clock))
        await apply.one(kube, planes_teams.hurried())
        stack.push_async_callback(here.api.call, "DELETE", planes_teams.ARGUMENTS)
        stack.push_async_callback(planes_teams.unregistered, here)
        system = await stack.enter_async_context(
            restarting.running(access, tmp_path / "served", controllers=CONTROLLERS)
        )
        await plane.start_scheduler(
            system.extender.url, filter_timeout_seconds=30, scheduler_names=SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        made = planes_teams.Teams(plane, here, system)
        made.kube = kube
        stack.push_async_callback(made.clear)
        yield made


def pytest_generate_tests(metafunc):
    """Restart processes in the middle of a test on a real API server; on the simulator, do not."""
    if "interlude" in metafunc.fixturenames:
        real = metafunc.config.getoption("--plane") == "real"
        chosen = ["restarted" if real else "undisturbed"]
        metafunc.parametrize("interlude", chosen, indirect=True)


@pytest_asyncio.fixture(loop_scope="session")
async def interlude(request, teams):
    """Call it in the middle of a test: it restarts the processes named, or does nothing."""

    async def act(*processes):
        if request.param == "restarted":
            await teams.system.restart(*processes)

    return act
