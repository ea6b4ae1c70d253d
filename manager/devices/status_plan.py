"""What the status of a Device says of those who hold its devices, and how it is written. Pure.

The figures are percentages of a device by container, as ``status.deviceAllocations`` has them.
"""

from collections.abc import Sequence
from typing import Any, Final

from api import resources
from domain.devices import device_report, pod_holdings
from manager.devices import device_objects
from manager.reconcile import actions

MOST_DEVICES: Final = 1024
"""Devices that one status names."""
MOST_SHARES: Final = 1024
"""Shares that one status names; with the longest names there are they take 500 KB."""
_CHECK_SECONDS: Final = 5.0

Allocations = list[dict[str, Any]]


def wanted(rows: Sequence[device_report.Row]) -> Allocations:
    """Return the allocations of all devices that pods hold, by type and minor."""
    used = [row for row in rows if row.shares][:MOST_DEVICES]
    # With many shares each device names its largest ones, and how many it leaves out.
    each = MOST_SHARES // max(1, len(used))
    if sum(_count(row) for row in used) <= MOST_SHARES:
        each = MOST_SHARES
    return [_device(row, each) for row in used]


def _count(row: device_report.Row) -> int:
    return sum(max(1, len(_containers(row, share))) for share in row.shares)


def _containers(row: device_report.Row, share: device_report.Share) -> pod_holdings.Pairs:
    return share.holding.containers.get(row.device.kind, ())


def _device(row: device_report.Row, most: int) -> dict[str, Any]:
    shares: Allocations = []
    for share in row.shares:
        pod = {"namespace": share.holding.namespace, "name": share.holding.name}
        if len(shares) < most:
            parts = pod_holdings.divided(share.percent, _containers(row, share))
            shares += [
                {"pod": pod, "container": container, "allocated": f"{part}%"}
                if container
                else {"pod": pod, "allocated": f"{part}%"}
                for container, part in parts
            ]
    device = row.device
    identity: dict[str, Any] = {"deviceType": device.kind, "minor": device.minor}
    if device.id:
        identity["uuid"] = device.id
    found: dict[str, Any] = {"device": identity, "allocations": shares[:most]}
    left = _count(row) - len(shares[:most])
    return {**found, "omitted": left} if left > 0 else found


def planned(
    found: device_objects.DeviceObject, allocations: Allocations, *, by_subresource: bool = False
) -> actions.Plan:
    """Plan the write that makes a status say who holds what; none where it says it already."""
    if (found.written or []) == allocations:
        return actions.Plan("the status says who holds what")
    count = sum(len(one["allocations"]) for one in allocations)
    message = f"status names {count} shares of {len(allocations)} devices"
    body = {
        "metadata": {"uid": found.uid},
        "status": {"deviceAllocations": allocations or None},
    }
    write = actions.PatchStatus if by_subresource else actions.Merge
    # A write that a CRD drops changes nothing, so that no watch would tell of it.
    return actions.Plan(message, (write(resources.DEVICES, found.name, body),), _CHECK_SECONDS)
