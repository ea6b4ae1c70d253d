"""On which nodes Reservations are that a pod is an owner of.

A function of the snapshot alone, kept for pods that are alike: it saves work, no answer changes.
"""

import collections
import operator
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from domain.reservations import owner_index, owners
from extender.framework import verdicts, views
from extender.plugins.reservation import judgement, tracker

_MOST: Final = 64
"""Kinds of owners whose nodes are kept: one byte by node each."""


_MOST_PODS: Final = 256
"""Pods of which it is kept whose owners they are."""


class _Owned(NamedTuple):
    """The names of the owners that a pod is one of, and what they were found by."""

    by: owner_index.OwnerIndex
    pod: owners.Pod
    names: tuple[str, ...]


class Owned:
    """Which owners the pods are that were asked about last: bind asks again what filter did."""

    def __init__(self) -> None:
        self._kept: dict[str, _Owned] = {}

    def of(self, index: owner_index.OwnerIndex, pod: owners.Pod) -> tuple[str, ...]:
        """Return the names, in an index, of the owners that a pod is one of."""
        kept = self._kept.get(pod.uid)
        if kept is not None and kept.by is index and kept.pod == pod:
            return kept.names
        if len(self._kept) >= _MOST_PODS:
            self._kept.clear()
        names = index.of(pod)
        self._kept[pod.uid] = _Owned(index, pod, names)
        return names


class _Kept(NamedTuple):
    """The nodes of some owners by row, and what they were found by; none of it is ever changed."""

    uses: tuple[owner_index.Uses, ...]
    rows: Mapping[str, int]
    members: int
    flags: verdicts.Flags


class Concerned:
    """The nodes of the owners that were asked about last."""

    def __init__(self) -> None:
        self._kept: collections.OrderedDict[tuple[str, ...], _Kept] = collections.OrderedDict()

    def among(
        self, prepared: judgement.Asked, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags:
        """Return which candidates have a Reservation that the pod is an owner of."""
        if not prepared.owners:
            return np.zeros(rows.size, dtype=np.bool_)
        index = tracker.cluster(view).index.uses
        uses = tuple([found for name in prepared.owners if (found := index.get(name)) is not None])
        if rows.size == 1:
            name = view.names[rows.item()]
            return np.array((any(name in found.nodes for found in uses),), dtype=np.bool_)
        flags: verdicts.Flags = self._flags(prepared.owners, uses, view)[rows]
        return flags

    def _flags(
        self, owners: tuple[str, ...], uses: tuple[owner_index.Uses, ...], view: views.View
    ) -> verdicts.Flags:
        kept = self._kept.get(owners)
        if kept is None or not _holds(kept, uses, view):
            kept = self._kept[owners] = _Kept(uses, view.rows, view.members, _found(uses, view))
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(owners)
        return kept.flags


def _holds(kept: _Kept, uses: tuple[owner_index.Uses, ...], view: views.View) -> bool:
    """Whether neither these Reservations nor the rows have changed hands since."""
    if kept.rows is not view.rows or kept.members != view.members:
        return False
    return len(kept.uses) == len(uses) and all(map(operator.is_, kept.uses, uses))


def _found(uses: tuple[owner_index.Uses, ...], view: views.View) -> verdicts.Flags:
    flags = np.zeros(view.known.size, dtype=np.bool_)
    for found in uses:
        flags[[row for node in found.nodes if (row := view.rows.get(node)) is not None]] = True
    return flags
