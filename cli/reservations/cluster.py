"""What a snapshot says of Reservations, their owners and the pods that could use them. Pure."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from api import names, resources
from api.koordinator import scheduling
from api.kubernetes import core
from api.wire import durations
from cli import reading
from cli.snapshot import format as formats
from domain.pods import resources as amounts
from domain.reservations import matching, model, owners, usage

Raw = Mapping[str, Any]


class Reserved(NamedTuple):
    """One Reservation and what is made of it."""

    written: scheduling.Reservation
    usage: usage.Usage

    def condition(self, kind: str) -> str:
        """Return reason and message of a condition that is False; empty where it is not."""
        for one in self.written.status.conditions:
            if one.type == kind and one.status == "False":
                return ": ".join(filter(None, (one.reason, one.message)))
        return ""

    @property
    def why(self) -> str:
        """Say why it is not Available, as its conditions do."""
        if self.written.status.phase == scheduling.AVAILABLE:
            return self.usage.fault
        return self.condition("Ready") if self.usage.node else self.condition("Scheduled")


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """All Reservations of a cluster at one moment."""

    found: Mapping[str, Reserved]
    """By name."""
    pods: Mapping[str, core.Pod]
    """By uid."""
    nodes: Mapping[str, core.Node]
    now: float
    notes: tuple[str, ...] = ()
    """What could not be read."""
    unmarked: tuple[usage.OwnerPod, ...] = ()
    """Pods that name a Reservation of this cluster, but are on another node."""
    hidden: frozenset[str] = frozenset()
    """Reservations that nobody asked for, by name."""

    def only(self, takes: Callable[[Reserved], bool]) -> "Cluster":
        """Return the same, of which fewer Reservations are listed."""
        hidden = frozenset(name for name, one in self.found.items() if not takes(one))
        return dataclasses.replace(self, hidden=hidden)

    @property
    def listed(self) -> list[Reserved]:
        """Return the Reservations that somebody asked for."""
        return [one for name, one in self.found.items() if name not in self.hidden]

    def waiting(self) -> Iterator[core.Pod]:
        """Yield pods without a node that are no stand-ins, by namespace/name."""
        for pod in sorted(self.pods.values(), key=lambda pod: pod.metadata.key):
            if not (pod.spec.node_name or pod.finished or stands_for(pod)):
                yield pod

    def stand_ins(self, name: str) -> list[core.Pod]:
        """Return the pods by which kube-scheduler is asked for a node for a Reservation."""
        reserved = self.found.get(name)
        uid = reserved.usage.uid if reserved is not None else ""
        return [pod for pod in self.pods.values() if uid and stands_for(pod) == uid]


def stands_for(pod: core.Pod) -> str:
    """Return the UID of the Reservation for which a pod stands in, empty for any other pod."""
    if names.LABEL_STAND_IN not in pod.metadata.labels:
        return ""
    return pod.metadata.annotations.get(names.ANNOTATION_STAND_IN_UID, "")


def build(snapshot: formats.Snapshot) -> Cluster:
    """Read the objects of a snapshot; one that cannot be read is named and left out.

    Where the snapshot holds no pods, what Reservations state in their status counts.
    """
    odd = list(snapshot.unreadable)
    pods = {pod.metadata.uid: pod for pod in _each(snapshot, resources.PODS, core.Pod, odd)}
    nodes = {node.metadata.name: node for node in _each(snapshot, resources.NODES, core.Node, odd)}
    marked = [
        one
        for one in (reading.either(None, usage.owner_pod, pod) for pod in pods.values())
        if one is not None
    ]
    counted = resources.PODS.review_name() in snapshot.objects
    named = usage.by_reservation(marked) if counted else None
    found: dict[str, Reserved] = {}
    for raw in snapshot.of(resources.RESERVATIONS):
        one = reading.either(None, reserved, raw, named)
        if one is None:
            odd.append(f"Reservation {reading.either('', _key, raw)}")
        else:
            found[one.usage.name] = one
    places = {one.usage.uid: one.usage.node for one in found.values()}
    return Cluster(
        found=dict(sorted(found.items())),
        pods=pods,
        nodes=nodes,
        now=reading.either(0.0, durations.timestamp, snapshot.taken_at),
        notes=tuple(_notes(snapshot, odd)),
        unmarked=tuple(
            one for one in marked if places.get(one.reservation, one.node) != one.node
        ),
    )  # fmt: skip


def reserved(raw: Raw, named: Mapping[str, list[usage.OwnerPod]] | None) -> Reserved:
    """Read one Reservation; ValueError where it has not the shape of one.

    `named` are pods by the UID of the Reservation that they name; None: pods were not read.
    """
    written = scheduling.read_reservation(raw)
    if named is None:
        return Reserved(written, usage.stated(written))
    return Reserved(written, usage.usage(written, named.get(written.metadata.uid, ())))


def _each(
    snapshot: formats.Snapshot, resource: resources.Resource, kind: type[Any], odd: list[str]
) -> Iterator[Any]:
    for raw in snapshot.of(resource):
        read = reading.either(None, msgspec.convert, raw, kind)
        if read is None:
            odd.append(f"{resource.kind} {reading.either('', _key, raw)}")
        else:
            yield read


def _key(raw: Raw) -> str:
    metadata = raw["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")


def _notes(snapshot: formats.Snapshot, odd: list[str]) -> Iterator[str]:
    for one in odd:
        yield f"{one} cannot be read and is left out"
    for what, why in sorted(snapshot.unread.items()):
        yield f"{what} could not be read: {why}"


class Suitability(NamedTuple):
    """Whether a pod may use a Reservation, and whether it has room."""

    owner: bool
    """Whether one of spec.owners matches it."""
    match: matching.Match | None = None
    """None while the Reservation is not Available."""
    short: tuple[str, ...] = ()
    """Resources of which a Restricted Reservation has too little left."""

    @property
    def usable(self) -> bool:
        """Whether the pod could take it now, if the node has room for the rest."""
        return self.match is matching.Match.MATCHED and not self.short


def suitability(
    one: Reserved, pod: core.Pod, node_labels: Mapping[str, str] | None = None
) -> Suitability:
    """Tell whether a pod may use a Reservation; ReadError where its wishes are unreadable."""
    metadata = pod.metadata
    asked = owners.Pod(
        metadata.namespace, metadata.name, metadata.uid, metadata.labels, metadata.owner_references
    )
    owner = any(each.matches(asked) for each in map(owners.read, one.written.spec.owners))
    read = model.read(one.written) if owner else None
    if read is None:
        return Suitability(owner)
    requests = amounts.pod_requests(pod)
    wishes = matching.wishes(metadata.labels, metadata.annotations)
    held = model.Held(read, one.usage.allocated, len(one.usage.owners))
    match = matching.match(matching.Asking(asked, requests, wishes), held, node_labels or {})
    restricted = read.policy is model.Policy.RESTRICTED
    left = one.usage.left
    short = tuple(
        sorted(
            key
            for key in (read.charged if restricted else ())
            if requests.get(key, 0) > max(0, left.get(key, 0))
        )
    )
    return Suitability(owner, match, short)
