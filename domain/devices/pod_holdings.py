"""What one pod holds of the devices of its node: the annotation of the scheduler, bounded. Pure.

Every reader of ``device-allocated`` believes it only as far as the requests of the pod allow it.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from api.kubernetes import core
from api.wire import quantity
from domain.devices import inventory, pod_devices, records
from domain.devices.requests import requests
from domain.pods import resources

MOST_CONTAINERS: Final = 32
"""Containers of one pod among which a device is divided; of more the pod as a whole is named."""
_METADATA: Final = frozenset((*pod_devices.LABELS, *pod_devices.ANNOTATIONS))
_LONGEST_INPUT: Final = 4 << 10
"""Characters of a label or annotation that says which devices; longer ones count as absent."""
_PERCENT: Final = (names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA)

Pairs = tuple[tuple[str, int], ...]


class Holding(msgspec.Struct, frozen=True, gc=False):
    """The devices that a pod with a node has been given."""

    namespace: str
    name: str
    held: inventory.Allocation
    """By type of device; empty where the record cannot be believed."""
    containers: Mapping[str, Pairs] = {}
    """By type of device: the containers that ask for it, with how much of it each asks for."""
    fault: str = ""
    """Why the record does not count."""

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def believed(
    held: inventory.Allocation, asked: pod_devices.PodDevices | None
) -> inventory.Allocation | None:
    """Return the devices that a pod's annotation names; ValueError where it cannot hold them.

    None: it names no device.
    """
    if not held:
        return None
    if asked is None or not pod_devices.may_hold(asked, held):
        raise ValueError("the pod does not ask for what it is said to have been given")
    return held


def holding(pod: core.Pod) -> Holding | None:
    """Return what a pod holds; None: it has no node, has ended, or carries no record."""
    metadata = pod.metadata
    text = metadata.annotations.get(names.ANNOTATION_DEVICE_ALLOCATED)
    if text is None or not pod.spec.node_name or pod.finished:
        return None
    where = (metadata.namespace, metadata.name)
    try:
        held = believed(records.decoded(text), _asked(pod))
        return None if held is None else Holding(*where, held, _containers(pod, held))
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as wrong:
        return Holding(*where, {}, fault=str(wrong)[:200])


def _asked(pod: core.Pod) -> pod_devices.PodDevices | None:
    wanted = resources.pod_requests(pod)
    found = {**pod.metadata.labels, **pod.metadata.annotations}
    asked = tuple(sorted(one for one in wanted.items() if one[0] in requests.RESOURCES))
    metadata = tuple(
        (name, found[name])
        for name in sorted(_METADATA)
        if len(found.get(name, " " * _LONGEST_INPUT)) < _LONGEST_INPUT
    )
    read = _read(asked, metadata)
    return read if isinstance(read, pod_devices.PodDevices) else None


@functools.lru_cache(maxsize=1024)
def _read(
    asked: Pairs, metadata: tuple[tuple[str, str], ...]
) -> pod_devices.PodDevices | requests.Fault | None:
    return pod_devices.read(dict(asked), dict(metadata))


def _containers(pod: core.Pod, held: inventory.Allocation) -> dict[str, Pairs]:
    running = resources.lasting(pod.spec)
    found = {}
    for kind in held:
        shares = _askers(running, kind) or _askers(pod.spec.init_containers, kind)
        found[kind] = shares if len(shares) <= MOST_CONTAINERS else ()
    return found


def _askers(containers: Iterable[core.Container], kind: str) -> Pairs:
    """Return the containers that ask for a type, measured by a resource that all of them name."""
    asking: list[tuple[str, Mapping[str, int]]] = []
    for one in containers:
        asked = one.resources
        amounts = resources.amounts(asked.limits) | resources.amounts(asked.requests)
        wanted = {
            name: value for name, value in amounts.items() if name in requests.NAMES[kind] and value
        }
        if wanted:
            asking.append((one.name, wanted))
    common = sorted(set.intersection(*(set(wanted) for _, wanted in asking))) if asking else []
    return tuple((name, wanted[common[0]] if common else 1) for name, wanted in asking)


def percent(held: requests.Amounts, total: requests.Amounts) -> int:
    """Return how much of a device a pod holds, in percent of the whole device, rounded up.

    ``total`` is what the device offers; of a GPU the larger part of its cores and its memory
    counts, so that what remains can be given to another pod.
    """
    shares = [held[name] for name in _PERCENT if name in held]
    if not shares:
        shares = [
            -(-value * requests.WHOLE // total[name])
            for name, value in held.items()
            if total.get(name)
        ]
    return max(shares, default=0)


def divided(whole: int, shares: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Divide a percentage among containers by what each asks for; the parts add up to the whole."""
    weights = sum(weight for _, weight in shares)
    if not weights:
        return (("", whole),)
    parts = [whole * weight // weights for _, weight in shares]
    rests = sorted(
        range(len(shares)), key=lambda place: (-(whole * shares[place][1] % weights), place)
    )
    for place in rests[: whole - sum(parts)]:
        parts[place] += 1
    return tuple((name, part) for (name, _), part in zip(shares, parts, strict=True))


def texts(amounts: requests.Amounts) -> dict[str, str]:
    """Write amounts as Kubernetes quantities."""
    return dict(quantity.texts(amounts))
