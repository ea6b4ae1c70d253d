"""One look at all quotas: whose turn it is, and what keeps the others waiting. Pure."""

import dataclasses
import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from api import names
from api.koordinator import quota
from domain.quota import model
from domain.quota.waiting import queue, room

LinePod = queue.LinePod

OUTSIDE: Final = frozenset({"", names.DEFAULT_QUOTA, names.SYSTEM_QUOTA})
"""Quotas behind whose gates no pod waits."""


class Tree(Protocol):
    """What is read of the trees of quotas; `domain.quota.tree.forest.Forest` is one."""

    @property
    def rules(self) -> model.Rules:
        """How quotas are enforced."""

    @property
    def naming(self) -> object:
        """Return an object that is the same only as long as no pod has another quota."""

    def name_of(self, label: str, namespace: str) -> str:
        """Return the quota of a pod."""

    def quota(self, name: str) -> quota.Quota | None:
        """Return a quota."""

    def path(self, name: str) -> Sequence[str]:
        """Return a quota and its ancestors, leaf first, without the root quota."""

    def bounds(self, name: str) -> model.Bounds | None:
        """Return what says how much room a quota has."""

    def room_state(self, name: str) -> tuple[object, ...]:
        """Return a value that differs where what a quota may use, or uses, does."""

    def room_sources(self, listed: Iterable[str]) -> Mapping[str, tuple[object, ...]]:
        """Return a value for each quota that is equal only where room_state is, and cheaper."""

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool
    ) -> model.Shortage | None:
        """Return why a pod has to wait."""


@dataclasses.dataclass(frozen=True, slots=True)
class LineRules:
    """How the line works."""

    overtakes: int | None = 100
    """How many pods behind one that does not fit may take what it lacks; 0 makes the line strict
    (StrictFIFO), None sets no bound (BestEffortFIFO)."""
    retry_seconds: float = 30.0
    """While a pod finds no node, how long until another one like it may try."""
    unknown_seconds: float = 10.0
    """How long pods wait after the quota that they name has disappeared."""
    preempts: bool = True
    """Whether a pod that could preempt in its own quota may try, one of each quota at a time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Admission:
    """A pod whose gate opens now."""

    uid: str
    quota: str
    preempts: bool = False
    """It does not fit, but pods of lower priority in its quota could make room."""


@dataclasses.dataclass(frozen=True, slots=True)
class Opening:
    """Whose gates open now, in order, and when to look again."""

    open: tuple[Admission, ...] = ()
    again_at: float = math.inf
    """When time alone may admit a pod."""
    more: bool = False
    """Whether the number was cut."""


@dataclasses.dataclass(frozen=True, slots=True)
class Blocked:
    """The first pod of a quota that does not fit, but would if the quota drained."""

    pod: LinePod
    lack: room.Lack
    entitled: bool

    def harmed_by(self, pod: LinePod) -> bool:
        """Whether another pod would take what this one lacks."""
        if self.lack.guarantee and pod.use.preemptible:
            return False
        asks = pod.asks
        return any(asks.get(name, 0) > 0 for name in self.lack.resources)


def rooms(
    tree: Tree, queues: Mapping[str, queue.Queue], chosen: Iterable[str]
) -> dict[str, room.QuotaRoom]:
    """Return what each of the chosen quotas has room for, after everybody who was let in."""
    shared: dict[str, room.Room] = {}
    found: dict[str, room.QuotaRoom] = {}
    for name in sorted(chosen):
        here, standing = tree.quota(name), tree.bounds(name)
        if here is None or standing is None:
            continue
        parents = _parents(tree, name, shared) if tree.rules.check_parents else ()
        found[name] = room.QuotaRoom(name, standing, parents, here.priority)
    for name, one in found.items():
        one.charge_all(queues[name].charges.amounts, queues[name].guarantee_charges.amounts)
    return found


def _parents(tree: Tree, name: str, shared: dict[str, room.Room]) -> list[tuple[str, room.Room]]:
    for parent in tree.path(name)[1:]:
        if parent not in shared and (standing := tree.bounds(parent)) is not None:
            shared[parent] = room.Room(standing.limit, standing.used)
    return [(parent, shared[parent]) for parent in tree.path(name)[1:] if parent in shared]


Signature = tuple[object, ...]
"""What decides whether a pod of a quota may go; equal ones lead to the same answer."""


class Idle(NamedTuple):
    """When a quota was looked at of which no pod could go."""

    source: tuple[object, ...]
    """What its room was computed from."""
    signature: Signature


_Key = tuple[bool, int, float, str]


def _signature(tree: Tree, name: str, here: queue.Queue) -> Signature:
    return tree.quota(name), tree.room_state(name), here.version


class Turns:
    """Gives quotas their turns, on what the queues say at one moment.

    `overtaken` says how many pods behind one that does not fit took what it lacks, by its uid.
    `idle` remembers quotas of which no pod could go: they are left out until something changes.
    """

    def __init__(
        self,
        tree: Tree,
        queues: Mapping[str, queue.Queue],
        overtaken: Mapping[str, int],
        rules: LineRules,
        now: float,
        idle: dict[str, Idle] | None = None,
    ) -> None:
        self._idle = {} if idle is None or tree.rules.check_parents else idle
        names = queues.keys() - OUTSIDE
        for name in self._idle.keys() - names:
            del self._idle[name]
        self._seen = dict(self._changed(tree, names, queues))
        self.rooms = rooms(tree, queues, self._seen)
        self._timed: set[str] = set()
        self.again_at = math.inf
        self._queues = queues
        self._overtaken = overtaken
        self._rules = rules
        self._now = now
        self._blocked: dict[str, Blocked] = {}
        self._shared = tree.rules.check_parents

    def _changed(
        self, tree: Tree, names: Iterable[str], queues: Mapping[str, queue.Queue]
    ) -> Iterator[tuple[str, Idle]]:
        """Yield the quotas in which something has changed since no pod could go."""
        sources = tree.room_sources(names)
        for name in names:
            here, known, source = queues[name], self._idle.get(name), sources.get(name, ())
            if known is None:
                yield name, Idle(source, _signature(tree, name, here))
            elif known.signature[-1] != here.version or known.source != source:
                found = Idle(source, _signature(tree, name, here))
                if known.signature != found.signature:
                    yield name, found
                else:
                    self._idle[name] = found

    def run(self, most: int) -> Iterator[tuple[Admission, LinePod, tuple[str, ...]]]:
        """Yield who may go, `most` at once, and the uids of whom they overtake.

        The queues have to count each as let in before the next is asked for.
        """
        heap = [(self._key(name, pod), 0, pod) for name, pod in self.survey().items()]
        heapq.heapify(heap)
        taken = 0
        while heap and taken < most:
            key, at, pod = heapq.heappop(heap)
            name = key[-1]
            if self._shared and at != taken:
                # Others have taken something of what this quota shares with them.
                self._push(heap, name, taken)
                continue
            before = [one for _, one in self._before(name, pod) if one.harmed_by(pod)]
            self.rooms[name].charge(pod.asks, preemptible=pod.use.preemptible)
            taken += 1
            yield Admission(pod.uid, name), pod, tuple(one.pod.uid for one in before)
            self._push(heap, name, taken)
        if self._rules.preempts:
            yield from self._preemptors(most - taken)
        self._remember(cut=bool(heap) or taken >= most)

    def _remember(self, *, cut: bool) -> None:
        """Note quotas of which no pod could go, whatever time it is."""
        for name in self.rooms:
            same = self._queues.get(name)
            seen = self._seen[name]
            if cut or name in self._timed or same is None or same.version != seen.signature[-1]:
                self._idle.pop(name, None)
            else:
                self._idle[name] = seen

    def _push(self, heap: list[tuple[_Key, int, LinePod]], name: str, taken: int) -> None:
        if (pod := self._next(name)) is not None:
            heapq.heappush(heap, (self._key(name, pod), taken, pod))

    def survey(self) -> dict[str, LinePod]:
        """Look at every quota where pods wait; return which pod of each may go next."""
        found: dict[str, LinePod] = {}
        for name in self.rooms:
            if len(self._queues[name]) and (pod := self._next(name)) is not None:
                found[name] = pod
        return found

    def waits_for_fellow(self, name: str, pod: LinePod) -> bool:
        """Whether pods like this one find no node, so that it waits before it tries as well."""
        since, coming = self._queues[name].fellows(pod)
        if since is None:
            return False
        until = since + self._rules.retry_seconds
        if not coming and self._now < until:
            self._wait(name, until)
        return coming or self._now < until

    def stops(self, name: str, pod: LinePod) -> Blocked | None:
        """Return whom a pod must not overtake any more, None where it may go."""
        most = self._rules.overtakes
        if most is None:
            return None
        for other, blocked in self._before(name, pod):
            spent = self._overtaken.get(blocked.pod.uid, 0) >= most
            if spent and blocked.harmed_by(pod) and self._yields(name, pod, other, blocked):
                return blocked
        return None

    def _yields(self, name: str, pod: LinePod, other: str, blocked: Blocked) -> bool:
        """Whether a pod lets one go first; a guarantee does not yield to a pod of another quota."""
        return name == other or blocked.entitled or not self.rooms[name].entitles(pod.asks)

    def _next(self, name: str) -> LinePod | None:
        """Return who of a quota may go next, and note who of it waits for it to drain."""
        here = self.rooms[name]
        fitting: list[tuple[queue.Order, LinePod]] = []
        first: Blocked | None = None
        for order, pod in self._queues[name].heads():
            firm = pod.use.preemptible
            lack = here.lack(pod.asks, preemptible=firm)
            if lack is None:
                fitting.append((order, pod))
            elif (first is None or order < first.pod.order) and here.drains_for(
                pod.asks, preemptible=firm
            ):
                first = Blocked(pod, lack, here.entitles(pod.asks))
        if first is None:
            self._blocked.pop(name, None)
        else:
            self._blocked[name] = first
        heapq.heapify(fitting)
        while fitting:
            pod = heapq.heappop(fitting)[1]
            if not self.waits_for_fellow(name, pod) and self.stops(name, pod) is None:
                return pod
        return None

    def _before(self, name: str, pod: LinePod) -> list[tuple[str, Blocked]]:
        """Return the blocked pods that this one would overtake: of its quota, and of siblings."""
        own = self._blocked.get(name)
        found = [] if own is None or pod.order < own.pod.order else [(name, own)]
        parents = self.rooms[name].names[1:]
        if parents:
            found += [
                (other, blocked)
                for other, blocked in self._blocked.items()
                if other != name and blocked.lack.quota in parents
            ]
        return found

    def _key(self, name: str, pod: LinePod) -> _Key:
        here = self.rooms[name]
        return not here.entitles(pod.asks), -here.priority, here.leaf.share, name

    def _preemptors(self, most: int) -> Iterator[tuple[Admission, LinePod, tuple[str, ...]]]:
        """Yield pods that do not fit, but could preempt in their quota: one of each at most."""
        for name in self.rooms:
            if most <= 0:
                return
            if len(self._queues[name]) and self._settled(name):
                pod = self._preemptor(name)
                if pod is not None:
                    most -= 1
                    yield Admission(pod.uid, name, preempts=True), pod, ()

    def _settled(self, name: str) -> bool:
        """Whether everybody who was let in is bound, or has found no node for some time."""
        for pod in self._queues[name].opened.values():
            if pod.charged or pod.unschedulable_since is None:
                return False
            until = pod.unschedulable_since + self._rules.retry_seconds
            if self._now < until:
                self._wait(name, until)
                return False
        return True

    def _wait(self, name: str, until: float) -> None:
        self._timed.add(name)
        self.again_at = min(self.again_at, until)

    def _preemptor(self, name: str) -> LinePod | None:
        here, own = self.rooms[name], self._queues[name]
        for _, pod in sorted(own.heads()):
            firm = pod.use.preemptible
            if here.lack(pod.asks, preemptible=firm, back=own.leaving.amounts) is None:
                return None  # What is being deleted already makes room for it.
            back = own.preemptible_below(pod.priority) if pod.preempts else {}
            if back and here.lack(pod.asks, preemptible=firm, back=back) is None:
                return pod
        return None
