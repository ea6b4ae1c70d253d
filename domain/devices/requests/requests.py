"""Device requests of a pod: which combinations of extended resources are legal, and one form.

Amounts are percentages of one device (100 is a whole one), except ``gpu-memory`` in bytes,
``gpu.shared`` as a number of GPUs and the slices of NPUs, which count what their vendor counts.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import Final

from api import names
from api.koordinator import devices
from api.wire import quantity

Amounts = Mapping[str, int]

WHOLE: Final = 100
VENDOR_GPUS: Final = (names.NVIDIA_GPU, names.AMD_GPU, names.DCU_GPU)
"""Whole GPUs as the device plug-ins of their vendors name them."""
NAMES: Final[Mapping[str, frozenset[str]]] = types.MappingProxyType(
    {
        devices.GPU: frozenset(
            (
                *(*VENDOR_GPUS, names.GPU, names.GPU_SHARED, names.GPU_CORE),
                *(names.GPU_MEMORY, names.GPU_MEMORY_RATIO),
                *(names.NPU_CORE, names.NPU_CPU, names.NPU_DVPP),
            )
        ),
        devices.RDMA: frozenset({names.RDMA}),
        devices.FPGA: frozenset({names.FPGA}),
    }
)
"""Extended resources by type of device, in the order in which types are looked at."""
RESOURCES: Final = frozenset().union(*NAMES.values())
_SLICED: Final = (
    *(names.GPU_CORE, names.NPU_CORE, names.NPU_CPU, names.NPU_DVPP),
    names.GPU_MEMORY_RATIO,
)
"""What is divided by the number of GPUs; memory in bytes is a case of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Why no node can serve the device requests of a pod."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class GPURequest:
    """GPUs that a pod asks for."""

    count: int
    """How many."""
    per_gpu: Amounts
    """What it takes of each."""
    shared: bool
    """Whether others may use the rest of them."""


ByType = Mapping[str, Amounts]


def normalised(requests: Amounts) -> ByType | Fault:
    """Return the device requests of a pod by type of device, in one form; empty: it asks for none.

    ``requests`` are those of the pod as a whole.
    """
    found: dict[str, Amounts] = {}
    for kind, known in NAMES.items():
        asked = {name: value for name, value in requests.items() if name in known and value}
        if not asked:
            continue
        one = _gpus(asked) if kind == devices.GPU else _plain(asked)
        if isinstance(one, Fault):
            return one
        found[kind] = one
    return found


def _plain(asked: Amounts) -> Amounts | Fault:
    ((name, value),) = asked.items()
    return asked if is_percentage(value) else _invalid_unit(name, value)


def is_percentage(value: int) -> bool:
    """Whether a value is a part of one device, or a number of whole ones."""
    return value <= WHOLE or value % WHOLE == 0


def _invalid_unit(name: str, value: int) -> Fault:
    return Fault(f"invalid resource unit {name}: {quantity.text(name, value)}")


def _percentages(*resources: str) -> Callable[[Amounts], bool]:
    return lambda asked: all(is_percentage(asked[name]) for name in resources)


def _spread(asked: Amounts) -> bool:
    """Whether cores and memory divide evenly among the GPUs that share them."""
    count = asked[names.GPU_SHARED]
    shares = [asked[name] for name in (names.GPU_CORE, names.GPU_MEMORY_RATIO) if name in asked]
    return all(share % count == 0 and share // count <= WHOLE for share in shares)


def _slice(asked: Amounts) -> bool:
    return asked[names.GPU_SHARED] <= 1 and asked.get(names.NPU_DVPP, 0) <= WHOLE


def _always(_asked: Amounts) -> bool:
    return True


_RATIO, _CORE, _MEMORY = names.GPU_MEMORY_RATIO, names.GPU_CORE, names.GPU_MEMORY
_SHARED, _NPU = names.GPU_SHARED, names.NPU_CORE
_LEGAL: Final[Mapping[frozenset[str], Callable[[Amounts], bool]]] = types.MappingProxyType(
    {
        **{frozenset({name}): _always for name in VENDOR_GPUS},
        frozenset({names.GPU}): _always,
        frozenset({_MEMORY}): _always,
        frozenset({_RATIO}): _percentages(_RATIO),
        frozenset({_CORE, _MEMORY}): _percentages(_CORE),
        frozenset({_CORE, _RATIO}): _percentages(_CORE, _RATIO),
        frozenset({_NPU, _RATIO}): _percentages(_RATIO),
        **{
            frozenset({_SHARED, memory, *core}): _spread
            for memory in (_MEMORY, _RATIO)
            for core in ((), (_CORE,))
        },
        **{
            frozenset({_SHARED, _NPU, names.NPU_CPU, _MEMORY, *dvpp}): _slice
            for dvpp in ((), (names.NPU_DVPP,))
        },
    }
)
"""Which resources may be asked for together, and what must hold of the amounts."""


def _gpus(asked: Amounts) -> Amounts | Fault:
    if not is_percentage(asked.get(names.GPU, 0)):
        return _invalid_unit(names.GPU, asked[names.GPU])
    legal = _LEGAL.get(frozenset(asked))
    if legal is None or not legal(asked):
        return Fault(f"invalid resource device requests: [{' '.join(sorted(asked))}]")
    for name in VENDOR_GPUS:
        if name in asked:
            share = asked[name] * WHOLE
            return {names.GPU_CORE: share, names.GPU_MEMORY_RATIO: share}
    if names.GPU in asked:
        share = asked[names.GPU]
        return {names.GPU_CORE: share, names.GPU_MEMORY_RATIO: share}
    return asked


def gpus(asked: Amounts) -> GPURequest:
    """Return how many GPUs a normalised request takes, and what of each."""
    ratio = asked.get(names.GPU_MEMORY_RATIO, 0)
    count = asked.get(names.GPU_SHARED, 0)
    if not count:
        count = ratio // WHOLE if ratio > WHOLE and ratio % WHOLE == 0 else 1
    per_gpu = {name: asked[name] // count for name in _SLICED if name in asked}
    if ratio:
        return GPURequest(count, per_gpu, shared=per_gpu[names.GPU_MEMORY_RATIO] < WHOLE)
    if names.GPU_MEMORY in asked:
        per_gpu[names.GPU_MEMORY] = asked[names.GPU_MEMORY] // count
    return GPURequest(count, per_gpu, shared=True)
