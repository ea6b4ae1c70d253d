"""What is written for a PodMigrationJob: values that say so, in the order in which they are done.

Every write to a job carries the version at which it was read, so that what was decided on an older
one fails.
"""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from api.koordinator import event_reasons


@dataclasses.dataclass(frozen=True, slots=True)
class PatchJob:
    """Merge into metadata and spec of the job."""

    body: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class PatchStatus:
    """Set these fields of the status of the job."""

    fields: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class CreateReservation:
    """Create the Reservation of the job from its pod, as the API server has it now."""


@dataclasses.dataclass(frozen=True, slots=True)
class PatchReservation:
    """Merge into exactly this Reservation."""

    name: str
    uid: str
    body: Mapping[str, Any]
    in_turn: bool = False
    """Only if no other job of the same workload has opened its Reservation."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteReservation:
    """Delete exactly this Reservation."""

    name: str
    uid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Evict the pod of the job, after its Reservation was read once more where it needs one."""

    policy: str
    """Eviction, Delete or SoftEviction."""
    reason: str
    trigger: str
    is_trial: bool = False
    """Only ask whether it is allowed now."""


class About(enum.Enum):
    """What an event is about."""

    JOB = "job"
    POD = "pod"
    WORKLOAD = "workload"
    """The controller of the pod."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tell:
    """Say something as an event."""

    reason: event_reasons.Reason
    message: str
    warning: bool = False
    about: About = About.JOB


Step = (
    PatchJob | PatchStatus | CreateReservation | PatchReservation | DeleteReservation | Evict | Tell
)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to do for one job, in order, and the sentence that sums it up."""

    message: str
    steps: tuple[Step, ...] = ()
    again_in: float | None = None
    """Seconds after which it is looked at again even if nothing happens."""


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a job cannot succeed any more."""

    reason: event_reasons.Reason
    message: str
