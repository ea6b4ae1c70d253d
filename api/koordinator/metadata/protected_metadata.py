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

DEVICE_PLUGINS: Final = (
    names.ANNOTATION_HUAWEI_PREDICATE_TIME,
    names.ANNOTATION_HUAWEI_ASCEND_310P,
    names.NPU_CORE,
    names.ANNOTATION_CAMBRICON_ASSIGNED,
    names.ANNOTATION_CAMBRICON_PROFILE,
    names.ANNOTATION_METAX_ALLOCATED,
)
"""What a scheduler writes for device plug-ins of vendors, whose own schedulers write it as well."""

STAND_INS: Final = (
    names.ANNOTATION_RESERVE_POD,
    names.ANNOTATION_RESERVATION_NAME,
    names.ANNOTATION_RESERVATION_NODE,
    names.ANNOTATION_IS_PRE_ALLOCATION,
)
"""What a scheduler writes on the pod that stands for a Reservation in its memory."""

MARKS: Final = (
    names.ANNOTATION_STAND_IN_NAME,
    names.ANNOTATION_STAND_IN_UID,
    names.ANNOTATION_STAND_IN_GENERATION,
    names.ANNOTATION_STAND_IN_PODS,
    names.ANNOTATION_STAND_IN_POLICY,
)
"""What the manager writes on the pod that it creates to have a Reservation placed."""

MARKING_LABELS: Final = (names.LABEL_STAND_IN,)
"""Labels of such a pod; only the manager creates pods with them, and they are never changed."""

RECORDS: Final = (
    names.ANNOTATION_EXTENDED_RESOURCE_SPEC,
    names.ANNOTATION_PROFILES,
    names.ANNOTATION_CHANGES,
)
"""What admission writes while a pod is created, and no client may change afterwards."""

REQUESTS: Final = (names.ANNOTATION_RESOURCE_SPEC,)
"""What an author asks for and the scheduler completes: a record as soon as the pod is bound."""

CLASSES: Final = (names.LABEL_QOS, names.LABEL_PRIORITY_CLASS)
"""Labels that decide how a node treats a pod; they stay as they are once it is bound."""

PREEMPTIONS: Final = (names.ANNOTATION_PREEMPTION,)
"""What the extender notes on a pod that waits for others to leave."""

RESERVATIONS: Final = (
    names.ANNOTATION_RESOURCE_STATUS,
    names.ANNOTATION_DEVICE_ALLOCATED,
    names.ANNOTATION_RESERVATION_RESIZE,
    names.ANNOTATION_CAPTURE,
)
"""What the extender writes on a Reservation: the cpus and devices that it holds."""

NEVER_CREATED: Final = (*ALLOCATIONS, *STAND_INS, *MARKS, *PREEMPTIONS)
STRIPPED: Final = tuple(key for key in NEVER_CREATED if key != names.ANNOTATION_RESERVE_POD)
"""What is taken off a new pod; a pod that claims to be a Reservation is refused instead."""

Metadata = Mapping[str, Any]


def changed(before: Metadata, after: Metadata, *, bound: bool) -> Iterator[str]:
    """Yield the protected fields that an update of a Pod adds, removes or changes."""
    keys = (*NEVER_CREATED, *RECORDS, *(REQUESTS if bound else ()))
    yield from _differing(before, after, "annotations", keys)
    yield from _differing(before, after, "labels", (*MARKING_LABELS, *(CLASSES if bound else ())))


def created(metadata: Metadata) -> Iterator[str]:
    """Yield the protected fields that a new Pod carries."""
    yield from _differing({}, metadata, "annotations", NEVER_CREATED)
    yield from _differing({}, metadata, "labels", MARKING_LABELS)


def bound(metadata: Metadata) -> Iterator[str]:
    """Yield the protected fields that a Binding would copy to its Pod."""
    yield from _differing({}, metadata, "annotations", (*NEVER_CREATED, *RECORDS, *REQUESTS))
    yield from _differing({}, metadata, "labels", (*MARKING_LABELS, *CLASSES))


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
