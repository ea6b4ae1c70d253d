"""What Reservations of nodes say of pods, as one number for each node.

A function of the snapshot alone, remembered while nodes stay as they are: it saves work, no answer
changes.
"""

from typing import Final

import numpy as np

from extender.framework import verdicts, views
from extender.framework.nodes import row_memo
from extender.plugins.reservation import judgement, tracker, vacancies

CODE: Final = 0xFF
ALLOCATES: Final = 1 << 8
TIER: Final = 9
"""Of a number: the code of the refusal, whether allocations matter, and from this bit on the tier
of the node."""
ANY_TIER: Final = -1 << TIER


class JudgedNodes:
    """Judges nodes with Reservations that concern a pod."""

    def __init__(self) -> None:
        self._vacancies = vacancies.Vacancies()
        self._numbers = row_memo.RowMemo()
        self._last: (
            tuple[judgement.Asked, tracker.NodeReservations | None, judgement.Judged] | None
        ) = None

    def one(
        self, asked: judgement.Asked, found: tracker.NodeReservations | None
    ) -> judgement.Judged:
        """Judge one node; every part of a bind asks for the same verdict in turn."""
        last = self._last
        if last is not None and last[1] is found and last[0] == asked:
            return last[2]
        judged = judgement.judge(asked, found)
        self._last = asked, found, judged
        return judged

    def numbers(
        self, asked: judgement.Asked, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column:
        """Return the numbers of some nodes."""
        found = self._vacancies.among(asked, view, rows) if rows.size > 1 else None
        if found is None:
            return self._looked_at(asked, view, rows)
        numbers = found.tiers << TIER | found.allocates * ALLOCATES
        left = (found.tiers == vacancies.UNKNOWN).nonzero()[0]
        if left.size:
            numbers[left] = self._looked_at(asked, view, rows[left])
        return numbers

    def _looked_at(
        self, asked: judgement.Asked, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column:
        """Return the same of nodes that are looked at one by one."""

        def judged(changed: verdicts.Rows) -> verdicts.Column:
            found = [self._number(asked, tracker.of(view, row)) for row in changed.tolist()]
            return np.array(found, dtype=np.int64)

        return judged(rows) if rows.size == 1 else self._numbers.get(asked, view, rows, judged)

    def _number(self, asked: judgement.Asked, found: tracker.NodeReservations | None) -> int:
        judged = self.one(asked, found)
        code = judgement.CODES[judged.status] if judged.status is not None else 0
        allocates = ALLOCATES if any(one.allocates for one in judged.into) else 0
        return code | allocates | judgement.tier(asked, judged.into) << TIER
