"""What callers meet while a client is being closed."""

import asyncio
from typing import Any

import pytest

from api import resources
from kube.client import client, errors
from tests.kube.client.requested import PODS


async def test_a_client_that_is_being_closed_is_out_of_reach(
    server: Any, api: client.Client
) -> None:
    """Who calls meanwhile meets an outage, as before and after."""
    server.on("GET", PODS, server.page([], 3))
    selection = client.Selection(resources.PODS)
    # A connection is kept, so that closing takes a moment.
    await api.page(selection, {})

    async def call(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        with pytest.raises(errors.KubeError):
            await api.page(selection, {}, attempts=1)

    closing = api.__aexit__(None, None, None)
    await asyncio.gather(closing, *(call(turns) for turns in range(4)))
