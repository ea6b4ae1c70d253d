"""Pods that were let in and that no scheduler has tried yet. Pure.

To open gates faster than pods are bound gains nothing, and it harms where the API server is short
of time: writes of gates delay bindings until the scheduler gives those up and tries them again.
"""

import math


class Backlog:
    """Counts pods from their opening until they are tried, but each for so many seconds at most.

    Pods that no scheduler looks after so hold up the others only for a while.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def add(self, uid: str, now: float) -> None:
        """Count a pod that is let in now."""
        self._since.pop(uid, None)
        self._since[uid] = now

    def tried(self, uid: str) -> None:
        """Leave out a pod that is bound, found no node, is gone or could not be let in."""
        self._since.pop(uid, None)

    def room(self, now: float) -> int:
        """Return how many more pods may be let in now."""
        for uid, since in tuple(self._since.items()):
            if now < since + self._seconds:
                break
            del self._since[uid]
        return max(0, self._most - len(self._since))

    @property
    def again_at(self) -> float:
        """When there is room again even if nothing happens; infinity while there is."""
        if len(self._since) < self._most:
            return math.inf
        return next(iter(self._since.values()), math.inf) + self._seconds
