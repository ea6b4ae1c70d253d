"""Members that are alike: judged once for all of them, on every node of one state. Pure."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from extender.framework import pipeline, verdicts, views, weighing
from extender.framework.nodes import row_memo
from extender.gangs.planning import in_tree
from extender.requeue import unschedulable_pods

_ROWS: Final = 512
"""Nodes that are judged in one step."""
_MOST_SORTS: Final = 32
"""Sorts of members that are remembered from one plan to the next ..."""
_MOST_CHANGES: Final = 64
"""... unless more nodes have changed meanwhile."""
IN_TREE: Final = "kube-scheduler"
"""What stands for the filters of kube-scheduler where a plug-in is named."""


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What a plan is made with."""

    plugins: pipeline.Pipeline
    now: float


class MemberClass:
    """The nodes that may take one more member of this sort, and how good they are."""

    def __init__(self, context: Context, required: in_tree.Requirement, pod: views.PodInfo) -> None:
        self._context, self._required, self._pod = context, required, pod
        self.rows: verdicts.Rows = np.empty(0, dtype=np.intp)
        """Those that passed when they were judged, as far as nothing has shown otherwise since."""
        self._places: dict[int, int] = {}
        self._open: verdicts.Flags = np.empty(0, dtype=np.bool_)
        self._parts: list[tuple[int, verdicts.Score]] = []
        self._share: verdicts.Shares = np.empty(0)
        self._order: verdicts.Shares = np.empty(0)
        self._stale: set[int] = set()
        self.late: dict[str, None] = {}
        """Nodes that have changed, in order, and may take members again."""
        self.reasons: Counter[tuple[str, str]] = Counter()
        """How many nodes refuse the member, by plug-in and reason, when they were judged."""

    def judge(self, view: views.View, avoided: Collection[str]) -> Iterator[None]:
        """Judge every node, in steps that each take a few milliseconds."""
        found: list[verdicts.Rows] = []
        self.reasons.clear()
        known = np.flatnonzero(view.known)
        asked = self._context.plugins.cycle(self._pod, view)
        for start in range(0, known.size, _ROWS):
            rows = known[start : start + _ROWS]
            refusals = self._required.refusals(view, rows)
            for place, row in enumerate(rows.tolist() if avoided else ()):
                if view.names[row] in avoided:
                    refusals[place] = refusals[place] or "node refused the member a moment ago"
            self.reasons.update((IN_TREE, one) for one in refusals if one)
            left = rows[[not one for one in refusals]] if any(refusals) else rows
            yield
            if left.size:
                found.append(self._passing(asked, view, left))
                yield
        self.rows = np.concatenate(found) if found else np.empty(0, dtype=np.intp)
        self._places = {row: place for place, row in enumerate(self.rows.tolist())}
        self._open = np.ones(self.rows.size, dtype=np.bool_)
        self._stale.clear()
        self.late.clear()
        self._parts = [
            (weight, _own(score))
            for weight, score in self._context.plugins.scores(
                asked, view, self.rows, self._context.now
            )
        ]
        self._share = self._required.share(view, self.rows)
        self._rank()

    def _passing(
        self, asked: pipeline.Cycle, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Rows:
        outcome = self._context.plugins.filter(asked, view, rows, self._context.now)
        counts = np.bincount(outcome.codes, minlength=len(outcome.refusals) + 1).tolist()
        for refusal, count in zip(outcome.refusals, counts[1:], strict=True):
            if count:
                self.reasons[refusal.plugin, refusal.status.text] += count
        passing: verdicts.Rows = rows[outcome.codes == 0]
        return passing

    def _rank(self) -> None:
        """Order by score; among equals that with the larger free share comes first."""
        joined = weighing.weighed(self._parts, self.rows.size)
        self._order = np.where(self._open, joined + 0.999 * self._share, -np.inf)

    def best(self) -> int | None:
        """Return the row of the best node that may take a member, None where there is none."""
        if not self._order.size:
            return None
        place = int(self._order.argmax())
        return int(self.rows[place]) if self._open[place] else None

    @property
    def count(self) -> int:
        """Return how many nodes may take one more member."""
        return int(np.count_nonzero(self._open))

    @property
    def scores(self) -> verdicts.Shares:
        """Return the score of each of `rows`; more is better."""
        return self._order

    def refusing(self, view: views.View, least: int) -> int:
        """Return how many nodes plug-ins refuse to a member and kube-scheduler's filters do not.

        Less than `least` of them are not looked for any closer: it may be fewer then.
        """
        judged = sum(count for (plugin, _), count in self.reasons.items() if plugin != IN_TREE)
        doubtful = ~self._open
        doubtful[[self._places[row] for row in self._stale]] = True
        doubted = self.rows[doubtful]
        if judged + doubted.size < least:
            return judged + int(doubted.size)
        left = doubted[[not one for one in self._required.refusals(view, doubted)]]
        asked = self._context.plugins.cycle(self._pod, view)
        outcome = self._context.plugins.filter(asked, view, left, self._context.now)
        return judged + int(np.count_nonzero(outcome.codes))

    def close(self, row: int) -> None:
        """Take in that a node takes no more members of this sort."""
        place = self._places.get(row)
        if place is not None:
            self._open[place] = False
            self._order[place] = -np.inf

    def changed(self, row: int) -> None:
        """Take in that a node is not what it was when it was judged."""
        if row in self._places:
            self._stale.add(row)

    def reopen(self, view: views.View) -> None:
        """Let nodes that have changed take members again, and score them again."""
        rows = (view.rows.get(name, -1) for name in self.late)
        changed = [row for row in rows if row in self._places]
        self.late.clear()
        if not changed:
            return
        self._stale.update(changed)
        found, places = np.array(changed), np.array([self._places[row] for row in changed])
        self._open[places] = True
        self._rewrite(self._context.plugins.cycle(self._pod, view), view, found, places)

    def is_stale(self, row: int) -> bool:
        """Whether a node has changed since it was judged."""
        return row in self._stale

    def rescore(self, asked: pipeline.Cycle, view: views.View, row: int) -> None:
        """Recompute the numbers of one node."""
        place = self._places.get(row)
        if place is None or not self._open[place]:
            return
        self._rewrite(asked, view, pipeline.alone(row), np.array([place]))

    def _rewrite(
        self, asked: pipeline.Cycle, view: views.View, rows: verdicts.Rows, places: verdicts.Rows
    ) -> None:
        """Compute the numbers of some nodes anew, and order by them."""
        fresh = self._context.plugins.scores(asked, view, rows, self._context.now)
        self._share[places] = self._required.share(view, rows)
        if len(fresh) == len(self._parts):
            for (_, whole), (_, one) in zip(self._parts, fresh, strict=True):
                whole.values[places] = one.values
                if whole.tiers is not None and one.tiers is not None:
                    whole.tiers[places] = one.tiers
        self._rank()


class Sorts:
    """Members that are alike, judged on all nodes; plans on one fork may share what they found.

    Nodes that have changed since are judged again before a member is placed there.
    """

    def __init__(self) -> None:
        self.classes: dict[Hashable, MemberClass] = {}
        self.required: dict[Hashable, in_tree.Requirement] = {}
        self.rooms = row_memo.RowMemo(1)
        self._changed: dict[str, None] = {}

    def changed(self, node: str) -> None:
        """Take in that a node is not what it was when it was judged."""
        if self.classes:
            self._changed[node] = None

    def apply(self) -> None:
        """Let the nodes that have changed be judged before they are used."""
        if len(self._changed) > _MOST_CHANGES or len(self.classes) > _MOST_SORTS:
            self.classes.clear()
            self.required.clear()
        for one in self.classes.values():
            one.late.update(self._changed)
        self._changed.clear()

    def is_known(self, key: Hashable, view: views.View) -> bool:
        """Whether a sort was judged; then it is in step with the view, as far as it is needed.

        Most sorts are those of earlier gangs alone, and are never asked about again.
        """
        found = self.classes.get(key)
        if found is None or len(found.late) > _MOST_CHANGES:
            return False
        found.reopen(view)
        return True


def _own(score: verdicts.Score) -> verdicts.Score:
    """Return numbers that may be written to."""
    tiers = None if score.tiers is None else score.tiers.copy()
    return msgspec.structs.replace(score, values=score.values.copy(), tiers=tiers)


def most_refusing(
    sorts: Sequence[MemberClass], view: Callable[[], views.View]
) -> Generator[None, None, int | None]:
    """Return how many nodes plug-ins refuse to the sort of member that has most; None of none."""
    found: list[int] = []
    for sort in sorts:
        yield
        found.append(sort.refusing(view(), unschedulable_pods.SMALLEST_SAMPLE))
    return max(found, default=None)
