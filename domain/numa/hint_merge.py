"""NUMA hints of several providers merged into one affinity, by the topology policy of the node.

A provider says for each resource which sets of NUMA nodes could give it. A merged hint takes one
hint of every resource and has what all of them have in common. Sets of NUMA nodes are bit masks.
Pure.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec


class Policy(enum.Enum):
    """The topology policies of the kubelet's topology manager."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class NumaHint(msgspec.Struct, frozen=True, gc=False):
    """NUMA nodes that can give a pod what one resource of it needs, as the kubelet's hints do."""

    mask: int
    """Bit i stands for NUMA node i."""
    preferred: bool
    """Whether no narrower mask would do."""
    score: int = 0
    """How good the mask is; of masks that are as narrow, the best one is taken."""


Hints = tuple[NumaHint, ...] | None
"""The hints for one resource; None: any NUMA node will do; empty: none of them can."""


class Occupancy(NamedTuple):
    """Which NUMA nodes pods with a cpuset use, for pods that want a NUMA node for themselves."""

    single: int = 0
    """Those with pods whose cpusets all lie in this NUMA node alone."""
    shared: int = 0
    """Those with a pod whose cpuset spans several."""

    def admits(self, mask: int) -> bool:
        """Whether a pod may have these NUMA nodes for itself."""
        return not mask & (self.shared if mask.bit_count() == 1 else self.single)


class Alignment(NamedTuple):
    """How one node aligns what a pod gets."""

    policy: Policy
    everywhere: int
    """All its NUMA nodes."""
    occupancy: Occupancy | None = None
    """Of a pod that wants its NUMA nodes for itself; None: it does not."""


class Merged(NamedTuple):
    """What all providers together can do."""

    mask: int
    """The NUMA nodes that every provider allocates from."""
    preferred: bool
    admitted: bool
    """Whether the policy lets the pod onto the node."""
    score: int = 0
    satisfied: bool = True
    """Whether the mask is as wide as the resource needs it that needs most."""


def merge(alignment: Alignment, resources: Iterable[Hints], *, thorough: bool = False) -> Merged:
    """Merge the hints of all resources of a pod.

    A preferred mask is one that every resource prefers: the narrowest of them is taken, of those
    the best score, of those the lowest NUMA nodes. Where there is none, only best effort takes
    what the hints have in common; `thorough` works that out for the other policies as well.
    """
    policy, everywhere, _ = alignment
    if policy is Policy.NONE:
        return Merged(everywhere, preferred=True, admitted=True)
    asked = list(resources)
    best_effort = policy is Policy.BEST_EFFORT
    if () in asked and not best_effort:
        return Merged(everywhere, preferred=False, admitted=False)
    usable = [_usable(hints, policy) for hints in asked if hints is not None]
    found = None if () in asked else _preferred(alignment, usable)
    if found is None and (best_effort or thorough):
        found = _common(everywhere, usable, lacking=() in asked)
    if found is None:
        return Merged(everywhere, preferred=False, admitted=False)
    if best_effort and not found.satisfied:
        found = Merged(everywhere, preferred=False, admitted=True)
    return found._replace(admitted=found.preferred or best_effort)


def _usable(hints: Sequence[NumaHint], policy: Policy) -> Sequence[NumaHint]:
    if policy is not Policy.SINGLE_NUMA_NODE:
        return hints
    return [hint for hint in hints if hint.preferred and hint.mask.bit_count() == 1]


def _preferred(alignment: Alignment, asked: Sequence[Sequence[NumaHint]]) -> Merged | None:
    """Return the best mask that every resource prefers."""
    scores = [_scores(hint for hint in hints if hint.preferred) for hints in asked]
    masks = set(scores[0]) if scores else {alignment.everywhere}
    for one in scores:
        masks &= one.keys()
    masks = {mask for mask in masks if mask and not mask & ~alignment.everywhere}
    if alignment.occupancy is not None:
        masks = {mask for mask in masks if alignment.occupancy.admits(mask)}
    if not masks:
        return None
    totals = {mask: sum(one.get(mask, 0) for one in scores) for mask in masks}
    best = min(masks, key=lambda mask: (mask.bit_count(), -totals[mask], mask))
    return Merged(best, preferred=True, admitted=True, score=totals[best])


def _scores(hints: Iterable[NumaHint]) -> dict[int, int]:
    """Return the best score of each mask."""
    scores: dict[int, int] = {}
    for hint in hints:
        scores[hint.mask] = max(scores.get(hint.mask, 0), hint.score)
    return scores


def _common(everywhere: int, asked: Sequence[Sequence[NumaHint]], *, lacking: bool) -> Merged:
    """Return the narrowest mask that any choice of hints has in common, then the best score."""
    scores = [_scores(hints) for hints in asked]
    reached = {everywhere: 0}
    for choices in scores:
        # Choices that lead to the same mask are followed once, so many resources stay cheap.
        further: dict[int, int] = {}
        for mask, score in reached.items():
            for hint, more in choices.items():
                merged = mask & hint
                total = (score if merged == mask else 0) + (more if merged == hint else 0)
                if merged and total >= further.get(merged, 0):
                    further[merged] = total
        reached = further
    reached.setdefault(everywhere, 0)
    best = min(reached, key=lambda mask: (mask.bit_count(), -reached[mask], mask))
    # Where every resource offers this very mask, none of them got less than it needs.
    narrow = all(best in choices for choices in scores)
    untouched = best == everywhere and not reached[best]
    satisfied = untouched or (narrow and not lacking)
    return Merged(best, preferred=False, admitted=True, score=reached[best], satisfied=satisfied)


UNSATISFIED: Final = "Unsatisfied NUMA {}"
UNALIGNED: Final = "Unaligned NUMA Hint cause {}"


def reasons(policy: Policy, resources: Mapping[str, Hints]) -> tuple[str, ...]:
    """Return why a policy refuses a pod, with the hints of its resources."""
    lacking = [name for name, hints in resources.items() if hints == ()]
    if lacking:
        return tuple(UNSATISFIED.format(name) for name in sorted(lacking))
    separator = "," if policy is Policy.SINGLE_NUMA_NODE else " & "
    summaries = [_summary(name, hints) for name, hints in sorted(resources.items()) if hints]
    return (UNALIGNED.format(separator.join(summaries)),)


def _summary(name: str, hints: Sequence[NumaHint]) -> str:
    liked = " ".join(_binary(hint.mask) for hint in hints if hint.preferred)
    every = " ".join(_binary(hint.mask) for hint in hints)
    return f"{name} prefer [{liked}] among [{every}]"


def _binary(mask: int) -> str:
    """Write a mask in groups of two digits, as the kubelet does."""
    width = next((shift + 2 for shift in range(62, 0, -2) if mask > 1 << shift), 2)
    return f"{mask:0{width}b}"
