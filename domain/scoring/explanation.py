"""How a total came about: the chosen node beside the runner-up, plug-in by plug-in."""

from collections.abc import Sequence

import msgspec
import numpy as np

from domain.scoring import totals


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """What one plug-in contributed to the total of one node."""

    plugin: str
    raw: int
    """What the plug-in counted, before NormalizeScore."""
    normalized: int
    """0 to 100."""
    weight: int
    points: int
    """Normalised score times weight."""


class NodeTotal(msgspec.Struct, frozen=True, gc=False):
    """The total of one node and its parts."""

    node: str
    total: int
    contributions: tuple[Contribution, ...]


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """Why a node was chosen."""

    chosen: NodeTotal
    runner_up: NodeTotal | None
    """The best of the others; None where the pod fits nowhere else."""
    ties: int
    """Number of nodes with the highest total, the chosen one included."""
    candidates: int


def of_node(scores: totals.Scores, names: Sequence[str], place: int) -> NodeTotal:
    """Return how the total of one candidate came about; names are by node row."""
    return NodeTotal(
        node=names[int(scores.rows[place])],
        total=scores.total.item(place),
        contributions=tuple(
            [
                Contribution(
                    one.plugin,
                    one.raw.item(place),
                    normalized := one.normalized.item(place),
                    one.weight,
                    normalized * one.weight,
                )
                for one in scores.plugins
            ]
        ),
    )


def explain(scores: totals.Scores, names: Sequence[str], chosen: int) -> Explanation:
    """Return why the candidate at a place was chosen; it has the highest total."""
    total = scores.total
    others = total.copy()
    # Lower than any total, so that the best of the others is the first that is left.
    others[chosen] = -1
    second = int(others.argmax()) if len(others) > 1 else None
    return Explanation(
        chosen=of_node(scores, names, chosen),
        runner_up=of_node(scores, names, second) if second is not None else None,
        ties=int(np.count_nonzero(total == total[chosen])),
        candidates=len(total),
    )
