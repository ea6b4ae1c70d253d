"""A gang of high priority takes the place of a whole gang of low priority, and of no other."""

from tests.planes import raw
from tests.planes.gangs import ganging


async def test_a_gang_of_four_takes_the_place_of_one_of_lower_priority_as_a_whole(gangs):
    here = gangs.here
    for name in ("a", "b"):
        await here.node(name, cpu="4")
    async with here.priority(-10) as low, here.priority(1000) as high:
        # Each gang spans both nodes, or fills one: either way none has room beside the two.
        await gangs.gang("equal", 4, priorityClassName=high)
        await gangs.whole("equal", 4)
        await gangs.gang("low", 4, priorityClassName=low)
        await gangs.whole("low", 4)
        await gangs.gang("high", 4, priorityClassName=high)

        async def left():
            return not await gangs.bound("low")

        await raw.eventually(left, ganging.PATIENCE)
        await gangs.whole("high", 4)
        # Nobody preempts back, and a third gang of the same priority finds nobody to leave.
        await gangs.gang("again", 4, priorityClassName=low)
        await gangs.gang("third", 4, priorityClassName=high)
        await gangs.waits("again")
        await gangs.waits("third", reason="InsufficientRoom")
        await gangs.never("again", "third")
        assert len(await gangs.bound("equal")) == len(await gangs.bound("high")) == 4
        for start in gangs.record.starts("high", 4):
            assert start.whole
