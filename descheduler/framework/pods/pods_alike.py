"""Pods by the labels that they share, and selectors by the labels that they ask for. Pure.

Pods of one template hold one mapping of labels, so that 150,000 pods are some thousand groups, and
a selector with `matchLabels` is compared with those few that have the label.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from descheduler.model import podinfo
from domain.scoring import terms

T = TypeVar("T")
_Pair = tuple[str, str]


class Alike:
    """Groups of pods with the same labels."""

    def __init__(self, pods: Iterable[podinfo.Pod] = ()) -> None:
        self._groups: dict[int, list[podinfo.Pod]] = {}
        self._having: dict[_Pair, list[list[podinfo.Pod]]] = {}
        for pod in pods:
            self._group(pod.labels).append(pod)

    def extend(self, pods: Sequence[podinfo.Pod]) -> None:
        """Take in some that share one mapping of labels."""
        self._group(pods[0].labels).extend(pods)

    def _group(self, labels: Mapping[str, str]) -> list[podinfo.Pod]:
        group = self._groups.get(id(labels))
        if group is None:
            group = self._groups[id(labels)] = []
            for pair in labels.items():
                self._having.setdefault(pair, []).append(group)
        return group

    def selected(self, selector: terms.Selector) -> Iterator[podinfo.Pod]:
        """Yield the pods that a selector selects."""
        return itertools.chain.from_iterable(self.groups(selector))

    def groups(self, selector: terms.Selector) -> Iterator[Sequence[podinfo.Pod]]:
        """Yield them by the labels that they share."""
        for groups in self._candidates(selector):
            yield from (group for group in groups if selector.matches(group[0].labels))

    def looks(self, selector: terms.Selector) -> int:
        """Return with how many groups a selector is compared."""
        return sum(map(len, self._candidates(selector)))

    def pods_compared(self, selector: terms.Selector) -> int:
        """Return how many pods the groups have with which a selector is compared."""
        return sum(len(group) for groups in self._candidates(selector) for group in groups)

    @property
    def size(self) -> int:
        """Return how many pods there are."""
        return sum(map(len, self._groups.values()))

    def _candidates(self, selector: terms.Selector) -> Iterable[Collection[list[podinfo.Pod]]]:
        pairs = _pairs(selector)
        if pairs is None:
            return (self._groups.values(),)
        return (self._having.get(pair, ()) for pair in pairs)


class BySelector(Generic[T]):
    """Things with a selector each, found by labels that they may select."""

    def __init__(self) -> None:
        self._by_pair: dict[_Pair, list[T]] = {}
        self._others: list[T] = []

    def add(self, selector: terms.Selector, thing: T) -> None:
        """Take in one."""
        pairs = _pairs(selector)
        if pairs is None:
            self._others.append(thing)
            return
        for pair in pairs:
            self._by_pair.setdefault(pair, []).append(thing)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield each that may select these labels, once; whether it does is left to ask."""
        by_pair = (self._by_pair.get(pair, ()) for pair in labels.items())
        return itertools.chain(self._others, *by_pair)


def _pairs(selector: terms.Selector) -> Iterable[_Pair] | None:
    """Return labels of which a selected pod has one, all of one key; None where any pod may be."""
    for one in selector.requirements:
        if one.operator == "In":
            return [(one.key, value) for value in dict.fromkeys(one.values)]
    return None
