"""When pods were created, let go by their gates, bound, or told why they wait. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from api import names
from benchmarks.gangs import objects
from benchmarks.plane import pod_events

_GATE: Final = pod_events.gate(names.GATE_GANG)
_REFUSED: Final = b"InsufficientRoom"
"""The reason of the condition; nothing else of these pods says it."""


class Moments:
    """The moments of all pods by name, in seconds, as one watch shows them."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.gated = set[str]()
        """Pods that were seen behind the gate of gangs."""
        self.opened: dict[str, float] = {}
        """When a pod that had been gated was first seen without its gate."""
        self.bound: dict[str, float] = {}
        self.refused: dict[str, float] = {}
        """When a pod first said that there is no room for its gang."""
        self.events = 0

    def answered(self, name: str, now: float) -> None:
        """Take in that the API server has answered the creation of a pod."""
        self.created.setdefault(name, now)

    def frame(self, frame: bytes, now: float) -> None:
        """Take in one event of a watch of pods, as its protobuf bytes."""
        self.events += 1
        event = pod_events.read(frame, objects.NODE_PREFIX, objects.NODE_LENGTH)
        if event.kind == pod_events.DELETED:
            return
        name = event.name
        # The watch may show a pod before the answer to its creation has arrived here.
        self.created.setdefault(name, now)
        if _GATE in frame:
            self.gated.add(name)
        elif name in self.gated:
            self.opened.setdefault(name, now)
        if event.bound:
            self.bound.setdefault(name, now)
        if _REFUSED in frame:
            self.refused.setdefault(name, now)

    def delays(self, members: Iterable[str], ends: dict[str, float]) -> Iterator[float]:
        """Yield the seconds from the creation of the last member to the end of each."""
        chosen = list(members)
        complete = max(self.created[name] for name in chosen)
        return (ends[name] - complete for name in chosen)
