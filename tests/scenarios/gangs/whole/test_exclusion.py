"""Of two gangs that fit alone and not together exactly one runs, and then the other."""

import asyncio

import pytest

from tests.planes.gangs.gang_variants import VARIANTS


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
async def test_exactly_one_of_two_runs_and_then_the_other(gangs, size, variant):
    members = await variant.prepare(gangs, size)
    both = ("first", "second")
    # At the same time, so that their members come in turns.
    await asyncio.gather(*(variant.create(gangs, name, members) for name in both))
    winner, other = await gangs.winner(*both, count=members)
    await gangs.waits(other, reason="InsufficientRoom")
    await gangs.never(other)
    await gangs.remove(winner)
    await gangs.whole(other, members)
    await gangs.up_to_date()
    assert len(gangs.record.of(other)) == members
    for gang in both:
        (start,) = gangs.record.starts(gang, members)
        assert start.whole, "what began to be bound was completed, and never taken back"
    await gangs.clear()
    await variant.tidy()
