"""What the columns of nodes say of a pod: who may not take it, where only a trial tells, scores.

What was found for pods that are alike is kept by node until that node changes.
"""

import collections
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from api.koordinator import devices
from domain.devices import pod_devices
from domain.devices.allocation import candidates, device_scores
from extender.framework import verdicts, views
from extender.framework.nodes import row_memo
from extender.plugins.device_share import allocation, columns, selection, shapes
from extender.plugins.device_share.allocation import NAME, Wanted

NONE_OF: Final = tuple(
    verdicts.Status(candidates.insufficient(kind, final=True).reason) for kind in columns.HAS
)
"""The statuses of nodes that have no device of a type."""
TOO_FEW: Final = {
    devices.GPU: verdicts.Status("Insufficient GPU Devices"),
    devices.RDMA: verdicts.Status(candidates.insufficient(devices.RDMA).reason),
    devices.FPGA: verdicts.Status(candidates.insufficient(devices.FPGA).reason),
}
STATUSES: Final = (*NONE_OF, *TOO_FEW.values())
TRIAL: Final = 1 << 8
"""Beside the number of a status: columns do not say everything of a node."""
_CODES: Final = TRIAL - 1
_SCORE: Final = 16
"""Bits below the score of a node."""
FEW: Final = 4
"""Nodes that are judged one by one: plain integers are cheaper there than vectors."""
MOST_CLASSES: Final = 1024
"""Classes of nodes of which is kept what is said of one kind of pods."""
_TOO_FEW: Final = {kind: 1 + STATUSES.index(status) for kind, status in TOO_FEW.items()}


class _Answer(NamedTuple):
    """What was asked last, and the answer."""

    prepared: Wanted
    view: views.View
    rows: verdicts.Rows
    found: verdicts.Column

    def serves(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> bool:
        """Whether the same is asked again."""
        if self.prepared is not prepared or self.view is not view:
            return False
        if self.rows is rows:
            return True
        return rows.size == 1 and self.rows.size == 1 and rows.item() == self.rows.item()


class Judgement:
    """Answers from columns, for pods that want devices."""

    def __init__(
        self,
        selected: selection.Selection,
        not_shared: Collection[tuple[str, str]],
        scoring: device_scores.Scoring,
    ) -> None:
        self._selection = selected
        self._not_shared = not_shared
        self._scoring = scoring
        self._found = row_memo.RowMemo()
        self._classes: collections.OrderedDict[Wanted, dict[int, int]] = collections.OrderedDict()
        self._last: _Answer | None = None

    def codes(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Codes | None:
        """Return by candidate 0, or the place of its status, from 1; None: all are 0."""
        found = self._judged(prepared, view, rows) & (TRIAL | _CODES)
        if not np.count_nonzero(found):
            return None
        codes: verdicts.Codes = (found & _CODES).astype(np.int16)
        return codes

    def open(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Tell of which candidates columns do not say everything."""
        flags: verdicts.Flags = (self._judged(prepared, view, rows) & TRIAL) != 0
        return flags

    def scores(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return the scores of candidates, of a pod for which sums say all."""
        found: verdicts.Column = self._judged(prepared, view, rows) >> _SCORE
        return found

    def _judged(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return by candidate the number of its status, TRIAL, and above both the score.

        Filter, trial and score of one call ask the same of the same snapshot.
        """
        last = self._last
        if last is not None and last.serves(prepared, view, rows):
            return last.found

        def judged(changed: verdicts.Rows) -> verdicts.Column:
            asked = allocation.of(prepared)
            assert asked is not None
            if changed.size > FEW:
                return self._several(prepared, asked, view, changed)
            known = self._by_class(prepared) if view.revisions is not None else {}
            found = []
            for row in changed.tolist():
                alike = int(view.figures[NAME][columns.ALIKE, row])
                if alike not in known:
                    known[alike] = self._one(prepared, asked, view, row)
                found.append(known[alike])
            return np.array(found, dtype=np.int64)

        found = self._found.get(prepared, view, rows, judged)
        if view.revisions is not None:
            self._last = _Answer(prepared, view, rows, found)
        return found

    def _by_class(self, prepared: Wanted) -> dict[int, int]:
        """Return what is known of nodes by the digest of all that an allocation depends on."""
        found = self._classes.get(prepared)
        if found is None or len(found) >= MOST_CLASSES:
            found = self._classes[prepared] = {}
            if len(self._classes) > row_memo.MOST:
                self._classes.popitem(last=False)
        self._classes.move_to_end(prepared)
        return found

    def _several(
        self,
        prepared: Wanted,
        asked: pod_devices.PodDevices,
        view: views.View,
        rows: verdicts.Rows,
    ) -> verdicts.Column:
        figures = view.gathered(NAME, rows)
        flags = figures[columns.FLAGS]
        known = (flags & columns.KNOWN) != 0
        shape = self._shape(asked)
        found = np.where((flags & _unclear(shape)) != 0, TRIAL, 0)
        if shape is not None:
            fits = shape.fits(figures)
            if shape.selects:
                fits &= self._selection.serves(allocation.hint(prepared), view, rows)
            found[known & (found == 0) & ~fits] = _TOO_FEW[shape.kind]
        for number, (kind, flag) in enumerate(columns.HAS.items(), 1):
            if kind in asked.by_type:
                found[known & ((flags & flag) == 0)] = number
        if shapes.sums_say_all(asked):
            found += shapes.scores(asked, self._scoring, figures) << _SCORE
        return found

    def _one(
        self, prepared: Wanted, asked: pod_devices.PodDevices, view: views.View, row: int
    ) -> int:
        figures: Sequence[int] = view.figures[NAME][:, row].tolist()
        score = (
            shapes.score(asked, self._scoring, figures) << _SCORE
            if shapes.sums_say_all(asked)
            else 0
        )
        return score + self._code(prepared, asked, (view, row), figures)

    def _code(
        self,
        prepared: Wanted,
        asked: pod_devices.PodDevices,
        where: tuple[views.View, int],
        figures: Sequence[int],
    ) -> int:
        flags = figures[columns.FLAGS]
        if not flags & columns.KNOWN:
            return 0
        found = 0
        for number, (kind, flag) in enumerate(columns.HAS.items(), 1):
            if kind in asked.by_type and not flags & flag:
                found = number
        if found:
            return found
        shape = self._shape(asked)
        if flags & _unclear(shape):
            return TRIAL
        if shape is None or (shape.fits_one(figures) and self._selects(shape, prepared, *where)):
            return 0
        return _TOO_FEW[shape.kind]

    def _selects(self, shape: shapes.Shape, prepared: Wanted, view: views.View, row: int) -> bool:
        if not shape.selects:
            return True
        alone = np.array((row,), dtype=np.intp)
        return bool(self._selection.serves(allocation.hint(prepared), view, alone)[0])

    def _shape(self, asked: pod_devices.PodDevices) -> shapes.Shape | None:
        if asked.shares_gpus and (asked.isolation or self._not_shared):
            return None
        return shapes.shape(asked)


def _unclear(shape: shapes.Shape | None) -> int:
    """Return the flags of nodes of which columns do not say everything."""
    if shape is None:
        return columns.KNOWN
    return columns.ODD | columns.MIXED if shape.selects else columns.ODD
