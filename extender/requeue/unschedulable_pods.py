"""The pods that no node took: on which nodes each was judged, and since when it waits.

What a pod was asked about is what the scheduler itself would have taken, so these are the nodes
on which a change of ours can help it. A pod leaves when it found a place or is gone.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from domain import fairness
from extender.framework import verdicts, views

_PASSED_OVER_SECONDS: Final = 5.0
Rows = npt.NDArray[np.intp]
Bits = npt.NDArray[np.uint8]
_MOST_UNKNOWN: Final = 32
"""kube-scheduler is ahead of this process by the nodes of a moment."""
SMALLEST_SAMPLE: Final = 100
"""kube-scheduler looks at all nodes where fewer than so many are feasible."""


@dataclasses.dataclass(frozen=True, slots=True)
class UnschedulablePod:
    """What is known of a pod that waits; all times are on the wall clock, 0 for never."""

    request: views.PodInfo
    since: float
    """When it was first refused by all."""
    tried_at: float
    asked: Bits
    """The nodes of the last attempt."""
    ever: Bits
    """The nodes of all attempts since it was last woken in vain."""
    asked_at: int = 0
    """How often rows had changed hands by then: later ones are other nodes."""
    tries: int = 1
    fits_since: float = 0.0
    """Since when some node would take it, as far as was looked after the last attempt."""
    woken_at: float = 0.0
    wakings: int = 0
    nominated: str = ""
    """The node to which it was nominated at the last attempt."""
    passed_over: bool = False
    """Whether the nodes of the last attempt are left to others, for one that was not among them."""
    unknown: tuple[str, ...] = ()
    """Some nodes of the last attempt that this process had not seen yet."""

    def rows(self, view: views.View) -> Rows:
        """Return the rows of the last attempt that still stand for the same nodes."""
        return np.flatnonzero(np.unpackbits(attempt_on(view).still(self.asked, self.asked_at)))

    def asks(self, row: int) -> bool:
        """Whether the last attempt asked about a row."""
        place, bit = divmod(row, 8)
        return 0 <= place < self.asked.size and bool(self.asked[place] & (0x80 >> bit))

    def woken(self) -> bool:
        """Whether it was woken after the last attempt."""
        return self.woken_at > self.tried_at


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """The rows that one attempt asked about, and since when each row stands for its node."""

    asked: Rows
    members: int = 0
    """How often rows had changed hands by then."""
    born: verdicts.Column | None = None
    """By row: the count at which its node came."""
    unknown: tuple[str, ...] = ()
    """Some nodes that it asked about and that this process had not seen yet."""

    def still(self, bits: Bits, asked_at: int) -> Bits:
        """Return those rows of an earlier attempt that have not become other nodes since."""
        if self.born is None or asked_at >= self.members:
            return bits
        same = np.packbits(self.born <= asked_at)
        width = min(bits.size, same.size)
        return bits[:width] & same[:width]


def attempt_on(view: views.View, asked: Rows | None = None, unknown: Iterable[str] = ()) -> Attempt:
    """Return an attempt on a view."""
    rows = np.zeros(0, np.intp) if asked is None else asked
    names = tuple(itertools.islice(unknown, _MOST_UNKNOWN))
    return Attempt(rows, view.members, view.born, names)


def namespace_of(key: str) -> str:
    """Return the namespace of namespace/name."""
    return key.partition("/")[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod for which others were to leave, by node and uid."""

    uid: str
    victims: Mapping[str, frozenset[str]]
    at: float


class UnschedulablePods:
    """The waiting pods by key: of each namespace in turn the one that waits longest.

    Beyond a limit namespaces share the places, so that no tenant uses up those of others.
    """

    def __init__(
        self,
        most: int = 5000,
        retried: Callable[[float], None] = lambda _seconds: None,
        *,
        wakes: bool = True,
    ) -> None:
        """`retried` hears how long after a pod fitted it was tried again, if pods are woken."""
        self._wakes = wakes
        self._most = most
        self._retried = retried
        self._by_key: fairness.Slots[UnschedulablePod] = fairness.Slots(most)
        self._preemptors: fairness.Slots[Preemptor] = fairness.Slots(most)
        self.changed: set[str] = set()
        """Keys of waiting pods that came or were refused anew since the last look."""
        self.followers: list[Callable[[str], None]] = []
        """Who hears the key of each pod that was refused while a node that it was not asked about
        keeps capacity for it."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_key)

    def __iter__(self) -> Iterator[UnschedulablePod]:
        """Go through those that wait now and still do when their turn comes."""
        for key in tuple(self._by_key):
            waiter = self._by_key.get(key)
            if waiter is not None:
                yield waiter

    def get(self, key: str) -> UnschedulablePod | None:
        """Return a waiting pod."""
        return self._by_key.get(key)

    @property
    def preemptors(self) -> Mapping[str, Preemptor]:
        """Who waits for others to leave, by key."""
        return self._preemptors.mapping()

    def preemptor(self, key: str) -> Preemptor | None:
        """Return a pod that waits for others to leave."""
        return self._preemptors.get(key)

    def served(self, key: str) -> None:
        """Take in that something was written for a pod: other namespaces come first now."""
        self._by_key.served(namespace_of(key))
        self._preemptors.served(namespace_of(key))

    # -- what happens to pods ----------------------------------------------------------------

    def tried(self, key: str, now: float) -> None:
        """Take in that the scheduler asks about a pod."""
        self._preemptors.pop(key)
        waiter = self._by_key.get(key)
        if waiter is not None and waiter.woken():
            self._retried(max(now - (waiter.fits_since or waiter.woken_at), 0.0))

    def may_pass_over(self, request: views.PodInfo, now: float) -> bool:
        """Whether a pod may be refused for the sake of a node that it was not asked about.

        It is nominated to that node at once, and given up after a while: built-in filters may
        refuse it there.
        """
        known = self._by_key.get(request.key)
        if known is None or known.request.uid != request.uid:
            return self._wakes and len(self._by_key) < self._most
        return known.passed_over and now - known.since < _PASSED_OVER_SECONDS

    def refused(
        self, request: views.PodInfo, attempt: Attempt, now: float, *, passed_over: bool = False
    ) -> None:
        """Take in that every node of an attempt refused a pod."""
        asked, known = _bits(attempt.asked), self._by_key.get(request.key)
        if known is None or known.request.uid != request.uid:
            self._by_key.pop(request.key)
            waiter = UnschedulablePod(
                request, now, now, asked, asked, attempt.members,
                passed_over=passed_over, unknown=attempt.unknown,
            )  # fmt: skip
            taken, lost = self._by_key.offer(request.key, namespace_of(request.key), waiter)
            self.changed.discard(lost)
            if taken:
                self.changed.add(request.key)
            return
        again = dataclasses.replace(
            known,
            request=request,
            tried_at=now,
            asked=asked,
            # Woken for a node that the scheduler itself did not want: forget that one.
            ever=asked
            if known.woken()
            else _joined(attempt.still(known.ever, known.asked_at), asked),
            asked_at=attempt.members,
            tries=known.tries + 1,
            fits_since=0.0,
            # The wall clock may have been set back since.
            woken_at=min(known.woken_at, now),
            nominated="",
            passed_over=passed_over,
            unknown=attempt.unknown,
        )
        self._by_key.replace(request.key, again)
        self.changed.add(request.key)

    def nominated(self, key: str, node: str) -> None:
        """Take in to which node a pod was nominated that was just refused."""
        waiter = self._by_key.get(key)
        if waiter is not None:
            self._note(waiter, dataclasses.replace(waiter, nominated=node))

    def passed_over(self, key: str) -> None:
        """Take in that an attempt left out a node that keeps capacity for the pod."""
        for follower in self.followers:
            follower(key)

    def fits(self, waiter: UnschedulablePod, since: float) -> UnschedulablePod:
        """Note since when some node would take a pod, 0 for not now; return it as noted."""
        if since == waiter.fits_since:
            return waiter
        return self._note(waiter, dataclasses.replace(waiter, fits_since=since))

    def woken(self, waiter: UnschedulablePod, now: float) -> None:
        """Note that a pod was requeued, unless it was retried in between."""
        self._note(waiter, dataclasses.replace(waiter, woken_at=now, wakings=waiter.wakings + 1))

    def _note(self, before: UnschedulablePod, after: UnschedulablePod) -> UnschedulablePod:
        if self._by_key.get(before.request.key) is before:
            self._by_key.replace(before.request.key, after)
        return after

    def settled(self, key: str, uid: str = "") -> None:
        """Take in that a pod found a node or is gone; only this one if its uid is given."""
        known = self._by_key.get(key)
        if known is not None and uid in ("", known.request.uid):
            self._by_key.pop(key)
            self.changed.discard(key)
        preemptor = self._preemptors.get(key)
        if preemptor is not None and uid in ("", preemptor.uid):
            self._preemptors.pop(key)

    def preempts(self, key: str, preemptor: Preemptor) -> None:
        """Note the victims that have to terminate so that a pod fits."""
        self._preemptors.push(key, namespace_of(key), preemptor)


def _bits(rows: Rows) -> Bits:
    mask = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.bool_)
    mask[rows[rows >= 0]] = True
    return np.packbits(mask)


def joined(bits: Bits, rows: Rows) -> Bits:
    """Add rows."""
    return _joined(bits, _bits(rows))


def _joined(left: Bits, right: Bits) -> Bits:
    longer, shorter = (left, right) if left.size >= right.size else (right, left)
    joined = longer.copy()
    joined[: shorter.size] |= shorter
    return joined
