"""Which borrowers leave so that a pod runs that its quota is entitled to, and on which node. Pure.

Only quotas that use more than they may give back, and only what the waiting pod lacks on a node
that it may use: all of it, or nobody is evicted. The youngest pods of the lowest priority go first,
never those that are not preemptible.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from api.kubernetes import core
from domain.quota import model, placement

Amounts = model.Amounts

_MOST_NAMED: Final = 5


class Tree(Protocol):
    """What is read of the trees of quotas; `domain.quota.tree.forest.Forest` is one."""

    def figures(self, name: str) -> model.Figures | None:
        """Return the figures of a quota."""

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool
    ) -> model.Shortage | None:
        """Return why a pod has to wait."""


class Holder(msgspec.Struct, frozen=True, gc=False):
    """A pod that has a node."""

    uid: str
    key: str
    quota: str
    requests: model.Pairs
    node: str
    priority: int = 0
    started_at: float = 0.0
    preemptible: bool = True
    leaving: bool = False

    @property
    def order(self) -> tuple[int, float, str]:
        """Return its order as a victim: lowest priority first, of equal ones the youngest."""
        return self.priority, -self.started_at, self.uid


class Waiter(msgspec.Struct, frozen=True, gc=False):
    """A pod that was let in and for which the scheduler finds no node."""

    uid: str
    key: str
    quota: str
    requests: model.Pairs
    preemptible: bool = True
    requires: placement.Requirements = placement.NONE


class Site(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    name: str
    labels: Mapping[str, str]
    allocatable: model.Pairs
    taints: tuple[core.Taint, ...] = ()
    schedulable: bool = True
    free: Mapping[str, int] | None = None
    """What `free` returns of it, where the caller knows that already."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """On which terms borrowers are evicted."""

    overdue: frozenset[str]
    """Quotas that have used more than they may for longer than the grace."""
    excluded: frozenset[str] = frozenset()
    """Uids of pods that cannot be evicted now."""
    avoided: frozenset[str] = frozenset()
    """Nodes that were tried for this pod in vain."""
    promised: Mapping[str, Amounts] = dataclasses.field(default_factory=dict)
    """By node: what pods request that are expected there and not bound yet."""
    distrusts_room: bool = False
    """Whether nodes that seem to have room are left out: the scheduler has found none for long."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reclaim:
    """Who leaves for a pod, and where it is expected then."""

    waiter: Waiter
    node: str
    victims: tuple[Holder, ...]
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True)
class Nothing:
    """Why nobody is evicted for a pod."""

    reason: str
    node: str = ""
    """The node that has room for it, or will have once pods have left that are being deleted."""


NOT_ENTITLED: Final = "its own quota may not use that much"
NOBODY_OVERDUE: Final = "no quota has used more than it may for longer than the grace"
HAS_ROOM: Final = "a node has room for it"
WILL_HAVE_ROOM: Final = "a node has room for it once pods have left that are being deleted"
NO_NODE: Final = "no node that it may use fits it, even with every borrower evicted"


class _Choice(NamedTuple):
    """Victims on one node."""

    cost: tuple[int, int, int, int, float, str]
    site: Site
    victims: tuple[Holder, ...]


def overdrawn(figures: model.Figures) -> tuple[str, ...]:
    """Return the resources of which a quota uses more than it may."""
    used = figures.used
    return tuple(name for name, most in figures.limit.items() if used.get(name, 0) > most)


def plan(
    tree: Tree,
    waiter: Waiter,
    sites: Iterable[Site],
    on_node: Mapping[str, Sequence[Holder]],
    terms: Terms,
) -> Reclaim | Nothing:
    """Choose node and victims for a pod that its quota is entitled to run.

    `tree` counts pods that are expected on a node as used, and pods that are being deleted not at
    all. Of several nodes: the fewest victims whose quota falls below its minimum, then the lowest
    priority of the most important victim, the smallest sum, the fewest, the youngest.
    """
    short = tree.shortage(waiter.quota, waiter.requests, preemptible=waiter.preemptible)
    if short is not None:
        return Nothing(NOT_ENTITLED)
    lenders = _Borrowers(tree, waiter, terms.overdue)
    if not lenders:
        return Nothing(NOBODY_OVERDUE)
    best: _Choice | None = None
    for site in sites:
        if not _usable(site, waiter, terms):
            continue
        held = on_node.get(site.name, ())
        lacking = _lacking(site, held, waiter, terms.promised.get(site.name, model.EMPTY))
        if not lacking:
            if terms.distrusts_room:
                continue
            leaves = any(holder.leaving for holder in held)
            return Nothing(WILL_HAVE_ROOM if leaves else HAS_ROOM, site.name)
        choice = lenders.choose(site, held, lacking, terms.excluded)
        if choice is not None and (best is None or choice.cost < best.cost):
            best = choice
    if best is None:
        return Nothing(NO_NODE)
    return Reclaim(waiter, best.site.name, best.victims, _sentence(tree, waiter, best))


def revoke(figures: model.Figures, holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """Return the pods to evict so that a quota uses no more than it may, even if no pod waits.

    The least important first; those that turn out to have room after all stay.
    """
    limit = figures.limit
    used = {name: figures.used.get(name, 0) for name in limit}
    taken: list[Holder] = []
    for holder in sorted(holders, key=lambda one: one.order):
        if not _exceeds(used, limit):
            break
        if holder.preemptible and not holder.leaving:
            _add(used, holder.requests, -1)
            taken.append(holder)
    if _exceeds(used, limit):
        return tuple(taken)
    leaving: list[Holder] = []
    for holder in reversed(taken):
        _add(used, holder.requests, 1)
        if _exceeds(used, limit):
            _add(used, holder.requests, -1)
            leaving.append(holder)
    return tuple(reversed(leaving))


def _exceeds(used: Amounts, limit: Amounts) -> bool:
    return any(used[name] > most for name, most in limit.items())


def _add(used: dict[str, int], requests: model.Pairs, times: int) -> None:
    for name, amount in (*requests, (model.PODS, 1)):
        if name in used:
            used[name] += times * amount


def _usable(site: Site, waiter: Waiter, terms: Terms) -> bool:
    """Whether a pod may run on a node, as far as is looked at."""
    if not site.schedulable or site.name in terms.avoided:
        return False
    offered = dict(site.allocatable)
    if any(amount > offered.get(name, 0) for name, amount in waiter.requests if amount):
        return False
    return placement.eligible(waiter.requires, site.name, site.labels, site.taints)


def free(allocatable: model.Pairs, held: Iterable[Holder]) -> dict[str, int]:
    """Return what is free on a node once pods have left that are being deleted."""
    left = {model.PODS: 1 << 30, **dict(allocatable)}
    for holder in held:
        if not holder.leaving:
            _add(left, holder.requests, -1)
    return left


def _lacking(
    site: Site, held: Iterable[Holder], waiter: Waiter, promised: Amounts
) -> dict[str, int]:
    """Return what a pod lacks on a node."""
    left = site.free if site.free is not None else free(site.allocatable, held)
    lacking: dict[str, int] = {}
    for name, amount in (*waiter.requests, (model.PODS, 1)):
        more = amount - left.get(name, 0) + promised.get(name, 0)
        if amount and more > 0:
            lacking[name] = more
    return lacking


class _Borrowers:
    """Quotas that use more than they may of what a pod asks for."""

    def __init__(self, tree: Tree, waiter: Waiter, overdue: Iterable[str]) -> None:
        asks = {**dict(waiter.requests), model.PODS: 1}
        self._guaranteed = _guarantees(tree, waiter)
        self._over: dict[str, frozenset[str]] = {}
        self._figures: dict[str, model.Figures] = {}
        for name in overdue:
            figures = tree.figures(name)
            if figures is None or name == waiter.quota:
                continue
            over = frozenset(one for one in overdrawn(figures) if asks.get(one))
            if over:
                self._over[name], self._figures[name] = over, figures

    def __bool__(self) -> bool:
        return bool(self._over)

    def choose(
        self,
        site: Site,
        held: Iterable[Holder],
        lacking: Amounts,
        excluded: frozenset[str],
    ) -> _Choice | None:
        """Return who leaves a node so that nothing is lacking; None where that cannot be."""
        used: dict[str, dict[str, int]] = {}
        exhausted: set[str] = set()
        still, taken, cut = dict(lacking), list[Holder](), list[Holder]()
        potential = sorted(self._potential(held, excluded), key=lambda one: one.order)
        for cuts in (False, True) if self._guaranteed else (False,):
            for holder in potential:
                if not still:
                    break
                if holder.quota in exhausted:
                    continue
                own = used.get(holder.quota) or used.setdefault(
                    holder.quota, dict(self._figures[holder.quota].used)
                )
                if not self._exceeds(holder.quota, own, still):
                    exhausted.add(holder.quota)
                elif self._may_take(holder, still, own, cuts) and holder not in taken:
                    _add(own, holder.requests, -1)
                    _reduce(still, holder)
                    taken.append(holder)
                    cut += [holder] if cuts else []
        if still:
            return None
        victims = self._spared(lacking, taken)
        return _Choice(_cost(victims, cut, site), site, victims)

    def _exceeds(self, name: str, own: Mapping[str, int], still: Amounts) -> bool:
        """Whether a quota uses too much of something that is still lacking."""
        limit = self._figures[name].limit
        return any(own.get(one, 0) > limit.get(one, own.get(one, 0)) for one in still)

    def _potential(self, held: Iterable[Holder], excluded: frozenset[str]) -> Iterator[Holder]:
        for holder in held:
            may = holder.preemptible and not holder.leaving and holder.uid not in excluded
            if may and holder.quota in self._over:
                yield holder

    def _may_take(self, holder: Holder, still: Amounts, own: Mapping[str, int], cuts: bool) -> bool:
        """Whether a pod holds what is lacking, of which its quota uses too much.

        Only with `cuts` may its quota fall below its minimum.
        """
        figures = self._figures[holder.quota]
        asks = {**dict(holder.requests), model.PODS: 1}
        helps = [name for name in still if asks.get(name) and name in own]
        if not any(own[name] > figures.limit.get(name, own[name]) for name in helps):
            return False
        return cuts or all(
            own[name] - amount >= figures.scaled_minimum.get(name, 0)
            for name, amount in asks.items()
            if name in own and amount
        )

    def _spared(self, lacking: Amounts, taken: Sequence[Holder]) -> tuple[Holder, ...]:
        """Return the victims without those that need not leave, the most important first."""
        over = dict.fromkeys(lacking, 0)
        for name, amount in lacking.items():
            over[name] -= amount
        for holder in taken:
            for name, amount in (*holder.requests, (model.PODS, 1)):
                if name in over:
                    over[name] += amount
        kept: list[Holder] = []
        for holder in reversed(taken):
            asks = {**dict(holder.requests), model.PODS: 1}
            if all(over[name] >= asks.get(name, 0) for name in over):
                for name in over:
                    over[name] -= asks.get(name, 0)
            else:
                kept.append(holder)
        return tuple(reversed(kept))


def _reduce(still: dict[str, int], holder: Holder) -> None:
    for name, amount in (*holder.requests, (model.PODS, 1)):
        if name in still:
            still[name] -= amount
            if still[name] <= 0:
                del still[name]


def _guarantees(tree: Tree, waiter: Waiter) -> bool:
    """Whether the quota of a pod stays within its minimum with it."""
    figures = tree.figures(waiter.quota)
    asks = {**dict(waiter.requests), model.PODS: 1}
    return figures is not None and all(
        figures.used.get(name, 0) + amount <= figures.scaled_minimum.get(name, 0)
        for name, amount in asks.items()
        if name in figures.minimum
    )


def _cost(
    victims: Sequence[Holder], cut: Sequence[Holder], site: Site
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


def _sentence(tree: Tree, waiter: Waiter, choice: _Choice) -> str:
    """Return the arithmetic in one sentence of bounded length."""
    lines = []
    for name in sorted({holder.quota for holder in choice.victims})[:_MOST_NAMED]:
        figures = tree.figures(name)
        assert figures is not None
        over = overdrawn(figures)[:_MOST_NAMED]
        used = ", ".join(model.amount_text(one, figures.used[one]) for one in over)
        may = ", ".join(model.amount_text(one, figures.limit[one]) for one in over)
        lines.append(f"quota {name[:100]} uses {used} and may use {may}")
    named = ", ".join(
        f"{holder.key} (priority {holder.priority})" for holder in choice.victims[:_MOST_NAMED]
    )
    more = len(choice.victims) - _MOST_NAMED
    named += f" and {more} more" if more > 0 else ""
    asked = ", ".join(model.amount_text(*pair) for pair in waiter.requests[:_MOST_NAMED])
    return (
        f"{waiter.key} of quota {waiter.quota[:100]} asks for {asked}, to which its quota is "
        f"entitled, and finds no node; {'; '.join(lines)}. "
        f"Evicts {named} from {choice.site.name}, which then has room for it"
    )
