"""Answers that are kept for a while: bounded, and asked for once however many want the same."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from process.runtime import clock as clocks

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Keeps so many answers for so many seconds; the ones that came first go first."""

    def __init__(self, clock: clocks.Clock, seconds: float, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._kept: dict[K, tuple[float, V]] = {}
        self._asking: weakref.WeakValueDictionary[K, asyncio.Lock] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer that is known, else ask; an error is not kept."""
        found = self._fresh(key)
        if found is not None:
            return found[0]
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            found = self._fresh(key)
            if found is not None:
                return found[0]
            value = await ask()
            self._keep(key, value)
            return value

    def _fresh(self, key: K) -> tuple[V] | None:
        kept = self._kept.get(key)
        if kept is None or kept[0] <= self._clock.monotonic():
            return None
        return (kept[1],)

    def _keep(self, key: K, value: V) -> None:
        self._kept.pop(key, None)
        while len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.monotonic() + self._seconds, value)
