"""Over which running pods a Reservation with preAllocation is placed. Pure.

Free capacity comes first. Where there is none, the Reservation is placed over pods that run: it
waits on their node for what they hold, and its stand-in asks for the rest alone, so that the
filters of kube-scheduler decide about that node as about any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from api import names
from api.kubernetes import core, meta
from api.wire import base, quantity
from domain.pods import resources
from domain.reservations import choice, fit, matching, model, owners
from manager.reservations import objects

MOST_PODS: Final = 64
"""Running pods over which one Reservation is placed at most."""
UNSUPPORTED: Final = "node(s) reservation pre allocation is unsupported with current attributes"
CLUSTER_DISABLED: Final = "reservation requires cluster mode pre-allocation which is disabled"
NONE_MEETS: Final = "node(s) no pod(s) to meet the pre-allocation requirements"
_COUNTED: Final = frozenset((names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE))
_EXCLUSIVE: Final = frozenset(("LSE", "LSR"))
_ALLOCATING: Final = (names.ANNOTATION_RESOURCE_SPEC, names.ANNOTATION_NUMA_TOPOLOGY_SPEC)


class Terms(NamedTuple):
    """`preAllocationConfig` of the plug-in Reservation."""

    cluster_mode: bool = False
    label: str = names.LABEL_PRE_ALLOCATABLE
    """Of pods over which mode Cluster places Reservations."""
    priority: str = names.ANNOTATION_PRE_ALLOCATABLE_PRIORITY
    """Annotation with the order of those pods, the highest number first."""


class Running(NamedTuple):
    """A pod on a node."""

    owner: objects.OwnerPod
    node: str
    asking: matching.Asking
    priority: int = 0
    """Among pods of mode Cluster."""
    excluded: bool = False
    """Whether no Reservation is placed over it: it uses one, or stands in for one."""


class Choice(NamedTuple):
    """Where a Reservation is to be placed over running pods."""

    node: str
    uids: tuple[str, ...]
    """Of the running pods."""
    rest: Mapping[str, int]
    """What is to be reserved beyond what they hold."""


def running(pod: core.Pod, terms: Terms) -> Running | None:
    """Read a pod; None where it has no node, has ended or cannot be read."""
    metadata = pod.metadata
    if not pod.spec.node_name or pod.finished:
        return None
    try:
        requests = resources.pod_requests(pod)
        wishes = matching.wishes(metadata.labels, metadata.annotations)
    except (base.ReadError, quantity.QuantityError):
        return None
    asking = matching.Asking(
        owners.Pod(
            metadata.namespace, metadata.name, metadata.uid, metadata.labels,
            tuple(metadata.owner_references),
        ),
        requests,
        wishes,
    )  # fmt: skip
    return Running(
        objects.OwnerPod(metadata.uid, metadata.namespace, metadata.name),
        pod.spec.node_name,
        asking,
        _priority(metadata.annotations.get(terms.priority, "")),
        names.ANNOTATION_RESERVATION_ALLOCATED in metadata.annotations
        or names.LABEL_STAND_IN in metadata.labels
        or metadata.deletion_timestamp is not None,
    )


def refusal(found: objects.ReservationObject, terms: Terms) -> str:
    """Return why a Reservation is not placed over running pods, empty where it may be."""
    wanted = found.pre_allocation
    if wanted is None:
        return "preAllocation is off"
    if wanted.aligned:
        return f"{UNSUPPORTED}: allocatePolicy: use Restricted"
    if wanted.cluster and not terms.cluster_mode:
        return f"{CLUSTER_DISABLED}: set preAllocationConfig.enableClusterMode"
    template = found.template.get("metadata")
    section = template if isinstance(template, Mapping) else {}
    labels = {**_mapping(section.get("labels")), **found.labels}
    notes = {**_mapping(section.get("annotations")), **found.notes}
    odd = sorted(name for name in found.requests if not _counted(name))
    if odd:
        return f"{UNSUPPORTED}: {odd[0]} is allocated device by device"
    if labels.get(names.LABEL_QOS) in _EXCLUSIVE or any(key in notes for key in _ALLOCATING):
        return f"{UNSUPPORTED}: its CPUs are allocated one by one"
    if not wanted.cluster and not wanted.selectors:
        return f"{UNSUPPORTED}: spec.owners: give a labelSelector"
    return ""


def queries(found: objects.ReservationObject, terms: Terms) -> tuple[str, ...]:
    """Return the label selectors, in the syntax of queries, of pods that come into question."""
    wanted = found.pre_allocation
    if wanted is None:
        return ()
    if wanted.cluster:
        return (f"{terms.label}=true",)
    return tuple(map(_query, wanted.selectors))


def candidates(
    found: objects.ReservationObject,
    pods: Iterable[Running],
    taken: frozenset[str],
    labels: Mapping[str, Mapping[str, str]],
) -> list[Running]:
    """Return the pods over which a Reservation may be placed, those first that are taken first.

    `taken` are uids of pods for which other Reservations wait; `labels` are those of nodes by name.
    """
    wanted = found.pre_allocation
    if wanted is None:
        return []
    held = model.Held(wanted.offer)
    template = found.template.get("spec")
    pinned = template.get("nodeName") if isinstance(template, Mapping) else None
    by_uid = {one.owner.uid: one for one in pods if not one.excluded and one.owner.uid not in taken}
    fitting = [
        one
        for one in by_uid.values()
        if one.node in labels
        and pinned in (None, "", one.node)
        and _may(wanted, held, one, labels[one.node])
    ]
    if wanted.cluster:
        return sorted(fitting, key=lambda one: (-one.priority, one.owner.uid))
    return sorted(fitting, key=lambda one: (-choice.score(one.asking.requests, held), one.owner))


def _may(
    wanted: objects.PreAllocation, held: model.Held, one: Running, labels: Mapping[str, str]
) -> bool:
    asking = one.asking
    common = any(asking.requests.get(name) for name, value in held.reservation.allocatable.items())
    if not common or any(fit.short(asking.requests, held)):
        return False
    if wanted.cluster:
        match = matching.usable(asking.wishes, asking.requests, held, labels)
    else:
        match = matching.match(asking, held, labels)
    return match is matching.Match.MATCHED


def chosen(
    found: objects.ReservationObject, ranked: Sequence[Running], free: Mapping[str, int]
) -> Choice | None:
    """Return over which pods of one node a Reservation fits, None where over none.

    `ranked` are its candidates there, in their order; `free` is what neither pods nor Reservations
    hold.
    """
    wanted = found.pre_allocation
    assert wanted is not None
    over: list[Running] = []
    held = model.Held(wanted.offer)
    for one in ranked:
        if not wanted.multiple:
            over, held = [], model.Held(wanted.offer)
        elif any(fit.short(one.asking.requests, held)) or len(over) >= MOST_PODS:
            continue
        over = [*over, one]
        held = held.over_pod(one.asking.requests)
        rest = held.kept()
        if all(value <= max(0, free.get(name, 0)) for name, value in rest.items()):
            return Choice(one.node, tuple(each.owner.uid for each in over), rest)
    return None


def free(
    allocatable: Mapping[str, int], pods: Iterable[Running], kept: Iterable[Mapping[str, int]]
) -> dict[str, int]:
    """Return what of a node no pod and no Reservation holds; it may be negative."""
    left = dict(allocatable)
    for amounts in (*(one.asking.requests for one in pods), *kept):
        left = resources.subtract(left, amounts)
    return left


def _counted(name: str) -> bool:
    """Whether a resource is an amount, of which no part is different from another."""
    lent = name in names.BATCH_RESOURCES or name in names.MID_RESOURCES
    return lent or name in _COUNTED or name.startswith("hugepages-")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _priority(text: str) -> int:
    sign, digits = text[:1] == "-", text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return 0
    return -int(digits) if sign else int(digits)


def _query(selector: meta.LabelSelector) -> str:
    """Return a label selector in the syntax of queries; owners are compared once more anyhow."""
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for one in selector.match_expressions:
        values = ",".join(one.values)
        match one.operator:
            case "In":
                parts.append(f"{one.key} in ({values})")
            case "NotIn":
                parts.append(f"{one.key} notin ({values})")
            case "Exists":
                parts.append(one.key)
            case _:
                parts.append(f"!{one.key}")
    return ",".join(parts)
