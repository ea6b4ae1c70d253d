"""ScarceResourceAvoidance: keep pods off nodes with scarce resources that they do not request.

Nodes that offer the same kinds of resources score alike, so each kind of node is judged once.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import numpy as np

from api import names
from domain import short_memo
from domain.scoring import node_resources
from extender.framework import verdicts, views

NAME: Final = "ScarceResourceAvoidance"
_BASIC: Final = frozenset({names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE})


class Offered(msgspec.Struct, frozen=True):
    """The kinds of resources of which a node has some."""

    resources: frozenset[str]


class ScarceResourceAvoidance:
    """Scores 0..100: the share of resources that are not scarce among those left unrequested.

    The figure of a node is a digest of the resources that it offers.
    """

    name = NAME
    columns = 1

    def __init__(self, resources: Iterable[str]) -> None:
        self._scarce = frozenset(resources)

    # -- state -------------------------------------------------------------------------------

    def node(self, info: views.NodeInfo) -> views.Figures:
        """Return which resources a node offers."""
        found = _offered(tuple(name for name, value in info.node.allocatable if value > 0))
        return (_digest(found.resources),), found

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: views.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    # -- score -------------------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> frozenset[str]:
        """Return the resources that a pod requests."""
        del view
        return frozenset(name for name, value in pod.requirements.requests if value > 0)

    def score(
        self, prepared: frozenset[str], view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score:
        """Return 100 where a node offers nothing scarce that the pod does not request."""
        del now
        kinds = view.gathered(NAME, rows)[0]
        values = np.full(rows.size, verdicts.BEST, dtype=np.int64)
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        scores = [self.of(prepared, view.sparse(NAME, int(rows[place]))) for place in first]
        values[:] = np.array(scores, dtype=np.int64)[kind_of]
        return verdicts.Score(values)

    def of(self, requested: frozenset[str], found: object) -> int:
        """Return the score of a node that offers these resources."""
        unused = found.resources - requested if isinstance(found, Offered) else frozenset()
        scarce = unused & self._scarce
        if not scarce:
            return verdicts.BEST
        return (len(unused) - len(scarce)) * verdicts.BEST // len(unused)

    # -- for people --------------------------------------------------------------------------

    def inspect(self, facts: views.NodeInfo) -> dict[str, Any]:
        """Return which resources a node offers, and which of them are scarce."""
        _, found = self.node(facts)
        assert isinstance(found, Offered)
        scarce = found.resources & self._scarce
        return {"offered": sorted(found.resources), "scarce": sorted(scarce)}


@short_memo.remembered(4096)
def _offered(names: tuple[str, ...]) -> Offered:
    """Return the resources that pods may request, the same object for nodes that are alike."""
    return Offered(
        frozenset(name for name in names if name in _BASIC or node_resources.is_scalar(name))
    )


@short_memo.remembered(4096)
def _digest(resources: frozenset[str]) -> int:
    text = "\n".join(sorted(resources)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)
