"""Extender, manager and scheduler are killed at random moments while gangs of 100 pods start.

Two gangs exclude each other. One of them runs whole, then the other; what an interruption in the
middle of the Bindings leaves bound in part is completed or evicted within ten seconds.
"""

import contextlib
import os
import random

import pytest
import pytest_asyncio

from tests.planes import stage as stages
from tests.planes.gangs import gang_rounds, gang_stand, gang_variants
from tests.planes.stage import FULL

SEED = 20261101
MEMBERS = 100
ROUNDS = int(os.environ.get("KOORD_ROUNDS") or (100 if FULL else 5))
VARIANTS = {
    "annotations": gang_variants.Plain(),
    "gang groups": gang_variants.Groups(),
    "one quota": gang_variants.Quota(),
    "members with 8 GPUs": gang_variants.Devices(share=4),
    "PodGroups": gang_variants.Plain("PodGroup"),
}
pytestmark = pytest.mark.timeout(7200 if FULL else 120)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(breakable, tmp_path_factory):
    """The processes, for all rounds."""
    async with contextlib.AsyncExitStack() as stack:
        opened = stages.opened(breakable, tmp_path_factory.mktemp("gang-kills"))
        stage = await stack.enter_async_context(opened)
        yield await stack.enter_async_context(gang_stand.standing(stage, **gang_stand.GATED))


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_exactly_one_of_two_runs_and_then_the_other(stand, number):
    chance = random.Random(SEED + number)
    variant = list(VARIANTS.values())[number % len(VARIANTS)]
    await gang_rounds.play(stand, variant, number, MEMBERS, chance)
