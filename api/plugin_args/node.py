"""Arguments of plug-ins that look at one node at a time: load, NUMA nodes, devices."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self, get_args

import pydantic
from pydantic import Field

from api import names
from api.plugin_args.arguments import Aggregation, Arguments, Duration, Percent, Seconds, Weight

Strategy = Literal["LeastAllocated", "MostAllocated"]


class AggregatedArgs(Arguments):
    """Measure load by a window instead of the latest usage."""

    usage_thresholds: dict[str, Percent] = Field(default_factory=dict)
    """Percentages by resource for the windowed usage; replaces `usageThresholds` for other than
    prod pods once a type is given."""
    usage_aggregation_type: Aggregation = ""
    """Which aggregate the thresholds look at; empty switches windowed filtering off."""
    usage_aggregated_duration: Duration = 0.0
    """Exact window for filtering; 0 takes the longest that is reported."""
    score_aggregation_type: Aggregation = ""
    """Which aggregate the score looks at; empty scores by the latest usage."""
    score_aggregated_duration: Duration = 0.0
    """Exact window for scoring; 0 takes the longest that is reported."""


class LoadAwareSchedulingArgs(Arguments):
    """Keep pods away from nodes that are busier than they look."""

    filter_expired_node_metrics: bool = True
    """Refuse nodes whose load report is too old; otherwise old reports are still compared."""
    node_metric_expiration_seconds: Annotated[int, Field(gt=0, le=2**31 - 1)] = 180
    """Age at which a load report is too old to filter or score by."""
    enable_schedule_when_node_metrics_expired: bool = False
    """Let pods onto nodes with an old report instead of refusing them."""
    resource_weights: dict[str, Weight] = Field(default_factory=dict)
    """How much each resource counts in the score; cpu and memory alike when empty."""
    dominant_resource_weight: Percent = 0
    """How much the scarcest resource counts in addition."""
    usage_thresholds: dict[str, Percent] = Field(default_factory=dict)
    """Utilisation above which a node is refused; cpu 65 and memory 95 when empty, 0 is off."""
    prod_usage_thresholds: dict[str, Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]] = Field(
        default_factory=dict
    )
    """The same for prod pods, compared with what prod pods use; off when empty."""
    prod_usage_include_sys: bool = False
    """Count what the system uses as prod usage."""
    score_according_prod_usage: bool = False
    """Score prod pods by what prod pods use."""
    estimator: str = ""
    """Name of the estimator; there is one, `defaultEstimator`."""
    estimated_scaling_factors: dict[str, Weight] = Field(default_factory=dict)
    """Share of a request that a pod is expected to use; cpu 85 and memory 70 where missing."""
    estimated_seconds_after_pod_scheduled: Seconds | None = None
    """For how long after scheduling the estimate counts even if a measurement exists."""
    estimated_seconds_after_initialized: Seconds | None = None
    """The same, counted from the moment the pod was initialised."""
    allow_customize_estimation: bool = False
    """Honour the annotations by which a pod changes its own estimate."""
    aggregated: AggregatedArgs | None = None
    """Measure load by a window; off when absent."""
    supported_resources: tuple[str, ...] = ()
    """Further resources that only nodes' own thresholds name."""

    @pydantic.model_validator(mode="after")
    def _weights_have_factors(self) -> Self:
        known = {names.CPU, names.MEMORY, *self.estimated_scaling_factors}
        for name in self.resource_weights:
            if name not in known:
                raise ValueError(
                    f"resourceWeights.{name}: add {name} to estimatedScalingFactors as well"
                )
        return self

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        weights = self.resource_weights
        if not weights and not self.dominant_resource_weight:
            weights = {names.CPU: 1, names.MEMORY: 1}
        return self.but(
            resource_weights=weights,
            usage_thresholds=self.usage_thresholds or {names.CPU: 65, names.MEMORY: 95},
            estimated_scaling_factors={
                names.CPU: 85,
                names.MEMORY: 70,
                **self.estimated_scaling_factors,
            },
        )

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        if self.estimator not in ("", "defaultEstimator"):
            yield "estimator", "is unknown, the default estimator is used; leave it out"
        for name, percent in self.prod_usage_thresholds.items():
            if not 0 <= percent <= 100:
                yield f"prodUsageThresholds.{name}", f"is {percent}, which is no share of a node"
        windows = self.aggregated
        if windows and windows.usage_thresholds and not windows.usage_aggregation_type:
            note = "has no effect without aggregated.usageAggregationType; name one, such as p95"
            yield "aggregated.usageThresholds", note


class ResourceWeight(Arguments):
    """A resource and how much it counts in a score."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the resource."""
    weight: Weight
    """How much it counts, relative to the others."""


class ScoringStrategy(Arguments):
    """Whether nodes with much or with little left are preferred."""

    type: Strategy = "LeastAllocated"
    """`LeastAllocated` spreads, `MostAllocated` packs."""
    resources: tuple[ResourceWeight, ...] = ()
    """Resources that count; the plug-in's own list when empty."""


class DeviceScoringStrategy(Arguments):
    """Which nodes and which devices of them are preferred."""

    type: Literal["LeastAllocated", "MostAllocated", "LeastFragmented"] = "LeastAllocated"
    """`LeastAllocated` spreads, `MostAllocated` packs; `LeastFragmented` keeps GPUs usable for the
    kinds of pods that the cluster runs, before all other scores."""
    resources: tuple[ResourceWeight, ...] = ()
    """Resources that count; the plug-in's own list when empty."""


def _weighted(*resources: str) -> tuple[ResourceWeight, ...]:
    return tuple(ResourceWeight(name=name, weight=1) for name in resources)


def _filled(
    strategy: ScoringStrategy | None, otherwise: tuple[ResourceWeight, ...]
) -> ScoringStrategy:
    found = strategy or ScoringStrategy()
    return found if found.resources else found.but(resources=otherwise)


class NodeNUMAResourceArgs(Arguments):
    """Place pods on cpus and NUMA nodes."""

    default_cpu_bind_policy: Literal["", "FullPCPUs", "SpreadByPCPUs"] = "FullPCPUs"
    """How pods of class LSE and LSR without a policy get cpus; empty binds them to none."""
    scoring_strategy: ScoringStrategy | None = None
    """How nodes are scored; LeastAllocated by cpu and memory alike when unset."""
    numa_scoring_strategy: ScoringStrategy | None = None
    """How NUMA nodes are chosen; the resources that count are those of `scoringStrategy`."""

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        both = _weighted(names.CPU, names.MEMORY)
        return self.but(
            scoring_strategy=_filled(self.scoring_strategy, both),
            numa_scoring_strategy=_filled(self.numa_scoring_strategy, both),
        )

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        if self.numa_scoring_strategy and self.numa_scoring_strategy.resources:
            note = "is not looked at; weigh the resources in scoringStrategy.resources"
            yield "numaScoringStrategy.resources", note


class GPUTemplatesConfig(Arguments):
    """Where templates for shared GPUs are kept."""

    config_map_namespace: str = names.NAMESPACE
    """Namespace of the ConfigMap."""
    config_map_name: str = names.CONFIG_MAP_GPU_TEMPLATES
    """Name of the ConfigMap."""
    matched_resources: tuple[str, ...] = ("huawei.com/npu-core",)
    """Resources for which templates are looked up."""


class GPUModel(Arguments):
    """A model of accelerators."""

    vendor: str = ""
    """Vendor, such as huawei."""
    model: str = ""
    """Model, as devices report it."""


class DeviceShareArgs(Arguments):
    """Share GPUs, RDMA adapters and other devices."""

    allocator: str = ""
    """Deprecated: there is one allocator."""
    scoring_strategy: DeviceScoringStrategy | None = None
    """How nodes and devices are scored; LeastAllocated by all device resources when unset."""
    disable_device_numa_topology_alignment: bool = Field(
        default=False, alias="disableDeviceNUMATopologyAlignment"
    )
    """Choose devices without regard to NUMA nodes."""
    gpu_shared_resource_templates_config: GPUTemplatesConfig = GPUTemplatesConfig()
    """Templates for shared GPUs."""
    gpu_share_unsupported_models: tuple[GPUModel, ...] = ()
    """Models that are given to one pod only."""
    device_plugin_adaption: bool = False
    """Write the annotations that device plug-ins of vendors read."""

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        devices = _weighted(names.GPU_MEMORY_RATIO, names.GPU_MEMORY, names.RDMA, names.FPGA)
        found = self.scoring_strategy or DeviceScoringStrategy()
        strategy = found if found.resources else found.but(resources=devices)
        return self.but(scoring_strategy=strategy)

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        if self.allocator:
            yield "allocator", "is deprecated and ignored; leave it out"
        templates = self.gpu_shared_resource_templates_config
        kept = names.CONFIG_MAP_GPU_TEMPLATES
        if (templates.config_map_namespace, templates.config_map_name) != (names.NAMESPACE, kept):
            yield (
                "gpuSharedResourceTemplatesConfig",
                f"is ignored; keep templates in the ConfigMap {kept} of the extender's namespace",
            )


class FitPlusResource(Arguments):
    """How one resource counts in the score of NodeResourcesFitPlus."""

    type: str = ""
    """`LeastAllocated` spreads pods that ask for it, `MostAllocated` packs them."""
    weight: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """How much it counts, relative to the others that a pod asks for."""


class NodeResourcesFitPlusArgs(Arguments):
    """Score nodes by the resources that a pod asks for, each with a strategy of its own."""

    resources: dict[str, FitPlusResource] = Field(default_factory=dict)
    """Strategy (`type`) and `weight` by resource; a pod that asks for none of them scores 100
    on every node."""

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        for name, one in self.resources.items():
            if one.type not in get_args(Strategy):
                note = "scores 0 on every node; write LeastAllocated or MostAllocated"
                yield f"resources.{name}.type", note
            if not one.weight:
                yield f"resources.{name}.weight", "is 0, so the resource does not count; raise it"


class ScarceResourceAvoidanceArgs(Arguments):
    """Keep pods off nodes with scarce resources that they do not ask for."""

    resources: tuple[str, ...] = ()
    """Names of scarce resources."""
