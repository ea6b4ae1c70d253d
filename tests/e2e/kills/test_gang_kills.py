"""Extender, manager or scheduler are killed while gangs start: each gang runs whole or not at all.

Two gangs exclude each other. The process dies before or after a chosen write of the winner's
start; what starts afterwards completes it, or takes back what was bound of it.
"""

import asyncio
import contextlib

import aiohttp
import pytest

from tests.planes.gangs import gang_stand
from tests.planes.stage import FULL, PATIENCE

MEMBERS, CORES = 12, 4
ROUNDS = 10 if FULL else 1
pytestmark = pytest.mark.timeout(7200 if FULL else 120)


def bound(call):
    return call.path.endswith("/binding")


def counted(call):
    return call.method == "PATCH" and "/podgroups/" in call.path


HALF = MEMBERS // 2
POINTS = {
    "extender before the first gate": ("extender", "before", gang_stand.opened, 1),
    "extender after half of the gates": ("extender", "after", gang_stand.opened, HALF),
    "extender after the last gate": ("extender", "after", gang_stand.opened, MEMBERS),
    "extender before the first Binding": ("extender", "before", bound, 1),
    "extender after the first Binding": ("extender", "after", bound, 1),
    "extender after half of the Bindings": ("extender", "after", bound, HALF),
    "scheduler after half of the gates": ("scheduler", "after", gang_stand.opened, HALF),
    "scheduler after half of the Bindings": ("scheduler", "after", bound, HALF),
    "manager before a status": ("manager", "before", counted, 1),
    "manager after a status": ("manager", "after", counted, 2),
}


@contextlib.asynccontextmanager
async def standing(stage, **options):
    """All of them on a stage, with nodes for one gang and a part of another one."""
    for number in range(MEMBERS * 3 // 2 // CORES):
        await stage.node(f"n{number}", cpu=str(CORES))
    async with gang_stand.standing(stage, **options) as stand:
        yield stand


async def create(gangs, *both):
    """Create both gangs at the same time, as admission would have left their members."""
    for name in both:
        await gangs.pod_group(name, MEMBERS)
    await asyncio.gather(*(gangs.gang(name, MEMBERS, form="PodGroup") for name in both))


class Hold:
    """Stops the flow of a gate at one call, until the process that made it is gone."""

    def __init__(self, uplink, side, matches, number):
        self._matches, self._left = matches, number
        self.reached, self.gone = asyncio.Event(), asyncio.Event()
        setattr(uplink, side, self._hold)

    async def _hold(self, call):
        if not self._matches(call):
            return
        self._left -= 1
        if self._left > 0:
            return
        self.reached.set()
        await self.gone.wait()
        raise aiohttp.ClientConnectionError("the process is gone")


async def _round(stand, point, number):
    name, side, matches, count = point
    both = (f"a{number}", f"b{number}")
    uplink = stand.uplinks[name]
    hold = Hold(uplink, side, matches, count)
    await create(stand.gangs, *both)
    await asyncio.wait_for(hold.reached.wait(), PATIENCE)
    # The extender outlives its scheduler: its call is answered while that is gone.
    await stand.kill(name)
    uplink.reset()
    hold.gone.set()
    await stand.start_again(name)
    winner = await stand.rests(*both, members=MEMBERS)
    (other,) = {*both} - {winner}
    await stand.gangs.remove(winner)
    await stand.gangs.whole(other, MEMBERS)
    await stand.stage.sound(stand.pair)
    await stand.gangs.remove(other)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
async def test_a_gang_runs_whole_or_not_at_all(stage, point):
    async with standing(stage, **gang_stand.GATED) as stand:
        for number in range(ROUNDS):
            await _round(stand, point, number)


@pytest.mark.parametrize(
    "point", [pytest.param(POINTS[name], id=name) for name in POINTS if "Binding" in name]
)
async def test_a_gang_without_gates_runs_whole_or_not_at_all(stage, point):
    """As admission lets small gangs in while kube-scheduler is behind."""
    async with standing(stage) as stand:
        for number in range(ROUNDS):
            await _round(stand, point, number)
