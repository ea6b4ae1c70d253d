"""How long owners that wait for their Reservation take to be bound once it is Available. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from api.koordinator import scheduling

BOOKMARK = "BOOKMARK"


class EndedError(RuntimeError):
    """A watch that the API server has ended."""


class Wait(NamedTuple):
    """The moments of one owner, in seconds."""

    created: float
    """Its Reservation was created."""
    available: float
    bound: float


class Waits:
    """The moments of all owners, which have the names of their Reservations."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.available: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def reservation(self, line: bytes, now: float) -> None:
        """Take in one event of a watch of Reservations."""
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise EndedError(f"the watch of Reservations ended: {event['object']}")
        found = event["object"]
        if (found.get("status") or {}).get("phase") == scheduling.AVAILABLE:
            self.available.setdefault(found["metadata"]["name"], now)

    def pod(self, name: str, now: float, *, bound: bool) -> None:
        """Take in one event of a watch of pods."""
        if bound:
            self.bound.setdefault(name, now)

    def ready(self, names: Iterable[str]) -> bool:
        """Whether all of these are bound, and were seen to have a Reservation."""
        return all(name in self.bound and name in self.available for name in names)

    def found(self, names: Iterable[str]) -> Iterator[Wait]:
        """Yield the moments of those that are bound.

        Two watches tell of a Reservation and its owner: the binding may be seen first.
        """
        for name in names:
            bound = self.bound[name]
            yield Wait(self.created[name], min(self.available[name], bound), bound)
