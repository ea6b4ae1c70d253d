"""NUMA hints of several providers merged into one, as the kubelet's topology manager does it.

A provider says for each resource which NUMA nodes could give it. A merged hint takes one hint of
every resource; the policy of the node says which merged hint is best and whether it is admitted.
"""

import dataclasses
import enum
from collections.abc import Iterable, Sequence

from extender.framework import verdicts

NumaHint = verdicts.NumaHint
Hints = verdicts.Hints


class Policy(enum.Enum):
    """The kubelet's topology-manager policies."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """How a node aligns what it allocates."""

    policy: Policy = Policy.NONE
    numa_nodes: int = 1
    """How many it has; they are numbered from 0."""

    @property
    def everywhere(self) -> int:
        """Return the mask of all NUMA nodes."""
        return (1 << self.numa_nodes) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Merged:
    """What all providers together can do."""

    mask: int
    """The NUMA nodes that every provider allocates from."""
    preferred: bool
    admitted: bool
    """Whether the policy lets the pod onto the node."""


@dataclasses.dataclass(frozen=True, slots=True)
class _State:
    """What matters of the hints taken so far; equal ones are merged only once."""

    mask: int
    common: int | None
    """The mask that all of them have; None: none of them names NUMA nodes."""
    preferred: bool


def merge(topology: Topology, resources: Iterable[Hints]) -> Merged:
    """Merge the hints of all resources of a pod by the policy of a node."""
    everywhere = topology.everywhere
    if topology.policy is Policy.NONE:
        return Merged(everywhere, preferred=True, admitted=True)
    asked = [_usable(hints, topology) for hints in resources]
    best = _best(asked, everywhere)
    mask, preferred = (everywhere, False) if best is None else (best.mask, best.preferred)
    admitted = preferred or topology.policy is Policy.BEST_EFFORT
    return Merged(mask, preferred, admitted)


def _usable(hints: Hints, topology: Topology) -> Sequence[NumaHint | None]:
    """Return what one resource offers; None stands for any NUMA node.

    No hint at all: the resource cannot be aligned, which nobody prefers.
    """
    if hints is None:
        return (None,)
    if topology.policy is Policy.SINGLE_NUMA_NODE:
        return [hint for hint in hints if hint.preferred and hint.mask.bit_count() == 1]
    return hints or (_NOWHERE,)


_NOWHERE = NumaHint(mask=-1, preferred=False)
"""Restricts nothing, and makes whatever it is merged into not preferred."""


def _best(asked: Sequence[Sequence[NumaHint | None]], everywhere: int) -> _State | None:
    """Return the best merged hint; None where no choice leaves a NUMA node."""
    states = {_State(everywhere, None, preferred=True)}
    for choices in asked:
        # What cannot differ any more is followed once, so many resources stay cheap.
        states = {_joined(state, hint) for state in states for hint in choices}
    usable = [state for state in states if state.mask]
    wanted = max((_narrowest(choices) for choices in asked), default=0)
    return min(usable, key=lambda state: _rank(state, wanted), default=None)


def _joined(state: _State, hint: NumaHint | None) -> _State:
    if hint is None:
        return state
    if hint is _NOWHERE:
        return dataclasses.replace(state, preferred=False)
    same = state.common in (None, hint.mask)
    preferred = state.preferred and hint.preferred and same
    # Once it is not preferred, what was common no longer matters.
    return _State(state.mask & hint.mask, hint.mask if preferred else None, preferred)


def _narrowest(choices: Sequence[NumaHint | None]) -> int:
    """Return how many NUMA nodes a resource needs at least; 0: it does not care."""
    counts = [
        hint.mask.bit_count() for hint in choices if hint is not None and hint is not _NOWHERE
    ]
    return min(counts, default=0)


def _rank(state: _State, wanted: int) -> tuple[int, int, int]:
    """Order merged hints, the best first.

    Preferred ones come first, the narrowest of them. Of the others, those as wide as the resource
    that needs most; next narrower ones, the widest first; last wider ones, the narrowest first.
    """
    width = state.mask.bit_count()
    if state.preferred:
        return 0, width, state.mask
    if width == wanted:
        return 1, 0, state.mask
    return (2, -width, state.mask) if width < wanted else (3, width, state.mask)
