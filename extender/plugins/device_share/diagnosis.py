"""What stands behind the refusal of a node, and what would help, in figures of devices."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from api import names
from api.koordinator import devices
from api.wire import quantity
from domain import wording
from domain.cpus import cpulists
from domain.devices import inventory, pod_devices
from domain.devices.requests import requests
from extender.framework import verdicts
from extender.plugins.device_share import shapes

_PERCENT: Final = frozenset({names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA})
_USABLE: Final = {False: "healthy", True: "healthy and held by no ResourceClaim"}
_SHORT: Final[Mapping[str, str]] = {
    names.GPU_CORE: "cores",
    names.GPU_MEMORY_RATIO: "memory",
    names.GPU_MEMORY: "memory",
}


def shortage(asked: pod_devices.PodDevices | None, figures: verdicts.Column) -> verdicts.Shares:
    """Say by how much the freest device falls short; half where columns do not say it."""
    shape = shapes.shape(asked) if asked is not None else None
    if shape is None or shape.kind != devices.GPU:
        return np.full(figures.shape[1], 0.5)
    name, amount = max(shape.per_device.items(), key=lambda one: one[0] in _PERCENT)
    free = shapes.gpus(figures, name)
    enough = np.count_nonzero(free >= amount, axis=0)
    if shape.count > 1:
        lacking: verdicts.Shares = np.maximum(shape.count - enough, 0) / shape.count
        return lacking
    best = np.clip(free.max(axis=0), 0, amount)
    one: verdicts.Shares = (amount - best) / amount
    return one


def diagnosis(
    asked: pod_devices.PodDevices, node: inventory.NodeDevices, name: str
) -> verdicts.Diagnosis:
    """Compare what the pod asks of each device with what is free of the devices of a node."""
    told, helps = [], []
    for kind, amounts in asked.by_type.items():
        count, each = _wanted(asked, kind, amounts)
        known = node.inventory.devices.get(kind, {})
        healthy = [minor for minor, one in known.items() if any(one.total.values())]
        claimed = any(one.claim for one in known.values())
        free = node.free.get(kind, {})
        enough = [m for m in healthy if all(v <= free[m].get(r, v) for r, v in each.items())]
        told.append(
            f"asks {count} {kind} with {_amounts(each)} each; of {len(known)} on the node "
            f"{wording.count(len(healthy), 'is', 'are')} {_USABLE[claimed]} and "
            f"{wording.count(len(enough), 'has', 'have')} that much free"
        )
        if len(enough) < count:
            helps.append(f"{count - len(enough)} more {kind} with {_amounts(each)} free on {name}")
        idle = [minor for minor in sorted(known) if minor not in healthy]
        broken = ", ".join(str(minor) for minor in idle if not known[minor].claim)
        if broken:
            helps.append(f"{kind} {broken} of {name} healthy again")
        helps += [
            f"{kind} {minor} of {name} given back by ResourceClaim {known[minor].claim}"
            for minor in idle
            if known[minor].claim
        ]
    return verdicts.Diagnosis("; ".join(told), tuple(helps))


MOST_TOLD: Final = 32
"""Devices of one type of which a record says why they were not chosen."""


def others(
    asked: pod_devices.PodDevices, node: inventory.NodeDevices, given: inventory.Allocation
) -> dict[str, str]:
    """Say by type why the devices that a pod was not given were not chosen."""
    texts = {}
    for kind, granted in given.items():
        known, free = node.inventory.devices.get(kind, {}), node.free.get(kind, {})
        count, each = (
            _wanted(asked, kind, asked.by_type[kind]) if kind in asked.by_type else (0, {})
        )
        chosen = {one.minor for one in granted}
        beside = {_place(known[minor]) for minor in chosen if minor in known}
        why: dict[str, list[int]] = {}
        alike: dict[tuple[int, ...], list[int]] = {}
        for minor in sorted(known.keys() - chosen)[:MOST_TOLD]:
            # Devices that offer the same, in the same place, mostly share these objects.
            one = known[minor]
            alike.setdefault((id(one.total), id(one.place), id(free[minor])), []).append(minor)
        for minors in alike.values():
            first = minors[0]
            reason = _not_chosen(known[first], free[first], each, beside if count else set())
            why[reason] = sorted([*why.get(reason, ()), *minors])
        texts[kind] = "; ".join(f"{_numbers(minors)}: {reason}" for reason, minors in why.items())
    return {kind: text for kind, text in texts.items() if text}


def _not_chosen(
    device: inventory.Device,
    free: requests.Amounts,
    each: requests.Amounts,
    beside: set[tuple[int, str]],
) -> str:
    if not any(device.total.values()):
        return "unhealthy"
    short = [name for name, value in each.items() if free.get(name, value) < value]
    if short:
        return f"{_amount(short[0], free[short[0]])} free"
    if beside and _place(device) not in beside:
        numa, switch = _place(device)
        return f"fits, on NUMA node {numa}, PCIe switch {switch or 'unknown'}"
    return "fits, another one came first by the strategy"


def _place(device: inventory.Device) -> tuple[int, str]:
    place = device.place
    return (place.numa, place.pcie) if place else (inventory.UNKNOWN_NUMA, "")


def _numbers(minors: list[int]) -> str:
    return cpulists.text(minors)


def _wanted(
    asked: pod_devices.PodDevices, kind: str, amounts: requests.Amounts
) -> tuple[int, requests.Amounts]:
    if kind == devices.GPU and asked.gpu is not None:
        return asked.gpu.count, asked.gpu.per_gpu
    ((name, value),) = amounts.items()
    if value > requests.WHOLE:
        return value // requests.WHOLE, {name: requests.WHOLE}
    return 1, amounts


def _amounts(amounts: requests.Amounts) -> str:
    return " and ".join(_amount(name, value) for name, value in amounts.items()) or "nothing"


def _amount(name: str, value: int) -> str:
    what = _SHORT.get(name, "").strip()
    if name in _PERCENT:
        return f"{value} % of the {what}" if what else f"{value} %"
    return f"{quantity.text(name, value)} of {what or name}"
