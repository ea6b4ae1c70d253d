"""Pools of nodes with their thresholds, as LowNodeLoad works with them. Pure."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from api import names
from descheduler.configuration.arguments import load as arguments
from descheduler.configuration.arguments import parts
from descheduler.model import nodeinfo

FULL: Final = 100.0
Percents = Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """How often a node has to be overloaded before pods leave it."""

    timeout: float = 60.0
    """Seconds for which it counts as overloaded once it was found to be."""
    abnormalities: int = 5
    """Rounds of overload that are not acted on yet; 1 acts at once."""
    normalities: int = 3
    """Normal rounds that end it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that are compared with each other, and what with; percentages by resource."""

    name: str
    low: Percents
    high: Percents
    prod_low: Percents
    prod_high: Percents
    weights: Mapping[str, int]
    deviation: bool = False
    """Whether percentages are distances from the mean."""
    condition: Condition | None = None
    """None acts at once."""
    selector: parts.LabelSelector | None = None
    """None selects every node."""

    def selects(self, node: nodeinfo.Node) -> bool:
        """Whether a node belongs to the pool."""
        return self.selector is None or self.selector.selects(node.labels)

    @property
    def has_thresholds(self) -> bool:
        """Whether there is anything to compare load with."""
        return bool(self.low or self.high or self.prod_low or self.prod_high)

    def resources(self) -> tuple[str, ...]:
        """Return what is compared, by name; memory always is."""
        found = {names.MEMORY, *self.low, *self.high, *self.prod_low, *self.prod_high}
        return tuple(sorted(found))


@dataclasses.dataclass(frozen=True, slots=True)
class Levels:
    """The thresholds of a pool with nothing left out, in the order of its resources."""

    resources: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    prod_low: tuple[float, ...]
    prod_high: tuple[float, ...]


def completed(pool: Pool) -> Levels:
    """Fill in what is missing.

    A resource without a low threshold does not count, whatever its high one is; one without a
    high threshold says which nodes are low, and makes none a source.
    """
    resources = pool.resources()
    none = 0.0 if pool.deviation else FULL
    low, high = _pair(pool.low, pool.high, resources, none)
    prod_low, prod_high = _pair(pool.prod_low, pool.prod_high, resources, none)
    return Levels(resources, low, high, prod_low, prod_high)


def _pair(
    low: Percents, high: Percents, resources: tuple[str, ...], none: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    lows = tuple([low.get(name, none) for name in resources])
    highs = tuple([high.get(name, FULL) if name in low else none for name in resources])
    return lows, highs


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What the plug-in works with, nothing left out."""

    pools: tuple[Pool, ...]
    number_of_nodes: int = 0
    """A pool is left alone unless more of its nodes than this are low."""
    expiration_seconds: float = 180.0
    """Age from which on a NodeMetric does not count."""
    node_fit: bool = True
    dry_run: bool = False
    cache_seconds: float = 300.0
    """How long a node is remembered as overloaded without being looked at."""
    covers: Callable[[str, Mapping[str, str]], bool] = lambda _namespace, _labels: True
    """Whether pods of a namespace with these labels may move."""


def settings(given: arguments.LowNodeLoadArgs) -> Settings:
    """Read the arguments of the plug-in; a pool without any threshold is left out."""
    pools = tuple(pool for pool in _pools(given) if pool.has_thresholds)
    return Settings(
        pools=() if given.paused else pools,
        number_of_nodes=given.number_of_nodes,
        expiration_seconds=given.node_metric_expiration_seconds,
        node_fit=given.node_fit,
        dry_run=given.dry_run,
        cache_seconds=given.detector_cache_timeout,
        covers=given.covers,
    )


def _condition(given: arguments.AnomalyCondition) -> Condition:
    return Condition(given.timeout, given.consecutive_abnormalities, given.consecutive_normalities)


def _pools(given: arguments.LowNodeLoadArgs) -> Iterator[Pool]:
    for pool in given.pools():
        wanted = pool.anomaly_condition
        yield Pool(
            name=pool.name,
            low=pool.low_thresholds or {},
            high=pool.high_thresholds or {},
            prod_low=pool.prod_low_thresholds or {},
            prod_high=pool.prod_high_thresholds or {},
            weights=pool.resource_weights or {},
            deviation=pool.use_deviation_thresholds,
            condition=_condition(wanted) if wanted is not None else None,
            selector=pool.node_selector,
        )
