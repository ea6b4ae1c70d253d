"""What one profile of a KubeSchedulerConfiguration means for scores, with upstream's defaults."""

import dataclasses
import functools
from typing import Final

from domain.scoring import node_resources, releases

FIT: Final = "NodeResourcesFit"
BALANCE: Final = "NodeResourcesBalancedAllocation"
TAINTS: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
IMAGES: Final = "ImageLocality"
SPREAD: Final = "PodTopologySpread"
POD_AFFINITY: Final = "InterPodAffinity"
VOLUMES: Final = "VolumeBinding"
DEVICES: Final = "DynamicResources"

WEIGHTS: Final = (
    (TAINTS, 3),
    (NODE_AFFINITY, 2),
    (FIT, 1),
    (VOLUMES, 1),
    (SPREAD, 2),
    (POD_AFFINITY, 2),
    (DEVICES, 2),
    (BALANCE, 1),
    (IMAGES, 1),
)
"""The default score plug-ins and their weights."""
DEFAULT_FIT: Final = node_resources.Fit()


@functools.lru_cache(maxsize=64)
def _first(weights: tuple[tuple[str, int], ...]) -> frozenset[str]:
    """Return the names that have weights, looked up rather than collected with every pod."""
    return frozenset(name for name, _ in weights)


@functools.lru_cache(maxsize=64)
def _resources(weights: tuple[tuple[str, int], ...], balanced: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([name for name, _ in weights] + list(balanced)))


@dataclasses.dataclass(frozen=True, slots=True)
class ScoringProfile:
    """One profile of the scheduler, as far as scores depend on it."""

    scheduler_name: str
    release: releases.Release
    weights: tuple[tuple[str, int], ...] = WEIGHTS
    """Enabled score plug-ins and their weights, in the order in which they run."""
    fit: node_resources.Fit = DEFAULT_FIT
    balanced: tuple[str, ...] = ("cpu", "memory")
    """Resources that NodeResourcesBalancedAllocation compares."""
    hard_pod_affinity_weight: int = 1
    percentage_of_nodes_to_score: int = 0
    """0 is the scheduler's own adaptive share."""
    extender_weight: int = 1
    """Weight of our own entry: one of our points counts ten times as much in the total."""
    unsupported: str = ""
    """Why the totals of this profile cannot be computed here; empty where they can."""

    @property
    def plugins(self) -> frozenset[str]:
        """The names of the enabled score plug-ins."""
        return _first(self.weights)

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that some plug-in scores, each once."""
        return _resources(self.fit.weights, self.balanced)
