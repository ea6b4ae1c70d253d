"""Binds that Permit holds back until what they wait for has happened."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from process.runtime import clock as clocks
from process.runtime import metrics

STOPPING: Final = "the extender is stopping; nothing was bound"
_BUCKETS: Final = (0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0)


class Ended(NamedTuple):
    """How a wait ended."""

    woken: bool
    """False: its time has come."""
    refusal: str = ""
    """Why the pod may not be bound: another one that waited with it was refused."""


class _Waiter:
    """One pod that waits."""

    def __init__(self, uid: str, connected: Callable[[], bool], clock: clocks.Clock) -> None:
        self.uid, self.connected = uid, connected
        self.nap, self.woken, self.refusal = clocks.Nap(clock), False, ""

    def wake(self) -> None:
        """End its wait."""
        self.woken = True
        self.nap.wake()


class WaitingPods:
    """Who waits for which key."""

    def __init__(self, clock: clocks.Clock, registry: metrics.Registry | None = None) -> None:
        self._clock = clock
        self._waits: dict[str, set[_Waiter]] = {}
        self._closed = ""
        figures = registry or metrics.Registry()
        self._seconds = figures.histogram(
            "koord_extender_permit_wait_seconds",
            "How long a bind was held at Permit, by what became of it: allowed or refused.",
            ("outcome",),
            _BUCKETS,
        )
        figures.gauge(
            "koord_extender_held_binds", "Binds that are held at Permit now."
        ).set_function(lambda: len(frozenset().union(*self._waits.values())))

    def __len__(self) -> int:
        """How many keys are waited for."""
        return len(self._waits)

    async def wait(
        self,
        keys: Iterable[str],
        seconds: float,
        uid: str = "",
        connected: Callable[[], bool] = lambda: True,
    ) -> Ended:
        """Wait until one of the keys is woken or refused, at most so many seconds.

        `uid` is the pod that waits, and `connected` says whether its caller is still there.
        """
        if self._closed:
            return Ended(True, self._closed)
        waiter, names = _Waiter(uid, connected, self._clock), tuple(keys)
        for key in names:
            self._waits.setdefault(key, set()).add(waiter)
        try:
            await waiter.nap.rest(seconds)
        finally:
            for key in names:
                self._waits[key].discard(waiter)
                if not self._waits[key]:
                    del self._waits[key]
        return Ended(waiter.woken, waiter.refusal)

    def ended(self, since: float, *, allowed: bool) -> None:
        """Take in that a pod that waited since a moment of the clock waits no longer."""
        seconds = self._clock.monotonic() - since
        self._seconds.labels("allowed" if allowed else "refused").observe(seconds)

    def wake(self, keys: Iterable[str]) -> None:
        """Let everyone who waits for these keys look again."""
        for key in keys:
            for waiter in self._waits.get(key, ()):
                waiter.wake()

    def abandoned(self, keys: Iterable[str], why: str) -> list[str]:
        """End the waits for these keys whose callers are gone; return the uids of their pods."""
        found = []
        for key in keys:
            for waiter in self._waits.get(key, ()):
                if not waiter.refusal and not waiter.connected():
                    waiter.refusal = why
                    waiter.wake()
                    found.append(waiter.uid)
        return found

    def refuse(self, keys: Iterable[str], why: str) -> None:
        """End every wait for these keys; the first reason that is given counts."""
        for key in keys:
            for waiter in self._waits.get(key, ()):
                waiter.refusal = waiter.refusal or why
                waiter.wake()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Let pods wait while the body runs; its end would wait for binds that are held."""
        try:
            yield
        finally:
            self.close()

    def close(self, why: str = STOPPING) -> None:
        """End all waits, and those to come: nothing is left to wake them."""
        self._closed = why
        self.refuse(tuple(self._waits), why)
