"""The pods of one quota that wait for it, were let in, or run. Pure.

Pods that ask for the same wait in one list: where the first does not fit, none of them does. So the
cost of a look at a quota follows the number of different requests, not the number of pods.
"""

import bisect
import enum
import heapq
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from domain import short_memo
from domain.quota import model
from domain.quota import placement as placements
from domain.quota.waiting import room

MOST_SHAPES: Final = 128
"""How many different requests of one quota have a list each; pods with others share one list."""
_MIXED: Final = ("mixed",)


class State(enum.Enum):
    """How far a pod has come."""

    GATED = "gated"
    """Only our gate keeps it out of the scheduling queue."""
    BLOCKED = "blocked"
    """Gates of others keep it out as well."""
    OPENED = "opened"
    """The scheduler may bind it."""
    BOUND = "bound"


class LinePod(msgspec.Struct, frozen=True, gc=False):
    """A pod as far as its turn is concerned."""

    uid: str
    use: model.PodUse
    state: State
    priority: int = 0
    created_at: float = 0.0
    preempts: bool = True
    """Whether its preemption policy lets it preempt."""
    unschedulable_since: float | None = None
    """Since when the scheduler has found no node; None while it has not said so."""
    nominated: bool = False
    """Whether capacity is being freed for it on a node."""
    leaving: bool = False
    """Whether it is being deleted."""
    placement: placements.Requirements = placements.NONE
    """What it requires of nodes."""

    @property
    def charged(self) -> bool:
        """Whether it counts as used though it is not bound: the scheduler may bind it any moment.

        A pod without a node that fits withholds nothing, unless room is being made for it.
        """
        waits = self.unschedulable_since is not None and not self.nominated
        return self.state is State.OPENED and not waits

    @property
    def asks(self) -> room.Amounts:
        """Return what it requests, itself counted as one of ``pods``."""
        return _asks(self.use.requests)

    @property
    def order(self) -> "Order":
        """Return its order within its quota: priority, then age."""
        return Order(-self.priority, self.created_at, self.uid)


class Order(NamedTuple):
    """Where a pod stands; the smaller is first."""

    unimportance: int
    created_at: float
    uid: str


Shape = tuple[object, ...]


def shape_of(pod: LinePod) -> Shape:
    """Return what pods have in common that fit together or not at all."""
    return (pod.use.requests, pod.use.preemptible, pod.preempts, pod.placement)


class _Fellows(msgspec.Struct):
    """Pods of one shape that were let in."""

    unschedulable: dict[str, float]
    charged: set[str]


class Queue:
    """Everything of one quota; changed by its line alone."""

    def __init__(self, version: int = 0) -> None:
        self.opened: dict[str, LinePod] = {}
        self.charges = room.Sums()
        self.guarantee_charges = room.Sums()
        self.leaving = room.Sums()
        """What bound pods request that are being deleted."""
        self.version = version
        """Another one after every change."""
        self.blocked = 0
        """How many wait for gates of others as well."""
        self._lists: dict[Shape, list[Order]] = {}
        self._list_of: dict[str, Shape] = {}
        self._pods: dict[str, LinePod] = {}
        self._fellows: dict[Shape, _Fellows] = {}
        self._bound: dict[int, room.Sums] = {}
        self._members = 0

    def __len__(self) -> int:
        """How many pods wait."""
        return len(self._pods)

    @property
    def empty(self) -> bool:
        """Whether it has no pod, counted or not: a bound pod that may not be preempted is one."""
        return not self._members

    def add(self, pod: LinePod) -> None:
        """Take in a pod that is not here."""
        self.version += 1
        self._members += 1
        match pod.state:
            case State.GATED:
                self._pods[pod.uid] = pod
                self._enlist(pod)
            case State.OPENED:
                self._open(pod)
            case State.BLOCKED:
                self.blocked += 1
            case State.BOUND:
                self._count(pod, 1)

    def remove(self, pod: LinePod) -> None:
        """Leave out a pod that is here, as it was added."""
        self.version += 1
        self._members -= 1
        match pod.state:
            case State.GATED:
                del self._pods[pod.uid]
                self._delist(pod)
            case State.OPENED:
                self._close(pod)
            case State.BLOCKED:
                self.blocked -= 1
            case State.BOUND:
                self._count(pod, -1)

    def replace(self, before: LinePod, after: LinePod) -> None:
        """Take in what a pod has become."""
        self.remove(before)
        self.add(after)

    def heads(self) -> Iterator[tuple[Order, LinePod]]:
        """Yield the first pod of each list."""
        for orders in self._lists.values():
            yield orders[0], self._pods[orders[0].uid]

    def in_order(self) -> Iterator[LinePod]:
        """Yield all that wait, the first first."""
        for order in heapq.merge(*self._lists.values()):
            yield self._pods[order.uid]

    def fellows(self, pod: LinePod) -> tuple[float | None, bool]:
        """Return since when the latest pod like this one has no node, and whether one may be bound.

        None: none of them is without a node.
        """
        found = self._fellows.get(shape_of(pod))
        if found is None:
            return None, False
        return max(found.unschedulable.values(), default=None), bool(found.charged)

    def unplaced(self) -> Iterator[LinePod]:
        """Yield those that were let in, for which the scheduler has found no node."""
        for fellows in self._fellows.values():
            for uid in fellows.unschedulable:
                if uid not in fellows.charged:
                    yield self.opened[uid]

    def preemptible_below(self, priority: int) -> room.Amounts:
        """Return what bound preemptible pods of lower priority request."""
        total = room.Sums()
        for own, sums in self._bound.items():
            if own < priority:
                total.add(sums.amounts)
        return total.amounts

    def _enlist(self, pod: LinePod) -> None:
        shape = shape_of(pod)
        if shape not in self._lists and len(self._lists) >= MOST_SHAPES:
            shape = _MIXED
        self._list_of[pod.uid] = shape
        bisect.insort(self._lists.setdefault(shape, []), pod.order)

    def _delist(self, pod: LinePod) -> None:
        shape = self._list_of.pop(pod.uid)
        orders = self._lists[shape]
        del orders[bisect.bisect_left(orders, pod.order)]
        if orders:
            return
        del self._lists[shape]
        if mixed := self._lists.get(_MIXED):
            # A list has become free: who comes first among the others gets it.
            first = self._pods[mixed[0].uid]
            del mixed[0]
            if not mixed:
                del self._lists[_MIXED]
            self._enlist(first)

    def _open(self, pod: LinePod) -> None:
        self.opened[pod.uid] = pod
        fellows = self._fellows.setdefault(shape_of(pod), _Fellows({}, set()))
        if pod.unschedulable_since is not None:
            fellows.unschedulable[pod.uid] = pod.unschedulable_since
        if pod.charged:
            fellows.charged.add(pod.uid)
            self._charge(pod, 1)

    def _close(self, pod: LinePod) -> None:
        del self.opened[pod.uid]
        shape = shape_of(pod)
        fellows = self._fellows[shape]
        fellows.unschedulable.pop(pod.uid, None)
        fellows.charged.discard(pod.uid)
        if not fellows.unschedulable and not fellows.charged:
            del self._fellows[shape]
        if pod.charged:
            self._charge(pod, -1)

    def _charge(self, pod: LinePod, times: int) -> None:
        self.charges.add(pod.asks, times)
        if not pod.use.preemptible:
            self.guarantee_charges.add(pod.asks, times)

    def _count(self, pod: LinePod, times: int) -> None:
        if pod.leaving:
            self.leaving.add(pod.asks, times)
        if pod.leaving or not pod.use.preemptible:
            return
        sums = self._bound.setdefault(pod.priority, room.Sums())
        sums.add(pod.asks, times)
        if not sums.amounts:
            del self._bound[pod.priority]


@short_memo.remembered(4096)
def _asks(requests: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return MappingProxyType({**dict(requests), model.PODS: 1})
