"""What score plug-ins read of nodes: arrays with one position per node row."""

import dataclasses
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

CPU, MEMORY = "cpu", "memory"


class NodeColumns(msgspec.Struct, frozen=True, gc=False):
    """The scheduler's snapshot: what nodes offer and what the pods on them request.

    Assumed pods count as those on nodes do; nominated ones do not. Positions without a node hold
    zeros. Amounts are cpu in thousandths and everything else in whole units.
    """

    resources: Mapping[str, int]
    """Row of the three matrices by resource name; a resource without a row is offered nowhere."""
    allocatable: Integers
    """[resource, node]: `status.allocatable`."""
    requested: Integers
    """[resource, node]: Requested of NodeInfo, the plain requests of its pods."""
    nonzero: Integers
    """[2, node]: NonZeroRequested of NodeInfo, cpu and then memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class SpreadColumns:
    """What PodTopologySpread counts with the system's default constraints, for all nodes."""

    matching: Integers
    """Pods on each node, not terminating, in the pod's namespace, that the selector selects."""
    counted: Flags | None
    """Nodes that satisfy the pod's node selector and required node affinity; None is all."""
    zone: Integers
    """Number of each node's zone, small and dense; a node without the label has that of ``""``."""
    zoned: Flags
    """Nodes that have the zone label."""
    hosted: Flags
    """Nodes that have the hostname label."""


class PodColumns(msgspec.Struct, frozen=True, gc=False):
    """What score plug-ins compare of one pod with every node; None is nothing on any node."""

    intolerable: Integers | None = None
    """PreferNoSchedule taints of each node that the pod does not tolerate."""
    preferred: Integers | None = None
    """Sum of the weights of the pod's preferred node affinity terms that match each node."""
    image_bytes: Integers | None = None
    """Sum of the pod's images on each node, each scaled by the share of nodes that have it."""
    spread: SpreadColumns | None = None
    """None where no controller or Service selects the pod."""
