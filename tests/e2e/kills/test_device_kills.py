"""An extender is killed while it gives CPUs and devices away: nothing is given twice or lost.

Pods of all kinds come and go on nodes of several shapes, GPUs fail and come back, and each time
the annotations on the pods, a recount and what the new extender says of itself agree.
"""

import asyncio
import random

import aiohttp
import pytest

from tests.planes.devices import device_floor
from tests.planes.stage import FULL, PATIENCE

SEED = 20260713
WAVES = 25 if FULL else 2
MOST_BINDINGS = 4
"""The process dies at one of the first so many Bindings of a wave."""
MACHINES = ("zones", "aligned", "eight", "pair")
FULL_PCPUS = {"requiredCPUBindPolicy": "FullPCPUs"}
pytestmark = pytest.mark.timeout(7200 if FULL else 120)


class Churn:
    """Pods that come, and some that go; which ones is drawn."""

    def __init__(self, floor, chance):
        self.floor, self.chance = floor, chance
        self.kinds = (
            lambda name: floor.exclusive(name, 4, spec=FULL_PCPUS),
            lambda name: floor.exclusive(name, 2),
            lambda name: floor.share(name, 50),
            lambda name: floor.share(name, 30),
            lambda name: floor.share(name, 200),
            lambda name: floor.job(name, gpus=4, cards=2),
            lambda name: floor.job(name, gpus=8, cards=4),
        )
        self.small = self.kinds[1]
        self.pods = []

    async def come(self, prefix, count, pause=0.1, placeable=0):
        """Create pods; at least so many are small ones that find a place whatever is there."""
        small = set(self.chance.sample(range(count), placeable))
        for number in range(count):
            name, drawn = f"{prefix}-{number}", self.chance.choice(self.kinds)
            await (self.small if number in small else drawn)(name)
            self.pods.append(name)
            await asyncio.sleep(self.chance.uniform(0, pause))

    async def go(self, share):
        for name in self.chance.sample(self.pods, int(share * len(self.pods))):
            self.pods.remove(name)
            await self.floor.here.remove(name)

    async def fail(self, node):
        """GPUs of a node fail, or come back."""
        sick = [minor for minor in range(8) if self.chance.random() < 0.2]
        await self.floor.report(node, sick=sick)


@pytest.fixture
def chance(request):
    return random.Random(f"{SEED} {request.node.name}")


async def opened(stage):
    """Nodes of all shapes, and an extender that is called about them."""
    pair = await stage.pair("a", *device_floor.FLAGS)
    floor = device_floor.Floor(stage, pair.extender.page)
    for suffix in MACHINES:
        await floor.machine(suffix)
    await pair.schedule(bind_timeout_seconds=3)
    return pair, floor


async def agreed(stage, pair, floor):
    """Nothing is wrong, and everyone says the same."""
    await pair.extender.ready()
    await stage.sound(pair)
    await floor.agree()


async def replace(pair):
    """Kill the extender, so that what it had not sent is never sent, and start another one."""
    pair.uplink.hang_up()
    await pair.extender.kill()
    pair.uplink.reset()
    await pair.extender.start()


async def test_killed_at_any_moment(stage, chance):
    pair, floor = await opened(stage)
    churn = Churn(floor, chance)
    try:
        for wave in range(WAVES):

            async def kill():
                await asyncio.sleep(chance.uniform(0.1, 2.5))
                await replace(pair)

            await asyncio.gather(churn.come(f"wave-{wave}", 20), kill())
            await agreed(stage, pair, floor)
            assert [pod for one in await floor.recounts() for pod in one.granted()]
            await asyncio.gather(churn.go(0.6), churn.fail(stage.name("eight")), kill())
            await agreed(stage, pair, floor)
    finally:
        await floor.remove()


@pytest.mark.parametrize("side", ["before", "after"])
async def test_killed_at_a_binding(stage, chance, side):
    """The Binding is lost with its sender, or carried out although nobody hears of it."""
    pair, floor = await opened(stage)
    churn = Churn(floor, chance)
    try:
        for number in range(1, 1 + WAVES):
            reached, gone = asyncio.Event(), asyncio.Event()
            left = chance.randint(1, MOST_BINDINGS)

            async def hold(call, reached=reached, gone=gone):
                nonlocal left
                left -= call.is_binding
                if call.is_binding and left == 0:
                    reached.set()
                    await gone.wait()
                    raise aiohttp.ClientConnectionError("the process is gone")

            setattr(pair.uplink, side, hold)

            async def kill(reached=reached, gone=gone):
                await asyncio.wait_for(reached.wait(), PATIENCE)
                await pair.extender.kill()
                gone.set()
                await replace(pair)

            # So many are bound for certain: others may find all GPUs taken.
            coming = churn.come(f"wave-{number}", 8, placeable=MOST_BINDINGS)
            await asyncio.gather(coming, kill())
            await agreed(stage, pair, floor)
            await churn.go(0.9)
            await agreed(stage, pair, floor)
    finally:
        await floor.remove()
