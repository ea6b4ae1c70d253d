"""Targets by cpu requests alone, the first name that has room; as a scheduler without load."""

from descheduler.framework import protocols
from descheduler.model import fragments


class RoomyTargets:
    """Implements `protocols.Targets` on a few numbers."""

    def __init__(self, seen, given=fragments.HOLDS_NOTHING):
        self.room = {name: node.allocatable["cpu"] for name, node in seen.nodes.items()}
        self.given, self.asked, self.done = given, [], []
        self.nodes = {pod.uid: pod.node for pod in seen.pods.values()}
        for pod in seen.pods.values():
            if pod.node:
                self.room[pod.node] -= pod.requests["cpu"]

    def target(self, pod, among, without):
        names = sorted(self.room if among is None else among)
        self.asked.append((pod.name, tuple(names)))
        for name in names:
            if name == self.nodes[pod.uid] or name in without:
                continue
            if self.room[name] >= pod.requests["cpu"]:
                return protocols.Target(name, held=self.given)
        return protocols.NoTarget("0 nodes are available")

    def move(self, pod, node):
        self.done.append((pod, self.nodes[pod.uid], node))
        self._move(pod, self.nodes[pod.uid], node)

    def _move(self, pod, source, node):
        self.room[source] += pod.requests["cpu"]
        self.room[node] -= pod.requests["cpu"]
        self.nodes[pod.uid] = node

    def remove(self, pod):
        raise AssertionError(f"the objective removes no pod: {pod.key}")

    def mark(self):
        return len(self.done)

    def undo(self, mark):
        for pod, source, node in reversed(self.done[mark:]):
            self._move(pod, node, source)
        del self.done[mark:]
