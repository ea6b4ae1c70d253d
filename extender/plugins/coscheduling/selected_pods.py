"""Pods that run with a network-topology-selector, counted by node."""

from collections.abc import Mapping
from typing import Final

from domain import persistent
from extender.framework import views

Key = tuple[str, str]
"""A namespace and a selector."""
ByNode = persistent.Map[str, int]
Counts = persistent.Map[Key, ByNode]
"""Without zeros: what is kept goes with the pods."""
NONE: Final[Counts] = persistent.Map()
_NOWHERE: Final[ByNode] = persistent.Map()


def existing(counts: Counts, key: Key) -> Mapping[str, int]:
    """Return how many pods with a selector run on each node."""
    return counts.get(key, _NOWHERE)


def after(counts: Counts, before: views.Claim | None, present: views.Claim | None) -> Counts:
    """Return the counts once a claim came, changed or went."""
    for claim, sign in ((before, -1), (present, 1)):
        selector = claim.pod.requirements.network_selector if claim is not None else ""
        if claim is None or not selector or claim.kind not in views.FIRM:
            continue
        key = claim.pod.namespace, selector
        nodes = counts.get(key, _NOWHERE)
        nodes = nodes.replaced(claim.node, nodes.get(claim.node, 0) + sign or None)
        counts = counts.replaced(key, nodes or None)
    return counts
