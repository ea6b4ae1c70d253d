"""Why device requests are illegal, and what to write instead: a sentence per contradiction. Pure.

`requests.normalised` decides; these sentences say it to the author of a pod.
"""

from collections.abc import Iterator
from typing import Final

from api import names
from api.koordinator import devices
from api.wire import quantity
from domain import wording
from domain.devices import pod_devices
from domain.devices.requests import requests

FIELD: Final = "spec.containers[*].resources.requests"
_CORE, _MEMORY, _RATIO = names.GPU_CORE, names.GPU_MEMORY, names.GPU_MEMORY_RATIO
_SLICES: Final = (names.NPU_CPU, names.NPU_DVPP)
ISOLATION: Final = "HAMi-core"
"""The only isolation of shared GPUs that agents apply."""
_PERCENTAGES: Final = (names.GPU, _CORE, _RATIO, names.RDMA, names.FPGA)


def faults(asked: requests.Amounts) -> tuple[str, ...]:
    """Return why no node can serve the device requests of a pod as a whole; empty: they are legal.

    Amounts of containers add up, so two containers of half a GPU ask for a whole one.
    """
    if not isinstance(requests.normalised(asked), requests.Fault):
        return ()
    found = []
    for kind, known in requests.NAMES.items():
        mine = {name: value for name, value in asked.items() if name in known and value}
        if mine and isinstance(requests.normalised(mine), requests.Fault):
            told = list(_gpus(mine) if kind == devices.GPU else _percentages(mine))
            found += told or [_other(mine)]
    return tuple(dict.fromkeys(f"{FIELD}: {text}" for text in found))


def _gpus(asked: requests.Amounts) -> Iterator[str]:
    yield from _two_ways(asked)
    if any(name in asked for name in (names.NPU_CORE, *_SLICES)):
        yield from _npus(asked)
    else:
        yield from _incomplete(asked)
    if names.GPU_SHARED not in asked:
        yield from _percentages(asked)
    else:
        yield from _uneven(asked)


def _two_ways(asked: requests.Amounts) -> Iterator[str]:
    for name in (*requests.VENDOR_GPUS, names.GPU):
        others = sorted(asked.keys() - {name})
        if name in asked and others:
            what = "whole GPUs" if name != names.GPU else "cores and memory alike"
            yield f"{name} asks for {what}; leave out {', '.join(others)}, or {name}"
            return
    if _MEMORY in asked and _RATIO in asked:
        yield f"{_MEMORY} and {_RATIO} say the same in two ways; keep one of them"


def _incomplete(asked: requests.Amounts) -> Iterator[str]:
    if _MEMORY in asked or _RATIO in asked or not asked.keys() & {_CORE, names.GPU_SHARED}:
        return
    (name, *_) = sorted(asked.keys() & {_CORE, names.GPU_SHARED})
    yield f"{name} without memory; add {_MEMORY} in bytes or {_RATIO} in percent"


def _npus(asked: requests.Amounts) -> Iterator[str]:
    whole = f"{names.NPU_CORE} and {_RATIO} for a whole NPU"
    part = f"{names.NPU_CORE}, {names.NPU_CPU}, {_MEMORY} and {names.GPU_SHARED}: 1 for a slice"
    if names.NPU_CORE not in asked or not asked.keys() & {_RATIO, _MEMORY}:
        listed = ", ".join(sorted(asked))
        yield f"{listed} is no part of an NPU; ask for {whole}, or for {part}"
        return
    sliced = asked.keys() & {names.GPU_SHARED, _MEMORY, *_SLICES}
    if not sliced:
        extra = sorted(asked.keys() - {names.NPU_CORE, _RATIO})
        if extra:
            yield f"a whole NPU takes {names.NPU_CORE} and {_RATIO} alone; leave out {extra[0]}"
        return
    for name in (names.NPU_CPU, _MEMORY, names.GPU_SHARED):
        if name not in asked:
            yield f"a slice of an NPU without {name}; add it, or ask for {whole}"
    for name in sorted(asked.keys() & {_CORE, _RATIO}):
        yield f"a slice of an NPU has no {name}; leave it out"
    if asked.get(names.GPU_SHARED, 1) > 1:
        yield f"a slice is part of one NPU; set {names.GPU_SHARED} to 1"
    if asked.get(names.NPU_DVPP, 0) > requests.WHOLE:
        yield f"{names.NPU_DVPP}: {asked[names.NPU_DVPP]} is above 100 percent; ask for less"


def _percentages(asked: requests.Amounts) -> Iterator[str]:
    for name in _PERCENTAGES:
        value = asked.get(name, 0)
        if not requests.is_percentage(value):
            below = value // requests.WHOLE * requests.WHOLE
            yield (
                f"{name}: {value} is above 100 and no multiple of it; above one device only whole "
                f"ones are given: ask for {below} or {below + requests.WHOLE}"
            )


def _uneven(asked: requests.Amounts) -> Iterator[str]:
    count = asked[names.GPU_SHARED]
    for name in (_CORE, _RATIO):
        share = asked.get(name, 0)
        if share % count:
            yield (
                f"{name}: {share} does not divide by the {count} GPUs of {names.GPU_SHARED}; "
                f"ask for a multiple of {count}"
            )
        elif share // count > requests.WHOLE:
            yield (
                f"{name}: {share} is more than the {wording.count(count, 'GPU', 'GPUs')} of "
                f"{names.GPU_SHARED} {wording.form(count, 'has', 'have')}; "
                f"ask for at most {count * requests.WHOLE}"
            )


def _other(asked: requests.Amounts) -> str:
    listed = ", ".join(f"{name}: {quantity.text(name, value)}" for name, value in asked.items())
    return f"{listed} is no request for a device; ask for {_MEMORY} or {_RATIO}, perhaps {_CORE}"


def doubts(asked: pod_devices.PodDevices) -> Iterator[str]:
    """Yield what a pod says about devices that has no effect, or can never be fulfilled."""
    for kind in sorted(asked.hints.keys() - asked.by_type.keys()):
        yield f"{names.ANNOTATION_DEVICE_HINT}: the pod asks for no {kind}; this hint has no effect"
    gpu = asked.hints.get(devices.GPU)
    if gpu is not None and gpu.required_topology_scope == "Device":
        yield (
            f"{names.ANNOTATION_DEVICE_HINT}: no node fulfils requiredTopologyScope Device; "
            "use PCIe, the narrowest scope that there is"
        )
    for kind, hint in sorted(asked.hints.items()):
        counted = hint.allocate_strategy == pod_devices.REQUESTS_AS_COUNT
        if hint.exclusive_policy == pod_devices.DEVICE_LEVEL and not counted:
            yield (
                f"{names.ANNOTATION_DEVICE_HINT}: exclusivePolicy DeviceLevel of {kind} has an "
                "effect with allocateStrategy RequestsAsCount only"
            )
    if asked.partition is not None and asked.shares_gpus:
        yield (
            f"{names.ANNOTATION_GPU_PARTITION_SPEC}: shared GPUs belong to no partition; ask for "
            "whole ones"
        )
    if asked.shares_gpus and asked.isolation not in ("", ISOLATION):
        yield (
            f'{names.LABEL_GPU_ISOLATION_PROVIDER}: "{asked.isolation}" is no isolation of shared '
            f"GPUs; write {ISOLATION}"
        )
