"""What the pods of a node hold firmly and what they borrow, kept in step with those that come."""

import operator
from collections.abc import Iterable
from typing import Final

from api import names
from domain.lending import colocation
from extender.framework import views

LENT: Final = ((names.CPU, names.BATCH_CPU), (names.MEMORY, names.BATCH_MEMORY))
"""Native and batch names of the lent resources."""
_MOST_NODES: Final = 16384
"""Nodes whose sums are remembered."""

Sums = tuple[int, ...]
"""What is held firmly and what is borrowed, of one resource after another."""
NOTHING: Final[Sums] = (0,) * 2 * len(LENT)


class NodeSums:
    """The sums of each node; those who have come since it was asked about are added to them."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[views.PodRecord, ...], Sums]] = {}
        """By node: for which pods the sums were found."""

    def of(self, node: str, pods: tuple[views.PodRecord, ...]) -> Sums:
        """Return the sums of these pods of a node."""
        before, sums = self._kept.get(node, ((), NOTHING))
        count = len(before)
        come = pods[count:] if pods[:count] == before else None
        if come is None:
            come, sums = pods, NOTHING
        if come:
            sums = _with(sums, come)
        if not count and len(self._kept) >= _MOST_NODES:
            self._kept.clear()
        self._kept[node] = pods, sums
        return sums


def summed(pods: Iterable[views.PodRecord]) -> Sums:
    """Return the sums of some pods."""
    return _with(NOTHING, pods)


def amount(amounts: views.Pairs, name: str) -> int:
    """Return what is listed of one resource."""
    return next((value for resource, value in amounts if resource == name), 0)


def _with(sums: Sums, pods: Iterable[views.PodRecord]) -> Sums:
    for pod in pods:
        sums = tuple(map(operator.add, sums, _taken(pod.requirements)))
    return sums


@views.PodRequirements.remembered(8192)
def _taken(requirements: views.PodRequirements) -> Sums:
    """Return what a pod holds firmly and what it borrows, of one resource after another."""
    holds = colocation.holds_requests(requirements.band)
    amounts = requirements.requests if holds else requirements.lent
    found: list[int] = []
    for native, _ in LENT:
        taken = amount(amounts, native)
        found += (taken, 0) if holds else (0, taken)
    return tuple(found)
