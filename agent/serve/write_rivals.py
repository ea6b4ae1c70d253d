"""Whether another NRI plug-in sets the same fields, for which runtimes refuse containers. Pure.

The runtime does not tell plug-ins of each other. It asks for a container again where it could not
create it: two attempts in a row that came to nothing with an adjustment, and one right after them
that succeeded without, mean a rival. A container that fails without an adjustment as well fails for
a reason of its own.
"""

from collections import OrderedDict
from typing import Final

ATTEMPTS: Final = 2
STAND_DOWN_SECONDS: Final = 600.0
"""After this time adjustments are tried again: the other plug-in may be gone."""
MOST_PENDING: Final = 4096
Key = tuple[str, str]
"""The uid of a pod and the name of a container."""


class Rivals:
    """Remembers which containers were adjusted and have not been created yet."""

    def __init__(self) -> None:
        self.until = 0.0
        """Monotonic seconds until which nothing is adjusted."""
        self._pending: OrderedDict[Key, int] = OrderedDict()

    def standing_down(self, now: float) -> bool:
        """Tell whether all adjustments are left to the other plug-in."""
        return now < self.until

    def may_adjust(self, key: Key) -> bool:
        """Tell whether a container that is about to be created may be adjusted."""
        attempts = self._pending.get(key, 0)
        if attempts == ATTEMPTS:
            self._pending[key] = attempts + 1
            return False
        if attempts > ATTEMPTS:
            del self._pending[key]
        return True

    def adjusted(self, key: Key) -> None:
        """Count an attempt at a container with an adjustment."""
        self._pending[key] = self._pending.pop(key, 0) + 1
        if len(self._pending) > MOST_PENDING:
            self._pending.popitem(last=False)

    def created(self, key: Key, now: float) -> bool:
        """Take that a container was created; return whether that shows a rival."""
        attempts = self._pending.pop(key, 0)
        if attempts <= ATTEMPTS:
            return False
        self.until = now + STAND_DOWN_SECONDS
        return True
