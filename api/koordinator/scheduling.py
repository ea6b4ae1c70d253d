"""Reservation and PodGroup: capacity held for pods to come, and pods that start together."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
import pydantic
from pydantic import Field

from api.kubernetes import core, meta, pod_defaults
from api.wire import base

PENDING: Final = "Pending"
AVAILABLE: Final = "Available"
WAITING: Final = "Waiting"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
PHASES: Final = (PENDING, AVAILABLE, WAITING, SUCCEEDED, FAILED)
DEFAULT_LIFETIME: Final = 24 * 3600.0
MISSPELT_POLICY: Final = "allocationPolicy: no such field, write allocatePolicy"


class ControllerReference(base.Model):
    """A controlling owner of pods."""

    api_version: base.Text
    """Group and version of the controller."""
    kind: base.Text
    """Kind of the controller."""
    name: base.Text
    """Name of the controller."""
    uid: base.Text
    """UID of the controller."""
    controller: base.Bool | None = None
    """Whether it is the managing owner."""
    block_owner_deletion: base.Bool | None = None
    """Taken over from owner references; without effect."""
    namespace: base.Text = ""
    """Namespace of the controller."""


class Owner(base.Model):
    """Which pods may use a reservation; all given parts must match."""

    model_config = pydantic.ConfigDict(json_schema_extra={"minProperties": 1})

    object: meta.ObjectReference | None = None
    """One pod, by the parts that are filled in."""
    controller: ControllerReference | None = None
    """Pods of one controller."""
    label_selector: meta.LabelSelector | None = None
    """Pods by their labels."""

    @pydantic.model_validator(mode="after")
    def _says_something(self) -> "Owner":
        if self.object is None and self.controller is None and self.label_selector is None:
            raise ValueError("give at least one of object, controller and labelSelector")
        return self


NO_POLICY: Final = "Default"
"""How a Reservation is called that names no allocatePolicy."""


class PreAllocationPolicy(base.Model):
    """How running pods are picked that a reservation is placed over."""

    mode: Literal["Default", "Cluster"] = Field(
        default="Default", json_schema_extra={"x-default": "Default"}
    )
    """Default picks pods by the owners, Cluster by the label of pre-allocatable pods."""
    enable_multiple: base.Bool = False
    """Whether more than one pod may be picked."""


class ReservationTaint(base.Model):
    """What keeps pods away from a reservation, unless they tolerate it."""

    key: base.Text
    """Key of the taint."""
    value: base.Text = ""
    """Value of the taint."""
    effect: base.Text
    """Effect of the taint."""
    time_added: base.Moment | None = None
    """When it was added."""


class ReservationSpec(base.Model):
    """What is reserved, for whom and for how long."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!(has(self.ttl) && has(self.expires))",
                    "message": "give either ttl or expires, not both",
                },
                {"rule": "!has(self.allocationPolicy)", "message": MISSPELT_POLICY},
            ]
        }
    )

    template: base.AnyObject
    """Pod template whose requests are reserved; spec.nodeName pins the node."""
    owners: tuple[Owner, ...] = Field(min_length=1, max_length=128)
    """Who may use it; one match is enough."""
    ttl: base.Lifetime | None = None
    """Lifetime from creation; 24h when neither ttl nor expires is given, 0 for ever."""
    expires: base.Moment | None = None
    """Moment at which it ends; excludes ttl."""
    pre_allocation: base.Bool = False
    """Place it before the resources are free and wait for them."""
    pre_allocation_policy: PreAllocationPolicy | None = None
    """How running pods are picked that it is placed over."""
    allocate_once: base.Bool = Field(default=True, json_schema_extra={"x-default": True})
    """Whether a single owner uses it up."""
    allocate_policy: Literal["Aligned", "Restricted"] | None = None
    """Aligned lets owners take missing resources from the node, Restricted does not."""
    misspelt_policy: base.Text | None = Field(default=None, alias="allocationPolicy")
    """Not a field: allocatePolicy is meant."""
    unschedulable: base.Bool = False
    """Whether new owners are kept away."""
    taints: tuple[ReservationTaint, ...] = ()
    """What keeps pods away, unless they tolerate it."""


class ReservationStatus(base.Model):
    """What became of a reservation."""

    phase: base.Text = Field(default=PENDING, json_schema_extra={"x-default": PENDING})
    """Pending, Available, Waiting, Succeeded or Failed."""
    conditions: tuple[meta.LooseCondition, ...] = ()
    """Observed facts."""
    current_owners: tuple[meta.ObjectReference, ...] = ()
    """Pods that use it now."""
    node_name: base.Text = ""
    """Node that it is placed on."""
    allocatable: base.ResourceList = Field(default={})
    """What owners may use."""
    allocated: base.ResourceList = Field(default={})
    """What its current owners use."""


class Reservation(meta.Object):
    """Capacity of one node, held for pods to come."""

    spec: ReservationSpec
    """What is reserved, for whom and for how long."""
    status: ReservationStatus = Field(
        default=ReservationStatus(), json_schema_extra={"x-default": {}}
    )
    """What became of it."""

    @property
    def policy(self) -> str:
        """Return how requests of owners map on what is reserved."""
        return self.policy_name or "Aligned"

    @property
    def policy_name(self) -> str:
        """Return the policy that it names, empty for none; pre-allocation means Restricted."""
        default = "Restricted" if self.spec.pre_allocation else ""
        return self.spec.allocate_policy or default

    @property
    def expires_at(self) -> float | None:
        """Return the moment at which it ends, none for never or while it has no creation time."""
        if self.spec.expires is not None:
            return self.spec.expires
        lifetime = DEFAULT_LIFETIME if self.spec.ttl is None else self.spec.ttl
        created = self.metadata.creation_timestamp
        return created + lifetime if lifetime and created is not None else None

    @property
    def pod(self) -> core.Pod:
        """Return the template as the pod that an API server makes of it."""
        template = without_nulls(self.spec.template)
        if isinstance(spec := template.get("spec"), Mapping):
            template = {**template, "spec": pod_defaults.with_requests(spec)}
        try:
            return msgspec.convert(template, core.Pod)
        except msgspec.ValidationError as error:
            raise base.ReadError(f"Reservation {self.name}: spec.template: {error}") from error


def without_nulls(value: Any) -> Any:
    """Return a JSON value without null fields: in Kubernetes null and absent are the same."""
    if isinstance(value, Mapping):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def read_reservation(raw: Mapping[str, Any]) -> Reservation:
    """Read a Reservation."""
    return review_reservation(raw).value


def review_reservation(raw: Mapping[str, Any]) -> base.Read[Reservation]:
    """Read a Reservation and report what its author has probably overlooked."""
    reservation = base.read(Reservation, raw)
    spec, warnings = reservation.spec, []
    if spec.misspelt_policy is not None:
        warnings.append(f"spec.{MISSPELT_POLICY}")
    if spec.ttl is not None and spec.expires is not None:
        warnings.append("spec.ttl: ignored because spec.expires is given")
    if spec.pre_allocation and spec.allocate_policy == "Aligned":
        warnings.append("spec.allocatePolicy: pre-allocation works with Restricted only")
    return base.Read(reservation, tuple(warnings))


class PodGroupSpec(base.Model):
    """When a group of pods may start."""

    min_member: base.Int32 = 0
    """Pods that must be able to start together."""
    min_resources: base.ResourceList = Field(default={})
    """Resources that must be there before any pod starts."""
    schedule_timeout_seconds: base.Int32 | None = None
    """How long started pods wait for the others; the default when unset or not positive."""


class PodGroupStatus(base.Model):
    """How a group of pods is doing."""

    phase: base.Text = ""
    """Pending, PreScheduling, Scheduling, Scheduled, Running, Unknown, Finished or Failed."""
    occupied_by: base.Text = ""
    """UID of the workload that owns the group."""
    scheduled: base.Int32 = 0
    """Pods that have a node."""
    running: base.Int32 = 0
    """Pods that run."""
    succeeded: base.Int32 = 0
    """Pods that ended well."""
    failed: base.Int32 = 0
    """Pods that failed."""
    schedule_start_time: base.Moment | None = None
    """When scheduling began."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""


class PodGroup(meta.Object):
    """Pods that start together or not at all."""

    spec: PodGroupSpec = PodGroupSpec()
    """When they may start."""
    status: PodGroupStatus = PodGroupStatus()
    """How they are doing."""


def read_pod_group(raw: Mapping[str, Any]) -> PodGroup:
    """Read a PodGroup."""
    return base.read(PodGroup, raw)
