"""Nodes as a pod finds them that uses capacity which a claim keeps for it, such as a Reservation.

What the claim holds is free for the pod, and for it alone: other plug-ins allocate on the node as
it would be without the claim. Which claim the pod takes is tried in the order of the nominator.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from extender.framework import cycle, protocols, verdicts, views
from extender.framework.nodes import numa

Shown = tuple[cycle.Cycle, views.View, int]
"""What was prepared of the pod, the node as it finds it, and its row there."""


class Question(NamedTuple):
    """What filters are asked."""

    asked: cycle.Cycle
    view: views.View
    rows: verdicts.Rows
    now: float


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedCapacity:
    """The plug-in that knows who may use what, and those that allocate."""

    nominator: protocols.Nominator | None = None
    aligned: numa.Aligned = dataclasses.field(default_factory=numa.Aligned)
    trials: numa.Trials = dataclasses.field(default_factory=numa.Trials, compare=False)

    def concerns(self, asked: cycle.Cycle) -> bool:
        """Whether a pod may use anything that is kept."""
        return self.nominator is not None and self.nominator.name in asked.prepared

    def serving(self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Return on which candidates capacity is kept that the pod may use."""
        if self.nominator is None or self.nominator.name not in asked.prepared:
            return np.zeros(rows.size, dtype=np.bool_)
        return self.nominator.serving(asked.prepared[self.nominator.name], view, rows)

    def serves_others(self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows) -> bool:
        """Whether any node but the candidates keeps capacity that the pod may use."""
        if not self.concerns(asked):
            return False
        flags = self.serving(asked, view, views.every(view.known.size)) & view.known
        flags[rows[rows >= 0]] = False
        return bool(flags.any())

    def prefers_others(self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows) -> bool:
        """Whether what comes first by its order of all that is kept is not on the candidates."""
        ranks = self._ranks(asked, view, views.every(view.known.size))
        if ranks is None:
            return False
        ranks = ranks * view.known
        return bool(ranks.max(initial=0) > ranks[rows[rows >= 0]].max(initial=0))

    def ranks(self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return how early what is kept for the pod comes by its order, 0 where it has none."""
        found = self._ranks(asked, view, rows)
        return np.zeros(rows.size, dtype=np.int64) if found is None else found

    def _ranks(
        self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column | None:
        if self.nominator is None or self.nominator.name not in asked.prepared:
            return None
        return self.nominator.ranks(asked.prepared[self.nominator.name], view, rows)

    def decides(self, refusal: cycle.Refusal | None) -> bool:
        """Whether a verdict may be another one where the pod uses what is kept."""
        if refusal is None or refusal.plugin == numa.NAME:
            return True
        return any(refusal.plugin == plugin.name for plugin in self.aligned.providers)

    def shown(self, asked: cycle.Cycle, view: views.View, row: int) -> Iterator[Shown]:
        """Yield the node as the pod may find it, the best choice first."""
        nominator = self.nominator
        if nominator is None or nominator.name not in asked.prepared:
            return
        for nominee in nominator.nominees(asked.prepared[nominator.name], view, row):
            prepared = {**asked.prepared, nominator.name: nominee.prepared}
            changed = msgspec.structs.replace(asked, prepared=prepared)
            held = next((c for c in view.node(row).claims if c.id == nominee.claim), None)
            if held is None:
                yield changed, view, row
                continue
            lent = views.Lent(held, nominee.restricted)
            if held.allocations.keys() <= {nominator.name}:
                # It holds nothing that others allocate, so that they find the node as it is.
                yield changed, msgspec.structs.replace(view, lent=lent), row
                continue
            one = view.with_claims(row, remove=(nominee.claim,))
            yield changed, msgspec.structs.replace(one, lent=lent), 0

    def joined(
        self,
        question: "Question",
        judged: tuple[verdicts.Codes, tuple[cycle.Refusal, ...]],
        judge: Callable[[cycle.Cycle, views.View, int], cycle.Refusal | None],
    ) -> tuple[verdicts.Codes, tuple[cycle.Refusal, ...]]:
        """Return the verdicts of all filters, right where the pod uses allocations of a claim.

        `judge` asks all filters about one node.
        """
        asked, view, rows, now = question
        codes, refusals = judged
        assert self.nominator is not None
        flags = self.nominator.allocating(asked.prepared[self.nominator.name], view, rows)
        if flags is None:
            return judged
        places = [
            place
            for place in np.flatnonzero(flags).tolist()
            if self.decides(refusals[codes[place] - 1] if codes[place] else None)
        ]
        if not places:
            return codes, refusals
        numbers, known = self.refusals(asked, view, rows[places], now)
        every = list(refusals)
        for place, number in zip(places, numbers.tolist(), strict=True):
            refusal = known[number - 1] if number else None
            if refusal is None and codes[place]:
                # It was refused before others could say what they think of it.
                refusal = self._first(
                    judge(*shown) for shown in self.shown(asked, view, int(rows[place]))
                )
            if refusal is not None and refusal not in every:
                every.append(refusal)
            codes[place] = 0 if refusal is None else 1 + every.index(refusal)
        return codes, tuple(every)

    @staticmethod
    def _first(found: Iterable[cycle.Refusal | None]) -> cycle.Refusal | None:
        """Return None where any is, else the first refusal."""
        first: cycle.Refusal | None = None
        for one in found:
            if one is None:
                return None
            first = first or one
        return first

    def refusals(
        self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows, now: float
    ) -> tuple[verdicts.Column, list[cycle.Refusal]]:
        """Return by candidate 0, or the place, from 1, of why nothing can be allocated."""
        kept = self.trials

        def tried(changed: verdicts.Rows) -> verdicts.Column:
            found = [self.refusal(asked, view, row, now) for row in changed.tolist()]
            return numa.numbers(kept, found)

        kept.make_room()
        return kept.results.get(asked.key, view, rows, tried), kept.refusals

    def refusal(
        self, asked: cycle.Cycle, view: views.View, row: int, now: float
    ) -> cycle.Refusal | None:
        """Return why nothing can be allocated whatever the pod uses, by the best choice."""
        return self._first(
            self.aligned.judged(*shown, now) for shown in self.shown(asked, view, row)
        )
