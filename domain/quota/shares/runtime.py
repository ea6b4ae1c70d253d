"""Runtime quota: what each child of one parent may use of one resource, by water filling. Pure.

Every child first has what it asks for up to its minimum (one that does not lend has the minimum in
any case). What is left goes to those who ask for more, by weight and largest remainder; who gets
more than it asks for gives the rest back to the others. Higher priority is served first: the next
lower one shares what is left. Integers throughout, so figures add up exactly.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from domain.quota import model
from domain.quota.shares import water

_new = object.__new__
_FEW: Final = 96
"""Up to so many children plain loops are faster than arrays."""


class Slots:
    """The children of one parent in one resource, in the order of their names: what is written."""

    __slots__ = (
        "_block", "lends", "minimums", "priorities", "scales", "tiered", "together", "weights",
    )  # fmt: skip

    def __init__(
        self,
        minimums: Sequence[int],
        weights: Sequence[int],
        lends: Sequence[bool],
        priorities: Sequence[int],
        *,
        scales: bool = True,
    ) -> None:
        self.minimums = minimums
        self.weights = weights
        self.lends = lends
        self.priorities = priorities
        self.scales = scales
        """Whether minimums are scaled down to a total that is smaller than all of them."""
        self.together = sum(minimums)
        self.tiered = len(set(priorities)) > 1
        self._block: water.Block | None = None

    @property
    def block(self) -> water.Block:
        """Return the same as arrays."""
        if self._block is None:
            self._block = water.Block(
                [self.minimums], [self.weights], [self.lends], [self.priorities]
            )
        return self._block


class Column:
    """The children of one parent in one resource: what they ask for, and what each gets of a total.

    A value: changes give another column. It remembers the shares of the last total, which a change
    leaves as they are wherever they cannot be other ones.
    """

    __slots__ = ("_base", "_joined", "_memo", "_start", "_wanted", "first", "requests", "slots")

    def __init__(self, slots: Slots, requests: list[int], first: Sequence[int]) -> None:
        self.slots = slots
        self.requests = requests
        self.first = first
        """What each keeps whatever others ask for."""
        parts = [
            _parts(*each) for each in zip(requests, first, slots.weights, slots.lends, strict=True)
        ]
        self._base = sum(part[0] for part in parts)
        self._wanted = sum(part[1] for part in parts)
        self._joined = sum(part[2] for part in parts)
        self._memo: tuple[int, Sequence[int]] | None = None
        self._start: _Start | None = None

    def changed(self, child: int, request: int, least: int | None = None) -> "Column":
        """Return the column after one child asks for something else (or keeps something else)."""
        slots, before, kept = self.slots, self.requests[child], self.first[child]
        column: Column = _new(Column)
        column.slots = slots
        column.requests = requests = self.requests[:]
        requests[child] = request
        column.first = self.first
        column._base, column._joined = self._base, self._joined
        weight = slots.weights[child]
        if (least is None or least == kept) and request > kept < before:
            column._wanted = self._wanted + (request - before if weight > 0 else 0)
            column._start = self._start
        else:
            column._start = None
            if least is None or least == kept:
                least = kept
            else:
                column.first = [*self.first]
                column.first[child] = least
            old = _parts(before, kept, weight, slots.lends[child])
            new = _parts(request, least, weight, slots.lends[child])
            column._base += new[0] - old[0]
            column._wanted = self._wanted + new[1] - old[1]
            column._joined += new[2] - old[2]
        memo = self._memo
        column._memo = None
        # Who got less than it asks for gave nothing back, so it makes no difference how much more
        # it asks for; nor does what a quota asks for that does not lend and stays below its
        # minimum. In both cases everybody's share is what it was.
        if memo is not None and column.first is self.first:
            given = memo[1][child]
            if before > given < request or (
                not slots.lends[child] and before <= given >= request and given == kept
            ):
                column._memo = memo
        return column

    def scaled(self, total: int) -> Sequence[int]:
        """Return the minimums, scaled down where the total is smaller than all of them."""
        slots = self.slots
        if not slots.scales or total >= slots.together:
            return slots.minimums
        return scaled(total, slots.minimums)

    def scaled_of(self, child: int, total: int) -> int:
        """Return the minimum of one child, scaled down where the total is smaller than all."""
        slots = self.slots
        minimum, most = slots.minimums[child], max(total, 0)
        if not slots.scales or most >= slots.together:
            return minimum
        return most * minimum // slots.together

    def least(self, total: int) -> Sequence[int]:
        """Return what each child keeps of a total whatever others ask for."""
        return self.scaled(total) if self.first is self.slots.minimums else self.first

    def share(self, child: int, total: int) -> int:
        """Return what one child gets of a total."""
        memo = self._memo
        if memo is not None and memo[0] == total:
            return memo[1][child]
        slots, request, least = self.slots, self.requests[child], self.first[child]
        if total >= slots.together or not slots.scales or self.first is not slots.minimums:
            weight = slots.weights[child]
            if request <= least or weight <= 0 or total <= self._base:
                return least if request > least or not slots.lends[child] else request
            if self._wanted <= total or (
                not slots.tiered
                and weight * (total - self._base) >= (request - least) * self._joined
            ):
                return request
        else:
            least = self.scaled_of(child, total)
            if request <= least or slots.weights[child] <= 0:
                return least if request > least or not slots.lends[child] else request
        return self.shares(total)[child]

    def shares(self, total: int) -> Sequence[int]:
        """Return what every child gets of a total."""
        memo = self._memo
        if memo is None or memo[0] != total:
            memo = self._memo = (total, self._shared(total))
        return memo[1]

    def remember(self, total: int, shares: Sequence[int]) -> None:
        """Take shares that have been computed elsewhere together with those of other columns."""
        self._memo = (total, shares)

    def _shared(self, total: int) -> Sequence[int]:
        least = self.least(total)
        if len(self.requests) > _FEW:
            first = None if least is self.slots.minimums else [least]
            found = self.slots.block.share([total], [self.requests], first, scales=False)[0]
            if found is not None:
                return found
        if least is not self.first or self.slots.tiered:
            return share(total, self, least)
        start = self._start
        if start is None:
            start = self._start = _start(self, least)
        return _poured(total - self._base, self, start)


class _Start(NamedTuple):
    """What a column has before anything is shared out, however much there is to share."""

    given: list[int]
    joined: list[int]
    weights: list[int]


def _start(column: Column, least: Sequence[int]) -> _Start:
    weights = column.slots.weights
    joined = _joined(column, least)
    return _Start(kept(column, least), joined, [weights[child] for child in joined])


def _joined(column: Column, least: Sequence[int]) -> list[int]:
    """Return the children that take part in the sharing: they ask for more than they have."""
    requests = column.requests
    return [
        child
        for child, weight in enumerate(column.slots.weights)
        if weight > 0 and requests[child] > least[child]
    ]


def _poured(remaining: int, column: Column, start: _Start) -> list[int]:
    """Share out among children of one priority, as `_pour` does, with less work."""
    given, joined, weights = start.given[:], start.joined, start.weights
    requests = column.requests
    while remaining > 0 and joined:
        parts, remaining = split(remaining, weights), 0
        are_full = False
        for child, part in zip(joined, parts, strict=True):
            got = given[child] + part
            wish = requests[child]
            if got < wish:
                given[child] = got
            else:
                given[child] = wish
                remaining += got - wish
                are_full = True
        if are_full:
            joined = [child for child in joined if given[child] < requests[child]]
            weights = [column.slots.weights[child] for child in joined]
    return given


def _parts(request: int, least: int, weight: int, lends: bool) -> tuple[int, int, int]:
    """Return what a child has at first, what it gets of plenty, and its weight in the sharing."""
    if request <= least:
        kept = request if lends else least
        return kept, kept, 0
    return least, request if weight > 0 else least, weight


def scaled(total: int, minimums: Sequence[int]) -> Sequence[int]:
    """Return the minimums, scaled down where the total is smaller than all of them."""
    together, most = sum(minimums), max(total, 0)
    if most >= together:
        return minimums
    return [most * minimum // together for minimum in minimums]


def kept(column: Column, least: Sequence[int]) -> list[int]:
    """Return what each child has before anything is shared out."""
    return [
        minimum if request > minimum or not lends else request
        for request, minimum, lends in zip(column.requests, least, column.slots.lends, strict=True)
    ]


def share(
    total: int,
    column: Column,
    least: Sequence[int],
    told: list[list[model.Round]] | None = None,
) -> list[int]:
    """Share a total out among children; `told` receives the rounds of each child."""
    slots = column.slots
    given = kept(column, least)
    if told is not None:
        told += [[] for _ in given]
    remaining = total - sum(given)
    if remaining <= 0:
        return given
    joined = _joined(column, least)
    if not slots.tiered:
        _pour(remaining, column, given, joined, told)
        return given
    for priority in sorted({slots.priorities[child] for child in joined}, reverse=True):
        tier = [child for child in joined if slots.priorities[child] == priority]
        remaining = _pour(remaining, column, given, tier, told)
    return given


def _pour(
    remaining: int,
    column: Column,
    given: list[int],
    joined: list[int],
    told: list[list[model.Round]] | None,
) -> int:
    """Share out among children of one priority; return what is left once they have all."""
    requests, weights = column.requests, column.slots.weights
    while remaining > 0 and joined:
        before = remaining
        parts = split(before, [weights[child] for child in joined])
        remaining, wanting = 0, []
        for child, part in zip(joined, parts, strict=True):
            given[child] = got = given[child] + part
            wish = requests[child]
            if got < wish:
                wanting.append(child)
            else:
                given[child] = wish
                remaining += got - wish
            if told is not None:
                priority = column.slots.priorities[child]
                together = sum(weights[each] for each in joined)
                told[child].append(
                    model.Round(priority, before, together, part, got - given[child])
                )
        joined = wanting
    return remaining


def split(amount: int, weights: list[int]) -> list[int]:
    """Split an amount by positive weights and largest remainder, the earlier first where equal."""
    count, first = len(weights), weights[0]
    if weights.count(first) == count:
        part, left = divmod(amount, count)
        return [part + 1] * left + [part] * (count - left)
    # Products of the rest alone are small, and small integers are several times as fast.
    together = sum(weights)
    whole, rest = divmod(amount, together)
    parts = [whole * weight + rest * weight // together for weight in weights]
    left = amount - sum(parts)
    if left:
        rests = [-(rest * weight % together) for weight in weights]
        for child in sorted(range(count), key=rests.__getitem__)[:left]:
            parts[child] += 1
    return parts
