"""Extender, webhook and manager are killed while pods preempt and borrowers give back.

Whatever was on its way then: exactly those leave that have to, what they used is given to the pods
that they left for, and quotas count what runs.
"""

import asyncio
import contextlib
import random

import aiohttp
import pytest
import pytest_asyncio

from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.quota import quota_cells, quota_processes
from tests.planes.quota import teams as planes_teams
from tests.planes.stage import FULL, PATIENCE

SEED = 20260701
CELLS = 6
WAVES = 25 if FULL else 2
KILLED = ("extender", "manager", "webhook")
# Within so many seconds all that a preemption or a reclaim consists of happens.
BUSY = {"extender": 1.5, "manager": 4.0, "webhook": 1.0}
pytestmark = pytest.mark.timeout(7200 if FULL else 120)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def working(breakable, tmp_path_factory):
    """The running processes, settled cells, and a record of all pods that leave."""
    folder = tmp_path_factory.mktemp("quota-kills")
    clock = clocks.SystemClock()
    access = accesses.Access(breakable.server, breakable.ca, accesses.StaticToken(breakable.token))
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            clients.Client(access, clock=clock, user_agent="admin")
        )
        await apply.one(kube, planes_teams.hurried())
        stage = await stack.enter_async_context(stages.opened(breakable, folder))
        stack.push_async_callback(stage.api.call, "DELETE", planes_teams.ARGUMENTS)
        important = await stack.enter_async_context(stage.priority(1000))
        system = await stack.enter_async_context(quota_processes.running(stage, folder))
        teams = planes_teams.Teams(breakable, stage, system)
        stack.push_async_callback(teams.clear)
        stack.push_async_callback(planes_teams.unregistered, stage)
        await quota_processes.led(system)
        cells = [quota_cells.Cell(teams, number, important) for number in range(CELLS)]
        await asyncio.gather(*(cell.make() for cell in cells))
        reaper = await stack.enter_async_context(quota_cells.reaping(stage, SEED))
        await quota_cells.rest(teams, cells, asked=False)
        yield teams, cells, reaper


async def finished(working, asked):
    """Wait until everyone who asked runs, and see who has left for that; then begin anew."""
    teams, cells, reaper = working
    await teams.system.ready()
    await quota_cells.rest(teams, cells, asked=True)
    for pod in asked:
        await teams.here.bound(pod, PATIENCE)
    for cell in cells:
        left = cell.left(reaper.left)
        assert left == {"low": 2, "borrowed": 2, "high": 0, "owned": 0}, (cell.number, left)
    reaper.dismiss({*asked, *reaper.left})
    for pod in asked:
        await teams.here.remove(pod)
    await asyncio.gather(*(cell.fill(2, 2) for cell in cells))
    await quota_cells.rest(teams, cells, asked=False)
    assert reaper.left == set(), "no pod leaves while none waits"


@pytest.mark.parametrize("wave", range(WAVES))
async def test_killed_at_any_moment(working, wave):
    """In every cell another moment of its own is hit, since they do not begin together."""
    teams, cells, _ = working
    chance = random.Random(SEED + wave)
    starts = [chance.uniform(0.0, 2.0) for _ in cells]
    moments = {name: chance.uniform(0.2, 2.0 + BUSY[name]) for name in KILLED}

    async def begin(cell, after):
        await asyncio.sleep(after)
        return await cell.ask()

    async def kill(name, after):
        await asyncio.sleep(after)
        await teams.system.replace(name)

    asking = [begin(cell, after) for cell, after in zip(cells, starts, strict=True)]
    killing = [kill(name, after) for name, after in moments.items()]
    pairs, _ = await asyncio.gather(asyncio.gather(*asking), asyncio.gather(*killing))
    await finished(working, [pod for pair in pairs for pod in pair])


class Point:
    """One call of a process, before it reaches the API server or after it was carried out."""

    def __init__(self, gate, side, matches, number):
        self._matches, self._number = matches, number
        self._go = asyncio.Event()
        self.reached = asyncio.Event()
        setattr(gate, side, self._hold)

    async def _hold(self, call):
        if self.reached.is_set() or not self._matches(call):
            return
        self._number -= 1
        if self._number == 0:
            self.reached.set()
            await self._go.wait()
            raise aiohttp.ClientConnectionError("the process is gone")

    def lose(self):
        self._go.set()


def noted(call):
    return call.method == "PATCH" and b"koord.sh/preemption" in call.body


def nominated(call):
    return call.path.endswith("/status") and b"nominatedNodeName" in call.body


def evicted(call):
    return call.path.endswith("/eviction") and b"dryRun" not in call.body


def opened(call):
    return call.method == "PATCH" and b"schedulingGates" in call.body


POINTS = {
    "notes and opens": (("extender", noted, 1), ("manager", opened, 1)),
    "nominates": (("extender", nominated, 1), ("manager", nominated, 1)),
    "evicts the first": (("extender", evicted, 1), ("manager", evicted, 1)),
    "evicts the second": (("extender", evicted, 2), ("manager", evicted, 2)),
}
# The others are near to one of these.
SHORT = [("before", "notes and opens"), ("after", "nominates"), ("after", "evicts the first")]
ALL = [(side, point) for side in ("before", "after") for point in POINTS]


@pytest.mark.parametrize(("side", "point"), ALL if FULL else SHORT)
async def test_killed_at_a_certain_write(working, side, point):
    teams, cells, _ = working
    system = teams.system
    points = {
        name: Point(system.gates[name], side, matches, number)
        for name, matches, number in POINTS[point]
    }

    async def kill(name, point):
        await asyncio.wait_for(point.reached.wait(), PATIENCE)
        await system.die(name)
        point.lose()
        system.gates[name].reset()
        await getattr(system, name).start()

    pairs, _ = await asyncio.gather(
        asyncio.gather(*(cell.ask() for cell in cells)),
        asyncio.gather(*(kill(name, point) for name, point in points.items())),
    )
    await finished(working, [pod for pair in pairs for pod in pair])


async def test_no_claim_is_left(working):
    """After everything, nobody preempts and no gate of a pod that may start is closed."""
    teams, cells, _ = working

    async def nobody():
        return await teams.system.extender.figure("koord_extender_preemptors") == 0

    await raw.eventually(nobody, PATIENCE)
    await quota_cells.rest(teams, cells, asked=False)
