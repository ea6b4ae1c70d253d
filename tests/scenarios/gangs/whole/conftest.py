"""Extender, webhook and manager that place gangs as a whole, and the scheduler that calls them."""

import contextlib

import aiohttp
import pytest
import pytest_asyncio

from api import names, resources
from extender.gangs.planning import planner
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.gangs import ganging
from tests.planes.processes import restarting
from tests.planes.quota import teams as planes_teams

MORE = {"plugins": ganging.PLUGINS, "nudges": {"pause_seconds": 0.1}}
CONTROLLERS = ["podgroup", "quotastatus", "reservation"]


class _Anywhere:
    """What removes registrations; it needs a client alone."""

    def __init__(self, api):
        self.api = api


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(plane, tmp_path_factory):
    """The processes, for all tests of a module."""
    async with contextlib.AsyncExitStack() as stack:
        laid = foundation.laid(plane, clocks.SystemClock())
        kube, access = await stack.enter_async_context(laid)
        client = raw.connected(plane.server, plane.ca, plane.token)
        api = await stack.enter_async_context(client)
        found = resources.CONFIG_MAPS.path(names.NAMESPACE)
        await api.call("DELETE", planes_teams.ARGUMENTS)
        await api.post(found, ganging.CONFIGURATION)
        stack.push_async_callback(api.call, "DELETE", planes_teams.ARGUMENTS)
        stack.push_async_callback(planes_teams.unregistered, _Anywhere(api))
        folder = tmp_path_factory.mktemp("served")
        later = ganging.LaterClock()
        running = await stack.enter_async_context(
            restarting.running(access, folder, MORE, manager_clock=later, controllers=CONTROLLERS)
        )
        await running.ready()
        await plane.start_scheduler(
            running.extender.url, filter_timeout_seconds=30, scheduler_names=ganging.SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        running.kube = kube
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def page(system):
    """Reads a page of the extender as a status and a text."""
    async with aiohttp.ClientSession() as session:

        async def read(path):
            async with session.get(system.extender.health_url + path) as answer:
                return answer.status, await answer.text()

        yield read


@pytest_asyncio.fixture(loop_scope="session")
async def gangs(here, system, page):
    """The vocabulary of one test; in the end no claim of a plan is left on its nodes."""
    await raw.eventually(lambda: _gated(here), ganging.PATIENCE)
    async with ganging.opened(here) as made:
        made.system, made.page = system, page
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
    return not any(claim.evidence == planner.EVIDENCE for claim in held)


@pytest.fixture
def size(request):
    """Members of a large gang: few on the simulator, a hundred on a real control plane."""
    return 100 if request.config.getoption("--plane") == "real" else 8
