"""What the plain LowNodeLoad knows of nodes and pods."""

import dataclasses
from typing import Any

from api.koordinator.metadata import qos
from api.kubernetes import core

FULL = 100.0


@dataclasses.dataclass(frozen=True)
class Switches:
    """What the reference does; all of it as long as nothing else is said."""

    drops_capacity: bool = True
    """What `raw-allocatable` does not name, such as pods, a node has nothing of."""
    evicts_unmeasured: bool = True
    """Without nodeFit, pods leave of which nobody knows what they use."""
    books_all: bool = True
    """Every pod that fits takes room on its target, whether it leaves or not."""
    books_no_pods: bool = True
    """A pod that fits adds nothing to the number of pods of its target."""
    one_bound: bool = True
    """On a target, either the load of the node or that of its prod pods stays below its bound."""


@dataclasses.dataclass
class Node:
    raw: core.Node
    pods: list[Any]
    capacity: dict[str, int]
    usage: dict[str, int]
    prod: dict[str, int]
    free: dict[str, int]
    low: dict[str, int] = dataclasses.field(default_factory=dict)
    high: dict[str, int] = dataclasses.field(default_factory=dict)
    prod_low: dict[str, int] = dataclasses.field(default_factory=dict)
    prod_high: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Pod:
    raw: core.Pod
    band: qos.Band
    used: dict[str, int] | None

    @property
    def key(self):
        return f"{self.raw.metadata.namespace}/{self.raw.metadata.name}"


@dataclasses.dataclass
class Detector:
    abnormal: int = 0
    normal: int = 0
    anomaly: bool = False


def completed(pool):
    keys = ("lowThresholds", "highThresholds", "prodLowThresholds", "prodHighThresholds")
    percents = [dict(pool.get(key) or {}) for key in keys]
    filler = 0.0 if pool.get("useDeviationThresholds") else FULL
    for resource in {"memory"}.union(*percents):
        for low, high in (percents[:2], percents[2:]):
            if resource not in low:
                low[resource] = high[resource] = filler
            high.setdefault(resource, 0.0)
    return percents
