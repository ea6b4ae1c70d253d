"""Reclaim in a what-if: the planner of the manager chooses, after the same grace. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from domain.quota import reclaim as reclaims
from domain.quota.simulation import what_if
from domain.quota.waiting import line, turns

KIND: Final = "reclaim"
REVOKE: Final = "revoke"
_MOST_LOOKED_AT: Final = 50
_PAUSE_SECONDS: Final = 60.0
"""How long the manager leaves a pod alone for which others have left in vain."""


class Reclaimer:
    """Evicts borrowers that are over their share for pods that are entitled and find no node."""

    def __init__(
        self,
        grace: float,
        *,
        revokes: bool = False,
        exempt: Callable[[str], bool] = lambda _uid: False,
    ) -> None:
        """`grace` in seconds; `revokes`: evict from quotas that are over, even if no pod waits.

        `exempt` tells by uid which pods are never evicted.
        """
        self._grace = grace
        self._revokes = revokes
        self._exempt = exempt
        self._over: dict[str, float] = {}
        self._expected: dict[str, str] = {}
        self._avoided: dict[str, set[str]] = {}
        self._again: dict[str, float] = {}

    def reclaim(self, world: what_if.World, now: float) -> tuple[Sequence[what_if.Removal], float]:
        """Return who leaves now for one waiting pod, and when a grace ends."""
        waiting = _stuck(world)
        if not waiting and not self._revokes:
            self._over.clear()
            return (), math.inf
        self._note_failures(waiting, now)
        ready = [pod for pod in waiting if self._again.get(pod.uid, now) <= now]
        over = {name for name in world.forest.names() if self._overdrawn(world, name)}
        self._over = {name: self._over.get(name, now) for name in over}
        overdue = frozenset(n for n, since in self._over.items() if now >= since + self._grace)
        coming = [s + self._grace for n, s in self._over.items() if n not in overdue]
        coming += [again for again in self._again.values() if again > now]
        found = self._decide(world, ready, overdue) if overdue else ()
        if not found and self._revokes:
            found = self._revoke(world, overdue)
        return found, min(coming, default=math.inf)

    def _note_failures(self, waiting: Iterable[what_if.Pod], now: float) -> None:
        """Leave pods alone for a while that did not start although others have left for them."""
        for pod in waiting:
            node = self._expected.pop(pod.uid, "")
            if node:
                self._avoided.setdefault(pod.uid, set()).add(node)
                self._again[pod.uid] = now + _PAUSE_SECONDS

    @staticmethod
    def _overdrawn(world: what_if.World, name: str) -> bool:
        figures = world.forest.figures(name)
        return figures is not None and bool(reclaims.overdrawn(figures))

    def _decide(
        self, world: what_if.World, waiting: Iterable[what_if.Pod], overdue: frozenset[str]
    ) -> Sequence[what_if.Removal]:
        on_node: dict[str, list[reclaims.Holder]] = {}
        for pod in world.pods.values():
            if pod.node:
                on_node.setdefault(pod.node, []).append(self._holder(world, pod))
        sites = [
            reclaims.Site(
                node.name,
                node.labels,
                tuple(node.allocatable.items()),
                node.taints,
                node.schedulable,
            )
            for node in world.nodes.nodes
        ]
        forest, promised = world.kept.everywhere(world.forest), world.kept.promised()
        for pod in list(waiting)[:_MOST_LOOKED_AT]:
            avoided = frozenset(self._avoided.get(pod.uid, ()))
            terms = reclaims.Terms(overdue=overdue, avoided=avoided, promised=promised)
            found = reclaims.plan(forest, _waiter(world, pod), sites, on_node, terms)
            if isinstance(found, reclaims.Reclaim):
                uids = tuple(victim.uid for victim in found.victims)
                self._expected[pod.uid] = found.node
                return (what_if.Removal(uids, KIND, pod.uid, found.node),)
        return ()

    def _revoke(self, world: what_if.World, overdue: frozenset[str]) -> Sequence[what_if.Removal]:
        found = []
        for name in sorted(overdue):
            figures = world.forest.figures(name)
            held = [
                self._holder(world, pod)
                for pod in world.pods.values()
                if pod.node and _quota(world, pod) == name
            ]
            victims = reclaims.revoke(figures, held) if figures is not None else ()
            self._over.pop(name, None)
            if victims:
                found.append(what_if.Removal(tuple(one.uid for one in victims), REVOKE, name))
        return found

    def _holder(self, world: what_if.World, pod: what_if.Pod) -> reclaims.Holder:
        use = pod.line.use
        return reclaims.Holder(
            uid=pod.uid,
            key=pod.key,
            quota=_quota(world, pod),
            requests=use.requests,
            node=pod.node,
            priority=pod.line.priority,
            started_at=pod.started_at,
            preemptible=use.preemptible and not self._exempt(pod.uid),
            leaving=pod.line.leaving,
        )


def _stuck(world: what_if.World) -> list[what_if.Pod]:
    """Return the pods for which the scheduler finds no node, the most important first."""
    found = [
        pod
        for pod in world.pods.values()
        if not pod.node
        and pod.line.state is line.State.OPENED
        and pod.line.unschedulable_since is not None
        and not pod.line.nominated
        and _quota(world, pod) not in turns.OUTSIDE
    ]
    return sorted(found, key=lambda pod: (-pod.line.priority, pod.line.created_at, pod.uid))


def _waiter(world: what_if.World, pod: what_if.Pod) -> reclaims.Waiter:
    use = pod.line.use
    return reclaims.Waiter(
        uid=pod.uid,
        key=pod.key,
        quota=_quota(world, pod),
        requests=use.requests,
        preemptible=use.preemptible,
        requires=pod.line.placement,
    )


def _quota(world: what_if.World, pod: what_if.Pod) -> str:
    return world.forest.name_of(pod.line.use.quota, pod.line.use.namespace)
