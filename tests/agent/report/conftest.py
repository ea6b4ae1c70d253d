"""What tests of reports share: an API server that keeps their patches, and a clock."""

import pytest

from process.runtime.clock import ManualClock
from tests.agent.report import patched_api


@pytest.fixture
async def api():
    """An API server that keeps what patches say, and refuses as a test says."""
    api = patched_api.Api()
    async with patched_api.serving(api.patch) as api.url:
        yield api


@pytest.fixture
def clock():
    return ManualClock()
