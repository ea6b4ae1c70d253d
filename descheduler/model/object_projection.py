"""What the descheduler keeps of workloads, disruption budgets, jobs and Reservations. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from api import resources
from api.koordinator import migration, scheduling
from api.kubernetes import core, selectors
from descheduler.model import exemption, objects
from domain.gangs import pod_groups

KINDS: Final = (resources.REPLICA_SETS, resources.DEPLOYMENTS)
"""What is always watched: only both together say how many pods there should be."""
MORE_KINDS: Final = (
    resources.STATEFUL_SETS,
    resources.REPLICATION_CONTROLLERS,
    resources.CLONE_SETS,
    resources.ADVANCED_STATEFUL_SETS,
)
"""What is watched where it is served: OpenKruise has to be installed for its kinds."""
_PERCENT: Final = 100


class Strategy(core.Wire, frozen=True, gc=False):
    """How a StatefulSet or CloneSet is updated."""

    type: str = ""
    rolling_update: dict[str, Any] | None = None
    partition: int | str | None = None
    """Of a CloneSet: how many pods keep their old revision."""


class WorkloadSpec(core.Wire, frozen=True, gc=False):
    """How many pods there should be."""

    replicas: int | None = None
    update_strategy: Strategy = Strategy()


class WorkloadStatus(core.Wire, frozen=True, gc=False):
    """How many pods there are."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0


class Controller(core.Wire, frozen=True, gc=False):
    """A ReplicaSet, Deployment, StatefulSet, ReplicationController or CloneSet, as decoded."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def workload(kind: str, written: Controller) -> objects.Workload:
    """Return what is kept of a workload, as it says of itself."""
    metadata, replicas = written.metadata, written.spec.replicas
    owner = metadata.controller
    return objects.Workload(
        uid=metadata.uid,
        kind=kind,
        key=metadata.key,
        # The API server puts 1 where nothing is written.
        replicas=1 if replicas is None else max(replicas, 0),
        owner=owner.uid if owner is not None and owner.kind == "Deployment" else "",
        is_rolling_out=_is_rolling_out(kind, written),
        is_exempt=exemption.is_exempt(metadata.annotations),
    )


def replica_set(written: Controller) -> objects.Workload | None:
    """Return what is kept of a ReplicaSet; an old revision that has no pods is of no interest."""
    found = workload("ReplicaSet", written)
    is_empty = not found.replicas and not written.status.replicas
    return None if is_empty and found.owner else found


def _is_rolling_out(kind: str, written: Controller) -> bool:
    """Whether pods of an old revision are being replaced."""
    status, strategy = written.status, written.spec.update_strategy
    if kind in {"ReplicaSet", "ReplicationController"} or strategy.type == "OnDelete":
        return False
    if status.observed_generation < written.metadata.generation:
        return True
    wanted = written.spec.replicas if written.spec.replicas is not None else 1
    if kind == "Deployment":
        return status.updated_replicas < wanted or status.replicas > status.updated_replicas
    kept = (strategy.rolling_update or {}).get("partition", strategy.partition)
    return status.updated_replicas < wanted - _partition(kept, wanted)


def _partition(written: object, replicas: int) -> int:
    """Return how many pods are to keep the old revision, a canary for instance."""
    if isinstance(written, int):
        return written
    if isinstance(written, str) and written.endswith("%"):
        digits = written[:-1]
        if digits.isascii() and digits.isdecimal():
            return -(-replicas * min(int(digits[:4]), _PERCENT) // _PERCENT)
    return 0


def resolved(listed: Iterable[objects.Workload]) -> Mapping[str, objects.Workload]:
    """Return workloads by uid: a ReplicaSet of a Deployment has the replicas of the Deployment."""
    by_uid = {one.uid: one for one in listed}
    return {
        uid: of_deployment(one, by_uid[one.owner]) if one.owner in by_uid else one
        for uid, one in by_uid.items()
    }


def of_deployment(one: objects.Workload, above: objects.Workload) -> objects.Workload:
    """Return a ReplicaSet as its Deployment means it."""
    return msgspec.structs.replace(
        one,
        replicas=above.replicas,
        is_rolling_out=above.is_rolling_out,
        is_exempt=one.is_exempt or above.is_exempt,
    )


def namespace(written: core.Namespace) -> objects.Namespace:
    """Return what is kept of a namespace."""
    metadata = written.metadata
    return objects.Namespace(metadata.labels, exemption.is_exempt(metadata.annotations))


def gang(written: pod_groups.PodGroup) -> objects.Gang | None:
    """Return the gang of a PodGroup; None where it does not say how many members it needs."""
    if not (written.is_gang and written.min_member):
        return None
    return objects.Gang(written.gang_id, written.min_member)


def budget(written: core.PodDisruptionBudget) -> objects.Budget:
    """Return what is kept of a PodDisruptionBudget."""
    return objects.Budget(
        key=written.metadata.key,
        selector=selectors.prepared(written.spec.selector),
        allowed=written.status.disruptions_allowed,
    )


def job(raw: Mapping[str, Any]) -> objects.Job:
    """Return what is kept of a PodMigrationJob."""
    read = migration.read_pod_migration_job(raw)
    metadata = read.metadata
    leaves_at = metadata.deletion_timestamp
    return objects.Job(
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        created=metadata.creation_timestamp or 0.0,
        annotations=metadata.annotations,
        labels=metadata.labels,
        spec=read.spec,
        status=read.status,
        leaves_at=-1.0 if leaves_at is None else leaves_at,
    )


def reservation(raw: Mapping[str, Any]) -> objects.Reservation:
    """Return what is kept of a Reservation."""
    read = scheduling.read_reservation(raw)
    return objects.Reservation(
        name=read.metadata.name, uid=read.metadata.uid, labels=read.metadata.labels, raw=read
    )
