"""What the status of a Device says of those who hold its devices, and how it is written. Pure.

The figures are percentages of a device by container, as ``status.deviceAllocations`` has them.
"""

from collections.abc import Sequence
from typing import Any, Final

from api import resources
from domain import conditions, wording
from domain.devices import device_report, pod_holdings
from manager.devices import device_objects
from manager.reconcile import actions, outcomes

MOST_DEVICES: Final = 1024
"""Devices that one status names."""
MOST_SHARES: Final = 1024
"""Shares that one status names; with the longest names there are they take 500 KB."""
_CHECK_SECONDS: Final = 5.0
ACCEPTED: Final = "Accepted"
"""Whether the object can be read."""
HEALTHY: Final = "Healthy"
"""Whether all devices of the node are."""
_TYPES: Final = (ACCEPTED, HEALTHY)
_MOST_NAMED: Final = 8

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


def judged(found: device_objects.DeviceObject) -> tuple[outcomes.Condition, ...]:
    """Return what a Device says of itself: whether it can be read, and whether all is healthy."""
    if found.listed is None:
        note = f"{found.fault}. The node is taken to have no devices"
        return (outcomes.Condition(ACCEPTED, False, "DeviceUnreadable", note),)
    sick = [f"{one.kind} {one.minor}" for one in found.listed if not one.healthy]
    note = f"{wording.count(len(found.listed), 'device is', 'devices are')} listed"
    accepted: outcomes.Condition = outcomes.Condition(ACCEPTED, True, "DevicesListed", note)
    if not sick:
        note = "no device is sick"
        return (accepted, outcomes.Condition(HEALTHY, True, "DevicesHealthy", note))
    more = f" and {len(sick) - _MOST_NAMED} more" if len(sick) > _MOST_NAMED else ""
    note = f"pods get none of {', '.join(sick[:_MOST_NAMED])}{more}, which are not healthy"
    return (accepted, outcomes.Condition(HEALTHY, False, "DevicesUnhealthy", note))


def planned(
    found: device_objects.DeviceObject,
    allocations: Allocations | None,
    now: float,
    *,
    by_subresource: bool = False,
) -> actions.Plan:
    """Plan the write that makes a status say what is so; none where it says it already.

    Without `allocations` the object cannot be read, and who holds its devices stays as it stands.
    """
    facts = judged(found)
    about = (resources.DEVICES, "", found.name, found.uid)
    told = tuple(outcomes.told(about, found.conditions, facts))
    changed: dict[str, Any] = {}
    message = "the Device cannot be read"
    if allocations is not None:
        count = sum(len(one["allocations"]) for one in allocations)
        devices = wording.count(len(allocations), "device", "devices")
        message = f"status names {wording.count(count, 'share', 'shares')} of {devices}"
        if (found.written or []) != allocations:
            changed["deviceAllocations"] = allocations or None
    # No generation: without a subresource, the API server counts writes of the status as well.
    said = conditions.merged(found.conditions, facts, now, types=_TYPES)
    if said is not None:
        changed["conditions"] = said
    if not changed:
        return actions.Plan("the status says who holds what", told)
    body = {"metadata": {"uid": found.uid}, "status": changed}
    write = actions.PatchStatus if by_subresource else actions.Merge
    step = write(resources.DEVICES, found.name, body)
    # A write that a CRD drops changes nothing, so that no watch would tell of it.
    return actions.Plan(message, (step, *told), _CHECK_SECONDS)
