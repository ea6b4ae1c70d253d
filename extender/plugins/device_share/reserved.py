"""Devices of a Reservation, as a pod finds them that uses it."""

from domain.devices import inventory
from domain.devices.allocation import allocator, candidates, kept_devices
from extender.framework import views
from extender.plugins.device_share import allocation


def kept(lent: views.Lent | None) -> inventory.Allocation | None:
    """Return the devices of a Reservation that a pod uses, None where there are none."""
    held = lent.claim.allocations.get(allocation.NAME) if lent is not None else None
    return held.by_type if isinstance(held, allocation.Devices) else None


def shown(node: inventory.NodeDevices, lent: views.Lent | None) -> inventory.NodeDevices:
    """Return the node as a pod finds it: without what a Restricted Reservation does not hold."""
    mine = kept(lent)
    if mine is None or lent is None or not lent.restricted:
        return node
    return kept_devices.only(node, mine)


def allocate(
    choice: candidates.Choice, lent: views.Lent | None
) -> inventory.Allocation | candidates.Refusal:
    """Choose devices: of an Aligned Reservation first, and others to fill up."""
    mine = kept(lent)
    if mine is None or lent is None or lent.restricted:
        return allocator.allocate(choice)
    return kept_devices.allocate(choice, mine)
