"""How many pods of a constraint are in each domain, while pods move."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from descheduler.framework.pods import pods_alike
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import constraints


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """The domains of the nodes that count."""

    of: Mapping[str, str]
    """Domain by node."""
    names: Sequence[str]
    """All domains, sorted."""


def places(constraint: constraints.Constraint, nodes: Mapping[str, nodeinfo.Node]) -> Places:
    """Return the domain of each node that counts for a constraint."""
    of = {name: found for name, node in nodes.items() if (found := constraint.domain(node))}
    return Places(of, sorted(set(of.values())))


class Domains:
    """The pods of one constraint by domain; changes while pods move."""

    def __init__(
        self, constraint: constraints.Constraint, places: Places, alike: pods_alike.Alike
    ) -> None:
        self.constraint = constraint
        self._places = places
        of = places.of
        self._counted = [pod for pod in alike.selected(constraint.selector) if pod.node in of]
        # Mostly few of many domains have any: those without are not kept.
        self._sizes: dict[str, int] = {}
        for pod in self._counted:
            domain = of[pod.node]
            self._sizes[domain] = self._sizes.get(domain, 0) + 1

    @property
    def size(self) -> int:
        """Return how many pods are counted."""
        return len(self._counted)

    @property
    def least(self) -> int:
        """Return how many pods the emptiest domain has."""
        if len(self._sizes) < len(self._places.names):
            return 0
        return min(self._sizes.values(), default=0)

    @property
    def most(self) -> int:
        """Return how many pods the fullest domain has."""
        return max(self._sizes.values(), default=0)

    @property
    def skew(self) -> int:
        """Return how many pods the fullest domain has more than the emptiest one."""
        return self.most - self.least

    @property
    def is_violated(self) -> bool:
        """Whether the skew is larger than it may be."""
        return self.skew > self.constraint.max_skew

    def fullest_first(self) -> list[str]:
        """Return the domains that have more pods than the constraint allows."""
        allowed = self.least + self.constraint.max_skew
        return sorted(
            (name for name, size in self._sizes.items() if size > allowed),
            key=lambda name: (-self._sizes[name], name),
        )

    def domain(self, node: str) -> str:
        """Return the domain of a node, empty where it does not count."""
        return self._places.of.get(node, "")

    def inside(self, domain: str) -> list[podinfo.Pod]:
        """Return the pods that were in a domain when the round began."""
        of = self._places.of
        return [pod for pod in self._counted if of[pod.node] == domain]

    def better(self, domain: str) -> list[str]:
        """Return the domains that a pod of another one may go to, the emptiest first.

        The skew has to become smaller, and the scheduler must not refuse a hard constraint.
        """
        sizes, here = self._sizes, self._sizes.get(domain, 0)
        most = self.least + self.constraint.max_skew if self.constraint.is_hard else here
        largest = min(here - 2, most - 1)
        if largest < 0:
            return []
        empty = [name for name in self._places.names if not sizes.get(name)]
        some = [name for name, size in sizes.items() if 0 < size <= largest]
        return empty + sorted(some, key=lambda name: (sizes[name], name))

    def bearing(self, pod: podinfo.Pod) -> Callable[[str], bool]:
        """Return which nodes a counted pod may go to: the skew stays within bounds, or as it is."""
        here, sizes = self.domain(pod.node), self._sizes
        rest = [size for name, size in sizes.items() if name != here]
        if here:
            rest.append(sizes[here] - 1)
        if len(sizes) < len(self._places.names):
            rest.append(0)
        least, most = min(rest, default=0), max(rest, default=0)
        bound = max(self.constraint.max_skew, self.skew)

        def bears(node: str) -> bool:
            there = self.domain(node)
            if here == there:
                return True
            if not there:
                return not self.constraint.is_hard
            return max(most, sizes.get(there, 0) + 1) - least <= bound

        return bears

    def move(self, pod: podinfo.Pod, target: str) -> None:
        """Count a pod on another node from here on."""
        if self.constraint.counts(pod):
            for node, change in ((pod.node, -1), (target, 1)):
                domain = self.domain(node)
                if domain:
                    self._sizes[domain] = self._sizes.get(domain, 0) + change
