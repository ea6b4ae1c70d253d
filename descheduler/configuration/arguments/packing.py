"""Arguments of CustomPriority, FragmentationAware and ScaleDownBinPack: where room is made."""

from typing import Annotated, Any, Final, Literal, Self

import pydantic
from pydantic import Field

from api import names
from api.plugin_args.arguments import Arguments
from descheduler.configuration.arguments import parts

BEST_EFFORT: Final = "BestEffort"
DRAIN_NODE: Final = "DrainNode"
CALCULATE_ONLY: Final = "CalculateOnly"
EVICT_DIRECTLY: Final = "EvictDirectly"
EMPTY_NODES: Final = "EmptyNodes"
_BOTH: Final = (names.CPU, names.MEMORY)


class EvictionStage(Arguments):
    """A group of nodes, and where it stands in the order."""

    name: parts.Name
    """Name of the group."""
    node_selector: parts.LabelSelector
    """Its nodes, except those of an earlier group."""
    keep_threshold: Any = None
    """Kept for compatibility, without effect."""
    reject_threshold: Any = None
    """Kept for compatibility, without effect."""


class CustomPriorityArgs(parts.Selection):
    """Move pods from groups of nodes to groups that come later in an order."""

    eviction_order: Annotated[tuple[EvictionStage, ...], Field(min_length=2, max_length=64)]
    """Groups of nodes; pods leave the first ones for later ones."""
    mode: Literal["BestEffort", "DrainNode"] = "BestEffort"
    """`BestEffort` moves pod by pod, `DrainNode` only all pods of a node or none."""
    auto_cordon: bool = False
    """Cordon a node before it is drained; with DrainNode only."""

    @pydantic.model_validator(mode="after")
    def _names_differ(self) -> Self:
        given = [one.name for one in self.eviction_order]
        twice = next((name for name in given if given.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"evictionOrder: {twice[:80]} is there twice; rename one")
        return self


class FragmentationAwareArgs(parts.Selection):
    """Move pods whose leaving makes the free resources of a node even."""

    resources: parts.Names = _BOTH
    """Resources that are compared."""
    imbalance_threshold: Annotated[float, Field(ge=0)] = 0.15
    """Standard deviation of the shares requested from which on a node is looked at."""
    min_improvement_threshold: Annotated[float, Field(ge=0)] = 0.02
    """Least fall of the deviation that is worth a move."""
    whole_units: bool = True
    """Move a pod, too, that alone keeps a device or the CPUs of a NUMA zone from being free whole;
    not known to Koordinator."""


class ScaleDownBinPackArgs(parts.Selection):
    """Rank pods so that scaling in empties nodes."""

    strategy: Literal["CalculateOnly", "EvictDirectly", "EmptyNodes"] = "CalculateOnly"
    """`CalculateOnly` writes pod deletion costs, `EvictDirectly` moves pods, `EmptyNodes` moves all
    pods of a node or none; the last is not known to Koordinator."""
    max_pods_to_evict: parts.Whole | None = None
    """Most pods that one round moves; required with EvictDirectly."""
    max_nodes_to_empty: parts.Positive = 1
    """Most nodes that one round begins to empty; with EmptyNodes only."""
    auto_cordon: bool = False
    """Cordon a node before it is emptied, so that no other pod fills it; with EmptyNodes only."""
    resources: parts.Names = _BOTH
    """Resources that are counted."""
    resource_weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """How much each counts; 1 where missing."""

    @pydantic.model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if self.strategy == EVICT_DIRECTLY and not self.max_pods_to_evict:
            raise ValueError("maxPodsToEvict: EvictDirectly needs a number above 0; give one")
        return self

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        return self.but(
            resource_weights={name: self.resource_weights.get(name, 1.0) for name in self.resources}
        )
