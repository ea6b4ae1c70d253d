"""Moves of the last while: a pod rests after a move, and no two nodes exchange pods. Pure."""

import collections
from collections.abc import Iterable
from typing import Final

import msgspec

from descheduler.model import podinfo

MOST: Final = 2000
"""Moves that are remembered."""


class PastMove(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One pod that has left its node, or is about to."""

    at: float
    """Seconds since the epoch."""
    pod: str
    """namespace/name."""
    uid: str = ""
    controller: str = ""
    """UID of its controlling owner."""
    source: str = ""
    target: str = ""
    """Empty where it was not known."""
    successor: str = ""
    """UID of the pod that replaced it, where that is known."""


def joined(
    kept: Iterable[PastMove], seen: Iterable[PastMove], now: float, seconds: float
) -> tuple[PastMove, ...]:
    """Join what is remembered with what jobs say now; the newest of each pod counts.

    Moves that are over are left out, the oldest first where there are too many.
    """
    found: dict[str, PastMove] = {}
    for move in (*kept, *seen):
        known = found.get(move.uid or move.pod)
        if now - move.at < seconds and (known is None or known.at <= move.at):
            found[move.uid or move.pod] = move
    ordered = sorted(found.values(), key=lambda move: (move.at, move.pod, move.uid))
    return tuple(ordered[-MOST:])


class RecentMoves:
    """What pods and nodes have been through lately; grows with the moves of the round."""

    def __init__(self, past: Iterable[PastMove], now: float, seconds: float) -> None:
        self._now = now
        self._by_uid: dict[str, PastMove] = {}
        self._by_pod: dict[str, PastMove] = {}
        self._by_controller: dict[str, list[PastMove]] = collections.defaultdict(list)
        self._left_for: dict[str, set[str]] = collections.defaultdict(set)
        """By node: nodes that pods have left for it."""
        for move in past:
            if now - move.at < seconds:
                self.add(move)

    def add(self, move: PastMove) -> None:
        """Take in a move."""
        for uid in filter(None, (move.uid, move.successor)):
            self._by_uid[uid] = move
        self._by_pod[move.pod] = move
        if move.controller:
            self._by_controller[move.controller].append(move)
        if move.target:
            self._left_for[move.target].add(move.source)

    def of(self, pod: podinfo.Pod) -> PastMove | None:
        """Return the move that a pod has made, or that it comes from; None where it may move.

        Pods of a controller that were created after one of its pods had moved may be the one that
        replaces it: nothing tells it from the others where no Reservation was made for it.
        """
        found = self._by_uid.get(pod.uid) or self._by_pod.get(pod.key)
        owner = pod.controller
        if found is not None or owner is None:
            return found
        moves = self._by_controller.get(owner.uid, ())
        return next((one for one in moves if not one.successor and pod.created >= one.at), None)

    def sources_of(self, node: str) -> frozenset[str]:
        """Return the nodes that pods have left for this one: to move one there would be a swap."""
        return frozenset(self._left_for.get(node, ()))

    def minutes_since(self, move: PastMove) -> float:
        """Return the age of a move in minutes."""
        return (self._now - move.at) / 60.0
