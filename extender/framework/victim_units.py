"""Pods that are preempted together: a gang that falls below its minimum is of no use. Pure.

A plug-in names the gangs of a claim. As many members as a gang can do without may leave one by
one, the least important first; the others leave with all of it, or not at all.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

from extender.framework import pipeline, verdicts, views
from extender.framework.eviction import victims

MOST_TOGETHER: Final = 64
"""Pods that leave together for one pod at most; a larger gang stays."""


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """Claims that leave together, or one that leaves alone."""

    lead: views.Claim
    """The most important one of those without which the gang cannot be: it stands for all."""
    claims: tuple[views.Claim, ...]

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes on which they are."""
        return frozenset(claim.node for claim in self.claims)


class Units:
    """Finds what leaves with a claim, as things are in one view; nothing of it changes later."""

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        view: views.View,
        node: str = "",
        most: int = MOST_TOGETHER,
        *,
        going: frozenset[str] = frozenset(),
    ) -> None:
        """Of members that may leave one by one, those on `node` come first.

        `going` are ids of claims that leave already, which the watch does not show yet.
        """
        self._going = going
        self._plugins, self._view, self._node, self._most = plugins, view, node, most
        self._found: dict[str, Unit | None] = {}

    def of(self, claim: views.Claim) -> Unit | None:
        """Return what leaves with a claim; None where these are too many."""
        if claim.id not in self._found:
            self._found[claim.id] = self._unit(claim)
        return self._found[claim.id]

    def _unit(self, claim: views.Claim) -> Unit | None:
        alone = Unit(claim, (claim,))
        if not self._plugins.companions or victims.is_free(claim):
            return alone
        quorums = self._quorums(claim)
        own = next((one for one in quorums if one.holds(claim.id)), None)
        if own is None or len(own.members) - own.least >= self._most:
            return alone
        if own.least > self._most:
            return None
        spare, core = self._parted(own)
        if all(one.id != claim.id for one in core):
            # The gang can do without it, or its node is gone.
            return alone
        if sum(len(one.members) for one in quorums) > self._most:
            return None
        others = [self._parted(one) for one in quorums if one is not own]
        cores = [*core, *(one for _, found in others for one in found)]
        surplus = [*spare, *(one for found, _ in others for one in found)]
        unit = Unit(
            min(cores, key=victims.importance),
            tuple(sorted((*cores, *surplus), key=victims.importance)),
        )
        self._found |= {one.id: unit for one in cores}
        return unit

    def _quorums(self, claim: views.Claim) -> Sequence[verdicts.Quorum]:
        for plugin in self._plugins.companions:
            if found := plugin.companions(self._view, claim):
                return found
        return ()

    def _parted(self, quorum: verdicts.Quorum) -> tuple[list[views.Claim], list[views.Claim]]:
        """Return the members that a gang can do without, and those that it needs."""
        there = [
            claim
            for claim in self._claims(quorum)
            if claim.pod.leaves_at < 0 and claim.id not in self._going
        ]
        there.sort(key=lambda one: (one.node != self._node, *victims.expendable(one)))
        spare = max(0, len(there) - quorum.least)
        return there[:spare], there[spare:]

    def _claims(self, quorum: verdicts.Quorum) -> Iterator[views.Claim]:
        """Yield the claims of the members that are on nodes."""
        by_node: dict[str, set[str]] = {}
        for uid, node in quorum.members:
            by_node.setdefault(node, set()).add(uid)
        for node, uids in by_node.items():
            row = self._view.rows.get(node)
            held = self._view.node(row).claims if row is not None else ()
            yield from (claim for claim in held if claim.id in uids)
