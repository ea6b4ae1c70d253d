"""When one stream of news was last heard of, and what went wrong since."""

import asyncio
import math
from collections.abc import Callable
from typing import Final

from kube.client import errors
from process.runtime import clock as clocks

_SHORTEST_SECONDS: Final = 1.0
_NO_ANSWER: Final = "no answer"
# An API server that starts, or a CRD that is replaced, may not know a resource for a moment.
_UNKNOWN_SECONDS: Final = 2.0
_LOST_SECONDS: Final = 60.0


class WatchHealth:
    """What a reflector knows of its connection to the API server."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._last: float | None = None
        self._told = 0.0
        self._opened = 0.0
        self._failures = 0
        self._kind = ""
        self._error = ""
        self._connected = False
        self._confirmed: float | None = None
        self._unknown_since: float | None = None
        self.missing = False
        """Whether the API server does not know the resource, for long enough to be believed."""
        self.on_loss: Callable[[], None] = lambda: None
        """Called whenever the watch may have ceased to be well."""

    @property
    def unconfirmed(self) -> float:
        """For how many seconds deletions may have been missed: no watch was open."""
        if self._connected:
            return 0.0
        return math.inf if self._confirmed is None else self._clock.monotonic() - self._confirmed

    @property
    def connected(self) -> bool:
        """Whether a watch is open at this moment."""
        return self._connected

    @property
    def is_well(self) -> bool:
        """Whether a watch is open and nothing has failed since it was opened."""
        return self._connected and not self._error

    @property
    def last(self) -> float | None:
        """When the API server was last heard of, on the monotonic clock; None if never."""
        return self._last

    @property
    def age(self) -> float:
        """For how many seconds nothing was heard, infinite before the first word."""
        return math.inf if self._last is None else self._clock.monotonic() - self._last

    @property
    def error(self) -> str:
        """Why the last list or watch failed, empty while a watch is open."""
        return self._error

    @property
    def failures(self) -> int:
        """How often in a row lists and watches failed before they told anything."""
        return self._failures

    def opens(self) -> None:
        """Note that a stream is asked for."""
        self._opened = _real_time()

    def opened(self) -> None:
        """Note that the watch is open and nothing is missing."""
        self._last = self._clock.monotonic()
        self._connected, self._error = True, ""
        self._unknown_since, self.missing = None, False

    def heard(self) -> None:
        """Note that something was told."""
        self._last = self._clock.monotonic()
        self._told = _real_time()

    def unknown(self, had_been_listed: bool, *, optional: bool = False) -> bool:
        """Note that the API server does not know the resource; return whether that is news.

        It is believed sooner where nothing was ever listed than where objects would be lost, and at
        once where most clusters do not have the resource: no start waits for it.
        """
        now = self._clock.monotonic()
        self._last = now
        if self._unknown_since is None:
            self._unknown_since = now
        patience = _LOST_SECONDS if had_been_listed else 0.0 if optional else _UNKNOWN_SECONDS
        if self.missing or now - self._unknown_since < patience:
            return False
        self.missing = True
        return True

    def listed(self) -> None:
        """Note that a list is complete, so that no deletion before it was missed."""
        self._confirmed = self._clock.monotonic()

    def recovered(self) -> None:
        """Note that a watch works: the next failure is the first one again."""
        self._failures = 0

    def failed(self, error: errors.KubeError) -> None:
        """Note a failure; a server that says something new after an outage is worth trying soon."""
        kind = _kind(error)
        is_news = kind not in (_NO_ANSWER, self._kind)
        self._failures = 1 if is_news else self._failures + 1
        self._kind = kind
        self._error = str(error)
        self.on_loss()

    def closed(self) -> None:
        """Note that no watch is open."""
        if self._connected:
            self._confirmed = self._clock.monotonic()
        self._connected = False
        self.on_loss()

    def silent(self) -> bool:
        """Return whether the present stream has told nothing since it was opened."""
        return self._told < self._opened

    @property
    def was_idle(self) -> bool:
        """Whether the stream ended at once without having told anything."""
        # Real time on purpose: this guards against a server that we would call without a pause.
        return self.silent() and _real_time() - self._opened < _SHORTEST_SECONDS


def _kind(error: errors.KubeError) -> str:
    if isinstance(error, errors.Unreachable):
        return _NO_ANSWER
    return "gone" if isinstance(error, errors.Gone) else "refused"


def _real_time() -> float:
    return asyncio.get_running_loop().time()
