"""The pods that no node took: on which nodes each was judged, and since when it waits.

What a pod was asked about is what the scheduler itself would have taken, so these are the nodes
on which a change of ours can help it. A pod leaves when it found a place or is gone.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from extender import framework

Rows = npt.NDArray[np.intp]
Bits = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True, slots=True)
class Waiter:
    """What is known of a pod that waits; all times are on the wall clock, 0 for never."""

    request: framework.Request
    since: float
    """When it was first refused by all."""
    tried_at: float
    asked: Bits
    """The nodes of the last attempt."""
    ever: Bits
    """The nodes of all attempts since it was last woken in vain."""
    tries: int = 1
    fits_since: float = 0.0
    """Since when some node would take it, as far as was looked after the last attempt."""
    woken_at: float = 0.0
    wakings: int = 0

    def rows(self) -> Rows:
        """Return the rows of the last attempt."""
        return np.flatnonzero(np.unpackbits(self.asked))

    def woken(self) -> bool:
        """Whether it was woken after the last attempt."""
        return self.woken_at > self.tried_at


@dataclasses.dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod for which others were to leave, by node and uid."""

    uid: str
    victims: Mapping[str, frozenset[str]]
    at: float


class Waiting:
    """The waiting pods by key, the one that waits longest first; beyond a limit no more."""

    def __init__(
        self, most: int = 5000, retried: Callable[[float], None] = lambda _seconds: None
    ) -> None:
        """`retried` hears how long after a pod fitted it was tried again, if it was woken."""
        self._most = most
        self._retried = retried
        self._by_key: collections.OrderedDict[str, Waiter] = collections.OrderedDict()
        self._preemptors: collections.OrderedDict[str, Preemptor] = collections.OrderedDict()
        self.changed: set[str] = set()
        """Keys of waiting pods that came or were refused anew since somebody looked."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_key)

    def __iter__(self) -> Iterator[Waiter]:
        """Go through those that wait now and still do when their turn comes."""
        for key in tuple(self._by_key):
            waiter = self._by_key.get(key)
            if waiter is not None:
                yield waiter

    def get(self, key: str) -> Waiter | None:
        """Return a waiting pod."""
        return self._by_key.get(key)

    @property
    def preemptors(self) -> Mapping[str, Preemptor]:
        """Who waits for others to leave, by key."""
        return self._preemptors

    # -- what happens to pods ----------------------------------------------------------------

    def tried(self, key: str, now: float) -> None:
        """Take in that the scheduler asks about a pod."""
        self._preemptors.pop(key, None)
        waiter = self._by_key.get(key)
        if waiter is not None and waiter.woken():
            self._retried(max(now - (waiter.fits_since or waiter.woken_at), 0.0))

    def refused(self, request: framework.Request, rows: Rows, now: float) -> None:
        """Take in that every node of an attempt refused a pod."""
        asked, known = _bits(rows), self._by_key.get(request.key)
        if known is None or known.request.uid != request.uid:
            self._by_key.pop(request.key, None)
            if len(self._by_key) < self._most:
                self._by_key[request.key] = Waiter(request, now, now, asked, asked)
                self.changed.add(request.key)
            return
        self._by_key[request.key] = dataclasses.replace(
            known,
            request=request,
            tried_at=now,
            asked=asked,
            # Woken for a node that the scheduler itself did not want: forget that one.
            ever=asked if known.woken() else _joined(known.ever, asked),
            tries=known.tries + 1,
            fits_since=0.0,
        )
        self.changed.add(request.key)

    def fits(self, waiter: Waiter, since: float) -> Waiter:
        """Note since when some node would take a pod, 0 for not now; return it as noted."""
        if since == waiter.fits_since:
            return waiter
        return self._note(waiter, dataclasses.replace(waiter, fits_since=since))

    def woken(self, waiter: Waiter, now: float) -> None:
        """Note that a pod was woken, unless it was tried meanwhile."""
        self._note(waiter, dataclasses.replace(waiter, woken_at=now, wakings=waiter.wakings + 1))

    def _note(self, before: Waiter, after: Waiter) -> Waiter:
        if self._by_key.get(before.request.key) is before:
            self._by_key[before.request.key] = after
        return after

    def settled(self, key: str, uid: str = "") -> None:
        """Take in that a pod found a node or is gone; only this one if its uid is given."""
        known = self._by_key.get(key)
        if known is not None and uid in ("", known.request.uid):
            del self._by_key[key]
            self.changed.discard(key)
        preemptor = self._preemptors.get(key)
        if preemptor is not None and uid in ("", preemptor.uid):
            del self._preemptors[key]

    def preempts(self, key: str, preemptor: Preemptor) -> None:
        """Take in who is to leave so that a pod fits."""
        self._preemptors[key] = preemptor
        self._preemptors.move_to_end(key)
        if len(self._preemptors) > self._most:
            self._preemptors.popitem(last=False)


def _bits(rows: Rows) -> Bits:
    mask = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.bool_)
    mask[rows[rows >= 0]] = True
    return np.packbits(mask)


def _joined(left: Bits, right: Bits) -> Bits:
    longer, shorter = (left, right) if left.size >= right.size else (right, left)
    joined = longer.copy()
    joined[: shorter.size] |= shorter
    return joined
