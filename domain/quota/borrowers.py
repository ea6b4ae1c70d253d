"""Which pods of borrowers leave one node so that a waiting pod fits there. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from domain.quota import holders, model

Amounts = model.Amounts
Line = tuple[tuple[str, model.Figures], ...]
"""A quota and those above it, with what each had before the first pod left."""


class Choice(NamedTuple):
    """Victims on one node."""

    cost: tuple[int, int, int, int, float, str]
    site: holders.Site
    victims: tuple[holders.Holder, ...]


class Borrowers:
    """Quotas that use more than they may of what a pod asks for, and those that only borrow."""

    def __init__(self, tree: holders.Tree, waiter: holders.Waiter, overdue: Iterable[str]) -> None:
        self._tree, self._waiter = tree, waiter
        asks = {**dict(waiter.requests), model.PODS: 1}
        self._guaranteed = _guarantees(tree, waiter)
        self._over: dict[str, model.Figures] = {}
        self._figures: dict[str, model.Figures | None] = {}
        self._lines: dict[str, Line] = {}
        for name in overdue:
            figures = self._of(name)
            if figures is None or name == waiter.quota:
                continue
            if any(asks.get(one) for one in holders.overdrawn(figures)):
                self._over[name] = figures

    def __bool__(self) -> bool:
        return bool(self._over)

    def _of(self, name: str) -> model.Figures | None:
        if name not in self._figures:
            self._figures[name] = self._tree.figures(name)
        return self._figures[name]

    def _line(self, name: str) -> Line:
        """Return a quota and those above it that are not above the waiting pod as well."""
        found = self._lines.get(name)
        if found is None:
            shared = set(self._tree.path(self._waiter.quota))
            line = ((one, self._of(one)) for one in self._tree.path(name) if one not in shared)
            found = tuple((one, figures) for one, figures in line if figures is not None)
            self._lines[name] = found
        return found

    def choose(
        self,
        site: holders.Site,
        held: Iterable[holders.Holder],
        lacking: Amounts,
        excluded: frozenset[str],
        *,
        displaces: bool = False,
    ) -> Choice | None:
        """Return who leaves a node so that nothing is lacking; None where that cannot be.

        With `displaces` quotas also give way that use no more than they may, down to their minimum
        and up to what others use too much: that is what they may then have elsewhere.
        """
        if displaces and not self._guaranteed:
            return None
        found = [one for one in held if self._may_leave(one, excluded)]
        found.sort(key=lambda one: one.order)
        trial = _Trial(lacking)
        self._overuse(trial, found, cuts=False)
        if displaces:
            self._displaced(trial, found)
        elif self._guaranteed:
            self._overuse(trial, found, cuts=True)
        if trial.still:
            return None
        victims = _spared(lacking, trial.taken)
        return Choice(_cost(victims, trial.last, site), site, victims)

    def _may_leave(self, holder: holders.Holder, excluded: frozenset[str]) -> bool:
        return (
            holder.preemptible
            and not holder.leaving
            and holder.uid not in excluded
            and holder.quota != self._waiter.quota
        )

    def _overuse(self, trial: "_Trial", found: Sequence[holders.Holder], *, cuts: bool) -> None:
        """Take pods of quotas that use more than they may, as long as something is lacking."""
        exhausted: set[str] = set()
        for holder in found:
            figures = self._over.get(holder.quota)
            if figures is None or holder.quota in exhausted:
                continue
            if not trial.still:
                return
            own = trial.used(holder.quota, figures)
            if not _exceeds(figures, own, trial.still):
                exhausted.add(holder.quota)
            elif _may_take(figures, holder, trial.still, own, cuts) and holder not in trial.taken:
                trial.take(holder, self._line(holder.quota), last=cuts)

    def _displaced(self, trial: "_Trial", found: Sequence[holders.Holder]) -> None:
        """Take pods of quotas above their minimum, no more than is overused elsewhere."""
        overused = self._overused(trial)
        for holder in found:
            if not trial.still:
                return
            line = self._line(holder.quota)
            if not line or holder in trial.taken:
                continue
            asks = {**dict(holder.requests), model.PODS: 1}
            helps = any(asks.get(name) for name in trial.still)
            fits = all(asks.get(name, 0) <= left for name, left in overused.items())
            if helps and fits and trial.leaves_guaranteed(line, asks):
                for name in overused:
                    overused[name] -= asks.get(name, 0)
                trial.take(holder, line, last=True)

    def _overused(self, trial: "_Trial") -> dict[str, int]:
        """Return what is used too much of all that is lacking, without what was taken."""
        found = dict.fromkeys(trial.lacking, 0)
        for name, figures in self._over.items():
            own = trial.used(name, figures)
            for one in found:
                used = own.get(one, 0)
                found[one] += max(0, used - figures.limit.get(one, used))
        return found


class _Trial:
    """Who leaves so far, and what is still lacking then."""

    def __init__(self, lacking: Amounts) -> None:
        self.lacking = lacking
        self.still = dict(lacking)
        self.taken: list[holders.Holder] = []
        self.last: list[holders.Holder] = []
        """Those who leave only because nothing else helps."""
        self._used: dict[str, dict[str, int]] = {}

    def used(self, name: str, figures: model.Figures) -> dict[str, int]:
        """Return what a quota uses then."""
        return self._used.get(name) or self._used.setdefault(name, dict(figures.used))

    def leaves_guaranteed(self, line: Line, asks: Amounts) -> bool:
        """Whether a quota and those above it still have their minimum without a pod."""
        return all(
            _stays_guaranteed(figures, self.used(name, figures), asks) for name, figures in line
        )

    def take(self, holder: holders.Holder, line: Line, *, last: bool) -> None:
        """Let a pod leave its quota and those above it."""
        for name, figures in line:
            holders.add(self.used(name, figures), holder.requests, -1)
        _reduce(self.still, holder)
        self.taken.append(holder)
        self.last += [holder] if last else []


def _exceeds(figures: model.Figures, own: Amounts, still: Amounts) -> bool:
    """Whether a quota uses too much of something that is still lacking."""
    limit = figures.limit
    return any(own.get(one, 0) > limit.get(one, own.get(one, 0)) for one in still)


def _may_take(
    figures: model.Figures, holder: holders.Holder, still: Amounts, own: Amounts, cuts: bool
) -> bool:
    """Whether a pod holds what is lacking, of which its quota uses too much.

    Only with `cuts` may its quota fall below its minimum.
    """
    asks = {**dict(holder.requests), model.PODS: 1}
    helps = [name for name in still if asks.get(name) and name in own]
    if not any(own[name] > figures.limit.get(name, own[name]) for name in helps):
        return False
    return cuts or _stays_guaranteed(figures, own, asks)


def _stays_guaranteed(figures: model.Figures, own: Amounts, asks: Amounts) -> bool:
    """Whether a quota still has its minimum without what a pod asks for."""
    return all(
        own[name] - amount >= figures.scaled_minimum.get(name, 0)
        for name, amount in asks.items()
        if name in own and amount
    )


def _spared(lacking: Amounts, taken: Sequence[holders.Holder]) -> tuple[holders.Holder, ...]:
    """Return the victims without those that need not leave, the most important first."""
    over = dict.fromkeys(lacking, 0)
    for name, amount in lacking.items():
        over[name] -= amount
    for holder in taken:
        for name, amount in (*holder.requests, (model.PODS, 1)):
            if name in over:
                over[name] += amount
    kept: list[holders.Holder] = []
    for holder in reversed(taken):
        asks = {**dict(holder.requests), model.PODS: 1}
        if all(over[name] >= asks.get(name, 0) for name in over):
            for name in over:
                over[name] -= asks.get(name, 0)
        else:
            kept.append(holder)
    return tuple(reversed(kept))


def _reduce(still: dict[str, int], holder: holders.Holder) -> None:
    for name, amount in (*holder.requests, (model.PODS, 1)):
        if name in still:
            still[name] -= amount
            if still[name] <= 0:
                del still[name]


def _guarantees(tree: holders.Tree, waiter: holders.Waiter) -> bool:
    """Whether the quota of a pod stays within its minimum with it."""
    figures = tree.figures(waiter.quota)
    asks = {**dict(waiter.requests), model.PODS: 1}
    return figures is not None and all(
        figures.used.get(name, 0) + amount <= figures.scaled_minimum.get(name, 0)
        for name, amount in asks.items()
        if name in figures.minimum
    )


def _cost(
    victims: Sequence[holders.Holder], cut: Sequence[holders.Holder], site: holders.Site
) -> tuple[int, int, int, int, float, str]:
    priorities = [holder.priority for holder in victims]
    return (
        sum(holder in cut for holder in victims),
        max(priorities),
        sum(priorities),
        len(victims),
        -min(holder.started_at for holder in victims),
        site.name,
    )
