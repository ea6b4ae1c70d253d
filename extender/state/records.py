"""What the extender keeps of pods and nodes: slim, frozen, shared where pods are alike.

Everything that plug-ins look at is read here, once per event.
"""

import sys
from collections.abc import Container, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from api.kubernetes import core
from api.wire import durations, quantity
from domain.lending import node_capability
from domain.pods import resources
from domain.reservations import model, operating
from domain.usage import load
from extender.scoring import traits
from extender.state import allocations, bounds, gang_facts, requirement_reader, requirements

Pairs = requirements.Pairs
PodRequirements = requirements.PodRequirements
Allocations = allocations.Allocations
NONE = allocations.NONE

LABELS: Final = (names.LABEL_QUOTA_PREEMPTIBLE, names.LABEL_DISABLE_PREEMPTIBLE)
"""Labels that the framework itself looks at, whatever plug-ins there are."""
_LENDS_NOTHING: Final = '{"enable":false}'
_MOST_SHAPES: Final = 2048
_MOST_SHARED: Final = 64
"""Labels or owners of one pod that are shared with others: what is kept outlives its pods."""
_NO_LABELS: Final[Mapping[str, str]] = {}


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """One pod that has not ended; an empty node means that it waits."""

    key: str
    uid: str
    node: str
    requirements: PodRequirements
    assigned_at: float = -1.0
    """When it was scheduled; negative: not said by the object."""
    initialized_at: float = -1.0
    fence: str = ""
    """What the extender wrote last to make Bindings fail that are on their way, while it waits."""
    scoring: traits.PodTraits | None = None
    """What it does to the scores of other pods; None where filter never decides."""
    nominated: str = ""
    """The node that the scheduler expects it on, of a pod that waits."""
    allocations: Allocations = NONE
    """What plug-ins have written on it, of a pod that has a node."""
    unreadable: tuple[str, ...] = ()
    """Plug-ins whose annotations on it cannot be read; they count as absent."""
    leaves_at: float = -1.0
    """deletionTimestamp: when its grace period ends; negative: it is not terminating."""
    preemption: str = ""
    """What the extender noted of a preemption on its behalf, of a pod that waits."""
    own_labels: Mapping[str, str] = {}
    """Its labels where `scoring` does not hold them."""
    owners: tuple[core.OwnerReference, ...] = ()
    """Its owner references."""
    gang: gang_facts.GangFacts | None = None
    """What the plan of its gang needs of it; None of a pod that declares no gang."""
    offers: model.Reservation | None = None
    """What it offers to its owners, of a pod in operating mode that is Running and Ready."""
    unschedulable: bool = False
    """Whether a scheduler that calls the extender has said that it found no node."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        return self.scoring.labels if self.scoring is not None else self.own_labels

    @property
    def namespace(self) -> str:
        """Return the namespace."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Return the name."""
        return self.key.partition("/")[2]


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """One node: what it offers and what its owner set on it."""

    name: str
    allocatable: Pairs
    total: Pairs
    """Allocatable before amplification: what usage is measured against."""
    capacity: Pairs = ()
    """Cpu and memory of the machine."""
    labels: Mapping[str, str] = {}
    thresholds: str = ""
    strategy: str = ""
    uid: str = ""
    """Another one when a machine is set up anew under its name."""
    created_at: float = -1.0
    """When it was registered; negative: not said by the object."""
    scoring: traits.NodeTraits | None = None
    """What score plug-ins read of it besides; None where filter never decides."""
    amplification: str = ""
    """The annotation with the ratios by which allocatable is amplified."""
    taints: tuple[core.Taint, ...] = ()
    """Those that keep pods away, and one for a node that is cordoned."""

    def owns(self, report: load.Report) -> bool:
        """Whether a report is of this node, not of an earlier one of its name."""
        return report.updated_at is None or report.updated_at >= self.created_at


class Projector:
    """Turns what the API server sends into records, sharing what is alike."""

    def __init__(
        self,
        scoring: traits.Projector | None = None,
        codecs: Sequence[allocations.AllocationCodec] = (),
        inputs: requirement_reader.Inputs = requirement_reader.NO_INPUTS,
        schedulers: Container[str] | None = None,
    ) -> None:
        """`schedulers` names those that call the extender; None where that is not known."""
        self._scoring, self._schedulers = scoring, schedulers
        self._requirements = requirement_reader.Reader(inputs)
        self._codecs = tuple(codecs)
        self._kept_labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        self._kept_owners: dict[
            tuple[core.OwnerReference, ...], tuple[core.OwnerReference, ...]
        ] = {}

    def pod(self, pod: core.Pod) -> PodRecord | None:
        """Return the record of a pod, None once it has ended."""
        if pod.finished:
            return None
        node, wanted = sys.intern(pod.spec.node_name), self.requirements(pod)
        granted: allocations.Allocations = allocations.NONE
        unreadable: tuple[str, ...] = ()
        if node and self._codecs:
            granted, unreadable = self.granted(pod.metadata.annotations, wanted)
        return PodRecord(
            key=sys.intern(pod.metadata.key),
            uid=pod.metadata.uid,
            node=node,
            requirements=wanted,
            assigned_at=_since(pod, "PodScheduled"),
            initialized_at=_since(pod, "Initialized"),
            scoring=self.traits(pod),
            fence="" if node else bounds.short(pod.metadata.annotations, names.ANNOTATION_FENCE),
            nominated="" if node else sys.intern(pod.status.nominated_node_name),
            allocations=granted,
            unreadable=unreadable,
            leaves_at=_leaves_at(pod.metadata),
            preemption=""
            if node
            else bounds.short(pod.metadata.annotations, names.ANNOTATION_PREEMPTION),
            own_labels=self._labels(pod.metadata.labels),
            owners=self._owners(pod.metadata.owner_references),
            gang=gang_facts.read(pod),
            offers=operating.read(pod),
            unschedulable=not node and pod.status.unschedulable and self._is_asked_about(pod),
        )

    def _is_asked_about(self, pod: core.Pod) -> bool:
        return self._schedulers is None or pod.spec.scheduler_name in self._schedulers

    def granted(
        self, notes: Mapping[str, str], wanted: PodRequirements
    ) -> tuple[allocations.Allocations, tuple[str, ...]]:
        """Return what annotations say was allocated, and whose cannot be read."""
        return allocations.read(self._codecs, notes, wanted)

    def _labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels of a pod, the same object for pods that are alike."""
        if self._scoring is not None or not labels:
            return _NO_LABELS
        if len(labels) > _MOST_SHARED:
            return labels
        if len(self._kept_labels) >= _MOST_SHAPES:
            self._kept_labels.clear()
        return self._kept_labels.setdefault(tuple(sorted(labels.items())), labels)

    def _owners(self, owners: tuple[core.OwnerReference, ...]) -> tuple[core.OwnerReference, ...]:
        """Return owner references, the same object for the pods of one controller."""
        if not owners or len(owners) > _MOST_SHARED:
            return owners
        if len(self._kept_owners) >= _MOST_SHAPES:
            self._kept_owners.clear()
        return self._kept_owners.setdefault(owners, owners)

    def traits(self, pod: core.Pod) -> traits.PodTraits | None:
        """Return what a pod does to the scores of others; None where filter never decides."""
        return self._scoring.pod(pod) if self._scoring is not None else None

    def requirements(self, pod: core.Pod) -> PodRequirements:
        """Return what a pod asks for, the same object for pods that are alike."""
        return self._requirements.read(pod)

    def node(self, node: core.Node) -> NodeRecord:
        """Return the record of a node."""
        notes = node.metadata.annotations
        allocatable = resources.node_allocatable(node)
        try:
            raw = quantity.amounts(
                bounds.annotated(notes.get(names.ANNOTATION_RAW_ALLOCATABLE, ""))
            )
        except (ValueError, TypeError, AttributeError, ArithmeticError):
            raw = {}
        created = node.metadata.creation_timestamp
        return NodeRecord(
            name=sys.intern(node.metadata.name),
            allocatable=bounds.pairs(allocatable),
            total=bounds.pairs(allocatable | raw),
            capacity=bounds.pairs(
                {
                    name: value
                    for name, value in resources.amounts(node.status.capacity).items()
                    if name in (names.CPU, names.MEMORY)
                }
            ),
            labels=node.metadata.labels,
            thresholds=bounds.short(notes, names.ANNOTATION_USAGE_THRESHOLDS),
            # What nothing on the node could take back is not lent by the extender either.
            strategy=_LENDS_NOTHING
            if node_capability.broken(notes)
            else bounds.short(notes, names.ANNOTATION_COLOCATION_STRATEGY),
            uid=node.metadata.uid,
            created_at=durations.timestamp(created) if created else -1.0,
            scoring=self._scoring.node(node) if self._scoring is not None else None,
            amplification=bounds.short(notes, names.ANNOTATION_AMPLIFICATION),
            taints=_taints(node.spec),
        )


_UNSCHEDULABLE: Final = core.Taint(names.TAINT_UNSCHEDULABLE, "", "NoSchedule")


def _taints(spec: core.NodeSpec) -> tuple[core.Taint, ...]:
    """Return the taints that keep pods away; a cordoned node has one as well, soon or at once."""
    found = tuple(one for one in spec.taints if one.effect in ("NoSchedule", "NoExecute"))
    if spec.unschedulable and not any(one.key == _UNSCHEDULABLE.key for one in found):
        return (*found, _UNSCHEDULABLE)
    return found


def _leaves_at(metadata: core.ObjectMeta) -> float:
    written = metadata.deletion_timestamp
    return durations.timestamp(written) if written else -1.0


def _since(pod: core.Pod, kind: str) -> float:
    condition = pod.status.condition(kind)
    if condition is None or condition.status != "True" or not condition.last_transition_time:
        return -1.0
    return durations.timestamp(condition.last_transition_time)
