"""Answers are kept for their time, in bounds, and asked for once."""

import asyncio

import pytest

from manager.console.access import remembered
from process.runtime.clock import ManualClock


class Asked:
    """Counts questions, and answers with their number."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        await asyncio.sleep(0)
        return self.count


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


async def test_many_at_once_ask_once(clock) -> None:
    kept: remembered.Remembered[str, int] = remembered.Remembered(clock, 10, 5)
    ask = Asked()
    assert await asyncio.gather(*(kept.get("k", ask) for _ in range(20))) == [1] * 20


async def test_an_answer_ends_with_its_time(clock) -> None:
    kept: remembered.Remembered[str, int] = remembered.Remembered(clock, 10, 5)
    ask = Asked()
    await kept.get("k", ask)
    await clock.advance(9.0)
    assert await kept.get("k", ask) == 1
    await clock.advance(1.0)
    assert await kept.get("k", ask) == 2


async def test_no_more_are_kept_than_allowed(clock) -> None:
    kept: remembered.Remembered[int, int] = remembered.Remembered(clock, 10, 5)
    ask = Asked()
    for key in range(100):
        await kept.get(key, ask)
    assert len(kept) == 5
    assert await kept.get(99, ask) == 100


async def test_an_error_is_not_kept(clock) -> None:
    kept: remembered.Remembered[str, int] = remembered.Remembered(clock, 10, 5)

    async def fails() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await kept.get("k", fails)
    assert await kept.get("k", Asked()) == 1
