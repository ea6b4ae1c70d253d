"""How often something may be done: a bucket of tokens that fills with time."""

from typing import Final

from process.runtime import clock as clocks

_NAP_SECONDS: Final = 0.05
"""Those who wait look again no more often than that, and then take what has come in."""


class Bucket:
    """Lets so many through at once, and so many a second after that."""

    def __init__(self, clock: clocks.Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at = clock.monotonic()

    def take(self) -> bool:
        """Take one; False while there is none."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    async def wait(self) -> None:
        """Take one as soon as there is one; whoever waits first gets it first or soon after."""
        while not self.take():
            await self._clock.sleep(max(_NAP_SECONDS, (1 - self._left) / self._per_second))

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
