"""Nodes that offer more cpu and memory than they have, by ratios in an annotation.

The annotation says the ratios; admission of the node's status multiplies what the kubelet
reports, and keeps the true amounts in another annotation.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from api import names
from api.koordinator.metadata import annotations as payloads
from api.kubernetes import core
from api.wire import base, quantity

_AMPLIFIED: Final = (names.CPU, names.MEMORY)
_MOST: Final = 2.0**62


@dataclasses.dataclass(frozen=True, slots=True)
class Ratios:
    """The ratios of a node, as it is to say them, or why there are none."""

    text: str = ""
    """Value of the annotation; empty takes it away."""
    problem: str = ""


def ratios(enable: bool, written: Mapping[str, float], normalization: float) -> Ratios:
    """Return the ratios of a node; a faster cpu counts on top of what is set."""
    wanted = dict(written) if enable else {}
    cpu = (wanted.get(names.CPU) or 0.0) if (wanted.get(names.CPU) or 0.0) > 0 else 1.0
    cpu *= normalization if normalization > 0 else 1.0
    if cpu > 1:
        wanted[names.CPU] = cpu
    for name, ratio in sorted(wanted.items()):
        if not 1 <= ratio < math.inf:
            return Ratios(problem=f"amplification ratio of {name}: {ratio:g} must be at least 1")
    parts = ",".join(f'"{name}":{wanted[name]:.2f}' for name in sorted(wanted))
    return Ratios(f"{{{parts}}}" if parts else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Reported:
    """What a report of a kubelet is turned into."""

    allocatable: Mapping[str, str]
    """Amounts that change, by resource."""
    raw: str | None
    """Value of the annotation with the true amounts; None takes it away."""


def amplified(before: core.Node, after: core.Node) -> Reported | None:
    """Turn what a kubelet reports into what the node offers; None leaves everything alone.

    A ReadError says which annotation cannot be read.
    """
    written = after.metadata.annotations
    if not written.get(names.ANNOTATION_AMPLIFICATION):
        return Reported({}, None)
    if not after.status.allocatable:
        return None
    true, raw = _true(before, after)
    wanted = payloads.AMPLIFICATION.read(written) or {}
    changed = {
        name: _times(true[name], wanted[name])
        for name in _AMPLIFIED
        if name in true and wanted.get(name, 0.0) > 1
    }
    return Reported(changed, raw)


def _true(before: core.Node, after: core.Node) -> tuple[Mapping[str, core.Quantity], str]:
    raw = after.metadata.annotations.get(names.ANNOTATION_RAW_ALLOCATABLE)
    if raw is not None and not _changed(before, after):
        return payloads.RAW_ALLOCATABLE.read(after.metadata.annotations) or {}, raw
    # The kubelet writes what is true; every other writer leaves cpu and memory as they are.
    offered = after.status.allocatable
    true: dict[str, core.Quantity] = {
        name: quantity.canonical(offered[name]) for name in _AMPLIFIED if name in offered
    }
    return true, base.encoded(true)


def _changed(before: core.Node, after: core.Node) -> bool:
    old, new = before.status.allocatable, after.status.allocatable
    return any(
        (name in old) != (name in new) or (name in old and not quantity.equal(old[name], new[name]))
        for name in _AMPLIFIED
    )


def _times(value: core.Quantity, ratio: float) -> str:
    """Multiply an amount; the notation stays, so that 64Gi times 2 is 128Gi."""
    return quantity.format_milli(int(min(quantity.milli(value) * ratio, _MOST)), like=value)
