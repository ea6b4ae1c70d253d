"""How long tests wait, in real time, for what has to happen."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

# It only keeps a test that fails from hanging: a busy machine may stand still for many seconds.
SECONDS = 60.0


def pauses() -> Iterator[float]:
    """Real seconds between steps of virtual time: ever longer, up to a twentieth of a second.

    Exchanges over sockets take real time. A few milliseconds are enough almost always; where they
    are not, virtual time must not run away from what it waits for.
    """
    yield from itertools.accumulate(
        itertools.repeat(1.05), lambda pause, growth: min(pause * growth, 0.05), initial=0.001
    )


async def until(
    condition: Callable[[], Any], step: Callable[[], Awaitable[None]], told: Callable[[], Any] = str
) -> Any:
    """Take steps of virtual time until something is so, and return it."""
    end, pause = time.monotonic() + SECONDS, pauses()
    while not (found := condition()):
        assert time.monotonic() < end, f"it did not happen: {told()}"
        await step()
        await asyncio.sleep(next(pause))
    return found


async def arrives(condition: Callable[[], Any], told: Callable[[], Any] = str) -> Any:
    """Wait for what sockets and watches bring in real time, unannounced, and return it."""
    return await until(condition, _no_step, told)


async def _no_step() -> None:
    """Leave virtual time as it is."""
