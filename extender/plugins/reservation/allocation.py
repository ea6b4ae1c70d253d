"""What a pod says about Reservations, which one it was given, and how that is recorded on it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import annotations as metadata
from api.wire import base
from domain.reservations import matching
from extender.framework import verdicts, views

NAME: Final = views.RESERVATION
LABELS: Final = (names.LABEL_RESERVATION_IGNORED,)
ANNOTATIONS: Final = (
    names.ANNOTATION_RESERVATION_AFFINITY,
    names.ANNOTATION_EXACT_MATCH_RESERVATION,
    names.ANNOTATION_STAND_IN_POLICY,
)
UNREADABLE: Final = verdicts.Status(
    "reservation-affinity or exact-match-reservation of the pod cannot be read; "
    "correct the annotation"
)
_LONGEST: Final = 253
"""Characters of the name or the uid of an object."""


class Used(msgspec.Struct, frozen=True, gc=False):
    """The Reservation whose capacity a pod uses."""

    name: str
    uid: str

    @property
    def consumes(self) -> str:
        """Return the id of the claim that the pod consumes."""
        return views.reservation_claim(self.uid)


_NO_WISHES: Final = matching.wishes({}, {})


def wishes(requirements: views.PodRequirements) -> matching.Wishes | verdicts.Status:
    """Return what a pod says about Reservations, or the refusal of one that cannot be read."""
    # Most pods say nothing that any plug-in reads.
    return _wishes(requirements) if requirements.inputs else _NO_WISHES


@views.PodRequirements.remembered(4096)
def _wishes(requirements: views.PodRequirements) -> matching.Wishes | verdicts.Status:
    inputs = dict(requirements.inputs)
    try:
        return matching.wishes(inputs, inputs)
    except base.ReadError:
        return UNREADABLE


class Codec:
    """AllocationCodec: the annotation that names the Reservation of a pod."""

    name = NAME
    annotations = (names.ANNOTATION_RESERVATION_ALLOCATED,)

    def decode(self, annotations: Mapping[str, str], wanted: views.PodRequirements) -> Used | None:
        """Read which Reservation a pod uses; ValueError where the text names none."""
        del wanted
        found = metadata.RESERVATION_ALLOCATED.read(annotations)
        if found is None or not found.uid:
            raise ValueError("the annotation names no uid of a Reservation")
        if len(found.uid) > _LONGEST or len(found.name) > _LONGEST:
            raise ValueError(f"name or uid is longer than {_LONGEST} characters")
        return Used(found.name, found.uid)

    def encode(self, allocation: Used) -> Mapping[str, str]:
        """Write which Reservation a pod uses."""
        written = {"name": allocation.name, "uid": allocation.uid}
        return {names.ANNOTATION_RESERVATION_ALLOCATED: base.encoded(written)}

    def conflicts(self, one: Used, other: Used) -> bool:
        """Return False: how many pods may use a Reservation is not said by those that do."""
        del one, other
        return False
