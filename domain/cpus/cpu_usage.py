"""Which CPUs of a node are held by pods, how often, and how exclusively. Pure."""

import dataclasses
import enum
from collections.abc import Iterable


class ExclusivePolicy(enum.StrEnum):
    """`preferredCPUExclusivePolicy`: with whom a pod does not want to share; a preference only."""

    NONE = ""
    PCPU_LEVEL = "PCPULevel"
    """No physical core with a pod of the same policy."""
    NUMA_NODE_LEVEL = "NUMANodeLevel"
    """No NUMA node with a pod of the same policy."""


@dataclasses.dataclass(frozen=True, slots=True)
class CpuUsage:
    """CPUs that pods hold, as bit masks."""

    levels: tuple[int, ...] = ()
    """Item i: CPUs with a reference count above i."""
    core_exclusive: int = 0
    """CPUs whose latest holder has the policy PCPULevel."""
    node_exclusive: int = 0
    """CPUs whose latest holder has the policy NUMANodeLevel."""

    def held(self) -> int:
        """Return the CPUs that at least one pod holds."""
        return self.levels[0] if self.levels else 0

    def full(self, most: int) -> int:
        """Return the CPUs that so many pods hold, or more: none of them can be given again."""
        return self.levels[most - 1] if len(self.levels) >= most else 0

    def count(self, cpus: int) -> int:
        """Return the sum of the reference counts of some CPUs."""
        return sum((level & cpus).bit_count() for level in self.levels)

    def without(self, cpus: int) -> "CpuUsage":
        """Return the usage with the reference count of some CPUs lowered by one."""
        levels = list(self.levels)
        for index, level in enumerate(levels):
            higher = levels[index + 1] if index + 1 < len(levels) else 0
            levels[index] = level & ~cpus | higher & cpus
        return dataclasses.replace(self, levels=tuple(filter(None, levels)))


def count(holders: Iterable[tuple[int, ExclusivePolicy]]) -> CpuUsage:
    """Count CPUs that pods hold: each a mask and its exclusive policy, the latest pod last."""
    levels: list[int] = []
    core_exclusive = node_exclusive = 0
    for cpus, policy in holders:
        carried = cpus
        for index, level in enumerate(levels):
            levels[index], carried = level | carried, level & carried
        if carried:
            levels.append(carried)
        core_exclusive &= ~cpus
        node_exclusive &= ~cpus
        if policy is ExclusivePolicy.PCPU_LEVEL:
            core_exclusive |= cpus
        elif policy is ExclusivePolicy.NUMA_NODE_LEVEL:
            node_exclusive |= cpus
    return CpuUsage(tuple(levels), core_exclusive, node_exclusive)


def exclusive_policy(name: str) -> ExclusivePolicy:
    """Return the exclusive policy of a name; None and unknown ones want no exclusiveness."""
    known = {policy.value: policy for policy in ExclusivePolicy}
    return known.get(name, ExclusivePolicy.NONE)
