"""Arguments of plug-ins for jobs and tenants: reservations, quotas, gangs."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

import pydantic
from pydantic import Field

from api import names
from api.kubernetes import dns
from api.plugin_args.arguments import Arguments, Count, Duration, Percent, Seconds
from api.wire import base, quantity


class PreAllocationConfig(Arguments):
    """Reservations that take the place of running pods."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "prefer_no_pre_allocated_pods": "free capacity comes first always"
    }

    enable_cluster_mode: bool = False
    """Look for such pods in the whole cluster."""
    cluster_label_key: str = ""
    """Label of pods that may be taken; the standard one when empty."""
    cluster_priority_annotation_key: str = ""
    """Annotation with their order; the standard one when empty."""
    prefer_no_pre_allocated_pods: bool = False
    """Kept for compatibility: free capacity comes first always."""


class ReservationSelectorIndex(Arguments):
    """An index of reservations by labels; makes lookups faster and changes no result."""

    enabled: bool = False
    """Keep it."""
    key_prefixes: tuple[str, ...] = ()
    """Prefixes of labels that are indexed."""
    keys: tuple[str, ...] = ()
    """Labels that are indexed."""


_RESERVED: Final = "kubernetes.io"


def _is_native(resource: str) -> bool:
    return "/" not in resource or resource.partition("/")[0].endswith(_RESERVED)


def _extended(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if _is_native(name):
            raise ValueError(f"{name} is no extended resource; name one such as example.com/gpu")
    return value


def _groups(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if not dns.is_subdomain(name) or name.endswith(_RESERVED):
            raise ValueError(f"{name} is no domain of extended resources, such as example.com")
    return value


_EVERY_NODE: Final = "preemption looks at each node that passed the filters of kube-scheduler"
_WORKERS: Final = "objects are reconciled side by side as far as they do not touch each other"


class ReservationArgs(Arguments):
    """Hold capacity for owners that come later."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "min_candidate_nodes_percentage": _EVERY_NODE,
        "min_candidate_nodes_absolute": _EVERY_NODE,
        "controller_workers": _WORKERS,
        "gc_interval_seconds": "each Reservation that has ended is removed when its time comes",
        "resync_interval_seconds": "metrics follow every change",
        "reservation_selector_index": "Reservations are found without an index",
    }

    enable_preemption: bool = False
    """Let reservations preempt pods of lower priority."""
    min_candidate_nodes_percentage: Percent = 10
    """Kept for compatibility: preemption looks at each node that passed the scheduler's filters."""
    min_candidate_nodes_absolute: Annotated[int, Field(ge=0, le=2**31 - 1)] = 100
    """Kept for compatibility, likewise."""
    controller_workers: Count = 1
    """Parallel reconciles of reservations; kept for compatibility."""
    gc_duration_seconds: Seconds = 86400
    """How long a reservation that ended is kept."""
    gc_interval_seconds: Annotated[int, Field(ge=1, le=2**63 - 1)] = 60
    """Kept for compatibility: each ended reservation is removed when its time comes."""
    disable_garbage_collection: bool = False
    """Keep reservations that ended."""
    resync_interval_seconds: Annotated[int, Field(ge=1, le=2**63 - 1)] = 60
    """Kept for compatibility: metrics follow every change."""
    pre_allocation_config: PreAllocationConfig = PreAllocationConfig()
    """Reservations that take the place of running pods."""
    ignored_resources: Annotated[tuple[str, ...], pydantic.AfterValidator(_extended)] = ()
    """Extended resources that reservations do not count."""
    ignored_resource_groups: Annotated[tuple[str, ...], pydantic.AfterValidator(_groups)] = ()
    """Domains of extended resources that reservations do not count."""
    reservation_selector_index: ReservationSelectorIndex = ReservationSelectorIndex()
    """An index of reservations by labels; kept for compatibility, none is needed."""


def _at_least_zero(value: Mapping[str, str]) -> Mapping[str, str]:
    for name, amount in value.items():
        if quantity.parse(amount).nanos < 0:
            raise ValueError(f"{name} is {amount}; amounts are not negative")
    return value


Amounts = Annotated[base.ResourceList, pydantic.AfterValidator(_at_least_zero)]
_UNBOUNDED: Final = str((2**63 - 1) // 5)


class HookPlugin(Arguments):
    """A plug-in of the quota plug-in."""

    key: str = ""
    """Name of the hook."""
    factory_key: str = ""
    """Name of its factory."""
    factory_args: str = ""
    """Arguments of the factory."""


class QuotaFeatureGates(Arguments):
    """Feature gates of elastic quota, by their names, for every process alike."""

    multi_quota_tree: bool | None = Field(default=None, alias="MultiQuotaTree")
    """A tree identifier makes a tree with a total of its own, whose pods admission keeps on the
    nodes of the tree's profile. Not written: trees count, and pods run anywhere."""
    guarantee_usage: bool | None = Field(default=None, alias="ElasticQuotaGuaranteeUsage")
    """Quotas lend nothing of their minimum or of what they use; off unless written."""
    disable_default_quota: bool | None = Field(default=None, alias="DisableDefaultQuota")
    """Pods without the label of a quota belong to no quota; off unless written."""

    def written(self) -> dict[str, bool]:
        """Return the gates that are switched on or off, by name."""
        return {str(name): bool(on) for name, on in self.wire().items()}


_QUEUE_HINTS: Final = "pods are tried again when something changes that they wait for"


class ElasticQuotaArgs(Arguments):
    """Share the cluster among quotas that lend and borrow."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "enable_queue_hint": _QUEUE_HINTS,
        "quota_snapshot_update_interval": _QUEUE_HINTS,
        "hook_plugins": "no hook is built in",
    }

    delay_evict_time: Duration = 120.0
    """How long a quota may exceed what it may use before pods are evicted."""
    revoke_pod_interval: Duration = 1.0
    """How often that is looked at."""
    default_quota_group_max: Amounts = Field(
        default_factory=lambda: {names.CPU: _UNBOUNDED, names.MEMORY: _UNBOUNDED}
    )
    """Max of the quota of pods without one."""
    system_quota_group_max: Amounts = Field(
        default_factory=lambda: {names.CPU: _UNBOUNDED, names.MEMORY: _UNBOUNDED}
    )
    """Max of the quota of system pods."""
    quota_group_namespace: str = names.NAMESPACE
    """Namespace of the reserved quotas."""
    monitor_all_quotas: bool = False
    """Evict pods of quotas that exceed what they may use."""
    enable_check_parent_quota: bool = False
    """Check every quota up to the root."""
    enable_runtime_quota: bool = True
    """Limit by what is fair at the moment; otherwise by max."""
    enable_min_quota_scale: bool = True
    """Scale min down where the cluster is smaller than all of them."""
    disable_default_quota_preemption: bool = True
    """Do not preempt for pods without a quota."""
    enable_queue_hint: bool = False
    """Kept for compatibility: pods are tried again when something changes that they wait for."""
    quota_snapshot_update_interval: Duration = 120.0
    """Kept for compatibility, likewise."""
    borrow_half_life: Duration = 0.0
    """Half-life of what quotas have borrowed, where those who borrowed less go first; 0s: off."""
    feature_gates: QuotaFeatureGates = QuotaFeatureGates()
    """How extender, manager and admission count, by the names of Koordinator's feature gates."""
    hook_plugins: tuple[HookPlugin, ...] = ()
    """Plug-ins of the quota plug-in; none is built in."""

    @pydantic.field_validator("quota_group_namespace")
    @classmethod
    def _is_a_namespace(cls, value: str) -> str:
        if not dns.is_label(value):
            raise ValueError("is no name of a namespace")
        return value


class CoschedulingArgs(Arguments):
    """Place gangs as a whole."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "controller_workers": _WORKERS,
        "skip_check_schedule_cycle": "there is no schedule cycle",
    }

    default_timeout: Duration = 600.0
    """How long a gang waits for its members where it does not say."""
    controller_workers: Count = 1
    """Parallel reconciles of PodGroups; kept for compatibility."""
    skip_check_schedule_cycle: bool = False
    """Deprecated: there is no schedule cycle."""
    enable_preemption: bool = False
    """Let gangs preempt as a whole."""
    aware_network_topology: bool = False
    """Place gangs, and pods with a `network-topology-selector`, by the network topology; the
    extender does so unless `false` is written."""
    default_match_policy: Literal["only-waiting", "waiting-and-running", "once-satisfied"] = (
        "once-satisfied"
    )
    """Which members count where a gang does not say."""

    @property
    def places_by_network(self) -> bool:
        """Whether gangs that ask for a topology get it: where nothing else is written, they do."""
        return self.aware_network_topology or "aware_network_topology" not in self.model_fields_set
