"""How long connections last on a listener that limits their age.

A client keeps a connection for as long as it uses it, and a Service deals out connections rather
than requests. A replica that is started later gets no request before older connections end.
"""

import itertools
import math
from typing import Final, Protocol

from process.runtime import clock as clocks

_SHORTEST: Final = 0.5
_GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2
_PAUSE_SECONDS: Final = 1.0


class Ageing(Protocol):
    """A connection that can be asked to end."""

    def retire(self) -> None:
        """Close it after its next answer."""


def age(greatest: float, number: int) -> float:
    """Return how long the connection of a number lasts, half of the greatest age at least.

    Multiples of the golden ratio spread evenly, however many there are: connections that were
    dialled together end one by one, and their clients do not all shake hands at once.
    """
    return greatest * (1 - (1 - _SHORTEST) * (number * _GOLDEN_RATIO % 1))


class Ages:
    """The connections of a listener that have not reached their age."""

    def __init__(self, greatest: float, clock: clocks.Clock) -> None:
        """Take the greatest age in seconds, and the clock that measures it."""
        self._greatest = greatest
        self._clock = clock
        self._numbers = itertools.count()
        self._ends: dict[Ageing, float] = {}

    def add(self, connection: Ageing) -> None:
        """Begin to measure the age of a connection."""
        own = age(self._greatest, next(self._numbers))
        self._ends[connection] = self._clock.monotonic() + own

    def drop(self, connection: Ageing) -> None:
        """Forget a connection that has ended."""
        self._ends.pop(connection, None)

    async def run(self) -> None:
        """Retire connections that have reached their age, again and again; never ends."""
        while True:
            await self._clock.sleep(self._retire(self._clock.monotonic()))

    def _retire(self, now: float) -> float:
        """Retire what is due; return after how many seconds something may be due again."""
        for connection in [one for one, end in self._ends.items() if end <= now]:
            del self._ends[connection]
            connection.retire()
        # A connection that is made meanwhile lasts as long as the shortest one does.
        following = min(self._ends.values(), default=math.inf) - now
        return max(_PAUSE_SECONDS, min(following, _SHORTEST * self._greatest))
