"""Two gangs that each fit alone and not together: one runs whole, the other waits whole."""

import asyncio

import pytest

from tests.planes import raw

pytestmark = pytest.mark.timeout(120)
COUNT = 12


async def test_exactly_one_of_two_gangs_runs_and_then_the_other(ganging):
    for number in range(4):
        await ganging.here.node(f"n{number}", cpu="4")
    await asyncio.gather(ganging.gang("a", COUNT), ganging.gang("b", COUNT))

    async def one_runs():
        counts = [await ganging.bound(name) for name in "ab"]
        return counts if COUNT in counts else None

    counts = await raw.eventually(one_runs, 60.0)
    first, other = ("a", "b") if counts[0] == COUNT else ("b", "a")
    await ganging.says(other, COUNT, "InsufficientRoom", "there is room for 4 of 12 members")
    assert await ganging.bound(other) == 0
    await ganging.remove(first)
    await ganging.all_bound(other, COUNT)

    async def nothing_left():
        return not ganging.claims()

    await raw.eventually(nothing_left, 30.0)
