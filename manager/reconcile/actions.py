"""What a controller wants done: values that say so, turned into writes in one place."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from api import resources
from api.koordinator import event_reasons
from domain import conditions


@dataclasses.dataclass(frozen=True, slots=True)
class Apply:
    """Set these fields of an object, creating it where it is missing."""

    resource: resources.Resource
    name: str
    body: Mapping[str, Any]
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    """Create an object; one of that name that is there already stays as it is."""

    resource: resources.Resource
    name: str
    body: Mapping[str, Any]
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    """Remove exactly this object."""

    resource: resources.Resource
    name: str
    uid: str
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class PatchStatus:
    """Merge into the status of an object, and into those annotations that may go with it."""

    resource: resources.Resource
    name: str
    body: Mapping[str, Any]
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Merge:
    """Merge into an object; a version in the body guards against changes of others."""

    resource: resources.Resource
    name: str
    body: Mapping[str, Any]
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class SetCondition:
    """Set one condition of an object and keep those of others; the moment is added in writing."""

    resource: resources.Resource
    name: str
    condition: conditions.Condition[str]
    present: Any = ()
    """The conditions as they stand, of whatever shape."""
    version: str = ""
    """The resource version at which they were seen; guards what others wrote since."""


@dataclasses.dataclass(frozen=True, slots=True)
class PatchPod:
    """Change a pod by a strategic merge patch; uid and version in the body guard it."""

    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Evict exactly this pod through the Eviction API, as far as disruption budgets allow."""

    namespace: str
    name: str
    uid: str
    dry_run: bool = False
    """Only ask whether it is allowed now."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tell:
    """Say something about an object as an event."""

    resource: resources.Resource
    name: str
    uid: str
    reason: event_reasons.Reason
    note: str
    warning: bool = False
    namespace: str = ""
    topic: str = ""
    """What this is one of several outcomes of, such as a condition; empty: the reason."""


Step = Apply | Create | Delete | Merge | PatchStatus | SetCondition | PatchPod | Evict | Tell


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to do for one key, in order, and the sentence that sums it up."""

    message: str
    steps: tuple[Step, ...] = ()
    again_in: float | None = None
    """Seconds after which this has to be looked at again even if nothing happens."""
