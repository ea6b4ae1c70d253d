"""Which node entries of one key are meant for the same nodes.

Any settings are answered in bounded time: with very many entries not every pair is
looked at, so that nothing found is no proof.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api.kubernetes import meta, selectors
from domain.cluster_settings import documents

_MOST_SAMPLES: Final = 256
_MOST_COMPARED: Final = 50_000
Labels = Mapping[str, str]


def imagined(entries: Sequence[documents.Entry]) -> list[documents.Entry]:
    """Return entries that would match one and the same node, were there one; nothing if none."""
    index = _Index(entries)
    for entry in entries:
        for labels in _samples(entry.selector):
            found = index.matching(labels)
            if len(found) > 1:
                return found
    return []


def real(
    entries: Sequence[documents.Entry], nodes: Mapping[str, Labels]
) -> tuple[str, list[documents.Entry]]:
    """Return a node and the entries that match it, if more than one does; nothing if none."""
    index = _Index(entries)
    looked: set[tuple[str | None, ...]] = set()
    for name, labels in nodes.items():
        # Nodes differ in many labels, but hardly in those that are asked for.
        asked = tuple(labels.get(key) for key in index.keys)
        if asked in looked:
            continue
        looked.add(asked)
        found = index.matching(labels)
        if len(found) > 1:
            return name, found
    return "", []


class _Index:
    """Entries by a label that a node must have to match them."""

    def __init__(self, entries: Sequence[documents.Entry]) -> None:
        self._entries = entries
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._others: list[int] = []
        self._left = _MOST_COMPARED
        keys: dict[str, None] = {}
        for number, entry in enumerate(entries):
            chosen = entry.selector
            if chosen is None:
                continue
            keys |= dict.fromkeys(chosen.match_labels)
            keys |= dict.fromkeys(one.key for one in chosen.match_expressions)
            pairs = _demanded(chosen)
            for pair in pairs:
                self._by_label.setdefault(pair, []).append(number)
            if not pairs:
                self._others.append(number)
        self.keys = tuple(keys)

    def matching(self, labels: Labels) -> list[documents.Entry]:
        """Return the entries that match a node with these labels."""
        numbers = set(self._others)
        for key in self.keys if len(self.keys) < len(labels) else labels:
            numbers.update(self._by_label.get((key, labels.get(key, "")), ()))
        if self._left < len(numbers):
            return []
        self._left -= len(numbers)
        possible = [self._entries[number] for number in sorted(numbers)]
        return [entry for entry in possible if selectors.matches(entry.selector, labels)]


def _demanded(selector: meta.LabelSelector) -> list[tuple[str, str]]:
    """Return labels of which a node must have one; nothing where it may do without."""
    if selector.match_labels:
        return [next(iter(selector.match_labels.items()))]
    one_of = next((one for one in selector.match_expressions if one.operator == "In"), None)
    return [(one_of.key, value) for value in dict.fromkeys(one_of.values)] if one_of else []


def _samples(selector: meta.LabelSelector | None) -> Iterator[Labels]:
    """Yield labels made of a selector's own words.

    Values of several conditions advance together, so the samples repeat after the least common
    multiple of their numbers. They are a sample, no proof.
    """
    if selector is None:
        return
    valued = [one for one in selector.match_expressions if one.values]
    count = math.lcm(*(len(one.values) for one in valued))
    for number in range(min(count, _MOST_SAMPLES)):
        labels = dict(selector.match_labels)
        for one in valued:
            labels[one.key] = one.values[number % len(one.values)]
        yield labels
