"""The devices of a node with who holds them, and what cannot stay as it is. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from api.koordinator import devices
from api.wire import quantity
from domain.devices import inventory, pod_holdings
from domain.devices.requests import requests

OVER_ALLOCATED: Final = "OverAllocated"
UNHEALTHY: Final = "UnhealthyInUse"
GONE: Final = "DeviceGone"
REPLACED: Final = "DeviceReplaced"
UNREADABLE: Final = "RecordUnreadable"
HELD_TWICE: Final = "HeldByClaimToo"
PROBLEMS: Final[Mapping[str, str]] = {
    OVER_ALLOCATED: "delete one of the pods; two schedulers that both give devices away cause it",
    UNHEALTHY: "drain the pods from the node, then repair the device",
    GONE: "delete the pods, or put the device back into the Device object",
    REPLACED: "delete the pods: what they were given is another device now",
    UNREADABLE: "delete the pod, and find out who wrote the annotation",
    HELD_TWICE: "delete the pods or the ResourceClaim, and let one of both systems give it away",
}
"""Every problem with its remedy."""
_NAMED: Final = 3
"""Pods that a sentence names."""


class Known(msgspec.Struct, frozen=True, gc=False):
    """One device as the Device object lists it."""

    kind: str
    minor: int
    id: str
    model: str
    healthy: bool
    total: Mapping[str, int]
    """What it offers while it is healthy, in the units of the API."""
    bus_id: str = ""
    """PCI address, as it is written."""


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """What one pod holds of one device."""

    holding: pod_holdings.Holding
    granted: inventory.Granted
    percent: int


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One device, in use or not; one that pods hold and no object lists is not ``listed``."""

    device: Known
    listed: bool
    used: requests.Amounts
    shares: tuple[Share, ...]
    """The largest first."""
    claims: tuple[str, ...] = ()
    """namespace/name of the ResourceClaims that hold it."""

    @property
    def percent(self) -> int:
        """How much of it pods hold together."""
        return sum(share.percent for share in self.shares)

    @property
    def free(self) -> requests.Amounts:
        """What could still be given; nothing of a device that is unhealthy or held by a claim."""
        if not self.device.healthy or not self.listed or self.claims:
            return dict.fromkeys(self.device.total, 0)
        return inventory.free_of(self.device.total, self.used)


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Something about devices that does not resolve itself."""

    node: str
    reason: str
    """A key of `PROBLEMS`."""
    text: str

    @property
    def remedy(self) -> str:
        """What to do."""
        return PROBLEMS[self.reason]


def known(device: devices.Device) -> tuple[Known, ...]:
    """Return the devices of an object; of two with the same minor the first counts."""
    found: dict[tuple[str, int], Known] = {}
    for one in device.spec.devices:
        if one.minor is None:
            continue
        labels = {**device.metadata.labels, **one.labels} if one.type == devices.GPU else one.labels
        found.setdefault(
            (one.type, one.minor),
            Known(
                one.type,
                one.minor,
                one.id,
                one.device_model or labels.get(names.LABEL_GPU_MODEL, ""),
                one.health,
                quantity.amounts(one.resources),
                one.topology.bus_id if one.topology else "",
            ),
        )
    return tuple(found[key] for key in sorted(found))


def rows(
    listed: Iterable[Known],
    holdings: Iterable[pod_holdings.Holding],
    claims: Mapping[tuple[str, int], tuple[str, ...]] | None = None,
) -> tuple[Row, ...]:
    """Return a row per device that is listed or held, by type and minor.

    ``claims`` names the ResourceClaims that hold a device, by type and minor.
    """
    held: dict[tuple[str, int], list[tuple[pod_holdings.Holding, inventory.Granted]]] = {}
    for pod in sorted(holdings, key=lambda one: one.key):
        for kind, granted in pod.held.items():
            for one in granted:
                held.setdefault((kind, one.minor), []).append((pod, one))
    present = {(one.kind, one.minor): one for one in listed}
    found = []
    for key in sorted({*present, *held}):
        holders = held.get(key, [])
        device = present.get(key) or _gone(key, holders)
        shares = [
            Share(pod, one, pod_holdings.percent(one.amounts, device.total)) for pod, one in holders
        ]
        used: dict[str, int] = {}
        for _, one in holders:
            for name, value in one.amounts.items():
                used[name] = used.get(name, 0) + value
        ordered = sorted(shares, key=lambda share: (-share.percent, share.holding.key))
        elsewhere = (claims or {}).get(key, ())
        found.append(Row(device, key in present, used, tuple(ordered), elsewhere))
    return tuple(found)


def _gone(
    key: tuple[str, int], holders: Sequence[tuple[pod_holdings.Holding, inventory.Granted]]
) -> Known:
    """Return a device that is not there any more, as far as its holders describe it."""
    ident = next((one.id for _, one in holders if one.id), "")
    return Known(*key, ident, "", healthy=False, total={})


def problems(
    node: str, found: Sequence[Row], holdings: Iterable[pod_holdings.Holding]
) -> tuple[Problem, ...]:
    """Name what is wrong with the devices of a node."""
    said = [
        Problem(node, reason, text)
        for row in found
        for reason, text in _wrong(row, f"{row.device.kind} {row.device.minor} of node {node}")
    ]
    said += [
        Problem(node, UNREADABLE, f"the record of pod {pod.key} does not count: {pod.fault}")
        for pod in sorted(holdings, key=lambda one: one.key)
        if pod.fault
    ]
    return tuple(said)


def _wrong(row: Row, where: str) -> list[tuple[str, str]]:
    device, who = row.device, _named([share.holding.key for share in row.shares])
    if not row.shares:
        return []
    if not row.listed:
        ident = f" ({device.id})" if device.id else ""
        return [(GONE, f"{who} hold {where}{ident}, which its Device object does not list")]
    said = []
    if not device.healthy:
        said.append((UNHEALTHY, f"{who} hold {where}, which is unhealthy"))
    over = [
        f"{quantity.text(name, value)} of {name}, it has {quantity.text(name, device.total[name])}"
        for name, value in sorted(row.used.items())
        if name in device.total and value > device.total[name]
    ]
    if over:
        said.append((OVER_ALLOCATED, f"{who} hold of {where} {'; '.join(over)}"))
    moved = [
        share.holding.key
        for share in row.shares
        if share.granted.id and device.id and share.granted.id != device.id
    ]
    if moved:
        text = f"{_named(moved)} were given another device than {where} is now ({device.id})"
        said.append((REPLACED, text))
    if row.claims:
        text = f"{who} and ResourceClaim {_named(row.claims, '')} hold {where}"
        said.append((HELD_TWICE, text))
    return said


def _named(keys: Sequence[str], what: str = "pods ") -> str:
    first = ", ".join(keys[:_NAMED])
    more = len(keys) - _NAMED
    return f"{what}{first} and {more} more" if more > 0 else f"{what}{first}"
