"""Certificates on disk and a way to wait for real sockets."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Let the event loop run until a condition holds; the test's time limit is the limit."""

    async def wait(condition: Callable[[], bool]) -> None:
        for _ in range(1_000_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("the condition never held")

    return wait
