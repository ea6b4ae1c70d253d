"""One running system in virtual time for each test."""

import pytest

from tests.system import world as worlds


@pytest.fixture
async def world(tmp_path):
    async with worlds.opened(tmp_path) as opened:
        yield opened
