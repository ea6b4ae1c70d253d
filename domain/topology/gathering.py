"""How members are shared among the children of a domain, so that they stay close together. Pure.

Level by level from the top, members are put into as few domains as possible: the largest first,
the rest into one more. That is the best there is at this level. Where several children are as
good here, the one that keeps its members closer further down takes them, so that a whole share is
the best at all levels, the upper ones before the lower.
"""

import itertools
from collections.abc import Iterator, Sequence

from domain.topology import subtree

Closeness = tuple[int, ...]
"""By level below a domain: the sum of squared numbers of members per domain; more is closer."""
Share = tuple[Closeness, tuple[tuple[str, int], ...]]
"""How close the members are, and how many each node takes, in order."""
_Load = tuple[subtree.Domain, int]


class Gathering:
    """Shares of one placement; what was computed for a domain is kept for its next use."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._known: dict[tuple[tuple[str, ...], int], Share] = {}

    def share(self, domain: subtree.Domain, members: int) -> Share:
        """Share out so many members, no more than its slots and a multiple of what it takes."""
        key = (domain.path, members)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._shared(domain, members)
        return found

    def _shared(self, domain: subtree.Domain, members: int) -> Share:
        if domain.level == self._depth:
            return (), ((domain.name, members),)
        loads: list[_Load] = []
        for group in _groups(domain):
            taken = min(members, sum(one.slots for one in group))
            loads += self._chosen(group, taken)
            members -= taken
            if not members:
                break
        return self._joined(loads)

    def _joined(self, loads: Sequence[_Load]) -> Share:
        shares = [self.share(child, load) for child, load in loads]
        below = (sum(part) for part in zip(*(one[0] for one in shares), strict=True))
        closeness = (sum(load * load for _, load in loads), *below)
        return closeness, tuple(itertools.chain.from_iterable(one[1] for one in shares))

    def _chosen(self, group: Sequence[subtree.Domain], members: int) -> list[_Load]:
        """Choose among children that are alike but for their slots, which are sorted."""
        full = _prefix(group, members)
        rest = members - sum(one.slots for one in group[:full])
        if full == len(group) or group[0].level == self._depth:
            # Everything is full, or nothing is below that could be closer together.
            partial = [(group[full], rest)] if rest else []
            return [(one, one.slots) for one in group[:full]] + partial
        sure = [one for one in group[:full] if one.slots > group[full - 1].slots]
        equal = [one for one in group if full and one.slots == group[full - 1].slots]
        needed = full - len(sure)
        if len(equal) > 1:
            equal.sort(key=lambda one: _descending(self.share(one, one.slots)[0]))
        chosen = equal[:needed]
        if rest:
            # Where none is better, the next in order takes the rest, and the first ones are full.
            spare = [one for one in group[full:] if one.slots >= rest]
            spare += [one for one in group[len(sure) : full] if full]
            chosen, last = self._with_rest(equal, needed, spare, rest)
            return [(one, one.slots) for one in (*sure, *chosen)] + [(last, rest)]
        return [(one, one.slots) for one in (*sure, *chosen)]

    def _with_rest(
        self,
        equal: Sequence[subtree.Domain],
        needed: int,
        spare: Sequence[subtree.Domain],
        rest: int,
    ) -> tuple[list[subtree.Domain], subtree.Domain]:
        """Return which of the equal ones are full, and which child takes the rest."""
        first = equal[:needed]
        values = [self.share(one, one.slots)[0] for one in equal[: needed + 1]]
        together = tuple(map(sum, zip(*values[:needed], strict=True)))
        best: tuple[Closeness, subtree.Domain] | None = None
        for last in spare:
            closeness = self.share(last, rest)[0]
            if last in first:
                if len(equal) == needed:
                    continue
                # The next of the equal ones is full in its stead.
                swapped = zip(together, values[first.index(last)], values[needed], strict=True)
                closeness = tuple(map(sum, zip(closeness, map(_swap, swapped), strict=True)))
            elif needed:
                closeness = tuple(map(sum, zip(closeness, together, strict=True)))
            if best is None or closeness > best[0]:
                best = closeness, last
        assert best is not None  # the child after the full ones takes the rest
        last = best[1]
        return [one for one in equal[: needed + 1] if one is not last][:needed], last


def _swap(sums: tuple[int, int, int]) -> int:
    total, out, into = sums
    return total - out + into


def _groups(domain: subtree.Domain) -> Iterator[list[subtree.Domain]]:
    """Yield children with a place: those with more pods of the same selector first."""
    usable = [one for one in domain.children if one.slots]
    usable.sort(key=lambda one: (-one.existing, -one.slots, -one.score, one.name))
    for _, group in itertools.groupby(usable, key=lambda one: one.existing):
        yield list(group)


def _prefix(group: Sequence[subtree.Domain], members: int) -> int:
    """Return how many children are full, the largest first."""
    count = 0
    for one in group:
        if one.slots > members:
            break
        members -= one.slots
        count += 1
    return count


def _descending(closeness: Closeness) -> tuple[int, ...]:
    return tuple(-one for one in closeness)
