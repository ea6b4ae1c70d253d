"""Binds that Permit holds back until what they wait for has happened."""

import asyncio
from collections.abc import Iterable

from process.runtime import clock as clocks
from process.runtime import supervise


class WaitingPods:
    """Who waits for which key."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._waits: dict[str, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        """How many keys are waited for."""
        return len(self._waits)

    async def wait(self, keys: Iterable[str], seconds: float) -> bool:
        """Wait until one of the keys is woken; False if that takes longer than so many seconds."""
        woken, names = asyncio.Event(), tuple(keys)
        for key in names:
            self._waits.setdefault(key, set()).add(woken)
        try:
            async with supervise.deadline(self._clock, seconds):
                await woken.wait()
        except TimeoutError:
            return False
        finally:
            for key in names:
                self._waits[key].discard(woken)
                if not self._waits[key]:
                    del self._waits[key]
        return True

    def wake(self, keys: Iterable[str]) -> None:
        """Let everyone who waits for these keys look again."""
        for key in keys:
            for woken in self._waits.get(key, ()):
                woken.set()
