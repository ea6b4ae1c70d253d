"""Processes are killed at random moments while gangs start, some of them of Kubernetes itself."""

import contextlib
import os
import random

import pytest
import pytest_asyncio

from tests.planes import stage as stages
from tests.planes.gangs import gang_rounds, gang_stand, gang_variants
from tests.planes.stage import FULL

SEED = 20261102
MEMBERS = 100
ROUNDS = int(os.environ.get("KOORD_ROUNDS") or (100 if FULL else 5))
VARIANTS = {
    "both native": gang_variants.Native(),
    "native and ours": gang_variants.Mixed("a"),
}
pytestmark = [
    pytest.mark.timeout(7200 if FULL else 120),
    pytest.mark.since(1, 37, reason="PodGroups of Kubernetes itself are beta there"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(native, tmp_path_factory):
    """The processes, for all rounds."""
    async with contextlib.AsyncExitStack() as stack:
        opened = stages.opened(native, tmp_path_factory.mktemp("native-kills"))
        stage = await stack.enter_async_context(opened)
        yield await stack.enter_async_context(gang_stand.standing(stage, **gang_stand.GATED))


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_exactly_one_of_two_runs_and_then_the_other(stand, number):
    chance = random.Random(SEED + number)
    variant = list(VARIANTS.values())[number % len(VARIANTS)]
    await gang_rounds.play(stand, variant, number, MEMBERS, chance)
