"""CPUs and NUMA amounts of a Reservation, as a pod finds them that uses it."""

import dataclasses

import msgspec

from domain.numa import numa_allocation
from extender.framework import views
from extender.plugins.node_numa_resource import allocation, tracker


def left(lent: views.Lent) -> allocation.CpuAllocation | None:
    """Return what is left of the CPUs and amounts of the Reservation, None where it has none."""
    found = lent.claim.allocations.get(allocation.NAME)
    return found if isinstance(found, allocation.CpuAllocation) else None


def shown(found: tracker.NodeNuma, lent: views.Lent) -> tracker.NodeNuma:
    """Return a node of which a Restricted Reservation gives its own CPUs and amounts alone."""
    kept = left(lent)
    if kept is None or not lent.restricted:
        return found
    zones = {node: dict(amounts) for node, amounts in kept.zones}
    nodes = numa_allocation.within(found.nodes, allocation.mask(kept.cpuset), zones)
    return msgspec.structs.replace(found, nodes=nodes)


def preferring(
    request: numa_allocation.NumaRequest, lent: views.Lent
) -> numa_allocation.NumaRequest:
    """Return a request that takes the CPUs of the Reservation before all others."""
    kept = left(lent)
    if kept is None:
        return request
    return dataclasses.replace(request, first=allocation.mask(kept.cpuset))
