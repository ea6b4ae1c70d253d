"""Arguments of the MigrationController: who may be moved, how many at a time, and how."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

import pydantic
from pydantic import Field

from api import names
from api.koordinator import migration
from api.plugin_args.arguments import Arguments, Duration
from descheduler.configuration.arguments import node_labels, parts

EVICTION: Final = "Eviction"
DELETE: Final = "Delete"
SOFT_EVICTION: Final = "SoftEviction"
WORKLOAD: Final = "workload"
NAMESPACE: Final = "namespace"
Gate = Literal[
    "MaxUnavailablePerWorkload",
    "MaxMigratingPerWorkload",
    "MaxMigratingPerNode",
    "MaxMigratingPerNamespace",
    "MaxMigratingGlobally",
    "ExpectedReplicas",
    "PVC",
    "BarePods",
    "LocalStorage",
    "SystemCritical",
    "PriorityThreshold",
    "LabelSelector",
    "Namespaces",
    "NodeFit",
]


def _rate(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise ValueError('write a number such as 10, or a text such as "0.5"') from None


Rate = Annotated[
    float,
    pydantic.BeforeValidator(_rate),
    Field(gt=0, le=1e6),
]


class DeleteOptions(migration.DeleteOptions):
    """How pods are deleted or evicted; an unknown field is an error."""

    model_config = pydantic.ConfigDict(extra="forbid")


class ObjectLimiter(Arguments):
    """How often pods of one workload or namespace are moved."""

    duration: Duration = 0.0
    """Time within which `maxMigrating` pods are moved; 0 is off."""
    max_migrating: parts.IntOrPercent | None = None
    """Pods; of a workload `maxMigratingPerWorkload` when missing, of a namespace a number."""
    burst: parts.Whole = 0
    """Pods that are moved at once after a pause; 1 when 0."""


class ArbitrationArgs(Arguments):
    """How the order of waiting jobs is decided."""

    enabled: bool = True
    """Kept for compatibility: jobs are always arbitrated."""
    interval: Annotated[Duration, Field(gt=0)] = 0.5
    """How often waiting jobs are looked at."""


_BY_WORKLOAD: Final[Mapping[str, ObjectLimiter]] = {WORKLOAD: ObjectLimiter(duration=300.0)}


class MigrationControllerArgs(Arguments):
    """Move pods by PodMigrationJobs."""

    dry_run: bool = False
    """Report and create no job."""
    max_concurrent_reconciles: parts.Positive = 1
    """Jobs that are worked on at the same time."""
    evict_failed_bare_pods: bool = False
    """Move pods without owner that have failed."""
    evict_all_bare_pods: bool = False
    """Move every pod without owner, which nothing replaces."""
    evict_local_storage_pods: bool = False
    """Move pods with a volume of kind hostPath or emptyDir."""
    evict_system_critical_pods: bool = False
    """Move pods of any priority; `priorityThreshold` then has no effect."""
    ignore_pvc_pods: bool = False
    """Never move pods with a PersistentVolumeClaim."""
    priority_threshold: parts.PriorityThreshold | None = None
    """Priority from which on pods stay."""
    label_selector: parts.LabelSelector | None = None
    """Pods that may move; all when missing."""
    namespaces: parts.Namespaces | None = None
    """Namespaces whose pods may move."""
    node_fit: bool = False
    """Look just before a pod leaves whether another node takes it."""
    node_selector: node_labels.NodeSelector = ""
    """Nodes that count for `nodeFit`, as in `kubectl --selector`."""
    skip_eviction_gates: tuple[Gate, ...] = ()
    """Checks that are left out."""
    max_migrating_globally: parts.Whole | None = None
    """Jobs that are open at the same time; not limited when missing or 0."""
    max_migrating_per_node: parts.Whole | None = 2
    """The same, of pods of one node."""
    max_migrating_per_namespace: parts.Whole | None = None
    """The same, of pods of one namespace."""
    max_migrating_per_workload: parts.IntOrPercent | None = None
    """The same, of one workload; when missing 10 %, 2 for up to 10 replicas, 1 for up to 3."""
    max_unavailable_per_workload: parts.IntOrPercent | None = None
    """Pods of one workload that may be unavailable or moving; when missing as above."""
    skip_check_expected_replicas: bool = False
    """Move pods of workloads with one replica, or whose limit is all replicas."""
    object_limiters: dict[Literal["workload", "namespace"], ObjectLimiter] = Field(
        default_factory=dict
    )
    """How often pods of one workload or namespace are moved; workloads by 5m when empty."""
    default_job_mode: Literal["ReservationFirst", "EvictDirectly"] = "ReservationFirst"
    """Whether a Reservation is placed before the pod leaves."""
    default_job_ttl: Duration = Field(default=300.0, alias="defaultJobTTL")
    """Time after which a job fails."""
    scheduler_names: parts.Names = (names.SCHEDULER,)
    """Schedulers that place Reservations; pods of others are not moved with ReservationFirst."""
    evict_qps: Rate = Field(default=10.0, alias="evictQPS")
    """Evictions per second."""
    evict_burst: parts.Positive = 1
    """Evictions at once after a pause."""
    eviction_policy: Literal["Eviction", "Delete", "SoftEviction"] = "Eviction"
    """How pods leave: by the Eviction API, by deletion, or by an annotation for a controller."""
    default_delete_options: DeleteOptions | None = None
    """How pods are deleted or evicted."""
    arbitration_args: ArbitrationArgs = ArbitrationArgs()
    """How the order of waiting jobs is decided."""

    @pydantic.model_validator(mode="after")
    def _namespace_limit_is_a_number(self) -> Self:
        limiter = self.object_limiters.get("namespace")
        if limiter is not None and isinstance(limiter.max_migrating, str):
            raise ValueError(
                "objectLimiters.namespace.maxMigrating: a namespace has no replicas; write a number"
            )
        return self

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        return self.but(
            object_limiters=self.object_limiters or dict(_BY_WORKLOAD),
            scheduler_names=self.scheduler_names or (names.SCHEDULER,),
        )

    def skips(self, gate: Gate) -> bool:
        """Whether a check is left out."""
        return gate in self.skip_eviction_gates

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        if not self.arbitration_args.enabled:
            yield "arbitrationArgs.enabled", "has no effect, jobs are always arbitrated; remove it"
        if self.evict_system_critical_pods and self.priority_threshold is not None:
            note = "has no effect with evictSystemCriticalPods; keep one of them"
            yield "priorityThreshold", note
        for name in sorted(self.object_limiters):
            limiter = self.object_limiters[name]
            if name == NAMESPACE and limiter.duration and not limiter.max_migrating:
                note = "has no effect without maxMigrating; give a number above 0"
                yield f"objectLimiters.{name}", note
