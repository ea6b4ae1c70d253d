"""Who may go next among the pods that wait for quota, in fair order over all quotas. Pure.

Pods of one quota stand in one line: by priority, then by age. Quotas take turns: first those that
stay within their minimum, then by quota priority, then those that use the smallest part of their
limit. Every pod that was let in counts as used until it is bound, is gone, or the scheduler has
found no node for it.

A pod that does not fit is overtaken by smaller ones behind it, so that nothing lies idle, but only
by so many that take what it lacks; then its quota drains until it fits. A pod that would not even
fit an empty quota blocks no other.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from domain import wording
from domain.quota import model
from domain.quota.waiting import queue, turns

LinePod = queue.LinePod
State = queue.State
LineRules = turns.LineRules
Opening = turns.Opening
Admission = turns.Admission
Tree = turns.Tree

WAITING_IN_LINE: Final = "WaitingInLine"
INSUFFICIENT_QUOTA: Final = "InsufficientQuota"

_LIKE: Final = (
    "pods with the same requests were let in and the scheduler has found no node for them; "
    "this one tries when they have one, or after {seconds:g} s"
)
_PROMISED: Final = (
    "quota {quota} has room, but it is promised to pods that were let in and are not bound yet"
)
_OVERTAKES: Final = (
    "quota {quota} drains for a pod that was created earlier or has a higher priority: "
    "{overtaken} overtaken it"
)
_UNKNOWN: Final = "quota {quota} does not exist any more; the gate opens soon"
_OPEN: Final = "{sum}; its gate was opened before, and no node had room for it"
_TURN: Final = "quota {quota} has room; the gate opens soon"


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a pod waiting, and its place in the line of its quota."""

    uid: str
    quota: str
    reason: str
    note: str
    place: int
    """0 where its gate is open."""
    of: int
    shortage: model.Shortage | None = None
    """None where the quota itself has room."""


class Line:
    """All pods that have to do with quota; the caller tells it of every change.

    It is rebuilt from the pods of the API server; only how often a pod was overtaken starts anew.
    """

    def __init__(self, rules: LineRules | None = None) -> None:
        self.rules = rules or LineRules()
        self._queues: dict[str, queue.Queue] = {}
        self._overtaken: dict[str, int] = {}
        self._pods: dict[str, LinePod] = {}
        self._groups: dict[tuple[str, str], set[str]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._unknown: dict[str, float] = {}
        self._idle: dict[str, turns.Idle] = {}
        self._naming: object = None
        """By what the quotas of all pods were found; None where pods are to be looked at anew."""
        self._versions = itertools.count(step=1 << 40)

    def __len__(self) -> int:
        """How many pods wait for us alone."""
        return sum(map(len, self._queues.values()))

    def get(self, uid: str) -> LinePod | None:
        """Return a pod as it was put in."""
        return self._pods.get(uid)

    def waiting(self) -> dict[str, int]:
        """Return how many pods wait, by quota."""
        return {name: len(found) for name, found in self._queues.items() if len(found)}

    def unplaced(self) -> set[str]:
        """Return the quotas of pods that were let in and found no node."""
        return {name for name, found in self._queues.items() if any(found.unplaced())}

    def put(self, pod: LinePod) -> None:
        """Take in a pod, or what it has become."""
        before = self._pods.get(pod.uid)
        if before == pod:
            return
        group = _group(pod)
        self._pods[pod.uid] = pod
        if before is not None and _group(before) == group:
            if (name := self._names.get(group)) is not None:
                self._queues[name].replace(before, pod)
        else:
            if before is not None:
                self._take_out(before)
            self._groups.setdefault(group, set()).add(pod.uid)
            if (name := self._names.get(group)) is not None:
                self._enter(name, pod)
            else:
                self._naming = None
        if pod.state is not State.GATED:
            self._overtaken.pop(pod.uid, None)

    def drop(self, uid: str) -> None:
        """Leave out a pod that is gone."""
        if (before := self._pods.pop(uid, None)) is not None:
            self._take_out(before)
            self._overtaken.pop(uid, None)

    def opening(self, tree: Tree, now: float, most: int) -> Opening:
        """Return whose gates open now, `most` at once.

        They count as let in from now on; a caller that cannot open a gate puts its pod back.
        """
        self._resolve(tree, now)
        found, again_at = self._released(now, most)
        look = self._look(tree, now, self._idle)
        for admission, pod, overtaken in look.run(most - len(found)):
            found.append(admission)
            for uid in overtaken:
                self._overtaken[uid] = self._overtaken.get(uid, 0) + 1
            self.put(msgspec.structs.replace(pod, state=State.OPENED, unschedulable_since=None))
        return Opening(tuple(found), min(again_at, look.again_at), more=len(found) >= most > 0)

    def drain(self, tree: Tree, now: float, most: int) -> Opening:
        """Return whose gates open now if no pod is kept waiting, `most` at once."""
        self._resolve(tree, now)
        found = [
            Admission(pod.uid, name)
            for name in sorted(self._queues)
            for pod in itertools.islice(self._queues[name].in_order(), most)
        ][:most]
        for one in found:
            self.put(msgspec.structs.replace(self._pods[one.uid], state=State.OPENED))
        return Opening(tuple(found), more=len(found) >= most > 0)

    def holds(self, tree: Tree, now: float) -> "Holds":
        """Return what holds each waiting pod at this moment."""
        self._resolve(tree, now)
        return Holds(self._look(tree, now), tree, self._queues, self.rules)

    def _look(
        self, tree: Tree, now: float, idle: dict[str, turns.Idle] | None = None
    ) -> turns.Turns:
        return turns.Turns(tree, self._queues, self._overtaken, self.rules, now, idle)

    def _released(self, now: float, most: int) -> tuple[list[Admission], float]:
        """Return those who have no quota to wait for, and when the next of them may go."""
        found: list[Admission] = []
        again_at = math.inf
        for name in sorted(turns.OUTSIDE & self._queues.keys()):
            for pod in self._queues[name].in_order():
                if len(found) >= most:
                    break
                until = self._unknown.get(pod.use.quota, -math.inf) + self.rules.unknown_seconds
                if now < until:
                    again_at = min(again_at, until)
                else:
                    found.append(Admission(pod.uid, name))
        for one in found:
            self.put(msgspec.structs.replace(self._pods[one.uid], state=State.OPENED))
        return found, again_at

    def _resolve(self, tree: Tree, now: float) -> None:
        """Find the quota of every pod: quotas come, go and are bound to namespaces."""
        if self._naming is tree.naming:
            return
        self._naming = tree.naming
        missing: dict[str, float] = {}
        for group, uids in self._groups.items():
            label, namespace = group
            name = tree.name_of(label, namespace)
            if label and label != name:
                missing[label] = self._unknown.get(label, now)
            before = self._names.get(group)
            if before == name:
                continue
            for uid in uids:
                if before is not None:
                    self._leave(before, self._pods[uid])
                self._enter(name, self._pods[uid])
            self._names[group] = name
        self._unknown = missing

    def _take_out(self, pod: LinePod) -> None:
        group = _group(pod)
        uids = self._groups[group]
        uids.discard(pod.uid)
        name = self._names.get(group)
        if not uids:
            del self._groups[group]
            self._names.pop(group, None)
            self._naming = None
        if name is not None:
            self._leave(name, pod)

    def _enter(self, name: str, pod: LinePod) -> None:
        if name not in self._queues:
            # No queue has a version that an earlier one of its quota had.
            self._queues[name] = queue.Queue(next(self._versions))
        self._queues[name].add(pod)

    def _leave(self, name: str, pod: LinePod) -> None:
        found = self._queues[name]
        found.remove(pod)
        if found.empty:
            del self._queues[name]


class Holds:
    """What holds the waiting pods, quota by quota; valid until the line changes."""

    def __init__(
        self,
        look: turns.Turns,
        tree: Tree,
        queues: Mapping[str, queue.Queue],
        rules: LineRules,
    ) -> None:
        look.survey()
        self._look = look
        self._tree = tree
        self._queues = queues
        self._rules = rules

    def of(self, name: str) -> Iterator[Hold]:
        """Yield what holds each waiting pod of a quota, the first in line first."""
        found = self._queues.get(name)
        if found is None:
            return
        of = len(found)
        told: dict[queue.Shape, tuple[str, str, model.Shortage | None]] = {}
        for place, pod in enumerate(found.in_order(), 1):
            shape = queue.shape_of(pod)
            if shape not in told:
                told[shape] = self._reason(name, pod)
            reason, note, short = told[shape]
            yield Hold(pod.uid, name, reason, note, place, of, short)

    def unplaced(self, name: str) -> Iterator[Hold]:
        """Yield what holds the pods of a quota that found no node when they were let in.

        Such a pod withholds nothing. Those are left out that the quota has room for all the same.
        """
        if name not in self._look.rooms:
            return
        found = self._queues[name]
        told: dict[queue.Shape, model.Shortage | None] = {}
        for pod in found.unplaced():
            shape, use = queue.shape_of(pod), pod.use
            if shape not in told:
                told[shape] = self._tree.shortage(name, use.requests, preemptible=use.preemptible)
            if (short := told[shape]) is not None:
                note = _OPEN.format(sum=short.text())
                yield Hold(pod.uid, name, INSUFFICIENT_QUOTA, note, 0, len(found), short)

    def _reason(self, name: str, pod: LinePod) -> tuple[str, str, model.Shortage | None]:
        """Return why pods of this shape wait: reason, sentence and shortage."""
        look, use, most = self._look, pod.use, self._rules.overtakes
        if name not in look.rooms:
            return WAITING_IN_LINE, _UNKNOWN.format(quota=_short(use.quota)), None
        short = self._tree.shortage(name, use.requests, preemptible=use.preemptible)
        if short is not None:
            return INSUFFICIENT_QUOTA, short.text(), short
        if look.rooms[name].lack(pod.asks, preemptible=use.preemptible) is not None:
            note = _PROMISED.format(quota=_short(name))
        elif look.waits_for_fellow(name, pod):
            note = _LIKE.format(seconds=self._rules.retry_seconds)
        elif look.stops(name, pod) is not None:
            overtaken = wording.count(most or 0, "pod has", "pods have")
            note = _OVERTAKES.format(quota=_short(name), overtaken=overtaken)
        else:
            note = _TURN.format(quota=_short(name))
        return WAITING_IN_LINE, note, None


def plan(
    tree: Tree, pods: Iterable[LinePod], now: float, rules: LineRules | None = None
) -> tuple[Opening, dict[str, Hold]]:
    """Return whose gates open now, and what holds each of the others afterwards, by uid."""
    line = Line(rules)
    for pod in pods:
        line.put(pod)
    opening = line.opening(tree, now, most=len(line) + 1)
    holds = line.holds(tree, now)
    return opening, {hold.uid: hold for name in line.waiting() for hold in holds.of(name)}


def _group(pod: LinePod) -> tuple[str, str]:
    return pod.use.quota, pod.use.namespace


def _short(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:100]}…"
