"""Rounds in which every process is killed once while two gangs that exclude each other start."""

import asyncio

from tests.planes.gangs import gang_stand

PARTIAL_SECONDS = 10.0
LONGEST_WAIT = 8.0
"""Seconds until a process is killed in any case, however far the gangs are."""


def moments(chance, members):
    """What is awaited before each process dies: a kind of progress, and how much of it."""
    most = {"created": 2 * members, "opened": members, "bound": members}
    drawn = {}
    for name in gang_stand.KILLED:
        kind = chance.choice(tuple(most))
        drawn[name] = kind, chance.randint(1, most[kind])
    return drawn


async def begun(stand, variant, both, members, chance):
    """Create both gangs while every process is killed once; returns what was sent, and deaths."""
    bursts = gang_stand.Bursts(stand, both, members)
    deaths = {name: gang_stand.Interruption(name) for name in gang_stand.KILLED}

    async def kill(name, kind, count):
        await bursts.reaches(kind, count, LONGEST_WAIT)
        await deaths[name].suffer(stand)

    drawn = moments(chance, members)
    await asyncio.gather(
        *(variant.create(stand.gangs, name, members) for name in both),
        *(kill(name, *moment) for name, moment in drawn.items()),
    )
    return bursts, list(deaths.values())


async def followed(stand, variant, other, members):
    """Wait until the other gang runs; its owner creates it anew if it has lost members."""
    await stand.gangs.up_to_date()
    if len(stand.gangs.members(other)) < members:
        await stand.gangs.remove(other)
        other = f"{other}z"
        await variant.create(stand.gangs, other, members)
    await stand.gangs.whole(other, members)
    await stand.rests(other, members=members)


async def told(stand, start):
    """Every member that was evicted has an event that says why."""
    for name in start.left:
        await stand.stage.told(name, "PartialGang")


async def play(stand, variant, number, size, chance):
    """Two gangs start while processes die: exactly one of them runs, and then the other."""
    both = (f"a{number}", f"b{number}")
    members = await variant.prepare(stand.gangs, size)
    try:
        bursts, deaths = await begun(stand, variant, both, members, chance)
        winner = await stand.rests(*both, members=members)
        (other,) = {*both} - {winner}
        assert list(bursts.problems(deaths, PARTIAL_SECONDS)) == []
        for gang in both:
            for start in stand.gangs.record.starts(gang, members):
                await told(stand, start)
        await stand.gangs.remove(winner)
        await followed(stand, variant, other, members)
        assert list(bursts.problems(deaths, PARTIAL_SECONDS)) == []
    finally:
        await stand.gangs.clear()
        await variant.tidy()
        await gang_stand.removed(stand)
