"""What Reservations have left for their owners, as columns: most pods are judged without a loop.

A function of the snapshot alone, kept by owners until a node changes: it saves work, no answer
changes. What the columns cannot say is left to `judgement`.
"""

import collections
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from domain.reservations import choice, matching, model
from extender.framework import verdicts, views
from extender.plugins.reservation import judgement, tracker

UNKNOWN: Final = -1
"""Instead of a tier: the columns do not say what becomes of the pod on this node."""
_MOST_OWNERS: Final = 64
"""Kinds of owners whose columns are kept."""
_MOST_PLACES: Final = 8
"""Reservations of one node with columns; beyond, the node is left to `judgement`."""
_MOST_NAMES: Final = 12
"""Resources with columns."""
_LARGEST: Final = 1 << 53
_CLOSED, _UNSAID, _REST, _COUNT, _CHARGED, _ALLOCATES = range(6)
"""Of a Reservation: whether it takes no owners, whether the columns do not say all about its node,
the sum of the scores of resources without columns, how many resources have a score, of which the
use is counted, as bits, and whether it holds CPUs or devices."""
_FACTS: Final = 6
_MOST, _FREE, _USED, _OFFERED = range(4)
"""Of one resource of a Reservation: the most that one more owner may request, what is free to pods
without a Reservation, what owners use of what is reserved, and that."""
_AMOUNTS: Final = 4
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

        A tier is UNKNOWN where no Reservation is known to take the pod, and the node alone neither.
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
    Reservations. A place has its facts first, then the amounts of all resources, sort by sort.
    What is not written yet is 1 everywhere, which says nothing and may be divided by.
    """

    def __init__(self, owners: tuple[str, ...], size: int) -> None:
        self._owners = owners
        self._slots = np.full(size, -1, dtype=np.int64)
        self._count = 0
        self._revisions = np.zeros(0, dtype=np.int64)
        self._names: dict[str, int] = {}
        self._table: _Table = np.ones((0, 1, _FACTS), dtype=np.int64)

    def is_outgrown(self, size: int) -> bool:
        """Whether there are more rows by now, or far too many resources."""
        return size > self._slots.size or len(self._names) > _MOST_NAMES

    def found(self, requests: views.Pairs, view: views.View, rows: verdicts.Rows) -> Found:
        """Return what is found of a pod on nodes with Reservations for it."""
        wanted = {name: value for name, value in requests if value}
        self._learn(wanted)
        values = np.array([wanted.get(name, 0) for name in self._names], dtype=np.int64)
        slots = self._current(view, rows)
        places = self._table.take(slots, axis=0)
        most, free, used, offered = self._sorts(places)
        used = used + values
        scores = np.where(used <= offered, choice.BEST * used // offered, 0).sum(axis=2)
        tiers = 1 + (scores + places[:, :, _REST]) // places[:, :, _COUNT]
        fits = (most >= values).all(axis=2) & (places[:, :, _CLOSED] == 0)
        fits &= (places[:, :, _CHARGED] & self._bits(wanted)) != 0
        best = np.where(fits, tiers, UNKNOWN).max(axis=1)
        if (best == UNKNOWN).any():
            # Where the node alone has room, it takes the pod like any other.
            alone = (free[:, 0] >= values).all(axis=1) & (places[:, 0, _UNSAID] == 0)
            best[(best == UNKNOWN) & alone] = 0
        return Found(best, (fits & (places[:, :, _ALLOCATES] != 0)).any(axis=1))

    def _sorts(self, places: _Table) -> list[_Table]:
        """Return the amounts of some places, sort by sort."""
        size = len(self._names)
        starts = (_FACTS + sort * size for sort in range(_AMOUNTS))
        return [places[:, :, start : start + size] for start in starts]

    def _bits(self, names: Iterable[str]) -> int:
        return sum(1 << place for name in names if (place := self._names.get(name)) is not None)

    # -- keeping up ----------------------------------------------------------------------------

    def _learn(self, names: Iterable[str]) -> None:
        """Begin columns for resources that were not asked about before."""
        fresh = [name for name in names if name not in self._names]
        if not fresh:
            return
        for name in fresh:
            self._names[name] = len(self._names)
        width = _FACTS + _AMOUNTS * len(self._names)
        self._table = np.ones((*self._table.shape[:2], width), dtype=np.int64)
        # Each node is read anew when it is asked about.
        self._revisions[:] = 0

    def _current(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return the slots of nodes, all of which say how things are."""
        present = view.revisions
        assert present is not None
        slots, now = self._slots.take(rows), present.take(rows)
        if slots.min(initial=0) < 0:
            slots = self._allot(rows, slots)
        late = (self._revisions.take(slots) != now).nonzero()[0]
        for at in late.tolist():
            self._read(int(slots[at]), tracker.of(view, int(rows[at])))
        self._revisions[slots[late]] = now[late]
        return slots

    def _allot(self, rows: verdicts.Rows, slots: verdicts.Column) -> verdicts.Column:
        fresh = rows[slots < 0]
        first, self._count = self._count, self._count + fresh.size
        self._slots[fresh] = np.arange(first, self._count)
        if self._count > self._revisions.size:
            more = max(self._count, 2 * self._revisions.size) - self._revisions.size
            self._revisions = np.pad(self._revisions, (0, more))
            self._resize(more, 0)
        return self._slots.take(rows)

    def _resize(self, slots: int, places: int) -> None:
        """Make room for so many more slots, and places in each."""
        more = ((0, slots), (0, places), (0, 0))
        self._table = np.pad(self._table, more, constant_values=1)

    def _read(self, slot: int, found: tracker.NodeReservations | None) -> None:
        """Write the Reservations of a node into its slot."""
        self._table[slot] = 1
        matched = _matched(found, self._owners) if found is not None else []
        if found is None or not _says_all(found, matched):
            return
        lacking = len(matched) - self._table.shape[1]
        if lacking > 0:
            self._resize(0, lacking)
        for place, one in enumerate(matched):
            self._table[slot, place] = self._written(found, one)

    def _written(self, found: tracker.NodeReservations, one: tracker.Kept) -> list[int]:
        """Return what is written of one Reservation."""
        held, offered = one.held, one.held.reservation.allocatable
        left, limits = held.remainder(), _limits(held)
        scores = {name: _score_of(held, name) for name, value in offered.items() if value}
        free = [max(0, found.free.get(name, 0)) for name in self._names]
        most = [
            max(0, min(found.free.get(name, 0) + left.get(name, 0), limits.get(name, _LARGEST)))
            for name in self._names
        ]
        used = [
            held.allocated.get(name, 0) if offered.get(name) else _LARGEST for name in self._names
        ]
        return [
            not _takes_one_more(held),
            False,
            sum(value for name, value in scores.items() if name not in self._names),
            max(1, len(scores)),
            self._bits(held.reservation.charged),
            one.allocates,
            *most,
            *free,
            *used,
            *[max(1, offered.get(name, 0)) for name in self._names],
        ]


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


def _is_small(values: Collection[int], *, negative: bool = False) -> bool:
    lowest = -_LARGEST if negative else 0
    return not values or (min(values) >= lowest and max(values) <= _LARGEST)


def _takes_one_more(held: model.Held) -> bool:
    """Whether a Reservation that says how many pods may use it has room for one more."""
    one = held.reservation
    if one.policy is not model.Policy.RESTRICTED or model.PODS not in one.allocatable:
        return True
    return held.owners < one.allocatable[model.PODS]


def _limits(held: model.Held) -> dict[str, int]:
    """Return what a Reservation has left of the resources that owners take from it alone."""
    one = held.reservation
    if one.policy is not model.Policy.RESTRICTED:
        return {}
    return {
        name: one.allocatable[name] - one.withheld.get(name, 0) - held.allocated.get(name, 0)
        for name in one.charged
    }


def _score_of(held: model.Held, name: str) -> int:
    """Return what a resource adds to `choice.score` without one more owner."""
    offered, used = held.reservation.allocatable[name], held.allocated.get(name, 0)
    return choice.BEST * used // offered if used <= offered else 0
