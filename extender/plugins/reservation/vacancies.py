"""What Reservations have left for their owners, as columns: most pods are judged without a loop.

A function of the snapshot alone, kept by owners until a node changes: it saves work, no answer
changes. What the columns cannot say is left to `judgement`.
"""

import collections
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from domain.reservations import choice, matching, model
from extender.framework import verdicts, views
from extender.plugins.reservation import judgement, tracker

UNKNOWN: Final = -1
"""Instead of a tier: the columns do not say that a Reservation of this node takes the pod."""
_MOST_OWNERS: Final = 16
"""Kinds of owners whose columns are kept."""
_MOST_PLACES: Final = 8
"""Reservations of one node with columns; beyond, the node is left to `judgement`."""
_MOST_NAMES: Final = 12
"""Resources with columns."""
_LARGEST: Final = 1 << 53
_ROOM, _LIMIT, _USED, _OFFERED, _CHARGED, _SCORE = range(6)
"""Of one resource, by Reservation: what an owner may request with what is free on the node, and of
the Reservation alone; what owners use of what is reserved; whether the use is counted; and what
the resource adds to the score before one more owner."""
_OPEN, _TOTAL, _COUNT, _ALLOCATES = range(4)
"""By Reservation: whether it takes owners, the sum of the scores of its resources and how many
these are, and whether it holds CPUs or devices."""
_NO_WISHES: Final = matching.Wishes()

_Table = npt.NDArray[np.int64]


class Found(NamedTuple):
    """What was found by candidate."""

    tiers: verdicts.Column
    allocates: verdicts.Flags
    """Whether a Reservation into which the pod fits holds CPUs or devices."""


class Vacancies:
    """The columns of those owners that were asked about last."""

    def __init__(self) -> None:
        self._kept: collections.OrderedDict[tuple[str, ...], _Columns] = collections.OrderedDict()

    def among(self, asked: judgement.Asked, view: views.View, rows: verdicts.Rows) -> Found | None:
        """Return the tiers of nodes with Reservations of the pod; None where there are no columns.

        A tier is UNKNOWN where no Reservation is known to take the pod.
        """
        if not _is_plain(asked) or view.revisions is None:
            return None
        kept = self._kept.get(asked.owners)
        if kept is None or kept.is_outgrown(view.revisions.size):
            kept = self._kept[asked.owners] = _Columns(asked.owners, view.revisions.size)
            if len(self._kept) > _MOST_OWNERS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(asked.owners)
        return kept.found(asked.requests, view, rows)


def _is_plain(asked: judgement.Asked) -> bool:
    """Whether all that counts about a pod is what it requests."""
    is_odd = asked.host_ports or asked.names_policy is not None or asked.chosen or asked.alone
    if is_odd or asked.wishes != _NO_WISHES or len(asked.requests) > _MOST_NAMES:
        return False
    return all(0 <= value <= _LARGEST for _, value in asked.requests)


class _Columns:
    """What Reservations have left that are for the same owners.

    Every node has a slot from when it was first asked about, and in it a place for each of its
    Reservations.
    """

    def __init__(self, owners: tuple[str, ...], size: int) -> None:
        self._owners = owners
        self._slots = np.full(size, -1, dtype=np.int64)
        self._count = 0
        self._revisions = np.zeros(0, dtype=np.int64)
        self._facts: _Table = np.zeros((4, 1, 0), dtype=np.int64)
        self._by_name: dict[str, _Table] = {}

    def is_outgrown(self, size: int) -> bool:
        """Whether there are more rows by now, or far too many resources."""
        return size > self._slots.size or len(self._by_name) > _MOST_NAMES

    def found(self, requests: views.Pairs, view: views.View, rows: verdicts.Rows) -> Found:
        """Return what is found of a pod on nodes with Reservations for it."""
        names = [name for name, value in requests if value]
        self._learn(names)
        slots = self._current(view, rows)
        facts = self._facts[:, :, slots]
        total, tried = facts[_TOTAL], np.zeros(facts.shape[1:], dtype=np.bool_)
        fits = facts[_OPEN] != 0
        for name, value in requests:
            if not value:
                continue
            by = self._by_name[name][:, :, slots]
            fits &= (by[_ROOM] >= value) & (by[_LIMIT] >= value)
            tried |= by[_CHARGED] != 0
            total = total + _score(by[_USED] + value, by[_OFFERED]) - by[_SCORE]
        fits &= tried
        tiers = 1 + total // np.maximum(facts[_COUNT], 1)
        allocates = (fits & (facts[_ALLOCATES] != 0)).any(axis=0)
        return Found(np.where(fits, tiers, UNKNOWN).max(axis=0), allocates)

    # -- keeping up ----------------------------------------------------------------------------

    def _learn(self, names: Iterable[str]) -> None:
        """Begin columns for resources that were not asked about before."""
        fresh = [name for name in names if name not in self._by_name]
        if not fresh:
            return
        for name in fresh:
            self._by_name[name] = np.zeros((6, *self._facts.shape[1:]), dtype=np.int64)
        # Each node is read anew when it is asked about.
        self._revisions[:] = 0

    def _current(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return the slots of nodes, all of which say how things are."""
        present = view.revisions
        assert present is not None
        slots = self._slots[rows]
        if (slots < 0).any():
            slots = self._allot(rows, slots)
        late = (self._revisions[slots] != present[rows]).nonzero()[0]
        for at in late.tolist():
            self._read(int(slots[at]), tracker.of(view, int(rows[at])))
        self._revisions[slots[late]] = present[rows[late]]
        return slots

    def _allot(self, rows: verdicts.Rows, slots: verdicts.Column) -> verdicts.Column:
        fresh = rows[slots < 0]
        first, self._count = self._count, self._count + fresh.size
        self._slots[fresh] = np.arange(first, self._count)
        if self._count > self._revisions.size:
            more = max(self._count, 2 * self._revisions.size) - self._revisions.size
            self._revisions = np.pad(self._revisions, (0, more))
            self._resize(((0, 0), (0, 0), (0, more)))
        found: verdicts.Column = self._slots[rows]
        return found

    def _resize(self, more: tuple[tuple[int, int], ...]) -> None:
        self._facts = np.pad(self._facts, more)
        self._by_name = {name: np.pad(table, more) for name, table in self._by_name.items()}

    def _read(self, slot: int, found: tracker.NodeReservations | None) -> None:
        """Write the Reservations of a node into its slot."""
        self._facts[_OPEN, :, slot] = 0
        matched = _matched(found, self._owners) if found is not None else []
        if found is None or not _says_all(found, matched):
            return
        if len(matched) > self._facts.shape[1]:
            self._resize(((0, 0), (0, len(matched) - self._facts.shape[1]), (0, 0)))
        for place, one in enumerate(matched):
            offered = one.held.reservation.allocatable
            scores = {name: _score_of(one.held, name) for name, value in offered.items() if value}
            self._facts[:, place, slot] = (
                _takes_one_more(one.held), sum(scores.values()), len(scores), one.allocates
            )  # fmt: skip
            for name, table in self._by_name.items():
                table[:, place, slot] = _amounts(found, one.held, name, scores.get(name, 0))


def _matched(found: tracker.NodeReservations, owners: tuple[str, ...]) -> list[tracker.Kept]:
    """Return the Reservations of a node that any pod of these owners may use."""
    return judgement.usable(judgement.Asked((), owners=owners), found)


def _says_all(found: tracker.NodeReservations, matched: list[tracker.Kept]) -> bool:
    """Whether columns can say all about the Reservations of a node."""
    if not 0 < len(matched) <= _MOST_PLACES or found.free_slots + tracker.places(matched) < 1:
        return False
    return _is_small(found.free.values(), negative=True) and all(
        one.held.reservation.order <= 0
        and _is_small(one.held.reservation.allocatable.values())
        and _is_small(one.held.reservation.withheld.values())
        and _is_small(one.held.allocated.values())
        for one in matched
    )


def _is_small(values: Iterable[int], *, negative: bool = False) -> bool:
    lowest = -_LARGEST if negative else 0
    return all(lowest <= value <= _LARGEST for value in values)


def _takes_one_more(held: model.Held) -> bool:
    """Whether a Reservation that says how many pods may use it has room for one more."""
    one = held.reservation
    if one.policy is not model.Policy.RESTRICTED or model.PODS not in one.allocatable:
        return True
    return held.owners < one.allocatable[model.PODS]


def _amounts(
    found: tracker.NodeReservations, held: model.Held, name: str, score: int
) -> tuple[int, ...]:
    """Return the columns of one resource of one Reservation."""
    one, used = held.reservation, held.allocated.get(name, 0)
    offered, limit = one.allocatable.get(name, 0), _LARGEST
    if one.policy is model.Policy.RESTRICTED and name in one.charged:
        limit = offered - one.withheld.get(name, 0) - used
    room = found.free.get(name, 0) + held.remainder().get(name, 0)
    return room, limit, used, offered, name in one.charged, score


def _score_of(held: model.Held, name: str) -> int:
    """Return what a resource adds to `choice.score` without one more owner."""
    offered, used = held.reservation.allocatable[name], held.allocated.get(name, 0)
    return choice.BEST * used // offered if used <= offered else 0


def _score(used: _Table, offered: _Table) -> _Table:
    """Return the same for many Reservations; nothing where none of the resource is reserved."""
    found: _Table = np.where(
        (offered > 0) & (used <= offered), choice.BEST * used // np.maximum(offered, 1), 0
    )
    return found
