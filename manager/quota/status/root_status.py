"""What the status of the root quota says: what the default tree shares out, and what is used."""

import collections
import dataclasses
import itertools
from typing import Final

from api import names
from domain.quota import model
from domain.quota.tree.forest import Forest

NO_FIGURES: Final = model.Figures(*(model.EMPTY for _ in dataclasses.fields(model.Figures)))
_MOST_CHARACTERS: Final = 16 << 10
"""Of one list, of which seven stand in annotations: the API server accepts 256 KiB of them."""
_OF_AN_AMOUNT: Final = 24
_FIRST: Final = (names.CPU, names.MEMORY, "pods")


def figures(forest: Forest) -> model.Figures:
    """Return the figures of the root quota: what the default tree shares out, and what is used."""
    total = {key: max(0, amount) for key, amount in forest.total().items()}
    tops = [name for name in forest.children(names.ROOT_QUOTA) if not forest.tree(name)]
    found = [forest.figures(name) for name in tops]
    below = [figures for figures in found if figures is not None]

    def summed(field: str) -> dict[str, int]:
        sums: dict[str, int] = {}
        for figures in below:
            for key, amount in getattr(figures, field).items():
                sums[key] = sums.get(key, 0) + amount
        return sums

    asked, used = summed("limited_request"), summed("used")
    return dataclasses.replace(
        NO_FIGURES,
        limit=total,
        runtime=total,
        minimum=total,
        request=asked,
        child_request=asked,
        limited_request=asked,
        used=used,
        non_preemptible_used=summed("non_preemptible_used"),
        non_preemptible_request=summed("non_preemptible_request"),
        allocated=summed("guaranteed"),
        guaranteed=total,
    )


def shown(found: model.Figures, forest: Forest) -> model.Figures:
    """Return the figures of the root quota without resources that are too many to be written.

    A node may offer thousands, and quotas may name as many: those of most quotas are shown.
    """
    of_quotas = map(forest.figures, forest.children(names.ROOT_QUOTA))
    often = collections.Counter(key for one in of_quotas if one is not None for key in one.request)
    fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    every = set().union(*fields.values())
    order = sorted(every, key=lambda key: (key not in _FIRST, -often[key], key))
    ends = itertools.accumulate(len(key) + _OF_AN_AMOUNT for key in order)
    kept = {key for key, end in zip(order, ends, strict=True) if end <= _MOST_CHARACTERS}
    if len(kept) == len(every):
        return found
    return model.Figures(
        **{
            name: {key: amount for key, amount in amounts.items() if key in kept}
            for name, amounts in fields.items()
        }
    )
