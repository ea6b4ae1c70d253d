"""How far a watch has come, by resource version, and how to make it tell so sooner."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kube.client import horizon as horizons

UNKNOWN: Final = -1
SHORT_SECONDS: Final = 3
"""Life of a watch that is opened for its bookmark: API servers send one about two seconds before
the end, and none for a watch that lives for two seconds or less."""


class Progress:
    """The resource version up to which a cache holds everything that its watch has delivered."""

    def __init__(self, horizon: horizons.Horizon) -> None:
        self._version = UNKNOWN
        self._horizon = horizon
        self.current_at: float | None = None
        """When the last list began that the API server's quorum agreed on, on the monotonic clock;
        all that was written before is in the cache."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def version(self) -> int:
        """Every change up to this resource version is in the cache; -1 before the first list."""
        return self._version

    def listed(self, version: int, began: float | None) -> None:
        """Note a complete list; it counts even if its version is lower than what was known.

        ``began`` is when it was asked for, None if it may be an old one from the server's memory.
        """
        self._version = version
        self._horizon.saw(version)
        self.current_at = began
        self._release()

    def advance(self, version: int) -> None:
        """Note an event or a bookmark; a watch delivers them in the order of their versions."""
        if version > self._version:
            self._version = version
            self._horizon.saw(version)
            if self._waiting:
                self._release()

    async def reached(self, version: int) -> None:
        """Wait until the cache holds every change up to this resource version."""
        if self._version >= version:
            return
        entry = (version, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            self._waiting.remove(entry)

    def _release(self) -> None:
        for version, done in self._waiting:
            if version <= self._version and not done.done():
                done.set_result(None)


class Stream:
    """The present watch of a reflector, which may be ended for one that brings a bookmark soon."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self.is_short = False
        """Whether the watch, or the next one, is opened for its bookmark."""

    async def run(self, cycle: Callable[[], Awaitable[None]]) -> None:
        """List and watch until the watch ends or is ended by ``reopen``."""
        scope = asyncio.timeout(None)
        short = self.is_short
        try:
            async with scope:
                self._scope = scope
                await cycle()
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            self._scope = None
            if short:
                self.is_short = False

    def reopen(self) -> None:
        """End the present watch; the next one begins where it ended."""
        # A scope that has expired must not be asked again: it would raise in the task that asks.
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.reschedule(asyncio.get_running_loop().time())
