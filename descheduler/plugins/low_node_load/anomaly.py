"""Which nodes have been overloaded for long enough to act, so that a short peak moves no pod. Pure.

Each node has a detector per kind of load. A round in which the node is not overloaded clears its
count: only consecutive rounds add up.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from descheduler.plugins.low_node_load import pools

_FOREVER: Final = 60.0
"""What a time-out of nothing stands for."""


class Kind(enum.StrEnum):
    """Whose load it is."""

    NODE = "node"
    PROD = "prod"


class Detector(NamedTuple):
    """How often a node was seen overloaded or normal in a row."""

    seen_at: float
    abnormal: int = 0
    normal: int = 0
    until: float = 0.0
    """While the clock is below, the node counts as overloaded and is acted on."""


Key = tuple[str, Kind, str]
"""Pool, kind of load, node."""
Kept = Mapping[Key, Detector]


class Detectors:
    """The detectors of one pool in one round; what comes of them is `kept`."""

    __slots__ = ("_condition", "_found", "_now", "_pool")

    def __init__(
        self, kept: Kept, pool: str, condition: pools.Condition | None, now: float
    ) -> None:
        self._found = dict(kept)
        self._pool, self._condition, self._now = pool, condition, now

    @property
    def kept(self) -> Kept:
        """What to remember."""
        return self._found

    def overloaded(self, kind: Kind, names: Iterable[str]) -> set[str]:
        """Count nodes as overloaded once more; return those that are acted on."""
        wanted = self._condition
        if wanted is None or wanted.abnormalities <= 1:
            return set(names)
        return {name for name in names if self._is_abnormal((self._pool, kind, name), wanted)}

    def _is_abnormal(self, key: Key, wanted: pools.Condition) -> bool:
        now = self._now
        last = self._found.get(key, Detector(now))
        if last.until <= now:
            count = 0 if last.until else last.abnormal
            last = Detector(now, count + 1)
            if last.abnormal > wanted.abnormalities:
                last = Detector(now, until=now + (wanted.timeout or _FOREVER))
        else:
            last = Detector(now, last.abnormal + 1, until=last.until)
        self._found[key] = last
        return last.until > now

    def normal(self, kind: Kind, names: Iterable[str]) -> None:
        """Count nodes that were acted on as normal once: enough of these end it."""
        for key in ((self._pool, kind, name) for name in names):
            last = self._found.get(key)
            if last is None or self._condition is None:
                continue
            ended = last.normal + 1 > self._condition.normalities
            if last.until and ended:
                del self._found[key]
            else:
                self._found[key] = Detector(self._now, 0, last.normal + 1, last.until)

    def clear(self, kind: Kind, names: Iterable[str]) -> None:
        """Start the count of nodes anew: they are not overloaded, or no longer."""
        for name in names:
            self._found.pop((self._pool, kind, name), None)


def current(kept: Kept, now: float, seconds: float) -> Kept:
    """Return the detectors of nodes that were looked at within this time."""
    return {key: one for key, one in kept.items() if now - one.seen_at <= seconds}
