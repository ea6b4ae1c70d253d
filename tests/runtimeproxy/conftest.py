"""One world for each test: nothing is shared."""

import pytest

from tests.runtimeproxy import stand_in


@pytest.fixture
async def world(tmp_path, clock):
    made = stand_in.World(tmp_path, clock)
    await made.runtime.start()
    await made.hooks.start()
    yield made
    await made.close()
