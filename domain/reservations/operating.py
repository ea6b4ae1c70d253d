"""Pods in operating mode: what a Running and Ready pod offers to its owners, like a Reservation."""

from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import annotations
from api.kubernetes import core
from api.wire import base
from domain.pods import resources
from domain.reservations import model, owners

RESERVATION: Final = "Reservation"
"""The value of the label `scheduling.koordinator.sh/operating-mode`."""
MOST_OWNERS: Final = 16
"""Items of the annotation `reservation-owners`; a list with more of them has none."""
LONGEST: Final = 4 << 10
"""Bytes of that annotation; a longer one has no owners."""


def is_one(labels: Mapping[str, str]) -> bool:
    """Whether labels put a pod into operating mode."""
    return labels.get(names.LABEL_OPERATING_MODE) == RESERVATION


def read(pod: core.Pod) -> model.Reservation | None:
    """Return what a pod offers; None where it does not act as a Reservation, or not now.

    Its owners are pods of its own namespace: its author decides about no other. What cannot be read
    has no owners, and neither has a pod whose owner is recorded on it.
    """
    metadata = pod.metadata
    if not is_one(metadata.labels) or not _serves(pod):
        return None
    allowed = _owners(metadata.annotations)
    if not allowed:
        return None
    offered = resources.pod_requests(pod)
    return model.Reservation(
        name=metadata.name,
        uid=metadata.uid,
        node=pod.spec.node_name,
        owners=tuple(msgspec.structs.replace(one, within=metadata.namespace) for one in allowed),
        policy=model.Policy.ALIGNED,
        allocatable=offered,
        charged=frozenset(offered),
        labels=metadata.labels,
        order=model.order(metadata.labels),
        operates=True,
        named_policy=True,
    )


def _serves(pod: core.Pod) -> bool:
    ready = pod.status.condition("Ready")
    return (
        bool(pod.spec.node_name)
        and pod.status.phase == "Running"
        and not pod.metadata.deletion_timestamp
        and ready is not None
        and ready.status == "True"
    )


def _owners(notes: Mapping[str, str]) -> tuple[owners.Owner, ...]:
    if len(notes.get(names.ANNOTATION_RESERVATION_OWNERS, "")) > LONGEST:
        return ()
    try:
        written = annotations.RESERVATION_OWNERS.read(notes) or ()
    except base.ReadError:
        return ()
    if len(written) > MOST_OWNERS or _is_taken(notes):
        return ()
    return tuple(map(owners.read, written))


def _is_taken(notes: Mapping[str, str]) -> bool:
    """Whether an owner is recorded; a record that cannot be read is none."""
    try:
        return annotations.RESERVATION_CURRENT_OWNER.read(notes) is not None
    except base.ReadError:
        return False
