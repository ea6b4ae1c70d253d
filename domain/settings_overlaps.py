"""Which node entries of one key are meant for the same nodes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import meta, selectors
from domain import settings_documents as documents

_MOST_SAMPLES: Final = 1024
Labels = Mapping[str, str]


def imagined(entries: Sequence[documents.Entry]) -> list[documents.Entry]:
    """Return entries that would match one and the same node, were there one; nothing if none."""
    for entry in entries:
        for labels in _samples(entry.selector):
            found = matching(entries, labels)
            if len(found) > 1:
                return found
    return []


def matching(entries: Sequence[documents.Entry], labels: Labels) -> list[documents.Entry]:
    """Return the entries that match a node with these labels."""
    return [entry for entry in entries if selectors.matches(entry.selector, labels)]


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
