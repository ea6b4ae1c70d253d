"""How much capacity a node may lend to mid pods: what online services leave for longer.

Cpu is counted in milli-cores and memory in bytes, as in `domain.lending.colocation`.
"""

import dataclasses
from typing import NamedTuple

from domain.lending import colocation


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """How much of one resource a node lends to mid pods, in percent of its capacity."""

    static: bool = False
    """A fixed share, instead of what is predicted to stay unused."""
    cap_percent: int = 100
    static_percent: int = 0
    """The fixed share."""
    unallocated_percent: int = 0
    """How much of what no pod requests is added, without the fixed share."""


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The figures of one resource of one node."""

    capacity: int
    reclaimable: int
    """What online pods have requested and are predicted not to use."""
    unused: int
    """What is unused now; nothing while that is not measured."""
    outside: int
    """Used outside pods or kept back, the larger of the two."""
    requested: int
    """Requests of online pods."""


class Lending(NamedTuple):
    """What is lent of one resource, and the figures that decided."""

    value: int
    terms: tuple[tuple[str, int], ...]
    """What is added up, by name."""
    cap: int
    capped: bool
    """Whether the cap was what decided."""


def lend(rule: Rule, node: Holding) -> Lending:
    """Return what a node lends of one resource to mid pods."""
    terms = _fixed(rule, node) if rule.static else _predicted(rule, node)
    total = sum(amount for _, amount in terms)
    cap = colocation.share(node.capacity, rule.cap_percent)
    return Lending(min(total, cap), terms, cap, cap < total)


def _fixed(rule: Rule, node: Holding) -> tuple[tuple[str, int], ...]:
    return (("fixed share", colocation.share(node.capacity, rule.static_percent)),)


def _predicted(rule: Rule, node: Holding) -> tuple[tuple[str, int], ...]:
    reclaimed = max(min(node.reclaimable, node.unused), 0)
    unallocated = max(node.capacity - node.outside - node.requested, 0)
    word = "reclaimable" if node.reclaimable <= node.unused else "unused"
    return (
        (word, reclaimed),
        ("share of unallocated", colocation.share(unallocated, rule.unallocated_percent)),
    )
