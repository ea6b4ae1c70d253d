"""How fast the cpu of a node is, compared with the slowest of the cluster."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from api.koordinator.metadata import node_payloads
from api.koordinator.settings import configuration

OFF: Final = "1.00"
"""What a node says about itself where nothing is normalized."""
LOWEST: Final = 1.0
HIGHEST: Final = 5.0
_ABSURD: Final = 1000.0


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a node is to say about its cpu, or why that cannot be said."""

    text: str = ""
    """The ratio with two decimals; empty leaves what the node says alone."""
    why: str = ""
    """Where the ratio comes from."""
    problem: str = ""


def settled(
    enable: bool,
    default: float | None,
    models: Mapping[str, configuration.ModelRatios],
    labels: Mapping[str, str],
    info: node_payloads.CpuBasicInfo | None,
) -> Result:
    """Return the ratio of a node: its own label counts before what is set for the cluster."""
    written = labels.get(names.LABEL_CPU_NORMALIZATION)
    if written is not None:
        own = _truth(written)
        if own is None:
            return Result(
                problem=f'label {names.LABEL_CPU_NORMALIZATION}: "{written}" is neither true '
                "nor false"
            )
        enable = own
    if not enable:
        return Result(OFF, "cpu normalization is off")
    if info is None:
        return Result(problem="the agent has not said yet what processors the node has")
    return _looked_up(default, models, info)


def _looked_up(
    default: float | None,
    models: Mapping[str, configuration.ModelRatios],
    info: node_payloads.CpuBasicInfo,
) -> Result:
    known = models.get(info.cpu_model)
    ratio = None if known is None else _of(known, info)
    why = f"ratio of {info.cpu_model}"
    if ratio is None:
        ratio, why = default, f"default ratio, since {info.cpu_model} is not listed"
    if ratio is None:
        return Result(problem=f"no ratio for {info.cpu_model}; list the model or set defaultRatio")
    if not LOWEST <= ratio <= HIGHEST:
        return Result(problem=f"ratio {ratio:g} must lie in {LOWEST:g}..{HIGHEST:g}")
    return Result(f"{ratio:.2f}", why)


def _of(known: configuration.ModelRatios, info: node_payloads.CpuBasicInfo) -> float | None:
    if info.hyper_thread_enabled:
        if info.turbo_enabled:
            return known.hyper_thread_turbo_enabled_ratio
        return known.hyper_thread_enabled_ratio
    return known.turbo_enabled_ratio if info.turbo_enabled else known.base_ratio


_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _truth(written: str) -> bool | None:
    return True if written in _TRUE else False if written in _FALSE else None


def ratio_of(written: str) -> float:
    """Read a ratio; what cannot be read, slows down or is beyond any machine, counts as 1."""
    try:
        ratio = float(written)
    except ValueError:
        return LOWEST
    return ratio if LOWEST < ratio <= _ABSURD else LOWEST


def is_news(written: str | None, wanted: str) -> bool:
    """Whether a new ratio differs so much from the written one that it has to be written."""
    try:
        return written is None or not abs(float(wanted) - float(written)) <= 0.01
    except ValueError:
        return True
