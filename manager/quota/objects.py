"""What the quota controllers keep of pods, nodes and ElasticQuotas: small, comparable values.

Of 150,000 pods most are alike: whatever several have in common is one object for all of them.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator import quota as quotas
from api.kubernetes import core
from api.wire import base, durations
from domain import short_memo
from domain.pods import resources as amounts
from domain.quota import placement
from domain.quota.model import PodUse
from domain.scoring import terms
from kube.informers import store

Pairs = tuple[tuple[str, int], ...]

LARGEST: Final = 1 << 52
"""Amounts beyond this are cut: no machine has them, and sums must stay within 64 bits."""
STATUS_ANNOTATIONS: Final = (
    names.ANNOTATION_QUOTA_RUNTIME,
    names.ANNOTATION_QUOTA_REQUEST,
    names.ANNOTATION_QUOTA_CHILD_REQUEST,
    names.ANNOTATION_QUOTA_GUARANTEED,
    names.ANNOTATION_QUOTA_ALLOCATED,
    names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_REQUEST,
    names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_USED,
)
"""Annotations of an ElasticQuota that hold figures; everything else on it belongs to its author."""
_MOST_SHAPES: Final = 4096
_MOST_VALUES: Final = 256
"""Values of the node affinity of a pod that is remembered after it is gone."""
_LONGEST_WARNING: Final = 200


class Told(NamedTuple):
    """Reason and message of the condition QuotaAvailable while its status is False."""

    reason: str = ""
    message: str = ""


NOT_TOLD: Final = Told()


class QuotaPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that has not ended, as far as quota is concerned.

    Times are seconds since the epoch, 0 where the object does not say. `use.assigned` says whether
    it has a node; `gated` whether the quota gate is among its scheduling `gates`.
    """

    uid: str
    key: str
    use: PodUse
    priority: int = 0
    node: str = ""
    created_at: float = 0.0
    started_at: float = 0.0
    gated: bool = False
    gates: tuple[str, ...] = ()
    unschedulable_since: float = 0.0
    nominated: str = ""
    terminating: bool = False
    preempts: bool = True
    """Whether its preemption policy lets it preempt."""
    pinned: bool = False
    """Whether it comes back to its node when it is evicted: one of a DaemonSet, or a static one."""
    requires: placement.Requirements = placement.NONE
    """What it requires of nodes, while it has none."""
    told: Told = NOT_TOLD
    """What its condition says that it waits for, as long as that is not taken back."""
    resource_version: str = ""

    @property
    def origin(self) -> tuple[str, str]:
        """Return the quota that its label names and its namespace, by which its quota is found."""
        return self.use.quota, self.use.namespace


class QuotaNode(msgspec.Struct, frozen=True, gc=False):
    """A node as far as quota is concerned; amounts as `quantity.amount` counts."""

    name: str
    labels: Mapping[str, str]
    allocatable: Pairs
    schedulable: bool = True
    """Whether it is ready and not cordoned."""
    taints: tuple[core.Taint, ...] = ()
    """Those that keep pods away."""


class QuotaObject(msgspec.Struct, frozen=True, gc=False):
    """An ElasticQuota of any group: what its author wrote, and the status that stands in it."""

    quota: quotas.Quota
    """Without its version and status, so that writing a status is no change of the quota."""
    version: str
    annotations: dict[str, str]
    """Those of `STATUS_ANNOTATIONS`."""
    status: dict[str, Any]
    warnings: tuple[str, ...] = ()
    """What its author has probably overlooked."""


class Shapes:
    """Equal requests and gates as one object each; bounded, since tenants choose them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def shared(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the one object for all equal values, unless they are longer than real ones."""
        if not short_memo.are_few(value):
            return value
        if len(self._kept) >= _MOST_SHAPES:
            self._kept.clear()
        return self._kept.setdefault(value, value)

    def _requires(self, spec: core.PodSpec) -> placement.Requirements:
        """Return what a pod requires of nodes; what cannot be read is taken for nothing."""
        try:
            read = placement.requirements(spec)
            if not _are_usual(spec):
                return read
            found = self.shared((read,))[0]
        except store.UNREADABLE:
            return placement.NONE
        assert isinstance(found, placement.Requirements)
        return found

    def pod(self, raw: core.Pod) -> QuotaPod | None:
        """Project a pod; one that has ended holds nothing."""
        if raw.finished:
            return None
        metadata, spec = raw.metadata, raw.spec
        uid, node = metadata.uid, sys.intern(spec.node_name)
        gates = self.shared(tuple(sys.intern(gate.name) for gate in spec.scheduling_gates))
        use = PodUse(
            uid=uid,
            quota=sys.intern(metadata.labels.get(names.LABEL_QUOTA_NAME, "")),
            namespace=sys.intern(metadata.namespace),
            requests=self.shared(pairs(amounts.pod_requests(raw))),
            assigned=bool(node),
            preemptible=metadata.labels.get(names.LABEL_QUOTA_PREEMPTIBLE) != "false",
        )
        return QuotaPod(
            uid=uid,
            key=metadata.key,
            use=use,
            priority=spec.priority or 0,
            node=node,
            created_at=_moment(metadata.creation_timestamp),
            started_at=_moment(raw.status.start_time),
            gated=names.GATE_QUOTA in gates,
            gates=gates,
            unschedulable_since=0.0 if node else _unschedulable(raw.status),
            nominated=sys.intern(raw.status.nominated_node_name),
            terminating=metadata.deletion_timestamp is not None,
            preempts=spec.preemption_policy != "Never",
            pinned=_pinned(metadata),
            requires=placement.NONE if node else self._requires(spec),
            told=_told(raw.status),
            resource_version=metadata.resource_version,
        )


def _are_usual(spec: core.PodSpec) -> bool:
    """Whether a pod requires no more of nodes than real ones do."""
    most = short_memo.MOST_LISTED
    of_nodes = (spec.affinity or {}).get("nodeAffinity") or {}
    if not (short_memo.are_few(spec.node_selector) and short_memo.are_few(spec.tolerations)):
        return False
    return not terms.exceeds(of_nodes, most, _MOST_VALUES)


def _pinned(metadata: core.ObjectMeta) -> bool:
    owner = metadata.controller
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _told(status: core.PodStatus) -> Told:
    condition = status.condition(names.CONDITION_QUOTA)
    if condition is None or condition.status != "False":
        return NOT_TOLD
    return Told(sys.intern(condition.reason), condition.message)


def pairs(found: Mapping[str, int]) -> Pairs:
    """Return amounts in the order of their names, within what can be added up."""
    return tuple(
        (sys.intern(name), min(max(value, 0), LARGEST)) for name, value in sorted(found.items())
    )


def amounts_of(written: object) -> dict[str, int]:
    """Read a resource list of an annotation; anything else is a ValueError."""
    if not isinstance(written, Mapping):
        raise ValueError("is no list of resources")
    return amounts.amounts(written)


def _moment(written: str | None) -> float:
    try:
        return durations.timestamp(written) if written else 0.0
    except ValueError:
        return 0.0


def _unschedulable(status: core.PodStatus) -> float:
    """Return since when kube-scheduler has found no node for a pod."""
    condition = status.condition("PodScheduled")
    if condition is None or (condition.status, condition.reason) != ("False", "Unschedulable"):
        return 0.0
    return _moment(condition.last_transition_time)


def quota(raw: Mapping[str, Any]) -> QuotaObject:
    """Project an ElasticQuota of any group; one that cannot be read is a ReadError."""
    read = quotas.review_written(raw)
    return _object(raw, read, read.value.resource_version)


def _object(raw: Mapping[str, Any], read: base.Read[quotas.Quota], version: str) -> QuotaObject:
    status, written = raw.get("status"), base.section(base.section(raw, "metadata"), "annotations")
    return QuotaObject(
        quota=msgspec.structs.replace(read.value, resource_version=""),
        version=version,
        annotations={key: written[key] for key in STATUS_ANNOTATIONS if key in written},
        status=dict(status) if isinstance(status, Mapping) else {},
        warnings=tuple(read.warnings),
    )


class QuotaReader:
    """Reads ElasticQuotas of one group; an edit that cannot be read leaves the last one in force.

    Its version and status are those of the object as it is now, so that they can be written.
    """

    def __init__(self) -> None:
        self.known: store.Store[QuotaObject] = store.Store()

    def read(self, raw: Mapping[str, Any]) -> QuotaObject:
        """Project a quota; raises a ReadError where nothing readable was known of the object."""
        try:
            return quota(raw)
        except base.ReadError as error:
            metadata = base.section(raw, "metadata")
            last = self.known.get(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}")
            if last is None or last.quota.uid != metadata.get("uid"):
                raise
            warning = f"{str(error)[:_LONGEST_WARNING]}; what was read before stays in force"
            return _object(raw, base.Read(last.quota, (warning,)), str(metadata["resourceVersion"]))
