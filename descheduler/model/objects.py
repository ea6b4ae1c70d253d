"""Workloads, disruption budgets, migration jobs and Reservations as the descheduler sees them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api.koordinator import migration, scheduling


class Workload(msgspec.Struct, frozen=True, gc=False):
    """What controls pods: a ReplicaSet, StatefulSet, ReplicationController or CloneSet."""

    uid: str
    kind: str
    key: str
    """namespace/name."""
    replicas: int
    """How many pods it should have; of a ReplicaSet of a Deployment, those of the Deployment."""
    owner: str = ""
    """UID of the Deployment that controls it; empty where none does."""
    is_rolling_out: bool = False
    """Whether a new revision is being rolled out."""
    is_exempt: bool = False
    """Whether it, or the Deployment that controls it, is annotated so that its pods stay."""


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    labels: Mapping[str, str]
    is_exempt: bool = False
    """Whether it is annotated so that its pods stay."""


class Gang(msgspec.Struct, frozen=True, gc=False):
    """Pods that run together or not at all."""

    key: str
    """As pods name it."""
    min_member: int
    """Members that have to run together."""


class Budget(msgspec.Struct, frozen=True, gc=False):
    """A PodDisruptionBudget."""

    key: str
    """namespace/name."""
    selector: Mapping[str, Any] | None
    """As written; None selects no pod."""
    allowed: int
    """Evictions that it allows now."""


class Job(msgspec.Struct, frozen=True, gc=False):
    """A PodMigrationJob: the object as read, and what is asked of it often."""

    name: str
    uid: str
    version: str
    """Its resourceVersion."""
    created: float
    """Seconds since the epoch."""
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    spec: migration.Spec
    status: migration.Status
    leaves_at: float = -1.0

    @property
    def phase(self) -> str:
        """Return the phase; a new job is Pending."""
        return self.status.phase or "Pending"

    @property
    def is_open(self) -> bool:
        """Whether it is Pending or Running."""
        return self.phase in {"Pending", "Running"}

    @property
    def pod_key(self) -> str:
        """Return namespace/name of the pod that moves."""
        return f"{self.spec.pod_ref.namespace}/{self.spec.pod_ref.name}"


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """A Reservation, as far as a migration reads it."""

    name: str
    uid: str
    labels: Mapping[str, str]
    raw: scheduling.Reservation
