"""Devices that both DeviceShare and a driver of Dynamic Resource Allocation give away."""

from collections.abc import Iterator
from typing import Final

from cli.devices import cluster
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain import wording

OFFERED_TWICE = Trap(
    "devices.offered-twice", Severity.WARNING,
    "A Device and a ResourceSlice offer the same device: the extender leaves out what a "
    "ResourceClaim holds, but kube-scheduler does not see what the extender gave away",
    "let one of both offer it: stop the driver on that node, or take the device out of the Device",
)  # fmt: skip
UNREADABLE = Trap(
    "devices.unreadable", Severity.WARNING,
    "A Device or a ResourceSlice cannot be read: what it lists is not compared",
    "correct the field that is wrong; `kubectl apply --dry-run=server` says more",
)  # fmt: skip

TRAPS = (OFFERED_TWICE, UNREADABLE)
_MOST: Final = 8
"""Nodes that are named one by one."""


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Compare UUIDs and PCI addresses of what both offer, node by node."""
    found = cluster.build(
        cluster.Objects(facts.given(known.devices), (), facts.given(known.resource_slices))
    )
    twice = [node for node in found.nodes if node.offered_twice]
    for node in twice[:_MOST]:
        pairs = [f"{one.kind} {one.minor} as {there}" for one, there in node.offered_twice]
        yield OFFERED_TWICE.found(
            f"a driver offers devices of node {node.name} too: {findings.some(pairs)}", node.name
        )
    if more := len(twice[_MOST:]):
        yield OFFERED_TWICE.found(f"the same on {wording.count(more, 'more node', 'more nodes')}")
    if found.unreadable:
        yield UNREADABLE.found(f"{findings.some(list(found.unreadable))} cannot be read")


CHECK = findings.Check("devices", "no device is offered by two allocators", TRAPS, run)
