"""What the manager keeps of the pods of gangs, of PodGroups, and of one gang as a whole. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names, resources
from api.koordinator import scheduling
from api.kubernetes import core, meta
from api.wire import base, durations
from domain.gangs import declaration, plan_record
from domain.gangs import status as phases

QUORUM: Final = "Quorum"
"""Condition of a PodGroup: whether as many of its pods have a node as it needs at least."""
WAITING: Final = "WaitingForPods"
"""Reason of this condition while a gang gathers: it has not had its minimum yet."""
DEFAULTS: Final = declaration.Defaults()
"""What a gang waits for at bind makes no difference here."""
_MIRROR: Final = "kubernetes.io/config.mirror"
_LONGEST: Final = 512
_MOST_OWNERS: Final = 16


class Owner(NamedTuple):
    """An owner reference of a pod."""

    api_version: str
    kind: str
    name: str
    uid: str


class GangPod(msgspec.Struct, frozen=True, gc=False):
    """One pod of a gang."""

    namespace: str
    name: str
    uid: str
    gang_id: str
    node: str
    phase: str
    deleting: bool
    created: float
    """Seconds since the epoch."""
    declared: declaration.Gang | None
    """The gang as this pod declares it; None where it only names a PodGroup."""
    gathered: bool = False
    """Whether it was bound as one of a complete gang."""
    plan: str = ""
    """The plan by which it was bound together with others; empty where that is not known."""
    static: bool = False
    """Whether its node made it, from a file; such a pod cannot be evicted."""
    owners: tuple[Owner, ...] = ()

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def living(self) -> bool:
        """Whether it holds a place on a node and is to stay there."""
        return bool(self.node) and not self.deleting and self.phase not in ("Succeeded", "Failed")

    @property
    def succeeded(self) -> bool:
        """Whether it has ended well."""
        return self.phase == "Succeeded"


def gang_pod(pod: core.Pod) -> GangPod | None:
    """Project a pod; None where it is a member of no gang."""
    metadata, spec = pod.metadata, pod.spec
    named = declaration.membership(
        metadata.namespace, metadata.labels, metadata.annotations, spec.scheduling_group
    )
    if named is None:
        return None
    declared = declaration.of_pod(
        metadata.namespace, metadata.labels, metadata.annotations, DEFAULTS, spec.scheduling_group
    )
    owners = metadata.owner_references[:_MOST_OWNERS]
    return GangPod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        gang_id=named[0],
        node=spec.node_name,
        phase=pod.status.phase,
        deleting=metadata.deletion_timestamp is not None,
        created=_moment(metadata.creation_timestamp),
        declared=None if named[1].needs_object else declared,
        gathered=bool(metadata.annotations.get(names.ANNOTATION_BIND_GANG_GROUP)),
        plan=_plan(metadata.annotations) if spec.node_name else "",
        static=_MIRROR in metadata.annotations,
        owners=tuple(Owner(one.api_version, one.kind, one.name, one.uid) for one in owners),
    )


def _plan(annotations: Mapping[str, str]) -> str:
    record = plan_record.read(annotations.get(names.ANNOTATION_PLAN, ""))
    return record.origin if record is not None else ""


def _moment(text: str | None) -> float:
    try:
        return 0.0 if text is None else durations.timestamp(text)
    except durations.TimestampError:
        return 0.0


class Group(msgspec.Struct, frozen=True, gc=False):
    """One PodGroup, of scheduling.sigs.k8s.io or of Kubernetes itself."""

    namespace: str
    name: str
    uid: str
    version: str
    """Its resource version, which guards what is written on it."""
    created: float
    deleting: bool
    gang_id: str
    gang: declaration.Gang | None
    """What it declares; None where that cannot be read."""
    resource: resources.Resource = resources.POD_GROUPS
    status: scheduling.PodGroupStatus = scheduling.PodGroupStatus()
    fault: str = ""
    """Why it cannot be read."""

    @property
    def native(self) -> bool:
        """Whether it is one of Kubernetes itself, of which nothing is ever written."""
        return self.resource is not resources.POD_GROUPS

    @property
    def had_quorum(self) -> bool:
        """Whether its status says that it has had its minimum."""
        quorum = self.condition(QUORUM)
        had = quorum is not None and quorum.reason != WAITING
        return self.status.phase in (phases.SCHEDULED, phases.RUNNING) or had

    def condition(self, kind: str) -> meta.LooseCondition | None:
        """Return the condition of this type."""
        return meta.condition(self.status.conditions, kind)


class Observed(msgspec.Struct, frozen=True, gc=False):
    """One gang: what it declares, its pods and its PodGroup."""

    gang: declaration.Gang
    members: tuple[GangPod, ...]
    """The oldest first."""
    group: Group | None = None

    @property
    def had_quorum(self) -> bool:
        """Whether its PodGroup says that it has had its minimum."""
        return self.group is not None and self.group.had_quorum


class _Named(meta.Object):
    """Any object, by its metadata alone."""


class _Specified(base.Model):
    spec: scheduling.PodGroupSpec = scheduling.PodGroupSpec()


def pod_group(raw: Mapping[str, Any]) -> Group | None:
    """Project a PodGroup of scheduling.sigs.k8s.io; None where its metadata cannot be read.

    Its status stands in the object itself, so that tenants can write it: one that cannot be read
    counts as empty.
    """
    try:
        metadata = base.read(_Named, raw).metadata
    except base.ReadError:
        return None
    fault, gang = "", None
    try:
        spec = base.read(_Specified, {"spec": raw.get("spec") or {}}).spec
        gang = declaration.of_pod_group(
            metadata.namespace, metadata.name, metadata.annotations, spec, DEFAULTS
        )
    except base.ReadError as wrong:
        fault = f"cannot be read: {wrong}"[:_LONGEST]
    try:
        stated = base.read(scheduling.PodGroupStatus, raw.get("status") or {})
    except base.ReadError:
        stated = scheduling.PodGroupStatus()
    identity = _identity(metadata, declaration.Source.POD_GROUP)
    return Group(**identity, gang=gang, status=stated, fault=fault)


def native_pod_group(resource: resources.Resource, raw: Mapping[str, Any]) -> Group | None:
    """Project a PodGroup of scheduling.k8s.io; None where its policy is not to be a gang."""
    try:
        metadata = base.read(_Named, raw).metadata
    except base.ReadError:
        return None
    spec = raw.get("spec")
    gang = declaration.of_native(
        metadata.namespace,
        metadata.name,
        metadata.annotations,
        spec if isinstance(spec, Mapping) else {},
        DEFAULTS,
    )
    if gang is None:
        return None
    identity = _identity(metadata, declaration.Source.NATIVE)
    return Group(**identity, gang=gang, resource=resource)


def _identity(metadata: meta.Meta, source: declaration.Source) -> dict[str, Any]:
    unknown = declaration.unknown(metadata.namespace, metadata.name, source)
    return {
        "gang_id": unknown.id,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "version": metadata.resource_version,
        "created": metadata.creation_timestamp or 0.0,
        "deleting": metadata.deletion_timestamp is not None,
    }
