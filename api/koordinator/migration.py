"""PodMigrationJob: one pod that moves to another node."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from api.kubernetes import meta
from api.wire import base

RESERVATION_FIRST: Final = "ReservationFirst"
EVICT_DIRECTLY: Final = "EvictDirectly"


class ReservationOptions(base.Model):
    """How the pod's new place is reserved."""

    reservation_ref: meta.ObjectReference | None = None
    """Reservation to use; filled in once one has been created."""
    template: base.AnyObject | None = None
    """Metadata and spec of the Reservation to create."""
    preemption_options: base.AnyObject | None = None
    """Reserved."""


class Preconditions(base.Model):
    """What must still hold when the pod is deleted."""

    uid: base.Text | None = None
    """UID of the pod."""
    resource_version: base.Text | None = None
    """Version of the pod."""


class DeleteOptions(base.Model):
    """How the pod is deleted or evicted."""

    api_version: base.Text = ""
    """Group and version of these options."""
    kind: base.Text = ""
    """Kind of these options."""
    grace_period_seconds: base.Int64 | None = None
    """Time that the pod gets to end."""
    preconditions: Preconditions | None = None
    """What must still hold."""
    orphan_dependents: base.Bool | None = None
    """Outdated; use propagationPolicy."""
    propagation_policy: base.Text | None = None
    """What becomes of dependents."""
    dry_run: tuple[base.Text, ...] = ()
    """All, to try without effect."""
    ignore_store_read_error_with_cluster_breaking_potential: base.Bool | None = None
    """Taken over from Kubernetes; without effect."""


class Spec(base.Model):
    """Which pod moves, and how."""

    paused: base.Bool = False
    """Whether nothing is done for the time being."""
    ttl: base.Lifetime | None = None
    """Time after which the job fails; the descheduler's default when unset."""
    mode: base.Text = ""
    """ReservationFirst or EvictDirectly; the descheduler's default when unset."""
    pod_ref: meta.ObjectReference
    """The pod."""
    reservation_options: ReservationOptions | None = None
    """How its new place is reserved."""
    delete_options: DeleteOptions | None = None
    """How it is deleted or evicted."""


class PreemptedReservation(base.Model):
    """A reservation made for a pod that had to give way."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the reservation."""
    node_name: base.Text = ""
    """Node that it is placed on."""
    phase: base.Text = ""
    """Phase of the reservation."""
    preempted_pod_ref: meta.ObjectReference | None = None
    """The pod that had to give way."""
    pods_ref: tuple[meta.ObjectReference, ...] = ()
    """Pods that use the reservation."""


class Status(base.Model):
    """How far the move is."""

    phase: base.Text = ""
    """Pending, Running, Succeeded, Failed or Aborted; empty while new."""
    status: base.Text = ""
    """Type of the last condition, Complete at the end."""
    reason: base.Text = ""
    """Why, in one word."""
    message: base.Text = ""
    """Why, for people."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""
    node_name: base.Text = ""
    """Node that the reservation is placed on."""
    pod_ref: meta.ObjectReference | None = None
    """The pod that replaces the moved one."""
    preempted_pods_ref: tuple[meta.ObjectReference, ...] = ()
    """Pods that had to give way."""
    preempted_pods_reservation: tuple[PreemptedReservation, ...] = ()
    """Reservations made for them."""


class PodMigrationJob(meta.Object):
    """One pod that moves to another node."""

    spec: Spec
    """Which pod moves, and how."""
    status: Status = Status()
    """How far the move is."""


def read_pod_migration_job(raw: Mapping[str, Any]) -> PodMigrationJob:
    """Read a PodMigrationJob."""
    return base.read(PodMigrationJob, raw)
