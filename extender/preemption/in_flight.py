"""Preemptions that have begun: whose victims are awaited where. Pure; shared by verbs and shell."""

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from domain.pods import disruption_budgets as disruption
from extender.framework import claim_index, verdicts
from extender.framework.eviction import preemption
from extender.preemption import preemption_record
from extender.state import cluster_state

AWAITED: Final = verdicts.Status("node is kept while pods leave it or its quota", resolvable=True)
"""What filter says of a claimed node: kube-scheduler evicts no other pod meanwhile."""
_MOST_EMPTY: Final = 2
"""How often in a row preemption is put off because a node that was not asked about may do."""
_MOST_KEPT: Final = 4096
_CLOCK_STEP_SECONDS: Final = 60.0
"""By how much the wall clock may be set back without consequences."""


@dataclasses.dataclass(frozen=True, slots=True)
class Preemption:
    """One pod that preempts."""

    key: str
    uid: str
    record: preemption_record.Record
    since: float
    """On the wall clock: when this process began it, or read of it."""
    own: bool
    """Whether this process planned it; else it was read from the pod."""
    evicted: frozenset[str] = frozenset()
    """Uids whose eviction the API server has accepted."""
    freed_at: float = 0.0
    """On the wall clock: when the last victim was seen gone; 0 while any is there."""
    spared: bool = False
    """Whether a victim was refused after others had left: it is planned anew while these are kept
    for the pod."""


def is_over(until: float, since: float, now: float) -> bool:
    """Whether a place has been kept for long enough; all by the wall clock.

    One that was set back to before it began would keep it for as much longer.
    """
    return now >= until or now < since - _CLOCK_STEP_SECONDS


class Preemptions:
    """All of them, and who hears of refusals and of pods that are to be tried again."""

    def __init__(
        self,
        index: claim_index.ClaimIndex | None = None,
        budgets: Callable[[], disruption.Budgets] = lambda: disruption.NONE,
    ) -> None:
        self._index, self._budgets = index, budgets
        self._by_uid: dict[str, Preemption] = {}
        self._by_victim: dict[str, set[str]] = {}
        self._empty: collections.OrderedDict[str, int] = collections.OrderedDict()
        self.refused: Callable[[str], None] = _ignore
        """Told the key of every pod that all nodes refused."""
        self.requeue: Callable[[str], None] = _ignore
        """Told the key of a pod that the scheduler is to try again soon."""

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Preemption]:
        return iter(tuple(self._by_uid.values()))

    def get(self, uid: str) -> Preemption | None:
        """Return the preemption on behalf of a pod."""
        return self._by_uid.get(uid)

    def put(self, one: Preemption) -> None:
        """Keep a preemption as it is now."""
        self.drop(one.uid)
        self._by_uid[one.uid] = one
        for victim in one.record.victims:
            self._by_victim.setdefault(victim, set()).add(one.uid)

    def drop(self, uid: str) -> Preemption | None:
        """Forget the preemption on behalf of a pod."""
        found = self._by_uid.pop(uid, None)
        for victim in found.record.victims if found is not None else ():
            waiting = self._by_victim.get(victim, set())
            waiting.discard(uid)
            if not waiting:
                self._by_victim.pop(victim, None)
        return found

    def of_victim(self, uid: str) -> list[Preemption]:
        """Return the preemptions that wait for a pod to leave."""
        return [self._by_uid[one] for one in sorted(self._by_victim.get(uid, ()))]

    def awaited(self, uid: str) -> str:
        """Return the node that is kept for a pod while its victims leave; empty: none is."""
        found = self._by_uid.get(uid)
        return found.record.node if found is not None and not found.freed_at else ""

    def stands(self, uid: str, tried_at: float) -> bool:
        """Whether a place was kept for a pod when it was tried, so that no other pod has to leave.

        An attempt may have been refused before its last victim left, and be told of after that.
        """
        found = self._by_uid.get(uid)
        return found is not None and (not found.freed_at or tried_at <= found.freed_at)

    def terms(
        self, cluster: cluster_state.ClusterState, until: float = math.inf
    ) -> preemption.Terms:
        """Return who may leave, as things are now."""
        index = self._index or claim_index.ClaimIndex(cluster.all_claims())
        return preemption.Terms(index, self._budgets(), until=until)

    def budgets(self) -> disruption.Budgets:
        """Return the disruption budgets, as they are now."""
        return self._budgets()

    def going(self, uid: str) -> frozenset[str]:
        """Return the victims in flight that count in planning for one pod."""
        return frozenset(
            victim
            for one in self._by_uid.values()
            if one.own
            for victim in (one.evicted if one.uid == uid else one.record.victims)
        )

    def put_off(self, uid: str) -> bool:
        """Whether a pod may be tried on other nodes first; not for ever."""
        tried = self._empty.pop(uid, 0)
        if tried >= _MOST_EMPTY:
            return False
        self._empty[uid] = tried + 1
        if len(self._empty) > _MOST_KEPT:
            self._empty.popitem(last=False)
        return True


class CoolDown:
    """Pods that preempted in vain are left alone, each time for longer; bounded memory.

    By the monotonic clock: they must not be left alone for as long as the other one is set back.
    """

    def __init__(self, first: float, longest: float, most: int = _MOST_KEPT) -> None:
        self._first, self._longest, self._most = first, longest, most
        self._by_uid: collections.OrderedDict[str, tuple[float, int]] = collections.OrderedDict()

    def left(self, uid: str, now: float) -> float:
        """Return how long a pod is still left alone."""
        until, _ = self._by_uid.get(uid, (0.0, 0))
        return max(0.0, until - now)

    def failed(self, uid: str, now: float) -> float:
        """Take in that preempting came to nothing; return for how long it is not tried again."""
        _, times = self._by_uid.pop(uid, (0.0, 0))
        pause = min(self._first * float(1 << min(times, 20)), self._longest)
        self._by_uid[uid] = now + pause, times + 1
        if len(self._by_uid) > self._most:
            self._by_uid.popitem(last=False)
        return pause

    def forget(self, uid: str) -> None:
        """Forget a pod that found its place or is gone."""
        self._by_uid.pop(uid, None)


def present(victims: Sequence[str], cluster: cluster_state.ClusterState) -> Mapping[str, bool]:
    """Return the victims that are still on a node, and whether each is leaving."""
    found = ((uid, cluster.placed(uid)) for uid in victims)
    return {uid: pod.leaves_at >= 0 for uid, pod in found if pod is not None}


def begun(one: Preemption, cluster: cluster_state.ClusterState) -> frozenset[str]:
    """Return the victims that have left or are leaving, whichever process has evicted them."""
    there = present(one.record.victims, cluster)
    gone = (uid for uid in one.record.victims if there.get(uid, True))
    return one.evicted.union(gone)


def _ignore(_key: str) -> None:
    """No listener."""
