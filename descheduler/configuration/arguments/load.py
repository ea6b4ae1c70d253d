"""Arguments of LowNodeLoad: thresholds of measured load, by pool of nodes."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Self

import pydantic
from pydantic import Field

from api import names
from api.plugin_args.arguments import Arguments, Duration
from descheduler.configuration.arguments import parts

DEFAULT_POOL: Final = "__default_node_pool__"
_TIMEOUT: Final = 60.0
_ABNORMALITIES: Final = 5
_NORMALITIES: Final = 3
_MAPS: Final = (
    "high_thresholds",
    "low_thresholds",
    "prod_high_thresholds",
    "prod_low_thresholds",
)
_PAIRS: Final = (
    ("low_thresholds", "high_thresholds"),
    ("prod_low_thresholds", "prod_high_thresholds"),
    ("prod_high_thresholds", "high_thresholds"),
)


class AnomalyCondition(Arguments):
    """How often a node has to be overloaded before pods leave it; 0 stands for the default."""

    timeout: Duration = 0.0
    """How long a node counts as overloaded once it was found to be; 1m when 0."""
    consecutive_abnormalities: parts.Whole = 0
    """Rounds of overload that are not acted on yet; 5 when 0, and 1 acts at once."""
    consecutive_normalities: parts.Whole = 0
    """Normal rounds that end it; 3 when 0."""

    def complete(self) -> Self:
        """Return the condition with every default filled in."""
        return self.but(
            timeout=self.timeout or _TIMEOUT,
            consecutive_abnormalities=self.consecutive_abnormalities or _ABNORMALITIES,
            consecutive_normalities=self.consecutive_normalities or _NORMALITIES,
        )


class Pool(Arguments):
    """Thresholds of a set of nodes; what is missing in a pool is taken from the top level."""

    node_selector: parts.LabelSelector | None = None
    """Nodes that belong to it; all when missing."""
    use_deviation_thresholds: bool = False
    """Whether thresholds are distances from the mean load in percent; never inherited."""
    high_thresholds: parts.Thresholds | None = None
    """Load in percent above which pods leave a node, by resource."""
    low_thresholds: parts.Thresholds | None = None
    """Load in percent up to which a node takes pods, by resource."""
    prod_high_thresholds: parts.Thresholds | None = None
    """Load by prod pods above which prod pods leave a node."""
    prod_low_thresholds: parts.Thresholds | None = None
    """Load by prod pods up to which a node takes prod pods."""
    resource_weights: dict[str, int] | None = None
    """How much each resource counts where nodes and pods are ordered; 1 where missing."""
    anomaly_condition: AnomalyCondition | None = None
    """How often a node has to be overloaded before pods leave it."""

    @pydantic.model_validator(mode="after")
    def _thresholds_are_ordered(self) -> Self:
        if self.use_deviation_thresholds:
            return self
        for lower, upper in _PAIRS:
            low, high = getattr(self, lower) or {}, getattr(self, upper) or {}
            wrong = next((name for name in low if name in high and low[name] > high[name]), None)
            if wrong is not None:
                fields = type(self).model_fields
                said = f"{fields[lower].alias}.{wrong}: is {low[wrong]:g}"
                raise ValueError(
                    f"{said}, must be at most {fields[upper].alias}.{wrong}, {high[wrong]:g}"
                )
        return self

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        fields = type(self).model_fields
        for lower, upper in _PAIRS[:2]:
            low, high = getattr(self, lower) or {}, getattr(self, upper) or {}
            below, above = fields[lower].alias, fields[upper].alias
            for name in sorted(high.keys() - low.keys()):
                yield f"{above}.{name}", f"has no effect without {below}.{name}; give both"
            for name in sorted(low.keys() - high.keys()):
                yield f"{below}.{name}", f"has no effect without {above}.{name}; give both"


class NodePool(Pool):
    """A pool of nodes with thresholds of its own."""

    name: str = ""
    """Name of the pool, for people."""


class LowNodeLoadArgs(Pool, parts.Selection):
    """Move pods from nodes whose measured load is high to nodes where it is low."""

    number_of_nodes: parts.Whole = 0
    """Do nothing unless more nodes than this have a low load."""
    node_metric_expiration_seconds: parts.Positive = 180
    """Age at which a NodeMetric is too old: its node is neither left nor a target."""
    detector_cache_timeout: Duration = 300.0
    """How long a node is remembered as overloaded without being seen so again."""
    node_pools: Annotated[tuple[NodePool, ...], Field(max_length=64)] = ()
    """Pools with thresholds of their own, looked at one after another."""

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        condition = (self.anomaly_condition or AnomalyCondition()).complete()
        return self.but(
            anomaly_condition=condition,
            resource_weights=weights(self, {}),
            **{name: getattr(self, name) or {} for name in _MAPS},
        )

    def pools(self) -> tuple[NodePool, ...]:
        """Return the pools in their order, the top level as the first, with nothing left out."""
        top = NodePool(
            name=DEFAULT_POOL,
            **{name: getattr(self, name) for name in Pool.model_fields},
        )
        return tuple(self._filled(pool) for pool in (top, *self.node_pools))

    def _filled(self, pool: NodePool) -> NodePool:
        maps = {
            name: found if (found := getattr(pool, name)) is not None else getattr(self, name) or {}
            for name in _MAPS
        }
        condition = pool.anomaly_condition or self.anomaly_condition or AnomalyCondition()
        filled = pool.but(anomaly_condition=condition.complete(), **maps)
        return filled.but(resource_weights=weights(filled, self.resource_weights or {}))

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        yield from super().doubts()
        for index, pool in enumerate(self.pools()[1:]):
            for field, note in pool.doubts():
                yield f"nodePools[{index}].{field}", note


def weights(pool: Pool, otherwise: Mapping[str, int]) -> dict[str, int]:
    """Return the weight of each resource: 1 for those that count and have none, or none above 0."""
    given = pool.resource_weights if pool.resource_weights is not None else otherwise
    counting = (
        names.CPU,
        names.MEMORY,
        *(pool.low_thresholds or ()),
        *(pool.high_thresholds or ()),
    )
    found = {**dict.fromkeys(counting, 1), **given}
    return {name: weight if weight > 0 else 1 for name, weight in found.items()}
