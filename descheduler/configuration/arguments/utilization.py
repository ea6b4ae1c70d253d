"""Arguments of the standard plug-ins that even out or pack requests."""

from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field

from api.plugin_args.arguments import Arguments
from descheduler.configuration.arguments import parts

Thresholds = Annotated[dict[str, parts.Share], Field(min_length=1, max_length=64)]


class HighNodeUtilizationArgs(Arguments):
    """Empty nodes of which little is requested, for the autoscaler to remove."""

    thresholds: Thresholds
    """Requested share in percent below which a node is emptied, by resource."""
    number_of_nodes: parts.Whole = 0
    """Do nothing unless more nodes than this are below."""
    eviction_modes: tuple[Literal["OnlyThresholdingResources"], ...] = ()
    """`OnlyThresholdingResources`: move only pods that request a resource of `thresholds`."""
    evictable_namespaces: parts.ExcludedNamespaces | None = None
    """Namespaces whose pods stay."""


class EvictionLimits(Arguments):
    """How many pods a plug-in may move in one round."""

    node: parts.Whole | None = None
    """From one node; not limited when missing."""


class LowNodeUtilizationArgs(Arguments):
    """Move pods from nodes of which much is requested to nodes of which little is."""

    thresholds: Thresholds
    """Requested share in percent below which a node takes pods, by resource."""
    target_thresholds: Thresholds
    """Requested share in percent above which pods leave a node, of the same resources."""
    use_deviation_thresholds: bool = False
    """Whether thresholds are distances from the mean in percent."""
    number_of_nodes: parts.Whole = 0
    """Do nothing unless more nodes than this are below."""
    evictable_namespaces: parts.ExcludedNamespaces | None = None
    """Namespaces whose pods stay."""
    eviction_limits: EvictionLimits | None = None
    """How many pods one round moves."""

    @pydantic.model_validator(mode="after")
    def _thresholds_are_ordered(self) -> Self:
        if self.thresholds.keys() != self.target_thresholds.keys():
            alone = sorted(self.thresholds.keys() ^ self.target_thresholds.keys())[0]
            raise ValueError(
                f"thresholds and targetThresholds differ in {alone}; give it in both or in none"
            )
        for name, low in self.thresholds.items():
            if not self.use_deviation_thresholds and low > self.target_thresholds[name]:
                most = f"{self.target_thresholds[name]:g}"
                said = f"thresholds.{name}: is {low:g}"
                raise ValueError(f"{said}, must be at most targetThresholds.{name}, {most}")
        return self
