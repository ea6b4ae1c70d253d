"""What a node lends to batch pods, and whether that is news enough to write it."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Final

from api import base, names, qos, quantity
from domain import colocation, resources
from manager import strategy, views

_ALL: Final = frozenset(names.BATCH_RESOURCES)
_NONE: Final = dict.fromkeys(names.BATCH_RESOURCES, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Lent:
    """The two figures that a node lends, with what decided them."""

    cpu: colocation.Lending
    memory: colocation.Lending

    @property
    def amount(self) -> colocation.Amount:
        """Return the values alone."""
        return colocation.Amount(self.cpu.value, self.memory.value)


def lend(
    node: views.Node, report: views.Report, demand: colocation.Demand, rules: strategy.Strategy
) -> Lent:
    """Calculate what a node with a fresh report lends."""
    capacity = node.capacity or colocation.NOTHING
    return Lent(
        cpu=colocation.lend(
            rules.cpu,
            colocation.Holding(
                capacity=capacity.cpu,
                allocatable=node.allocatable.cpu,
                reserved=node.reserved.cpu,
                system=report.system.cpu,
                requested=demand.requested.cpu,
                used=demand.used.cpu,
                peak=demand.peak.cpu,
                firm=demand.firm.cpu,
            ),
        ),
        memory=colocation.lend(
            rules.memory,
            colocation.Holding(
                capacity=capacity.memory,
                allocatable=node.allocatable.memory,
                reserved=node.reserved.memory,
                system=report.system.memory,
                requested=demand.requested.memory,
                used=demand.used.memory,
                peak=demand.peak.memory,
                firm=demand.firm.memory,
            ),
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """What is published on a node: the amounts, and what they were before others took theirs."""

    values: Mapping[str, int]
    """By resource; one that is missing here is taken off the node."""
    origin: str
    """Payload of the annotation with the amounts before third-party allocations."""
    problem: str = ""
    """What could not be taken into account."""


def offer(
    lent: colocation.Amount | None, annotations: Mapping[str, str], wanted: frozenset[str] = _ALL
) -> Offer:
    """Say what to publish; nothing lent takes the resources off the node."""
    values = {}
    if lent is not None:
        ratio = _ratio(annotations.get(names.ANNOTATION_CPU_NORMALIZATION, ""))
        cpu = -(-int(lent.cpu * 1000 * ratio) // 1000)
        values = {names.BATCH_CPU: cpu, names.BATCH_MEMORY: lent.memory}
    values = {name: value for name, value in values.items() if name in wanted}
    origin = base.encoded({"resources": quantity.texts({**_NONE, **values})})
    if len(values) < len(_ALL):
        return Offer(values, origin)
    try:
        taken = _third_party(annotations.get(names.ANNOTATION_THIRD_PARTY) or "{}")
    except (ValueError, AttributeError, TypeError) as error:
        return Offer(values, origin, f"{names.ANNOTATION_THIRD_PARTY} is unreadable: {error}")
    left = {name: max(value - taken.get(name, 0), 0) for name, value in values.items()}
    return Offer(left, origin)


def _ratio(written: str) -> float:
    """Read how much faster than the nominal cpu this node is; only more than 1 counts."""
    try:
        return max(float(written), 1.0)
    except ValueError:
        return 1.0


def _third_party(written: str) -> dict[str, int]:
    taken: dict[str, int] = {}
    for item in json.loads(written).get("allocations") or ():
        if item.get("priority") == qos.Band.BATCH:
            taken = resources.add(taken, resources.amounts(item.get("resources")))
    return taken


def differs(before: Mapping[str, int], after: Mapping[str, int], threshold: float) -> bool:
    """Whether an offer is news enough to write at once."""
    return any(
        colocation.differs(before.get(name), after.get(name), threshold) for name in sorted(_ALL)
    )
