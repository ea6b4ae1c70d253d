"""Which devices of a node may serve a pod, how many it takes of each type, and how much of each."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Final

from api import names
from api.koordinator import devices
from api.koordinator.metadata import payloads
from api.kubernetes import meta, selectors
from domain.devices import inventory, pod_devices
from domain.devices.allocation import device_scores
from domain.devices.requests import requests

Amounts = requests.Amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot serve a pod."""

    reason: str
    final: bool = False
    """Whether it stays so whichever pods leave the node (UnschedulableAndUnresolvable)."""


def insufficient(kind: str, what: str = "devices", *, final: bool = False) -> Refusal:
    """Return the refusal of a node with too few devices of a type."""
    return Refusal(f"Insufficient {kind} {what}", final)


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """The devices of one type that a pod may get."""

    kind: str
    known: inventory.ByMinor
    """All devices of the type that are on the node."""
    total: Mapping[int, Amounts]
    free: Mapping[int, Amounts]
    used: frozenset[int]
    """Minors of which pods hold something, whether the pod may get them or not."""
    functions: frozenset[tuple[str, int, str]]
    """Virtual functions in use."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod takes of one type on one node."""

    kind: str
    per_device: Amounts
    count: int
    hint: payloads.DeviceHint
    gpu: requests.GPURequest | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """Which devices of a node does a pod get: one question."""

    pod: pod_devices.PodDevices
    node: inventory.NodeDevices
    scoring: device_scores.Scoring | None = None
    """None: any that fit; which of them does not matter."""
    numa: Collection[int] | None = None
    """The NUMA nodes to allocate from; None: any."""
    first: tuple[int, ...] = ()
    """Minors of GPUs that are tried before all others, for one that is shared."""
    reserving: bool = False
    """Whether the pod gets the answer; what a node has planned ahead is given only then."""


_NO_HINT: Final = payloads.DeviceHint()


def wanted(choice: Choice) -> Mapping[str, Wanted] | Refusal:
    """Return how many devices of each type the pod takes on this node, and how much of each."""
    found: dict[str, Wanted] = {}
    kinds = _looked_at(choice)
    for kind in kinds:
        if not choice.node.inventory.devices.get(kind):
            return insufficient(kind, final=True)
    for kind in kinds:
        asked, known = choice.pod.by_type[kind], choice.node.inventory.devices[kind]
        hint = choice.pod.hints.get(kind, _NO_HINT)
        if hint.vf_selector is not None and not any(one.functions for one in known.values()):
            return insufficient(kind, "VirtualFunctions", final=True)
        gpu = choice.pod.gpu if kind == devices.GPU else None
        if gpu is not None:
            found[kind] = Wanted(kind, gpu.per_gpu, gpu.count, hint, gpu)
            continue
        counted = _counted(asked, hint, known)
        if not counted.count:
            return insufficient(kind, final=True)
        found[kind] = dataclasses.replace(counted, kind=kind)
    return found


def _looked_at(choice: Choice) -> list[str]:
    """Return the types that are allocated: a node may plan joint ones ahead."""
    pod, labels = choice.pod, choice.node.inventory.labels
    planned = labels.get(names.LABEL_SECONDARY_DEVICE_PLANNED) == "true" and not choice.reserving
    whole_gpus = pod.gpu is not None and not pod.gpu.shared
    if planned and whole_gpus and pod.primary is not None:
        return [pod.primary]
    return list(pod.by_type)


def _counted(asked: Amounts, hint: payloads.DeviceHint, known: inventory.ByMinor) -> Wanted:
    ((name, value),) = asked.items()
    if value > requests.WHOLE and value % requests.WHOLE == 0:
        return Wanted("", {name: requests.WHOLE}, value // requests.WHOLE, hint)
    if hint.allocate_strategy == pod_devices.APPLY_FOR_ALL:
        count = sum(selected(hint.selector, one) for one in known.values())
        return Wanted("", {name: value}, count, hint)
    if hint.allocate_strategy == pod_devices.REQUESTS_AS_COUNT:
        whole = hint.exclusive_policy == pod_devices.DEVICE_LEVEL
        return Wanted("", {name: requests.WHOLE if whole else 1}, value, hint)
    return Wanted("", {name: value}, 1, hint)


def selected(selector: meta.LabelSelector | None, device: inventory.Device) -> bool:
    """Whether a device carries the labels that a selector wants; none wants any."""
    return selector is None or selectors.matches(selector, device.labels)


def aligned(device: inventory.Device, numa: Collection[int] | None) -> bool:
    """Whether a device is on one of some NUMA nodes; it may be where its own is not known."""
    if numa is None:
        return True
    place = device.place
    return place is not None and (place.numa == inventory.UNKNOWN_NUMA or place.numa in numa)


def pools(choice: Choice, asked: Mapping[str, Wanted]) -> dict[str, Pool]:
    """Return the devices that the pod may get, by type; none of a type of which nothing is free."""
    found = {}
    for kind, one in asked.items():
        node = choice.node
        known, used = node.inventory.devices[kind], node.used(kind)
        minors = sorted(known)
        if choice.numa is not None or one.hint.selector is not None:
            minors = [
                minor
                for minor in minors
                if aligned(known[minor], choice.numa) and selected(one.hint.selector, known[minor])
            ]
        minors = _exclusive(minors, one.hint, known, used)
        by_minor = node.free[kind]
        free = {minor: by_minor[minor] for minor in minors}
        if not any(any(amounts.values()) for amounts in free.values()):
            free = {}
        total = {minor: known[minor].total for minor in free}
        found[kind] = Pool(kind, known, total, free, used, node.uses.functions)
    return found


def _exclusive(
    minors: list[int],
    hint: payloads.DeviceHint,
    known: inventory.ByMinor,
    used: frozenset[int],
) -> list[int]:
    """Leave out PCIe switches of which a device is in use, where the pod wants switches alone."""
    if hint.exclusive_policy != pod_devices.PCIE_LEVEL:
        return minors
    taken = {switch(known[minor]) for minor in used if minor in known}
    return [minor for minor in minors if switch(known[minor]) not in taken]


def switch(device: inventory.Device) -> str:
    """Return the PCIe switch of a device, empty where it is not known."""
    return device.place.pcie if device.place else ""


def fits(request: Amounts, free: Amounts) -> bool:
    """Whether a device has what is asked for; what it does not list is not checked."""
    for name, value in request.items():
        left = free.get(name)
        if left is not None and left < value:
            return False
    return True
