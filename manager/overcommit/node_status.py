"""What stands on a node: how it follows from what was calculated, and how it is written.

All of it, amounts, annotations and labels, goes in one write of the node's status.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator.metadata import annotations as payloads
from api.koordinator.metadata import node_payloads, qos
from api.wire import base, quantity
from domain.devices.requests import accelerators, network
from domain.lending import colocation, normalization
from domain.pods import resources
from manager.model import projections

_WHOLE: Final = frozenset({*accelerators.RESOURCES, *network.RESOURCES})
"""Amounts of which every change is written at once."""
_NONE: Final = dict.fromkeys(names.BATCH_RESOURCES, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """What is published for batch pods, and what it was before others took theirs."""

    values: Mapping[str, int]
    """By resource; one that is missing here is taken off the node."""
    origin: str
    """Payload of the annotation with the amounts before third-party allocations."""
    taken: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """What third parties have handed out of it."""
    problem: str = ""
    """What could not be taken into account."""


def batch(lent: Mapping[str, int], annotations: Mapping[str, str], ratio: str) -> Batch:
    """Return the batch resources to publish; cpu counts for more where the node is faster."""
    values = dict(lent)
    if names.BATCH_CPU in values:
        values[names.BATCH_CPU] = faster(values[names.BATCH_CPU], ratio)
    origin = payloads.ORIGIN_ALLOCATABLE.text(
        node_payloads.OriginAllocatable(resources=quantity.texts({**_NONE, **values}))
    )
    if values.keys() != _NONE.keys():
        return Batch(values, origin)
    try:
        taken = _third_party(annotations)
    except base.ReadError as error:
        return Batch(values, origin, problem=str(error))
    left = {name: max(value - taken.get(name, 0), 0) for name, value in values.items()}
    return Batch(left, origin, taken)


def faster(cpu: int, ratio: str) -> int:
    """Multiply an amount of cpu; parts of a milli-core that remain are rounded up."""
    return -(-int(cpu * 1000 * normalization.ratio_of(ratio)) // 1000)


def _third_party(annotations: Mapping[str, str]) -> dict[str, int]:
    written = payloads.THIRD_PARTY.read(annotations)
    taken: dict[str, int] = {}
    for item in written.allocations if written is not None else ():
        if item.priority == qos.Band.BATCH:
            taken = resources.add(taken, quantity.amounts(item.resources))
    return taken


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What is to stand on a node; None takes away, and what is not named is left alone."""

    amounts: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


NOTHING: Final = Wanted()


def changes(node: projections.Node, wanted: Wanted) -> bool:
    """Whether anything at all differs from what stands on the node."""
    return any(_differing(node, wanted, 0.0)) or any(
        node.annotations.get(key) != value for key, value in wanted.annotations.items()
    )


def news(node: projections.Node, wanted: Wanted, threshold: float) -> tuple[str, ...]:
    """Say what differs so much that it has to be written at once."""
    return tuple(_differing(node, wanted, threshold))


def _differing(node: projections.Node, wanted: Wanted, threshold: float) -> Iterator[str]:
    for name, value in wanted.amounts.items():
        # A device that is gone must not be handed out, however many are left.
        share = 0.0 if name in _WHOLE else threshold
        befores = [part.get(name) for part in node.published]
        if any(colocation.differs(before, value, share) for before in befores):
            yield f"{name}: {_shown(befores[1])} becomes {_shown(value)}"
    ratio = wanted.annotations.get(names.ANNOTATION_CPU_NORMALIZATION)
    before = node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION)
    if ratio is not None and normalization.is_news(before, ratio):
        yield f"cpu normalization: {before or 'none'} becomes {ratio}"
    key = names.ANNOTATION_AMPLIFICATION
    if key in wanted.annotations and wanted.annotations[key] != node.annotations.get(key):
        now = wanted.annotations[key] or "none"
        yield f"amplification: {node.annotations.get(key) or 'none'} becomes {now}"
    for key, text in wanted.labels.items():
        if node.labels.get(key) != text:
            yield f"label {key}: {node.labels.get(key) or 'none'} becomes {text}"


def _shown(value: int | None) -> str:
    return "none" if value is None else str(value)


def body(node: projections.Node, wanted: Wanted) -> dict[str, Any]:
    """Return the patch of the node's status that brings it about."""
    status = {
        part: {
            name: None if value is None else quantity.text(name, value)
            for name, value in wanted.amounts.items()
            # A merge patch takes off what it names with null, which should be there, then.
            if value is not None or name in there
        }
        for part, there in zip(("capacity", "allocatable"), node.published, strict=True)
    }
    metadata: dict[str, Any] = {}
    annotations = {
        key: value
        for key, value in wanted.annotations.items()
        if node.annotations.get(key) != value
    }
    if annotations:
        metadata["annotations"] = annotations
    labels = {key: value for key, value in wanted.labels.items() if node.labels.get(key) != value}
    if labels:
        metadata["labels"] = labels
    made: dict[str, Any] = {"status": status} if any(status.values()) else {}
    return {"metadata": metadata, **made} if metadata else made
