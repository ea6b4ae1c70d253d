"""What the plug-in counts on a node, for people; in the shape of Koordinator's page and fuller."""

from collections.abc import Iterable, Mapping
from typing import Any

from api.wire import quantity
from domain.devices import inventory
from domain.devices.allocation import device_scores
from domain.devices.requests import requests
from extender.framework import views
from extender.plugins.device_share import tracker

Detail = Mapping[str, Mapping[int, requests.Amounts]]


def summary(node: inventory.NodeDevices | None, info: views.NodeInfo) -> dict[str, Any]:
    """Return totals over all types, the same by device, and what each pod holds."""
    found = node or inventory.NodeDevices.of(inventory.NOTHING, inventory.Uses())
    total = {
        kind: {minor: device.total for minor, device in sorted(known.items())}
        for kind, known in found.inventory.devices.items()
    }
    holders: dict[str, dict[str, dict[str, Mapping[str, str]]]] = {}
    for claim in info.claims:
        for kind, granted in (tracker.held_by(claim) or {}).items():
            held: dict[str, Mapping[str, str]] = {
                str(one.minor): quantity.texts(one.amounts) for one in granted
            }
            holders.setdefault(kind, {})[claim.pod.key] = held
    parts = {"Total": total, "Free": found.free, "Used": found.uses.amounts}
    sums = {f"device{name}": _summed(detail) for name, detail in parts.items()}
    details = {f"device{name}Detail": _detail(detail) for name, detail in parts.items()}
    return {**sums, **details, "allocateSet": holders}


def _summed(detail: Detail) -> Mapping[str, str]:
    every: Iterable[requests.Amounts] = (
        amounts for by_minor in detail.values() for amounts in by_minor.values()
    )
    return quantity.texts(device_scores.summed(every))


def _detail(detail: Detail) -> dict[str, dict[str, Mapping[str, str]]]:
    return {
        kind: {str(minor): quantity.texts(amounts) for minor, amounts in sorted(by_minor.items())}
        for kind, by_minor in detail.items()
    }


def inspected(node: inventory.NodeDevices | None, info: views.NodeInfo) -> dict[str, Any]:
    """Return the same with where devices are plugged in, and what cannot be true."""
    document = summary(node, info)
    if node is None:
        return document
    return {
        **document,
        "devices": [
            _device(kind, device)
            for kind, known in node.inventory.devices.items()
            for _minor, device in sorted(known.items())
        ],
        "overused": [
            f"{kind} {minor}: pods hold {quantity.text(name, held)} of {name}, "
            f"it has {quantity.text(name, there)}"
            for kind, minor, name, held, there in node.overused()
        ],
        "heldTwice": [
            f"{kind} {minor}: pods and ResourceClaim {device.claim} hold it"
            for kind, known in node.inventory.devices.items()
            for minor, device in sorted(known.items())
            if device.claim and minor in node.used(kind)
        ],
        "withoutRecord": _unrecorded(info),
    }


def _device(kind: str, device: inventory.Device) -> dict[str, Any]:
    place = device.place
    return {
        "type": kind,
        "minor": device.minor,
        "id": device.id,
        "healthy": any(device.total.values()) or bool(device.claim),
        "resourceClaim": device.claim or None,
        "numaNode": place.numa if place else None,
        "pcie": place.pcie if place else None,
    }


def _unrecorded(info: views.NodeInfo) -> list[str]:
    """Name pods that ask for devices and carry no record of which they got."""
    return [
        claim.pod.key
        for claim in info.claims
        if claim.kind is not views.ClaimKind.NOMINATED
        and not tracker.held_by(claim)
        and any(name in requests.RESOURCES for name, _ in claim.pod.requirements.requests)
    ]
