"""What a pod wants of slots, what it was given, and how that is recorded on it."""

import functools
from collections.abc import Mapping

import msgspec

from extender.framework import views

NAME = "Slots"
RESOURCE = "example.com/slots"
TEAM, BARRIER = "example.com/team", "example.com/barrier"
NUMBERS = "example.com/slot-numbers"
MOST = 1024
"""Slots of one node; what is numbered higher cannot have been given by anyone."""


class Wanted(msgspec.Struct, frozen=True):
    """What PreFilter reads of a pod."""

    count: int
    team: str = ""
    barrier: str = ""
    """Pods of one barrier are bound together ..."""
    members: int = 0
    """... as soon as so many have a place."""
    priority: int = 0


class Slots(msgspec.Struct, frozen=True):
    """The slots of one pod."""

    numbers: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def wanted(requirements: views.PodRequirements) -> Wanted | None:
    """Read what a pod wants; None: no slots."""
    count = dict(requirements.requests).get(RESOURCE, 0)
    if not count:
        return None
    inputs = dict(requirements.inputs)
    barrier, _, members = inputs.get(BARRIER, "").partition("/")
    return Wanted(
        count=count,
        team=inputs.get(TEAM, ""),
        barrier=barrier if members.isdecimal() else "",
        members=int(members) if barrier and members.isdecimal() else 0,
        priority=requirements.priority,
    )


class Codec:
    """AllocationCodec: the annotation with a pod's slots, such as `0,3`."""

    name = NAME
    annotations = (NUMBERS,)

    def decode(self, annotations: Mapping[str, str], wanted: views.PodRequirements) -> Slots | None:
        """Read the slots of a pod; ValueError where it cannot have been given them."""
        numbers = tuple(int(text) for text in annotations[NUMBERS].split(","))
        asked = dict(wanted.requests).get(RESOURCE, 0)
        if len(numbers) > asked or len(set(numbers)) < len(numbers):
            raise ValueError(f"{len(numbers)} slots for a pod that asks for {asked}")
        if not all(0 <= number < MOST for number in numbers):
            raise ValueError("no node has such a slot")
        return Slots(numbers)

    def encode(self, allocation: Slots) -> Mapping[str, str]:
        """Write the slots of a pod."""
        return {NUMBERS: ",".join(map(str, allocation.numbers))}

    def conflicts(self, one: Slots, other: Slots) -> bool:
        """Whether a slot was given twice."""
        return not set(one.numbers).isdisjoint(other.numbers)
