"""Claims: everything that holds capacity of a node, with what a plug-in allocated to it.

A bound pod, an assumed one, a nominated one and a reservation are counted alike;
the kind says who counts it.
"""

import enum
import math
from collections.abc import Iterable
from typing import Final

import msgspec

from extender.state import allocations, records


class ClaimKind(enum.Enum):
    """How firmly a claim holds its capacity."""

    BOUND = "bound"
    """The watch shows the pod on its node."""
    ASSUMED = "assumed"
    """A Binding was sent and the watch has not shown it yet."""
    NOMINATED = "nominated"
    """Capacity is kept for a pod that is expected there: a preemptor, a member of a gang."""
    RESERVATION = "reservation"
    """Capacity is kept for the owners of a Reservation."""


SHOWN: Final = "shown"
"""Evidence of a reservation that the API server has shown; until then no pod may use it."""
FIRM: Final = (ClaimKind.BOUND, ClaimKind.ASSUMED)
"""Kinds of pods that the scheduler counts as placed; one claim a pod at most.

A tuple, since enumerations are hashed in Python and compared in C.
"""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Capacity of one node that is held for one pod or one reservation."""

    id: str
    """The uid of a pod that is bound or assumed, else the kind, a slash and a uid."""
    kind: ClaimKind
    node: str
    pod: records.PodRecord
    """What is held, as a pod asks for it."""
    allocations: records.Allocations = records.NONE
    usable_by: str = ""
    """Uid or owner key of who may use it; empty: only the pod itself."""
    consumes: str = ""
    """Id of the claim whose capacity this one uses."""
    expires_at: float = math.inf
    """On the wall clock."""
    evidence: str = ""
    """Resource version or attempt that proves it; `SHOWN` of a reservation that pods may use."""


class Conflict(msgspec.Struct, frozen=True):
    """Two claims on one node that were allocated the same thing."""

    plugin: str
    node: str
    one: str
    other: str


def conflicts(
    live: Iterable[Claim], codecs: Iterable[allocations.AllocationCodec]
) -> list[Conflict]:
    """Return which claims of one node overlap; one that consumes another may use what it holds."""
    found, held = [], list(live)
    for codec in codecs:
        holders = [claim for claim in held if codec.name in claim.allocations]
        for index, one in enumerate(holders):
            for other in holders[index + 1 :]:
                if other.id == one.consumes or one.id == other.consumes:
                    continue
                if codec.conflicts(one.allocations[codec.name], other.allocations[codec.name]):
                    found.append(Conflict(codec.name, one.node, one.id, other.id))
    return found


def nominated(uid: str) -> str:
    """Return the id of the claim that is kept for a pod before it is placed."""
    return f"{ClaimKind.NOMINATED.value}/{uid}"


def reservation(uid: str) -> str:
    """Return the id of the claim of a Reservation."""
    return f"{ClaimKind.RESERVATION.value}/{uid}"
