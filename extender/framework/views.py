"""What plug-ins are shown: the pod, one node, and read-only snapshots of the cluster.

The records behind them have their names here as well: a plug-in imports the framework alone.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from api.kubernetes import core
from domain.usage import load
from extender.framework import advanced_values, verdicts
from extender.state import (
    allocations,
    bounds,
    claims,
    deltas,
    gang_facts,
    lending,
    records,
    requirements,
)
from extender.state.reservations import remainders, reservation_claims

AllocationCodec = allocations.AllocationCodec
Claim = claims.Claim
ClaimKind = claims.ClaimKind
FIRM = claims.FIRM
ClaimDelta = deltas.ClaimDelta
NodeDelta = deltas.NodeDelta
ReportDelta = deltas.ReportDelta
ObjectDelta = deltas.ObjectDelta
LendingDelta = deltas.LendingDelta
Delta = deltas.Delta
UNSCHEDULED_POD = deltas.UNSCHEDULED_POD
UNSCHEDULED_MEMBER = deltas.UNSCHEDULED_MEMBER
POD_GROUP = deltas.POD_GROUP
ELASTIC_QUOTA = deltas.ELASTIC_QUOTA
NODE_TOPOLOGY = deltas.NODE_TOPOLOGY
CLUSTER_NETWORK_TOPOLOGY = deltas.CLUSTER_NETWORK_TOPOLOGY
DEVICE = deltas.DEVICE
DEVICES_ELSEWHERE = deltas.DEVICES_ELSEWHERE
GPU_TEMPLATES = deltas.GPU_TEMPLATES
GANG_PLAN = deltas.GANG_PLAN
GangPlan = gang_facts.GangPlan
NodeRecord = records.NodeRecord
PodRecord = records.PodRecord
PodRequirements = records.PodRequirements
Pairs = records.Pairs
annotated = bounds.annotated
HostPort = requirements.HostPort
RESERVATION = reservation_claims.NAME
SHOWN = claims.SHOWN
offered = reservation_claims.offered
reservation_claim = claims.reservation
_POD: Final = operator.attrgetter("pod")
Figures = tuple[tuple[int, ...], object | None]
"""One number per column, and one frozen value for what no column can say."""


class PodInfo(msgspec.Struct, frozen=True):
    """What a plug-in sees of the pod that is being placed, parsed once."""

    key: str
    """namespace/name"""
    uid: str
    requirements: records.PodRequirements
    labels: Mapping[str, str] = {}
    owners: tuple[core.OwnerReference, ...] = ()
    """Its owner references."""
    plan: str = ""
    """What was written on it of a plan of its gang, as far as that was looked up."""

    @classmethod
    def of(cls, pod: records.PodRecord) -> "PodInfo":
        """Return a pod as it is placed."""
        plan = pod.gang.plan if pod.gang is not None else ""
        return cls(pod.key, pod.uid, pod.requirements, pod.labels, pod.owners, plan)

    @classmethod
    def read(cls, pod: core.Pod, requirements: records.PodRequirements) -> "PodInfo":
        """Return a pod of a call, of which is known what it requires."""
        meta = pod.metadata
        return cls(meta.key, meta.uid, requirements, meta.labels, meta.owner_references)

    @property
    def namespace(self) -> str:
        """Return the namespace."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Return the name."""
        return self.key.partition("/")[2]


class NodeInfo(msgspec.Struct, frozen=True, gc=False):
    """Everything that is known about one node."""

    node: records.NodeRecord
    report: load.Report | None
    pods: tuple[records.PodRecord, ...]
    """What the claims hold, those of Reservations left out."""
    policy: lending.LendingPolicy
    claims: tuple[Claim, ...] = ()
    """Those of Reservations without what their owners hold of it: nothing counts twice."""
    objects: Mapping[tuple[str, str], Any] = dataclasses.field(default_factory=dict)
    """What only plug-ins know of this node, by kind and key."""
    reserved: Mapping[str, Claim] = dataclasses.field(default_factory=dict)
    """The claims of Reservations by id, with what their owners hold."""


@runtime_checkable
class StateTracker(Protocol):
    """Keeps the state of a plug-in in step with the cluster, by pure functions of what changed.

    Per node, figures that make filter and score vector arithmetic and one frozen value for what
    is sparse; for the cluster, one value.
    """

    name: str
    columns: int

    def node(self, info: NodeInfo) -> Figures:
        """Return figures and sparse value of a node; called when anything about it changed."""

    def start(self) -> object | None:
        """Return the value of an empty cluster, None where the plug-in keeps none."""

    def cluster(self, old: Any, delta: deltas.Delta) -> object | None:
        """Return the value of the cluster after a change; the inverse change leads back."""


@functools.lru_cache(maxsize=16)
def every(count: int) -> verdicts.Rows:
    """Return so many rows from the first one, always the same array."""
    return _kept(np.arange(count, dtype=np.intp))


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """What is different on one node in a what-if."""

    add: Sequence[claims.Claim] = ()
    remove: Collection[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Lent:
    """The claim whose capacity the pod that is placed uses; the node is shown without it."""

    claim: claims.Claim
    """With what is left of it."""
    restricted: bool = False
    """Whether of what was allocated to it nothing may be taken from elsewhere."""


class View(msgspec.Struct, frozen=True):
    """A read-only snapshot of the cluster; valid until the next await."""

    names: Sequence[str]
    """Node name by row."""
    rows: Mapping[str, int]
    """Row by name, known nodes only."""
    known: verdicts.Flags
    """Whether a row has a node."""
    resources: Mapping[str, int]
    """Index of a resource in the next two matrices."""
    allocatable: verdicts.Column
    requested: verdicts.Column
    """What bound and assumed pods ask for, as the scheduler's own totals count it."""
    figures: Mapping[str, verdicts.Column]
    """By plug-in: what its tracker returned, one matrix row per figure, one column per node."""
    node: Callable[[int], NodeInfo]
    values: Callable[[int], Mapping[str, object]]
    """By row: the sparse values of the plug-ins that have one there."""
    cluster: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """By plug-in: its value of the whole cluster."""
    nominated: Mapping[int, tuple[claims.Claim, ...]] = dataclasses.field(default_factory=dict)
    """By row: the claims that are kept for pods which are not placed yet."""
    trackers: Sequence[StateTracker] = ()
    version: int = 0
    """Another number after every change."""
    members: int = 0
    """Another number, a greater one, whenever a row got or lost its node."""
    born: verdicts.Column | None = None
    """By row: the number above at which its node came; rows are used again."""
    revisions: verdicts.Column | None = None
    """By row: another number after every change of figures and sparse values, in any state; None
    where nodes are shown as they are not."""
    lowest: Callable[[str], Sequence[int] | None] = lambda _plugin: None
    """By plug-in: what none of its figures is lower than on any node; None: that is not known."""
    lent: Lent | None = None
    """Where the one node is shown as a pod finds it that uses what a claim keeps for it."""

    def gathered(
        self, plugin: str, rows: verdicts.Rows, part: slice = slice(None)
    ) -> verdicts.Column:
        """Return figures of a plug-in for some rows, perhaps only a part of them."""
        figures = self.figures[plugin][part]
        # Of all rows there is nothing to be copied.
        return figures if rows is every(figures.shape[1]) else figures.take(rows, axis=1)

    def sparse(self, plugin: str, row: int) -> object | None:
        """Return the frozen value that a plug-in keeps of one node."""
        return self.values(row).get(plugin)

    def only(self, row: int) -> "View":
        """Return the snapshot of one node, kept as it is now: its row is 0."""
        return self.several((row,))

    def several(self, chosen: Sequence[int], figures_of: Collection[str] | None = None) -> "View":
        """Return the snapshot of some nodes, kept as they are now, with rows of their own.

        Plug-ins judge every row by itself, so they say of it what they would say among all.
        Figures are those of all plug-ins, or of some of them, which is cheaper.
        """
        infos = [self.node(row) for row in chosen]
        values = [self.values(row) for row in chosen]
        columns = np.array(chosen, dtype=np.intp)
        return msgspec.structs.replace(
            self,
            names=(names := tuple(self.names[row] for row in chosen)),
            rows={name: row for row, name in enumerate(names)},
            known=_kept(self.known.take(columns)),
            allocatable=_kept(self.allocatable.take(columns, axis=1)),
            requested=_kept(self.requested.take(columns, axis=1)),
            figures={
                plugin: _kept(part.take(columns, axis=1))
                for plugin, part in self.figures.items()
                if figures_of is None or plugin in figures_of
            },
            node=infos.__getitem__,
            values=values.__getitem__,
            nominated={
                place: self.nominated[row]
                for place, row in enumerate(chosen)
                if row in self.nominated
            },
            born=None,
            revisions=None,
            lowest=lambda _plugin: None,
        )

    def with_claims(
        self, row: int, add: Sequence[claims.Claim] = (), remove: Collection[str] = ()
    ) -> "View":
        """Return this one node as row 0, with some claims and without others."""
        return self.changed({row: Changes(add, remove)})

    def changed(
        self, changes: Mapping[int, Changes], cluster: Mapping[str, object] | None = None
    ) -> "View":
        """Return some nodes, kept as they would be with other claims; rows in the order given.

        Values of the whole cluster follow these changes, where they are not given.
        """
        kept = self.several(tuple(changes), figures_of=())
        infos: list[NodeInfo] = []
        values: list[Mapping[str, object]] = []
        nominated, steps = dict(kept.nominated), list[deltas.Delta]()
        requested = kept.requested.copy()
        figures: dict[str, list[tuple[int, ...]]] = {one.name: [] for one in self.trackers}
        for row, change in enumerate(changes.values()):
            info, moved = recounted(kept.node(row), change)
            for step in moved:
                _recount(requested[:, row], step, self.resources)
            steps += moved
            sparse: dict[str, object] = {}
            for tracker in self.trackers:
                column, value = tracker.node(info)
                figures[tracker.name].append(column)
                if value is not None:
                    sparse[tracker.name] = value
            infos.append(info)
            values.append(sparse)
            nominated.pop(row, None)
            if found := kept_for_later(info.claims):
                nominated[row] = found
        if cluster is not None:
            whole: Mapping[str, object] = dict(cluster)
        else:
            whole = advanced_values.AdvancedValues(self.cluster, self.trackers, steps)
        return msgspec.structs.replace(
            kept,
            requested=_kept(requested),
            figures={plugin: _kept(_matrix(nodes)) for plugin, nodes in figures.items()},
            node=infos.__getitem__,
            values=values.__getitem__,
            cluster=whole,
            nominated=nominated,
        )


def kept_for_later(held: Sequence[claims.Claim]) -> tuple[claims.Claim, ...]:
    """Return the claims that are kept for pods which are not placed yet."""
    return tuple(claim for claim in held if claim.kind is claims.ClaimKind.NOMINATED)


def recounted(info: NodeInfo, change: Changes) -> tuple[NodeInfo, list[deltas.ClaimDelta]]:
    """Return a node with other claims, and the deltas that lead there."""
    steps = [
        deltas.ClaimDelta(claim.id, info.reserved.get(claim.id, claim), None)
        for claim in info.claims
        if claim.id in change.remove
    ]
    steps += [deltas.ClaimDelta(claim.id, None, claim) for claim in change.add]
    left = [
        info.reserved.get(claim.id, claim) for claim in info.claims if claim.id not in change.remove
    ]
    present = (*left, *change.add)
    reserved = remainders.whole(present)
    held = remainders.counted(present, reserved)
    found = msgspec.structs.replace(
        info, claims=held, pods=pods_of(held, reserved), reserved=reserved
    )
    return found, steps


def pods_of(
    held: Sequence[claims.Claim], reserved: Mapping[str, claims.Claim]
) -> tuple[records.PodRecord, ...]:
    """Return the pods behind claims; what Reservations keep runs nowhere."""
    if not reserved:
        return tuple(map(_POD, held))
    return tuple([claim.pod for claim in held if claim.id not in reserved])


def advance(
    cluster: dict[str, object], trackers: Sequence[StateTracker], delta: deltas.Delta
) -> None:
    """Bring the plug-ins' values of the cluster up to a change."""
    for tracker in trackers:
        if tracker.name in cluster:
            cluster[tracker.name] = tracker.cluster(cluster[tracker.name], delta)


def _recount(
    requested: verdicts.Column, step: deltas.ClaimDelta, resources: Mapping[str, int]
) -> None:
    """Bring what the pods of a node ask for up to a change."""
    for claim, sign in ((step.before, -1), (step.after, 1)):
        if claim is not None and claim.kind in claims.FIRM:
            for name, value in claim.pod.requirements.requests:
                if name in resources:
                    requested[resources[name]] += sign * value


def _matrix(nodes: Sequence[Sequence[int]]) -> verdicts.Column:
    """Return the figures of some nodes side by side."""
    return np.array(nodes, dtype=np.int64).T


def _kept(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Chosen by a list or copied, so no other code can write to it.
    part.flags.writeable = False
    return part
