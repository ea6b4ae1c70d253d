"""Extender, webhook and manager under which gangs preempt, and the scheduler that calls them."""

import contextlib
import json

import pytest_asyncio

from api import names, resources
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.gangs import ganging
from tests.planes.processes import restarting
from tests.planes.quota import teams as planes_teams

MORE = {"plugins": ganging.PLUGINS, "nudges": {"pause_seconds": 0.1}}
ARGUMENTS = {
    "profiles": [
        {
            "schedulerName": name,
            "pluginConfig": [{"name": "Coscheduling", "args": {"enablePreemption": True}}],
        }
        for name in ganging.SCHEDULERS
    ]
}
CONFIGURATION = {
    **ganging.CONFIGURATION,
    "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(ARGUMENTS)},
}


class _Anywhere:
    """What removes registrations; it needs a client alone."""

    def __init__(self, api):
        self.api = api


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(plane, tmp_path_factory):
    """The processes, for all tests of a module."""
    async with contextlib.AsyncExitStack() as stack:
        laid = foundation.laid(plane, clocks.SystemClock())
        _, access = await stack.enter_async_context(laid)
        client = raw.connected(plane.server, plane.ca, plane.token)
        api = await stack.enter_async_context(client)
        await api.call("DELETE", planes_teams.ARGUMENTS)
        await api.post(resources.CONFIG_MAPS.path(names.NAMESPACE), CONFIGURATION)
        stack.push_async_callback(api.call, "DELETE", planes_teams.ARGUMENTS)
        stack.push_async_callback(planes_teams.unregistered, _Anywhere(api))
        running = await stack.enter_async_context(
            restarting.running(
                access, tmp_path_factory.mktemp("served"), MORE, controllers=["podgroup"]
            )
        )
        await running.ready()
        await plane.start_scheduler(
            running.extender.url, filter_timeout_seconds=30, scheduler_names=ganging.SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def gangs(here, system):
    """The vocabulary of one test; in the end nothing is kept on its nodes."""
    await raw.eventually(lambda: _gated(here), ganging.PATIENCE)
    async with ganging.opened(here) as made:
        made.system = system
        yield made
    await raw.eventually(lambda: _released(here, system), ganging.PATIENCE)


async def _gated(here):
    """Tell whether admission lets members of gangs wait."""
    body = here.pod_body("dry", **ganging.annotated("dry", 1))
    made = await here.api.call("POST", here.path("pods"), body, query={"dryRun": "All"})
    gates = made.body.get("spec", {}).get("schedulingGates", ())
    return {"name": names.GATE_GANG} in gates


async def _released(here, system):
    cluster = system.extender.books.cluster
    held = [claim for node in here.nodes for claim in cluster.claims_on(node)]
    return not any(claim.evidence in ("gang", "preemption") for claim in held)
