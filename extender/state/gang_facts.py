"""What the plan of a gang needs of a pod beyond its requests, and the plan that is in force. Pure.

Only pods that declare a gang have it, so that all others stay as small as they were.
"""

from typing import Final

import msgspec

from api import names
from api.kubernetes import core
from api.wire import durations, untrusted
from domain import persistent
from domain.gangs import declaration, plan_record, sentences
from domain.quota import placement as node_requirements
from domain.scoring import terms

_LABELS: Final = frozenset({names.LABEL_POD_GROUP, names.LABEL_POD_GROUP_OLD})
_LONGEST: Final = untrusted.Bounds(bytes=16 << 10, depth=4, parts=256)
LONGEST_NOTE: Final = 160 << 10
"""Characters of what is noted of a preemption: it names all places and victims of a gang."""
_HOST: Final = "kubernetes.io/hostname"
_LONGEST_REASON: Final = 1024
_LONGEST_INDEX: Final = 10
_LONGEST_NAME: Final = 253
_NO_NODES: Final[persistent.Map[str, str]] = persistent.Map()


class GangFacts(msgspec.Struct, frozen=True, gc=False):
    """One pod that declares a gang; of a pod with a node only `plan` is kept."""

    plan: str = ""
    """The annotation that the extender wrote when it opened the gate."""
    gated: bool = False
    """Whether it carries the scheduling gate of gangs."""
    held: bool = False
    """Whether it carries a scheduling gate of another controller."""
    placement: node_requirements.Requirements = node_requirements.NONE
    """What it requires of nodes, as far as labels and taints tell."""
    probed: bool = False
    """Whether kube-scheduler alone knows which nodes take it: affinity to pods, spread."""
    alone: bool = False
    """Whether its anti-affinity allows no other such pod on its node."""
    created_at: float = 0.0
    """In seconds since the epoch."""
    index: int = -1
    """network-topology-index: its rank among the members; negative: none."""
    preempting: str = ""
    """What the extender noted of a preemption for its gang, of a member that waits."""
    unschedulable: str = ""
    """Why kube-scheduler found no node at its last attempt; empty: it did not say so, or only that
    the gang had no plan."""


class GangPlan(msgspec.Struct, frozen=True):
    """The plan of a gang group that is in force: an object of kind `deltas.GANG_PLAN`."""

    group: str
    generation: str
    """Another one for every plan; members of one generation are bound together."""
    until: float
    """When it is given up at the latest, on the wall clock."""
    nodes: persistent.Map[str, str] = _NO_NODES
    """By the uid of every member: the node that is kept for it."""
    record: plan_record.Record | None = None
    """What is noted of the plan on members, but for the node: it lists all of them."""
    refusal: str = ""
    """Why the plan was given up, for members that wait in bind; empty while it is in force."""


def read(pod: core.Pod) -> GangFacts | None:
    """Read a pod; None where it declares no gang."""
    notes, labels = pod.metadata.annotations, pod.metadata.labels
    plan = notes.get(names.ANNOTATION_PLAN, "")
    plan = plan if len(plan) <= _LONGEST.bytes else ""
    if pod.spec.node_name:
        return GangFacts(plan) if plan else None
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    declared = names.ANNOTATION_GANG_NAME in notes or not _LABELS.isdisjoint(labels)
    native = pod.spec.scheduling_group is not None
    if not (declared or native or plan or names.GATE_GANG in gates):
        return None
    wanted = _placement(pod.spec)
    created = pod.metadata.creation_timestamp
    noted = notes.get(names.ANNOTATION_PREEMPTION, "")
    return GangFacts(
        plan=plan,
        gated=names.GATE_GANG in gates,
        held=bool(gates - {names.GATE_GANG}),
        placement=wanted,
        probed=bool(wanted.other) or _spreads(pod.spec),
        alone=bool(wanted.other) and _is_alone(pod),
        created_at=durations.timestamp(created) if created else 0.0,
        preempting=noted if len(noted) <= LONGEST_NOTE else "",
        index=_index(notes.get(names.ANNOTATION_GANG_NETWORK_INDEX, "")),
        unschedulable=_unschedulable(pod.status),
    )


def scheduling_group(spec: core.PodSpec) -> str:
    """Return the PodGroup of scheduling.k8s.io that a pod names, empty without one."""
    found = spec.scheduling_group
    return found.pod_group_name[:_LONGEST_NAME] if found is not None else ""


def is_member(pod: core.Pod) -> bool:
    """Whether a pod declares a gang in what plug-ins read of it."""
    meta, group = pod.metadata, pod.spec.scheduling_group
    return declaration.membership("", meta.labels, meta.annotations, group) is not None


def placed(facts: GangFacts | None) -> GangFacts | None:
    """Return what is kept of a pod once it has a node."""
    return GangFacts(facts.plan) if facts is not None and facts.plan else None


def _index(text: str) -> int:
    """Read a rank; what is none counts as absent."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST_INDEX else -1


def _placement(spec: core.PodSpec) -> node_requirements.Requirements:
    """Return what a pod requires of nodes; where that is too long, kube-scheduler alone knows."""
    try:
        return node_requirements.requirements(spec)
    except node_requirements.TooLongError:
        return node_requirements.unknown(spec)


def _spreads(spec: core.PodSpec) -> bool:
    rules = {one.get("whenUnsatisfiable") for one in spec.topology_spread_constraints}
    return bool(spec.resource_claims) or bool(rules - {"ScheduleAnyway"})


def _is_alone(pod: core.Pod) -> bool:
    """Whether required anti-affinity keeps pods with the labels of this one off its node."""
    rules = (pod.spec.affinity or {}).get("podAntiAffinity") or {}
    for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        chosen = terms.selector(term.get("labelSelector"))
        here = term.get("namespaces") or (pod.metadata.namespace,)
        if term.get("topologyKey") != _HOST or chosen is None:
            continue
        if pod.metadata.namespace in here and chosen.matches(pod.metadata.labels):
            return True
    return False


def _unschedulable(status: core.PodStatus) -> str:
    found = status.condition("PodScheduled")
    if found is None or not status.unschedulable:
        return ""
    if sentences.is_about_no_plan(found.message):
        return ""
    return found.message[:_LONGEST_REASON] or "kube-scheduler found no node"
