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
_OBJECTS: Final = TRIAL | _CODES
_SCORE: Final = 16
"""Bits below the score of a node."""
FEW: Final = 4
"""Nodes that are judged one by one: plain integers are cheaper there than vectors."""
SEVERAL: Final = 64
"""Nodes of which is looked up first whether nodes alike were judged before."""
MOST_KINDS: Final = 64
"""Kinds of pods of which is kept what is said of every node: 16 bytes by node each."""
MOST_CLASSES: Final = 1024
"""Classes of nodes of which is kept what is said of one kind of pods."""
_TOO_FEW: Final = {kind: 1 + STATUSES.index(status) for kind, status in TOO_FEW.items()}


class Kind:
    """What is said of every node for pods that are alike, as nodes were when asked about last."""

    __slots__ = ("asked", "by_class", "is_scored", "objections", "revisions", "said")

    def __init__(self, asked: pod_devices.PodDevices, size: int) -> None:
        self.asked = asked
        self.is_scored = shapes.sums_say_all(asked)
        """Whether sums say all about the scores of nodes."""
        self.revisions = np.zeros(size, dtype=np.int64)
        self.said = np.zeros(size, dtype=np.int64)
        """By node the number of its status, TRIAL, and above both the score."""
        self.objections = 0
        """How many nodes are refused, or need a trial."""
        self.by_class: dict[int, int] = {}
        """The same by the digest of all that an allocation depends on."""

    def put(self, rows: verdicts.Rows, revisions: verdicts.Column, said: verdicts.Column) -> None:
        """Take in what is said of some nodes now."""
        if rows.size > FEW:
            self.objections += _objections(said) - _objections(self.said[rows])
            self.said[rows], self.revisions[rows] = said, revisions[rows]
            return
        for row, found in zip(rows.tolist(), said.tolist(), strict=True):
            before = self.said.item(row)
            if found != before:
                self.objections += bool(found & _OBJECTS) - bool(before & _OBJECTS)
                self.said[row] = found
            self.revisions[row] = revisions[row]


class _Followed(NamedTuple):
    """What was asked about last, and what is said of every node of that snapshot."""

    prepared: Wanted
    view: views.View
    kind: Kind


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
        self._kinds: collections.OrderedDict[Wanted, Kind] = collections.OrderedDict()
        self._last: _Followed | None = None

    def passes_all(self, prepared: Wanted, view: views.View) -> bool:
        """Whether columns say of every node that it passes."""
        kind = self._kind(prepared, view)
        return kind is not None and not kind.objections

    def codes(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Codes | None:
        """Return by candidate 0, or the place of its status, from 1; None: all are 0."""
        kind = self._kind(prepared, view)
        if kind is not None and not kind.objections:
            return None
        codes: verdicts.Codes = (self._said(kind, prepared, view, rows) & _CODES).astype(np.int16)
        return codes

    def open(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Tell of which candidates columns do not say everything; None: of none."""
        kind = self._kind(prepared, view)
        if kind is not None and not kind.objections:
            return None
        flags: verdicts.Flags = (self._said(kind, prepared, view, rows) & TRIAL) != 0
        return flags

    def scores(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column | None:
        """Return the scores of candidates; None where sums do not say all about them."""
        kind = self._kind(prepared, view)
        if not (kind.is_scored if kind is not None else shapes.sums_say_all(_asked(prepared))):
            return None
        found: verdicts.Column = self._said(kind, prepared, view, rows) >> _SCORE
        return found

    def _said(
        self, kind: Kind | None, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column:
        """Return by candidate the number of its status, TRIAL, and above both the score."""
        if kind is None:
            return self._judged(prepared, view, rows, Kind(_asked(prepared), 0))
        return kind.said if rows is views.every(kind.said.size) else kind.said.take(rows)

    def _kind(self, prepared: Wanted, view: views.View) -> Kind | None:
        """Return what is said of every node; None where nodes are shown as they are not.

        Filter, trial and score of one call ask the same of the same snapshot.
        """
        last = self._last
        if last is not None and last.view is view and last.prepared is prepared:
            return last.kind
        present = view.revisions
        if present is None:
            return None
        if last is not None and last.prepared == prepared and last.kind.said.size == present.size:
            kind = last.kind
        else:
            kind = self._of(prepared, present.size)
        late = (kind.revisions != present).nonzero()[0]
        if late.size:
            kind.put(late, present, self._judged(prepared, view, late, kind))
        self._last = _Followed(prepared, view, kind)
        return kind

    def _of(self, prepared: Wanted, size: int) -> Kind:
        kind = self._kinds.get(prepared)
        if kind is None or kind.said.size != size:
            kind = self._kinds[prepared] = Kind(_asked(prepared), size)
            if len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        self._kinds.move_to_end(prepared)
        return kind

    def _judged(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, kind: Kind
    ) -> verdicts.Column:
        """Say of some nodes what columns say now; what is said by class holds for nodes alike."""
        asked, by_class = kind.asked, kind.by_class
        if rows.size > SEVERAL:
            return self._several(prepared, asked, view, rows)
        classes = view.figures[NAME][columns.ALIKE].take(rows).tolist()
        if rows.size > FEW:
            known = [by_class.get(alike) for alike in classes]
            if None not in known:
                return np.array(known, dtype=np.int64)
            found = self._several(prepared, asked, view, rows)
            if len(by_class) + rows.size <= MOST_CLASSES:
                by_class.update(zip(classes, found.tolist(), strict=True))
            return found
        if len(by_class) >= MOST_CLASSES:
            by_class.clear()
        for alike, row in zip(classes, rows.tolist(), strict=True):
            if alike not in by_class:
                by_class[alike] = self._one(prepared, asked, view, row)
        return np.array([by_class[alike] for alike in classes], dtype=np.int64)

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


def _asked(prepared: Wanted) -> pod_devices.PodDevices:
    """Return what a pod wants of which columns are asked."""
    asked = allocation.of(prepared)
    assert asked is not None
    return asked


def _unclear(shape: shapes.Shape | None) -> int:
    """Return the flags of nodes of which columns do not say everything."""
    if shape is None:
        return columns.KNOWN
    return columns.ODD | columns.MIXED if shape.selects else columns.ODD


def _objections(said: verdicts.Column) -> int:
    """Return how many nodes are refused, or need a trial."""
    return int(np.count_nonzero(said & _OBJECTS))
