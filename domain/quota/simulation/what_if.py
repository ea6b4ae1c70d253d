"""What would happen to the pods of a forest: who starts when, who is evicted, who keeps waiting.

Plays time forward with the very functions that act on a cluster: `line` opens gates, `Forest`
admits, `fit` places, the preemptor and the reclaimer that are passed in choose victims. Nothing is
random, no clock is read. Pods end when their durations say so; where none is known, they run on.
"""

import dataclasses
import enum
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from domain.quota import model
from domain.quota.simulation import fit, nominations, outcomes, reserved
from domain.quota.tree import forest as forests
from domain.quota.waiting import line

Amounts = model.Amounts
State = line.State
Start = outcomes.Start
Eviction = outcomes.Eviction
Wait = outcomes.Wait

_MOST_ROUNDS: Final = 10_000
"""Rounds at one moment, each of which opens a gate, starts or evicts a pod."""
_MOST_WAITS: Final = 3
"""How often time alone is awaited without anything happening before it counts as nothing."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as it takes part: its place in line, and how long it runs."""

    uid: str
    key: str
    line: line.LinePod
    node: str = ""
    started_at: float = 0.0
    seconds: float | None = None
    """How long it runs, as declared or observed; None: it runs on."""
    nominated: str = ""
    """The node where it is expected already."""

    @property
    def asks(self) -> Amounts:
        """Return what it requests, itself counted as one of ``pods``."""
        return self.line.asks


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What happens, in order, and how it ends."""

    forest: forests.Forest
    """The quotas as they stand before the first running pod ends."""
    starts: tuple[Start, ...]
    evictions: tuple[Eviction, ...]
    waits: tuple[Wait, ...]
    until: float
    """The moment up to which this was played."""


class Removal(NamedTuple):
    """Who leaves together, and why."""

    uids: tuple[str, ...]
    kind: str
    gains: str
    node: str = ""
    """Where the pod goes for which they leave, where that is known."""


class World(Protocol):
    """What victims are chosen from; read only."""

    @property
    def forest(self) -> forests.Forest:
        """All quotas with their pods."""

    @property
    def pods(self) -> Mapping[str, Pod]:
        """Every pod that has not ended, by uid."""

    @property
    def nodes(self) -> fit.Table:
        """Room on nodes."""

    @property
    def kept(self) -> nominations.Nominations:
        """What is kept for pods whose victims have left."""


class Preemptor(Protocol):
    """Chooses victims for a pod that its quota or every node refuses."""

    def preempt(self, world: World, uid: str, now: float) -> Removal | None:
        """Return which pods leave for this pod, None where none do."""


class Reclaimer(Protocol):
    """Chooses victims among pods of quotas that use more than they are entitled to."""

    def reclaim(self, world: World, now: float) -> tuple[Sequence[Removal], float]:
        """Return who leaves now, and when to look again (infinite: when something changed)."""


class Refused(enum.Enum):
    """When the scheduler tries pods again for which it found no node before a change of quotas.

    Such a change leaves them in its queue of unschedulable pods until the extender wakes them, so
    pods whose gates open may come first.
    """

    TRIED_AGAIN = enum.auto()
    """With all others, in the order of the queue."""
    TRIED_LAST = enum.auto()
    """After everything else has happened."""
    SLEEP = enum.auto()
    """Only when a pod has left."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """How far and by what rules it is played."""

    rules: line.LineRules = dataclasses.field(default_factory=line.LineRules)
    horizon: float = 24 * 3600.0
    """Seconds to look ahead."""
    reserves: reserved.Reserves | None = None
    """What Reservations keep; it changes while this is played."""
    preemptor: Preemptor | None = None
    reclaimer: Reclaimer | None = None
    refused: Refused = Refused.TRIED_AGAIN
    """When pods are tried again for which no node was found before."""


_ASLEEP: Final = (Refused.TRIED_LAST, Refused.SLEEP)


def play(
    forest: forests.Forest,
    nodes: Iterable[fit.Node],
    pods: Iterable[Pod],
    now: float,
    terms: Terms | None = None,
) -> Outcome:
    """Play forward from a state in which `forest` counts exactly these pods."""
    stage = _Stage(forest, fit.Table(nodes), pods, now, terms or Terms())
    stage.run()
    return stage.outcome()


class _Stage:
    """The state that is played on."""

    def __init__(
        self,
        forest: forests.Forest,
        nodes: fit.Table,
        pods: Iterable[Pod],
        now: float,
        terms: Terms,
    ) -> None:
        self.forest = forest
        self.nodes = nodes
        self.pods: dict[str, Pod] = {}
        self.now = now
        self._terms = terms
        self._end = now + terms.horizon
        self._line = line.Line(terms.rules)
        self._ends: list[tuple[float, str]] = []
        self.kept = nominations.Nominations(self._terms.reserves)
        self._starts: list[Start] = []
        self._evictions: list[Eviction] = []
        self._again_at = math.inf
        self._reclaim_at = math.inf
        self._before_ends: forests.Forest | None = None
        self._asleep: set[str] = set()
        for pod in pods:
            self.pods[pod.uid] = pod
            if pod.line.unschedulable_since is not None and terms.refused in _ASLEEP:
                self._asleep.add(pod.uid)
            self._line.put(pod.line)
            if pod.node:
                self.nodes.take(pod.node, pod.asks)
                self._schedule_end(pod)
            elif pod.nominated:
                self.kept.keep(pod.line, pod.nominated, now)

    # -- time --------------------------------------------------------------------------------

    def run(self) -> None:
        """Play until nothing more happens, or to the horizon."""
        fruitless = 0
        while True:
            happened = self._settle()
            fruitless = 0 if happened else fruitless + 1
            ends = self._ends[0][0] if self._ends else math.inf
            # Waiting alone may let a pod try again; where it did not, only an end will.
            again = self._again_at if fruitless < _MOST_WAITS else math.inf
            following = min(
                ends,
                max(again, self.now),
                max(self._reclaim_at, self.now),
                self.kept.next_end,
            )
            if following > self._end or following == math.inf:
                return
            self.now = following
            for uid in self.kept.over(self.now):
                self.kept.drop(uid)
                self._put(self.pods[uid], nominated=False)
                fruitless = 0
            if ends <= following and self._before_ends is None:
                self._before_ends = self.forest
            while self._ends and self._ends[0][0] <= self.now:
                _, uid = heapq.heappop(self._ends)
                if uid in self.pods:
                    self._remove(self.pods[uid])
                    fruitless = 0

    def _settle(self) -> bool:
        """Let everything happen that can happen at this moment; tell whether anything did."""
        happened = self._open()
        for _ in range(_MOST_ROUNDS):
            # The scheduler has tried all pods again before a gate opens or others are evicted.
            if not (self._attempts() or self._open() or self._reclaims() or self._woken()):
                break
            happened = True
        return happened

    def _woken(self) -> bool:
        """Let pods that were refused before try again, after everything else has happened."""
        if not self._asleep or self._terms.refused is not Refused.TRIED_LAST:
            return False
        self._asleep.clear()
        return True

    def _open(self) -> bool:
        opening = self._line.opening(self.forest, self.now, len(self.pods) + 1)
        self._again_at = opening.again_at
        for admission in opening.open:
            self._put(self.pods[admission.uid], state=State.OPENED, unschedulable_since=None)
        return bool(opening.open)

    # -- the scheduler -----------------------------------------------------------------------

    def _attempts(self) -> bool:
        """Try every pod that the scheduler has in its queue, in the order of its queue."""
        present = (pod for pod in self.pods.values() if not pod.node and not pod.line.leaving)
        opened = (pod for pod in present if pod.line.state is State.OPENED)
        waiting = [pod for pod in opened if pod.uid not in self._asleep]
        waiting.sort(key=lambda pod: (-pod.line.priority, pod.line.created_at, pod.uid))
        happened = False
        for pod in waiting:
            if pod.uid in self.pods:
                happened = self._attempt(self.pods[pod.uid]) or happened
        return happened

    def _attempt(self, pod: Pod) -> bool:
        """Place a pod, or make room for it; tell whether anything happened."""
        if self._shortage(pod) is None and (node := self.kept.place(self.nodes, pod.line)):
            self._bind(pod, node)
            return True
        happened = False
        if self._terms.preemptor is not None and pod.line.preempts:
            removal = self._terms.preemptor.preempt(self, pod.uid, self.now)
            if removal is not None and removal.uids:
                self._evict(removal)
                happened = True
        present = self.pods[pod.uid]
        if present.line.unschedulable_since is None:
            self._put(present, unschedulable_since=self.now)
        return happened

    def _shortage(self, pod: Pod) -> model.Shortage | None:
        use = pod.line.use
        seen = self.kept.forest_for(self.forest, pod.line)
        name = seen.name_of(use.quota, use.namespace)
        return seen.shortage(name, use.requests, preemptible=use.preemptible)

    def _bind(self, pod: Pod, node: str) -> None:
        self.kept.drop(pod.uid)
        use = pod.line.use
        placed = msgspec.structs.replace(
            pod,
            node=node,
            started_at=self.now,
            line=msgspec.structs.replace(
                pod.line,
                state=State.BOUND,
                unschedulable_since=None,
                nominated=False,
                use=msgspec.structs.replace(use, assigned=True),
            ),
        )
        self.forest = self.forest.with_pod(use, placed.line.use)
        self.kept.reserves.bind(self.nodes, pod.line, node)
        self.nodes.take(node, pod.asks)
        self.pods[pod.uid] = placed
        self._line.put(placed.line)
        self._starts.append(Start(pod.uid, self.now, node))
        self._schedule_end(placed)

    # -- leaving -----------------------------------------------------------------------------

    def _reclaims(self) -> bool:
        if self._terms.reclaimer is None:
            return False
        removals, self._reclaim_at = self._terms.reclaimer.reclaim(self, self.now)
        for removal in removals:
            self._evict(removal)
        return any(removal.uids for removal in removals)

    def _evict(self, removal: Removal) -> None:
        for uid in removal.uids:
            pod = self.pods.get(uid)
            if pod is None:
                continue
            ran = max(0.0, self.now - pod.started_at)
            lost = {key: amount * ran for key, amount in pod.asks.items() if key != model.PODS}
            self._evictions.append(Eviction(uid, self.now, removal.kind, removal.gains, lost))
            self._remove(pod)
        gains = self.pods.get(removal.gains)
        if gains is not None and removal.node:
            self.kept.keep(gains.line, removal.node, self.now)
            self._put(gains, nominated=True)

    def _remove(self, pod: Pod) -> None:
        self.forest = self.forest.with_pod(pod.line.use, None)
        if pod.node:
            self.nodes.give_back(pod.node, pod.asks)
        del self.pods[pod.uid]
        self._line.drop(pod.uid)
        self.kept.drop(pod.uid)
        self.kept.reserves.leave(pod.uid)
        self._asleep.clear()

    # -- bookkeeping -------------------------------------------------------------------------

    def _put(self, pod: Pod, **changes: object) -> None:
        changed = msgspec.structs.replace(pod, line=msgspec.structs.replace(pod.line, **changes))
        self.pods[pod.uid] = changed
        self._line.put(changed.line)

    def _schedule_end(self, pod: Pod) -> None:
        if pod.seconds is not None:
            heapq.heappush(self._ends, (max(self.now, pod.started_at + pod.seconds), pod.uid))

    # -- the end -----------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """Return what happened, and what those lack who still wait."""
        holds = self._line.holds(self.forest, self.now)
        held = {hold.uid: hold for name in self._line.waiting() for hold in holds.of(name)}
        waits = [
            self._wait(pod, held.get(pod.uid))
            for pod in sorted(self.pods.values(), key=lambda pod: pod.key)
            if not pod.node
        ]
        return Outcome(
            self._before_ends or self.forest,
            tuple(self._starts),
            tuple(self._evictions),
            tuple(waits),
            self.now,
        )

    def _wait(self, pod: Pod, hold: line.Hold | None) -> Wait:
        place, of_line = (hold.place, hold.of) if hold is not None else (0, 0)
        if pod.line.state is State.BLOCKED:
            return Wait(pod.uid, "other scheduling gates keep it waiting", {}, "", place, of_line)
        short = self._shortage(pod)
        if short is not None:
            needs = {
                key: short.used.get(key, 0) + short.requested.get(key, 0) - short.limit[key]
                for key in short.exceeded
            }
            return Wait(pod.uid, short.text(), needs, short.quota, place, of_line)
        nodes = self.kept.table_for(self.nodes, pod.line)
        asks, wanted = pod.asks, pod.line.placement
        needs = nodes.lacks(asks, wanted)
        sentence = "no node has room for it" if needs else "no node that it may use takes it"
        if self.kept.reserves.needs_one(pod.uid):
            sentence = "no Reservation that it may use has room for it"
        elif needs and self.nodes.place(asks, wanted):
            sentence = "the room that it needs is kept by Reservations"
        if hold is not None and hold.note:
            sentence = hold.note
        return Wait(pod.uid, sentence, needs, "", place, of_line)
