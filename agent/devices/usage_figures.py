"""What a report says of the use of GPUs, from samples. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from agent.store import time_series
from api import names
from api.wire import quantity

GPU: Final = "gpu"
CORE: Final = "core"
MEMORY: Final = "memory"
Key = tuple[str, ...]
Statistic = Callable[[time_series.Series], float | None]


class Counted(NamedTuple):
    """A GPU whose use is counted."""

    identity: str
    minor: int
    memory: int
    healthy: bool = True


def entries(
    samples: time_series.Histories, key: Key, gpus: Iterable[Counted], statistic: Statistic
) -> list[dict[str, Any]]:
    """Return what is used of each GPU; one without any sample is left out."""
    found = []
    for gpu in gpus:
        used = _resources(samples, (*key, "gpu", gpu.identity), gpu, statistic)
        if used:
            found.append(
                {
                    "type": GPU,
                    "id": gpu.identity,
                    "minor": gpu.minor,
                    "health": gpu.healthy,
                    "resources": used,
                }
            )
    return found


def total(
    samples: time_series.Histories, key: Key, gpus: Iterable[Counted], statistic: Statistic
) -> dict[str, int]:
    """Return what is used of all GPUs together, nothing without any sample."""
    sums: dict[str, float] = {}
    for gpu in gpus:
        for figure, name in ((CORE, names.GPU_CORE), (MEMORY, names.GPU_MEMORY)):
            value = _value(samples, (*key, "gpu", gpu.identity, figure), statistic)
            if value is not None:
                sums[name] = sums.get(name, 0.0) + value
    return {name: int(value) for name, value in sums.items()}


def _resources(
    samples: time_series.Histories, key: Key, gpu: Counted, statistic: Statistic
) -> dict[str, str]:
    core = _value(samples, (*key, CORE), statistic)
    memory = _value(samples, (*key, MEMORY), statistic)
    found = {}
    if core is not None:
        found[names.GPU_CORE] = str(int(core))
    if memory is not None:
        found[names.GPU_MEMORY] = quantity.format_binary(int(memory))
        if gpu.memory > 0:
            found[names.GPU_MEMORY_RATIO] = str(int(100 * memory / gpu.memory))
    return found


def _value(samples: time_series.Histories, key: Key, statistic: Statistic) -> float | None:
    series = samples.get(key)
    return None if series is None else statistic(series)
