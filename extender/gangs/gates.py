"""The gates of all gangs, a few of which are opened at once."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from extender.gangs import backlog, queue

_WAITING: Final = 4
"""Gates that may wait for each that is opened at once before no further gang is planned."""


class Gates:
    """Bounds the writes that open gates: bindings would wait behind more of them than that.

    A binding that leaves too long after its check fails, and with it the plan of its gang.
    """

    def __init__(self, writers: int, opened: backlog.Backlog) -> None:
        """`opened`: the members that kube-scheduler has not placed yet."""
        self._opened = opened
        self.writers = writers
        """How many are opened at once."""
        self._turns = asyncio.Semaphore(writers)
        self._unopened = 0

    def are_behind(self, priority: int = 0) -> bool:
        """Whether so many members are let in, or about to be, that more of them would only wait.

        `priority` is that of those which come next.
        """
        return self._unopened >= _WAITING * self.writers or self._opened.is_full(priority)

    def next(self, line: queue.Queue, now: float, busy: Collection[str]) -> str:
        """Return the group that is planned next; none where members that are let in come first."""
        found = line.next(now, busy)
        return "" if found and self.are_behind(line.priority(found)) else found

    async def each(self, uids: Iterable[str], work: Callable[[str], Awaitable[None]]) -> None:
        """Open the gates of some members in their turns: those that were asked for first."""
        left = dict.fromkeys(uids)
        self._unopened += len(left)

        async def one(uid: str) -> None:
            async with self._turns:
                await work(uid)
            del left[uid]
            self._unopened -= 1

        try:
            async with asyncio.TaskGroup() as tasks:
                for uid in tuple(left):
                    tasks.create_task(one(uid))
        finally:
            self._unopened -= len(left)
