"""Token buckets, as client-go's flow control has them: how often something may be done."""

from typing import Final

from process.runtime import clock as clocks

_NAP_SECONDS: Final = 0.05
"""Those who wait look again no more often than that, and then take what has come in."""
_SAVED_SECONDS: Final = 5.0
"""How much of their share reports may save up."""


class Bucket:
    """Holds so many tokens at most and gets so many each second; starts full. Reads no clock."""

    def __init__(self, per_second: float, most: int, now: float = 0.0) -> None:
        self._per_second = per_second
        self._most = float(most)
        self._tokens = float(most)
        self._at = now

    def left(self, now: float) -> int:
        """Return how many times it may be done now; `now` must not go back."""
        gained = max(now - self._at, 0.0) * self._per_second
        self._tokens, self._at = min(self._most, self._tokens + gained), now
        return int(self._tokens)

    def missing(self) -> float:
        """Return what part of a token was missing at the last look."""
        return max(1 - self._tokens, 0.0)

    def take(self, now: float) -> bool:
        """Take a token; False if there is none."""
        if self.left(now) < 1:
            return False
        self._tokens -= 1
        return True

    def spend(self, now: float) -> None:
        """Take a token even if there is none; what is owed comes in within a second."""
        self.left(now)
        self._tokens = max(self._tokens - 1, -self._per_second)


class ClockedBucket:
    """A bucket that reads the time itself, and for whose tokens callers can wait."""

    def __init__(self, clock: clocks.Clock, per_second: float, most: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._bucket = Bucket(per_second, most, clock.monotonic())

    def take(self) -> bool:
        """Take a token; False if there is none."""
        return self._bucket.take(self._clock.monotonic())

    def left(self) -> int:
        """Return how many tokens there are now."""
        return self._bucket.left(self._clock.monotonic())

    def spend(self) -> None:
        """Take a token even if there is none."""
        self._bucket.spend(self._clock.monotonic())

    async def wait(self) -> None:
        """Take a token as soon as there is one; who waits first gets it first or soon after."""
        while not self.take():
            await self._clock.sleep(max(_NAP_SECONDS, self._bucket.missing() / self._per_second))


class YieldingBucket:
    """A bucket for writes that only report, from which more urgent writes take tokens first.

    However many urgent writes there are, reports get their share of the rate: a tenth by default.
    """

    def __init__(
        self, clock: clocks.Clock, per_second: float, most: int, share: float = 0.1
    ) -> None:
        self._clock = clock
        self._bucket = ClockedBucket(clock, per_second, most)
        saved = max(1, int(per_second * share * _SAVED_SECONDS))
        self._reserve = ClockedBucket(clock, per_second * share, saved)

    def spend(self) -> None:
        """Count an urgent write, which waits for nothing."""
        self._bucket.spend()

    def left(self) -> int:
        """Return how many reports may be written now."""
        return max(self._bucket.left(), self._reserve.left())

    def take(self) -> bool:
        """Take a token for a report; False if there is none."""
        # Both count what reports have got: together they never get more than the rate.
        share = self._reserve.take()
        return self._bucket.take() or share

    async def wait(self) -> None:
        """Take a token for a report as soon as there is one."""
        while not self.take():
            await self._clock.sleep(_NAP_SECONDS)
