"""The metadata of a Pod that schedulers and admission own, and its author must not write.

The ValidatingAdmissionPolicy `koord-pods` and the webhook protect the same keys; a test compares
the chart with these lists.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names

ALLOCATIONS: Final = (
    names.ANNOTATION_RESOURCE_STATUS,
    names.ANNOTATION_DEVICE_ALLOCATED,
    names.ANNOTATION_RESERVATION_ALLOCATED,
    names.ANNOTATION_RESERVATION_CURRENT_OWNER,
    names.ANNOTATION_BIND_TIMESTAMP,
    names.ANNOTATION_GPU_MINORS,
    names.ANNOTATION_BIND_GANG_GROUP,
    names.ANNOTATION_BIND_GANG_MEMBERS,
    names.ANNOTATION_BIND_GANG_GROUP_OLD,
    names.ANNOTATION_BIND_GANG_MEMBERS_OLD,
    names.ANNOTATION_GANG_TIMEOUT,
    names.PLACEMENT,
    names.ANNOTATION_PLAN,
)
"""What a scheduler writes of its decision; a new pod has none of it."""

STAND_INS: Final = (
    names.ANNOTATION_RESERVE_POD,
    names.ANNOTATION_RESERVATION_NAME,
    names.ANNOTATION_RESERVATION_NODE,
    names.ANNOTATION_IS_PRE_ALLOCATION,
)
"""What a scheduler writes on the pod that stands for a Reservation in its memory."""

RECORDS: Final = (
    names.ANNOTATION_EXTENDED_RESOURCE_SPEC,
    names.ANNOTATION_PROFILES,
    names.ANNOTATION_CHANGES,
)
"""What admission writes while a pod is created, and nobody changes afterwards."""

REQUESTS: Final = (names.ANNOTATION_RESOURCE_SPEC,)
"""What an author asks for and the scheduler completes: a record as soon as the pod is bound."""

CLASSES: Final = (names.LABEL_QOS, names.LABEL_PRIORITY_CLASS)
"""Labels that decide how a node treats a pod; they stay as they are once it is bound."""

PREEMPTIONS: Final = (names.ANNOTATION_PREEMPTION,)
"""What the extender notes on a pod that waits for others to leave."""

NEVER_CREATED: Final = (*ALLOCATIONS, *STAND_INS, *PREEMPTIONS)
STRIPPED: Final = tuple(key for key in NEVER_CREATED if key != names.ANNOTATION_RESERVE_POD)
"""What is taken off a new pod; whoever claims to be a Reservation is refused instead."""

Metadata = Mapping[str, Any]


def changed(before: Metadata, after: Metadata, *, bound: bool) -> Iterator[str]:
    """Yield the protected fields that an update of a Pod adds, removes or changes."""
    keys = (*NEVER_CREATED, *RECORDS, *(REQUESTS if bound else ()))
    yield from _differing(before, after, "annotations", keys)
    if bound:
        yield from _differing(before, after, "labels", CLASSES)


def created(metadata: Metadata) -> Iterator[str]:
    """Yield the protected fields that a new Pod carries."""
    yield from _differing({}, metadata, "annotations", NEVER_CREATED)


def bound(metadata: Metadata) -> Iterator[str]:
    """Yield the protected fields that a Binding would copy to its Pod."""
    yield from _differing({}, metadata, "annotations", (*NEVER_CREATED, *RECORDS, *REQUESTS))
    yield from _differing({}, metadata, "labels", CLASSES)


def _differing(
    before: Metadata, after: Metadata, part: str, keys: tuple[str, ...]
) -> Iterator[str]:
    old, new = _part(before, part), _part(after, part)
    for key in keys:
        if (key in old) != (key in new) or old.get(key) != new.get(key):
            yield f"metadata.{part}[{key}]"


def _part(metadata: Metadata, part: str) -> Mapping[str, Any]:
    found = metadata.get(part)
    return found if isinstance(found, Mapping) else {}
