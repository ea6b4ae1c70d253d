"""Figures of one ElasticQuota that come from its pods and its children. Pure."""

from collections.abc import Sequence

from api.koordinator import quota
from domain.quota import sums


class Node:
    """Figures of one quota below the distribution: sums over its pods and descendants."""

    def __init__(self, written: quota.Quota, *, lends: bool) -> None:
        self.quota = written
        self.lends = lends
        self.cap = {name: max(0, value) for name, value in written.cap.items()}
        self.minimum = {
            name: max(0, min(value, self.cap[name]))
            for name, value in written.minimum.items()
            if name in self.cap
        }
        self.own: dict[str, sums.Sum] = dict.fromkeys(self.cap, sums.NOTHING)
        self.all: dict[str, sums.Sum] = dict.fromkeys(self.cap, sums.NOTHING)
        self.child_request: dict[str, int] = dict.fromkeys(self.cap, 0)
        self.allocated: dict[str, int] = dict.fromkeys(self.cap, 0)
        self.runtime: dict[str, int] = {}
        self.scaled: dict[str, int] = dict(self.minimum)

    def add_own(self, extra: sums.Sums) -> None:
        """Add its own pods."""
        for name, each in extra.items():
            if name in self.cap:
                self.own[name] = sums.plus(self.own[name], each)

    def request(self, name: str) -> int:
        """Return what is asked for, at least the minimum where that is not lent."""
        asked = self.child_request[name]
        return asked if self.lends else max(asked, self.minimum.get(name, 0))

    def limited(self, name: str) -> int:
        """Return what is asked for, up to the cap."""
        return min(self.request(name), self.cap[name])

    def guaranteed(self, name: str) -> int:
        """Return what is kept when nobody lends."""
        return max(self.allocated[name], self.minimum.get(name, 0))


def total_up(node: Node, children: Sequence[Node] = ()) -> None:
    """Sum up what a quota and its children ask for and use."""
    for key, own in node.own.items():
        below = [child for child in children if key in child.cap]
        node.all[key] = own
        for child in below:
            node.all[key] = sums.plus(node.all[key], child.all[key])
        node.child_request[key] = own.request + sum(child.limited(key) for child in below)
        node.allocated[key] = own.used + sum(child.guaranteed(key) for child in below)
