"""How much of a Reservation is used, by which pods, and what it still keeps from others."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from api.koordinator import scheduling
from api.koordinator.metadata import annotations
from api.kubernetes import core
from api.wire import base
from domain.pods import resources
from domain.reservations import model

Amounts = resources.Amounts
_NOTHING: Final[Amounts] = {}


class OwnerPod(msgspec.Struct, frozen=True):
    """A pod whose annotation `reservation-allocated` names a Reservation."""

    uid: str
    key: str
    """Namespace/name."""
    node: str
    reservation: str
    """UID of the Reservation that it uses."""
    requests: Amounts


class Usage(msgspec.Struct, frozen=True):
    """A Reservation with the pods that use it; cpu in milli, everything else in base units."""

    name: str
    uid: str
    phase: str
    node: str
    reserved: Amounts
    """status.allocatable, or what the template requests before it has a node."""
    owners: tuple[OwnerPod, ...] = ()
    """By namespace/name."""
    allocated: Amounts = _NOTHING
    """What owners request of the reserved resources; while it is Waiting, what those pods hold
    of them that run in its place."""
    kept: Amounts = _NOTHING
    """What is kept from other pods now: nothing unless it is Available."""
    left: Amounts = _NOTHING
    """What one more owner may take of it: nothing where its only owner is there."""
    ends_at: float | None = None
    """Seconds since the epoch; None: it does not expire."""
    fault: str = ""
    """Why pods cannot use it although it is Available."""


def owner_pod(pod: core.Pod) -> OwnerPod | None:
    """Return a pod as an owner; None where it has ended or its annotation names no Reservation."""
    if pod.finished:
        return None
    try:
        named = annotations.RESERVATION_ALLOCATED.read(pod.metadata.annotations)
    except base.ReadError:
        return None
    if named is None or not named.uid:
        return None
    metadata = pod.metadata
    requests = resources.pod_requests(pod)
    return OwnerPod(metadata.uid, metadata.key, pod.spec.node_name, named.uid, requests)


def by_reservation(pods: Iterable[OwnerPod]) -> dict[str, list[OwnerPod]]:
    """Return owners by the UID of the Reservation that they name."""
    found: dict[str, list[OwnerPod]] = {}
    for pod in pods:
        found.setdefault(pod.reservation, []).append(pod)
    return found


def usage(written: scheduling.Reservation, named: Iterable[OwnerPod] = ()) -> Usage:
    """Return the use of a Reservation; `named` are pods whose annotation has its UID.

    Only those on its node count. Raises `base.ReadError` for a template that cannot be read.
    """
    node = written.status.node_name
    owners = sorted((pod for pod in named if node and pod.node == node), key=lambda pod: pod.key)
    return _usage(written, tuple(owners), _sum(owners, _reserved(written)))


def stated(written: scheduling.Reservation) -> Usage:
    """Return the use that the status of a Reservation states; requests of owners stay empty."""
    status = written.status
    owners = tuple(
        OwnerPod(one.uid, f"{one.namespace}/{one.name}", status.node_name, written.metadata.uid, {})
        for one in status.current_owners
    )
    nothing = dict.fromkeys(_reserved(written), 0)
    return _usage(written, owners, {**nothing, **resources.amounts(status.allocated)})


def _reserved(written: scheduling.Reservation) -> Amounts:
    return resources.amounts(written.status.allocatable) or resources.pod_requests(written.pod)


def _usage(
    written: scheduling.Reservation, owners: tuple[OwnerPod, ...], allocated: Amounts
) -> Usage:
    status, metadata = written.status, written.metadata
    reserved = _reserved(written)
    found = Usage(
        name=metadata.name,
        uid=metadata.uid,
        phase=status.phase or scheduling.PENDING,
        node=status.node_name,
        reserved=reserved,
        owners=owners,
        allocated=allocated,
        ends_at=written.expires_at,
    )
    try:
        one = model.read(written)
    except base.ReadError as error:
        kept = {key: max(0, value - allocated.get(key, 0)) for key, value in reserved.items()}
        return msgspec.structs.replace(found, kept=kept, fault=str(error))
    if one is None:
        return found
    if one.waiting:
        # By pods that run in its place; they are no owners.
        used = {**dict.fromkeys(reserved, 0), **resources.amounts(status.allocated)}
        waits = model.Held(one, used)
        return msgspec.structs.replace(found, allocated=used, kept=waits.kept())
    charged = {key: value for key, value in allocated.items() if key in one.charged}
    held = model.Held(one, charged, len(owners))
    left = {} if held.taken else held.remainder()
    return msgspec.structs.replace(found, kept=held.kept(), left=left)


def _sum(owners: Iterable[OwnerPod], reserved: Amounts) -> dict[str, int]:
    total = dict.fromkeys(reserved, 0)
    for pod in owners:
        for name, value in pod.requests.items():
            if name in total:
                total[name] += value
    return total


class Totals(msgspec.Struct, frozen=True):
    """All Reservations together."""

    phases: Mapping[str, int]
    reserved: Amounts
    """What Available ones reserve."""
    allocated: Amounts
    """What owners of Available ones request of it."""
    kept: Amounts
    """What they keep from other pods and no owner uses."""
    waiting: Amounts
    """What Waiting ones keep from other pods, beside what pods hold that run in their place."""


def totals(found: Iterable[Usage]) -> Totals:
    """Add up; every phase is counted, also with zero."""
    phases = dict.fromkeys(scheduling.PHASES, 0)
    reserved: dict[str, int] = {}
    allocated: dict[str, int] = {}
    kept: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for one in found:
        phases[one.phase] = phases.get(one.phase, 0) + 1
        if one.phase == scheduling.WAITING:
            waiting = resources.add(waiting, one.kept)
        if one.phase != scheduling.AVAILABLE:
            continue
        reserved = resources.add(reserved, one.reserved)
        allocated = resources.add(allocated, one.allocated)
        kept = resources.add(kept, one.kept)
    return Totals(phases, reserved, allocated, kept, waiting)
