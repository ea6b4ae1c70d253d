"""Exhaustive search for the best placement, computed without any of the code that it checks.

A network is nested: a dict of domains by name down to nodes, whose value is their free places.
"""

import functools
import itertools
import math


class Search:
    """Every way to share members among the domains of one network.

    `worth` says of two ways which is better: upper layers before lower ones, unless it says so.
    """

    def __init__(self, network, multiples, worth=tuple):
        self.network = network
        self.multiples = multiples
        self.worth = worth
        self.best = functools.cache(self._best)

    def at(self, path):
        return functools.reduce(lambda here, name: here[name], path, self.network)

    def domains(self, level):
        paths = [()]
        for _ in range(level):
            paths = [(*path, name) for path in paths for name in self.at(path)]
        return paths

    def offered(self, path):
        """Free places, rounded down at every level on the way up."""
        here = self.at(path)
        total = here if isinstance(here, int) else sum(self.offered((*path, name)) for name in here)
        return total - total % self.multiples[len(path)]

    def _best(self, path, members):
        """Return the best closeness of so many members in a domain, None where they do not fit."""
        here = self.at(path)
        if members % self.multiples[len(path)]:
            return None
        if isinstance(here, int):
            return () if members <= here else None
        depth = len(self.multiples) - 1 - len(path)
        found = {0: (0,) * depth}
        for name in here:
            grown = {}
            for (used, closeness), more in itertools.product(found.items(), range(members + 1)):
                below = self.best((*path, name), more) if used + more <= members else None
                if below is not None:
                    one = tuple(map(sum, zip(closeness, (more**2, *below), strict=True)))
                    grown[used + more] = max(grown.get(used + more, one), one, key=self.worth)
            found = grown
        return found.get(members)

    def answer(self, start, members):
        """Return the lowest level that fits below one level, and the best closeness there."""
        for level in reversed(range(start, len(self.multiples))):
            found = [
                self.best(path, members)
                for path in self.domains(level)
                if all(self.offered(path[:up]) >= members for up in range(start, level + 1))
            ]
            fitting = [one for one in found if one is not None]
            if fitting:
                return level, max(fitting, key=self.worth)
        return None


def closeness(placed, level):
    """Return by level below one the sum of squared members per domain, of full paths of nodes."""
    return tuple(
        sum(_held(placed, prefix) ** 2 for prefix in {one[:depth] for one in placed})
        for depth in range(level + 1, len(placed[0]) + 1)
    )


def _held(placed, prefix):
    return sum(one[: len(prefix)] == prefix for one in placed)


def enumerated(slots, members):
    """Yield every way to put members on nodes, as counts; for a handful of nodes."""
    for counts in itertools.product(*(range(free + 1) for free in slots)):
        if sum(counts) == members:
            yield counts


def mean_distance(placed):
    """Return the mean over all pairs of how many levels it is up to a common domain."""
    pairs = list(itertools.combinations(placed, 2))
    apart = [
        next((up for up in range(len(a)) if a[: len(a) - up] == b[: len(b) - up]), len(a))
        for a, b in pairs
    ]
    return math.fsum(apart) / len(pairs) if pairs else 0.0


def positions(network, feasible, existing):
    """Return the place of each feasible node in line for a pod with a selector, one by one."""
    pods, nodes = {}, {}
    for name, count in existing.items():
        _add(pods, network.paths.get(name), name, count)
    for name in feasible:
        _add(nodes, network.paths.get(name), name, 1)

    def order(index):
        name = feasible[index]
        path = network.paths.get(name)
        if path is None:
            return True, (-existing.get(name, 0),), (), name
        around = (*path, name)
        walk = [around[:level] for level in range(len(around), -1, -1)]
        return (
            False,
            tuple(-pods.get(one, 0) for one in walk),
            tuple(nodes[one] for one in walk),
            name,
        )

    found = [0] * len(feasible)
    for place, index in enumerate(sorted(range(len(feasible)), key=order)):
        found[index] = place
    return found


def _add(counts, path, node, count):
    if path is None:
        return
    around = (*path, node)
    for level in range(len(around) + 1):
        counts[around[:level]] = counts.get(around[:level], 0) + count
