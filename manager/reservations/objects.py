"""What the manager keeps of Reservations and of the pods that stand in for them. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import annotations
from api.kubernetes import core, meta
from api.wire import base, quantity
from domain.pods import resources
from domain.reservations import model

TERMINAL: Final = frozenset({scheduling.SUCCEEDED, scheduling.FAILED})
_LONGEST: Final = 2048
"""Characters of a message that is copied into a condition."""


class OwnerPod(NamedTuple):
    """One pod that uses a Reservation, as its status names it."""

    uid: str
    namespace: str
    name: str


class PreAllocation(msgspec.Struct, frozen=True, gc=False):
    """What a Reservation with preAllocation says about the pods over which it may be placed."""

    offer: model.Reservation
    """The Reservation as it would be on a node."""
    aligned: bool = False
    """Whether its policy is Aligned, which does not go with preAllocation."""
    cluster: bool = False
    """Whether pods are picked by a label that says so, instead of by the owners."""
    multiple: bool = False
    """Whether it may be placed over more than one pod."""
    required: bool = False
    """Whether it may be placed over running pods only."""
    selectors: tuple[meta.LabelSelector, ...] = ()
    """Of the owners that have one."""


class ReservationObject(msgspec.Struct, frozen=True, gc=False):
    """One Reservation, as far as its placement, its status and its end are concerned."""

    name: str
    uid: str
    version: str
    """Its resource version, which guards what is written on it."""
    generation: int
    created: float
    """Seconds since the epoch."""
    labels: Mapping[str, str]
    notes: Mapping[str, str]
    """Its annotations."""
    deleting: bool
    """Whether it has a deletionTimestamp."""
    fault: str = ""
    """Why it cannot be read or placed; nothing is done for it then but to say so."""
    template: Mapping[str, Any] = {}
    home: str = "default"
    """The namespace in which its pods are expected."""
    requests: Mapping[str, int] = {}
    """What the template requests; cpu in milli, everything else in base units."""
    expires_at: float | None = None
    allocate_once: bool = True
    policy: str = scheduling.NO_POLICY
    """The policy that it names, `scheduling.NO_POLICY` for none."""
    pre_allocation: PreAllocation | None = None
    """How it may be placed over running pods; None: it may not."""
    phase: str = scheduling.PENDING
    node: str = ""
    allocatable: Mapping[str, Any] = {}
    allocated: Mapping[str, Any] = {}
    owners: tuple[OwnerPod, ...] = ()
    conditions: tuple[meta.LooseCondition, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether it is in a phase that it never leaves."""
        return self.phase in TERMINAL

    def condition(self, kind: str) -> meta.LooseCondition | None:
        """Return the condition of this type."""
        return meta.condition(self.conditions, kind)


def reservation(raw: Mapping[str, Any]) -> ReservationObject | None:
    """Project a Reservation; None where not even its metadata can be read."""
    try:
        metadata = base.read(_Named, raw).metadata
    except base.ReadError:
        return None
    common: dict[str, Any] = {
        "name": metadata.name,
        "uid": metadata.uid,
        "version": metadata.resource_version,
        "generation": metadata.generation,
        "created": metadata.creation_timestamp or 0.0,
        "labels": metadata.labels,
        "notes": metadata.annotations,
        "deleting": metadata.deletion_timestamp is not None,
    }
    try:
        written = scheduling.read_reservation(raw)
        requests = resources.pod_requests(written.pod)
        pre_allocation = _pre_allocation(written, requests)
    except (base.ReadError, quantity.QuantityError) as wrong:
        return ReservationObject(**common, fault=f"cannot be read: {wrong}"[:_LONGEST])
    spec, status = written.spec, written.status
    return ReservationObject(
        **common,
        template=spec.template,
        home=_home(written),
        requests=requests,
        expires_at=written.expires_at,
        allocate_once=spec.allocate_once,
        policy=written.policy_name or scheduling.NO_POLICY,
        pre_allocation=pre_allocation,
        phase=status.phase or scheduling.PENDING,
        node=status.node_name,
        allocatable=status.allocatable,
        allocated=status.allocated,
        owners=tuple(OwnerPod(one.uid, one.namespace, one.name) for one in status.current_owners),
        conditions=status.conditions,
    )


def _pre_allocation(
    written: scheduling.Reservation, requests: Mapping[str, int]
) -> PreAllocation | None:
    spec = written.spec
    if not spec.pre_allocation:
        return None
    placed = {"phase": scheduling.AVAILABLE, "node_name": "any"}
    status = written.status.model_copy(update={**placed, "allocatable": quantity.texts(requests)})
    offer = model.read(written.model_copy(update={"status": status}))
    if offer is None:
        return None
    policy = spec.pre_allocation_policy or scheduling.PreAllocationPolicy()
    found = (one.label_selector for one in spec.owners)
    return PreAllocation(
        offer=offer,
        aligned=spec.allocate_policy == "Aligned",
        cluster=policy.mode == "Cluster",
        multiple=policy.enable_multiple,
        required=written.metadata.labels.get(names.LABEL_PRE_ALLOCATION_REQUIRED) == "true",
        selectors=tuple(one for one in found if one is not None),
    )


class _Named(meta.Object):
    """Any object, by its metadata alone."""


def _home(written: scheduling.Reservation) -> str:
    """Return the namespace of the template, else the one that all owners name, else `default`."""
    template = written.spec.template.get("metadata")
    named = template.get("namespace") if isinstance(template, Mapping) else None
    if isinstance(named, str) and named:
        return named
    found = set[str]()
    for owner in written.spec.owners:
        parts = [one.namespace for one in (owner.object, owner.controller) if one is not None]
        found.add(next(filter(None, parts), ""))
    only = found.pop() if len(found) == 1 else ""
    return only or "default"


class StandIn(msgspec.Struct, frozen=True, gc=False):
    """One pod that stands in for a Reservation while kube-scheduler places it."""

    namespace: str
    name: str
    uid: str
    reservation: str
    """Name of the Reservation; empty where the pod does not say."""
    reservation_uid: str
    generation: str
    """The generation of the Reservation from which it was made."""
    over: tuple[str, ...]
    """Uids of the running pods over which the Reservation is to be placed."""
    node: str
    """Set where a scheduler bound it that does not call the extender."""
    finished: bool
    deleting: bool
    unschedulable: str
    """What kube-scheduler says why it finds no node; empty while it has not said so."""


def stand_in(pod: core.Pod) -> StandIn | None:
    """Project a pod; None where it does not carry the label of stand-ins."""
    metadata = pod.metadata
    if names.LABEL_STAND_IN not in metadata.labels:
        return None
    condition = pod.status.condition("PodScheduled")
    refused = condition is not None and condition.status == "False"
    return StandIn(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        reservation=metadata.annotations.get(names.ANNOTATION_STAND_IN_NAME, ""),
        reservation_uid=metadata.annotations.get(names.ANNOTATION_STAND_IN_UID, ""),
        generation=metadata.annotations.get(names.ANNOTATION_STAND_IN_GENERATION, ""),
        over=tuple(
            filter(None, metadata.annotations.get(names.ANNOTATION_STAND_IN_PODS, "").split(","))
        ),
        node=pod.spec.node_name,
        finished=pod.finished,
        deleting=metadata.deletion_timestamp is not None,
        unschedulable=condition.message[:_LONGEST] if refused and condition else "",
    )


class Leaving(NamedTuple):
    """A pod that has ended, or that is being deleted."""

    uid: str


def leaving(pod: core.Pod) -> Leaving | None:
    """Project a pod; None while nothing says that it ends."""
    if pod.spec.node_name and (pod.finished or pod.metadata.deletion_timestamp is not None):
        return Leaving(pod.metadata.uid)
    return None


class User(msgspec.Struct, frozen=True, gc=False):
    """A placed pod that uses a Reservation; cpu in milli, everything else in base units."""

    owner: OwnerPod
    reservation: str
    """Uid of the Reservation."""
    node: str
    requests: dict[str, int]
    has_ended: bool = False
    """It holds nothing any more, but has used up a Reservation that is allocated once."""


def user(pod: core.Pod) -> User | None:
    """Project a pod; None where it is not placed or uses no Reservation."""
    metadata = pod.metadata
    if not pod.spec.node_name:
        return None
    if names.ANNOTATION_RESERVATION_ALLOCATED not in metadata.annotations:
        return None
    try:
        written = annotations.RESERVATION_ALLOCATED.read(metadata.annotations)
    except base.ReadError:
        return None
    if written is None or not written.uid:
        return None
    owner = OwnerPod(metadata.uid, metadata.namespace, metadata.name)
    requests = resources.pod_requests(pod)
    return User(owner, written.uid, pod.spec.node_name, requests, has_ended=pod.finished)
