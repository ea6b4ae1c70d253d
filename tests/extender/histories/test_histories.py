"""Whatever happens, in whatever order: no slot of a node is ever granted twice."""

import os
import random

import pytest

from tests.extender.histories import histories

STEPS = int(os.environ.get("KOORD_HISTORY_STEPS", "2000"))
SEEDS = 4


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_one_extender_never_grants_anything_twice(seed):
    """Bindings fail, arrive late, are not answered; watches lag, repeat and begin anew."""
    history = histories.History(random.Random(seed), shared=False)
    await history.run(STEPS // SEEDS)
    await history.settle()
    assert histories.written(history.server)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_two_extenders_grant_twice_is_found_and_one_is_kept(seed):
    """Processes are killed, replaced and work side by side; each by itself grants nothing twice."""
    history = histories.History(random.Random(1000 + seed), shared=True)
    await history.run(STEPS // SEEDS)
    await history.settle()
    assert histories.written(history.server)
