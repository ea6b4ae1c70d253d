"""How many pods of a constraint are in each domain, while pods move."""

from collections.abc import Callable, Mapping, Sequence

from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import constraints

Places = Mapping[str, str]
"""Domain by node, of the nodes that count."""


class Domains:
    """The pods of one constraint by domain; changes while pods move."""

    def __init__(
        self, constraint: constraints.Constraint, places: Places, pods: Sequence[podinfo.Pod]
    ) -> None:
        self.constraint = constraint
        self._places = places
        self._counted = [pod for pod in pods if pod.node in places and constraint.counts(pod)]
        self.sizes = dict.fromkeys(sorted(set(places.values())), 0)
        for pod in self._counted:
            self.sizes[places[pod.node]] += 1

    @property
    def skew(self) -> int:
        """Return how many pods the fullest domain has more than the emptiest one."""
        return max(self.sizes.values(), default=0) - min(self.sizes.values(), default=0)

    @property
    def is_violated(self) -> bool:
        """Whether the skew is larger than it may be."""
        return self.skew > self.constraint.max_skew

    def fullest_first(self) -> list[str]:
        """Return the domains that have more pods than the constraint allows."""
        least = min(self.sizes.values(), default=0)
        return sorted(
            (name for name, size in self.sizes.items() if size - least > self.constraint.max_skew),
            key=lambda name: (-self.sizes[name], name),
        )

    def domain(self, node: str) -> str:
        """Return the domain of a node, empty where it does not count."""
        return self._places.get(node, "")

    def inside(self, domain: str) -> list[podinfo.Pod]:
        """Return the pods that were in a domain when the round began."""
        return [pod for pod in self._counted if self._places[pod.node] == domain]

    def better(self, domain: str) -> list[str]:
        """Return the domains that a pod of another one may go to, the emptiest first.

        The skew has to become smaller, and the scheduler must not refuse a hard constraint.
        """
        least = min(self.sizes.values())
        most = least + self.constraint.max_skew if self.constraint.is_hard else self.sizes[domain]
        found = [
            name
            for name, size in self.sizes.items()
            if size + 1 < self.sizes[domain] and size + 1 <= most
        ]
        return sorted(found, key=lambda name: (self.sizes[name], name))

    def bearing(self, pod: podinfo.Pod) -> Callable[[str], bool]:
        """Return which nodes a counted pod may go to: the skew stays within bounds, or as it is."""
        here = self.domain(pod.node)
        rest = [size for name, size in self.sizes.items() if name != here]
        if here:
            rest.append(self.sizes[here] - 1)
        least, most = min(rest, default=0), max(rest, default=0)
        bound = max(self.constraint.max_skew, self.skew)

        def bears(node: str) -> bool:
            there = self.domain(node)
            if here == there:
                return True
            if not there:
                return not self.constraint.is_hard
            return max(most, self.sizes[there] + 1) - least <= bound

        return bears

    def move(self, pod: podinfo.Pod, target: str) -> None:
        """Count a pod on another node from here on."""
        if self.constraint.counts(pod):
            for node, change in ((pod.node, -1), (target, 1)):
                domain = self.domain(node)
                if domain:
                    self.sizes[domain] += change


def places(constraint: constraints.Constraint, nodes: Mapping[str, nodeinfo.Node]) -> Places:
    """Return the domain of each node that counts for a constraint."""
    return {name: found for name, node in nodes.items() if (found := constraint.domain(node))}
