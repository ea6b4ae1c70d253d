"""The NUMA nodes of a node, and the hints of several providers merged by its topology policy."""

from collections.abc import Iterable
from typing import Final

import msgspec

from domain.numa import hint_merge

Policy = hint_merge.Policy
NumaHint = hint_merge.NumaHint
Hints = hint_merge.Hints
Merged = hint_merge.Merged
Occupancy = hint_merge.Occupancy
reasons = hint_merge.reasons
ANYWHERE: Final = -1
"""The mask where no policy restricts the NUMA nodes."""


class Topology(msgspec.Struct, frozen=True):
    """How a node aligns what a pod gets of it."""

    policy: Policy = Policy.NONE
    numa_nodes: int = 1
    """How many it has; they are numbered from 0."""
    ids: int = 0
    """The mask of their ids where these are not consecutive; 0: they are."""
    occupancy: Occupancy | None = None
    """Of a pod that wants its NUMA nodes for itself."""

    @property
    def everywhere(self) -> int:
        """Return the mask of all NUMA nodes."""
        return self.ids or (1 << self.numa_nodes) - 1


def merge(topology: Topology, resources: Iterable[Hints]) -> Merged:
    """Merge the hints of all resources of a pod by the policy of a node."""
    alignment = hint_merge.Alignment(topology.policy, topology.everywhere, topology.occupancy)
    return hint_merge.merge(alignment, resources)
