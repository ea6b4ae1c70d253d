"""What a container may ask of GPUs, and the one form in which that is said on a stored pod.

A whole GPU counts 100, in cores and in memory; ``gpu.shared`` is the number of GPUs that the
amounts are spread over.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from api import names
from api.wire import quantity

Written = Mapping[str, quantity.Written]

WHOLE: Final = 100
ASKED: Final = frozenset(
    {names.GPU, names.GPU_CORE, names.GPU_MEMORY, names.GPU_MEMORY_RATIO, names.GPU_SHARED}
)
"""Resources by which a container asks for GPUs in our words."""

FIELD: Final = "pod.spec.containers[*].resources.requests"


class Asked(NamedTuple):
    """Requests and limits of one container."""

    requests: Written
    limits: Written


def concern(asked: Asked) -> bool:
    """Tell whether a container asks for GPUs in our words."""
    return not (ASKED.isdisjoint(asked.requests) and ASKED.isdisjoint(asked.limits))


def normalised(asked: Asked) -> Asked:
    """Say the same in cores, memory and the number of GPUs, in requests and in limits alike.

    A whole NPU is asked for without a number, and together with one it would be illegal.
    """
    requests, limits = dict(asked.requests), dict(asked.limits)
    if names.GPU in requests:
        share = quantity.canonical(requests.pop(names.GPU))
        limits.pop(names.GPU, None)
        given = {names.GPU_CORE: share, names.GPU_MEMORY_RATIO: share}
        requests |= given
        limits |= given
    if names.GPU_SHARED not in requests and names.NPU_CORE not in requests:
        spread = str(_spread(requests))
        requests[names.GPU_SHARED] = limits[names.GPU_SHARED] = spread
    return Asked(requests, limits)


def _spread(requests: Written) -> int:
    """Return over how many GPUs the amounts are spread: as many as are asked for as a whole."""
    for name in (names.GPU_MEMORY_RATIO, names.GPU_CORE):
        if name in requests:
            share = quantity.whole(requests[name])
            return share // WHOLE if share > WHOLE and share % WHOLE == 0 else 1
    return 1


def faults(requests: Written) -> Iterator[str]:
    """Yield a sentence per contradiction in what one container asks."""
    if names.GPU in requests and names.GPU_SHARED in requests:
        yield (
            f"{FIELD}: Forbidden: {names.GPU} and {names.GPU_SHARED} say the same in two ways; "
            f"keep {names.GPU_SHARED} with {names.GPU_MEMORY_RATIO}, or {names.GPU} alone"
        )
        return
    if names.GPU in requests:
        yield from _whole(quantity.whole(requests[names.GPU]))
    if names.GPU_SHARED in requests:
        yield from _shared(requests)


def _whole(share: int) -> Iterator[str]:
    if share <= 0:
        yield _invalid(names.GPU, share, f"must be above 0; {WHOLE} is one GPU")
    elif share > WHOLE and share % WHOLE:
        yield _invalid(
            names.GPU, share, f"above {WHOLE} only whole GPUs are given: a multiple of {WHOLE}"
        )


def _shared(requests: Written) -> Iterator[str]:
    count = quantity.whole(requests[names.GPU_SHARED])
    if count <= 0:
        yield _invalid(names.GPU_SHARED, count, "must be above 0; it is the number of GPUs")
    if _amount(requests, names.NPU_CORE):
        return
    ratio = _amount(requests, names.GPU_MEMORY_RATIO)
    memory = _amount(requests, names.GPU_MEMORY)
    if not ratio and not memory:
        yield (
            f"{FIELD}: Forbidden: {names.GPU_SHARED} without memory; add {names.GPU_MEMORY} "
            f"or {names.GPU_MEMORY_RATIO}"
        )
    elif ratio and memory:
        yield (
            f"{FIELD}: Forbidden: {names.GPU_MEMORY} and {names.GPU_MEMORY_RATIO} say the same in "
            "two ways; keep one of them"
        )
    if count <= 0:
        return
    for name, share in ((names.GPU_CORE, _amount(requests, names.GPU_CORE)),
                        (names.GPU_MEMORY_RATIO, ratio)):  # fmt: skip
        if share % count:
            yield _invalid(
                name, share, f"must divide evenly by the {count} GPUs of {names.GPU_SHARED}"
            )


def _amount(requests: Written, name: str) -> int:
    return quantity.whole(requests[name]) if name in requests else 0


def _invalid(name: str, value: int, reason: str) -> str:
    return f'{FIELD}: Invalid value: "{value}": {name} {reason}'
