"""Values of plug-ins about the whole cluster, as changes would leave them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from extender.state import deltas


class Follower(Protocol):
    """A state tracker, as far as it follows changes."""

    name: str

    def cluster(self, old: Any, delta: deltas.Delta) -> object | None:
        """Return the value of the cluster after a change."""


class AdvancedValues(Mapping[str, object]):
    """By plug-in: its value of the cluster after some changes, worked out when it is first read.

    Most what-ifs are read by one or two plug-ins, and following one change takes as long as
    judging a node.
    """

    __slots__ = ("_before", "_changes", "_found", "_trackers")

    def __init__(
        self,
        before: Mapping[str, object],
        trackers: Sequence[Follower],
        changes: Sequence[deltas.Delta],
    ) -> None:
        """`before` are the values without the changes; nothing changes them any more."""
        self._before: Final = before
        self._trackers: Final = {tracker.name: tracker for tracker in trackers}
        self._changes: Final = tuple(changes)
        self._found: Final = dict[str, object]()

    def __getitem__(self, plugin: str) -> object:
        if plugin in self._found:
            return self._found[plugin]
        value, tracker = self._before[plugin], self._trackers.get(plugin)
        if tracker is not None:
            for change in self._changes:
                value = tracker.cluster(value, change)
        self._found[plugin] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._before)

    def __len__(self) -> int:
        return len(self._before)
