"""The cluster as reclaim sees it in one round: who waits, who borrows, on which nodes. Pure.

What is on its way counts as done: pods that are being deleted hold nothing any more, and pods that
are expected on a node use it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from domain.quota import model, reclaim
from domain.quota.waiting import room, turns
from manager.quota import book, objects
from manager.quota.waiting import gates_pods

MOST_NODES = 200
"""Nodes looked at in one round; the others have their turn in the next ones."""


class View:
    """One round's picture; changes with what is decided in the round."""

    def __init__(
        self,
        seen: book.Book,
        leaving: Iterable[str],
        expected: Mapping[str, str],
        own_namespace: str,
    ) -> None:
        """`leaving` are uids of pods being deleted, `expected` nodes by uid of pods without one."""
        self._book = seen
        self._own_namespace = own_namespace
        self._promised: dict[str, room.Sums] = {}
        self._nodes: dict[str, list[reclaim.Holder]] = {}
        self._free: dict[str, dict[str, int]] = {}
        self.tree = seen.forest
        for uid in leaving:
            pod = seen.pods.get(uid)
            if pod is not None and seen.counts(pod):
                self.tree = self.tree.with_pod(pod.use, None)
        for uid, node in expected.items():
            pod = seen.pods.get(uid)
            if pod is not None and not pod.node:
                self._expect(pod, node)

    @property
    def promised(self) -> Mapping[str, room.Amounts]:
        """By node: what pods request that are expected there."""
        return {name: sums.amounts for name, sums in self._promised.items()}

    def overdrawn(self) -> set[str]:
        """Return the quotas that use more than they may."""
        return {name for name in self.tree.names() if self.is_overdrawn(name)}

    def is_overdrawn(self, name: str) -> bool:
        """Whether a quota uses more than it may."""
        figures = self.tree.figures(name)
        return figures is not None and bool(reclaim.overdrawn(figures))

    def look(self, borrowers: Iterable[str], start: int) -> int:
        """Take in nodes with pods of borrowers, from a place in their order; return how many."""
        found = sorted(
            {
                pod.node
                for name in borrowers
                for pod in self._book.of_quota(name)
                if pod.node in self._book.nodes
            }
        )
        first = start % len(found) if found else 0
        chosen = (found[first:] + found[:first])[:MOST_NODES]
        for name in chosen:
            held = sorted(self.holders(self._book.on_node(name)), key=lambda one: one.order)
            self._put(name, held)
        return len(chosen)

    def sites(self) -> Iterator[reclaim.Site]:
        """Yield the nodes that were taken in."""
        for name in self._nodes:
            node = self._book.nodes.get(name)
            if node is None:
                continue
            yield reclaim.Site(
                name,
                node.labels,
                node.allocatable,
                node.taints,
                node.schedulable,
                self._free[name],
            )

    @property
    def on_node(self) -> Mapping[str, list[reclaim.Holder]]:
        """Return the pods of each node that was taken in."""
        return self._nodes

    def holders(self, pods: Iterable[objects.QuotaPod]) -> Iterator[reclaim.Holder]:
        """Yield pods with a node as those who hold something."""
        for pod in pods:
            exempt = gates_pods.is_exempt(pod, self._own_namespace)
            yield reclaim.Holder(
                uid=pod.uid,
                key=pod.key,
                quota=self._book.name_of(pod),
                requests=pod.use.requests,
                node=pod.node,
                priority=pod.priority,
                started_at=pod.started_at or pod.created_at,
                preemptible=pod.use.preemptible and not exempt,
                leaving=pod.terminating,
            )

    def carried_out(self, decided: reclaim.Reclaim) -> None:
        """Take in what was decided."""
        gone = {victim.uid for victim in decided.victims}
        for victim in decided.victims:
            pod = self._book.pods.get(victim.uid)
            if pod is not None and self._book.counts(pod):
                self.tree = self.tree.with_pod(pod.use, None)
        held = self._nodes.get(decided.node, [])
        after = [
            msgspec.structs.replace(one, leaving=True) if one.uid in gone else one for one in held
        ]
        self._put(decided.node, after)
        if (pod := self._book.pods.get(decided.waiter.uid)) is not None:
            self._expect(pod, decided.node)

    def _put(self, name: str, held: list[reclaim.Holder]) -> None:
        node = self._book.nodes.get(name)
        self._nodes[name] = held
        self._free[name] = reclaim.free(() if node is None else node.allocatable, held)

    def _expect(self, pod: objects.QuotaPod, node: str) -> None:
        used = msgspec.structs.replace(pod.use, assigned=True)
        self.tree = self.tree.with_pod(pod.use, used)
        sums = self._promised.setdefault(node, room.Sums())
        sums.add({**dict(pod.use.requests), model.PODS: 1})


def waiters(seen: book.Book, uids: Collection[str]) -> list[reclaim.Waiter]:
    """Return the pods that wait for a node in the order of their line: priority, then age."""
    pods = [seen.pods[uid] for uid in uids if uid in seen.pods]
    pods.sort(key=lambda pod: (-pod.priority, pod.created_at, pod.uid))
    return [
        reclaim.Waiter(
            uid=pod.uid,
            key=pod.key,
            quota=seen.name_of(pod),
            requests=pod.use.requests,
            preemptible=pod.use.preemptible,
            requires=pod.requires,
        )
        for pod in pods
        if seen.name_of(pod) not in turns.OUTSIDE
    ]
