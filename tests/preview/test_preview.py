"""What `koord simulate quota` says is what happens: the same cases asked first and run after."""

import os

import pytest

from tests.preview import cases, real
from tests.system import world as worlds

COUNT = int(os.environ.get("KOORD_PREVIEW", "4"))
FIRST = int(os.environ.get("KOORD_PREVIEW_FIRST", "0"))
PER_WORLD = 20


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_WORLD))
async def test_what_simulate_says_is_what_happens(tmp_path, first):
    different = []
    async with worlds.opened(tmp_path) as world:
        await real.prepare(world)
        for seed in range(first, min(first + PER_WORLD, FIRST + COUNT)):
            case = cases.case(seed)
            result = await real.run(world, case)
            if not result.equal:
                different.append(f"{seed} {case.flags}: {result.difference()}")
            await real.clear(world, case)
    assert not different
