"""Which borrowers leave so that a pod runs that its quota is entitled to, and on which node. Pure.

Only quotas that use more than they may give back, and only what the waiting pod lacks on a node
that it may use: all of it, or no pod is evicted. The youngest pods of the lowest priority go first,
never those that are not preemptible. Where overuse is spread so thinly that no node fits the pod
that way, a pod within the minimum of its quota also displaces pods that other quotas have above
their own minimum; these quotas then are entitled to what is overused elsewhere.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from domain.quota import borrowers, holders, model, placement

Amounts = model.Amounts

_MOST_NAMED: Final = 5

Tree = holders.Tree
Holder = holders.Holder
Waiter = holders.Waiter
Site = holders.Site
overdrawn = holders.overdrawn
free = holders.free


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
    """Why no pod is evicted for a pod."""

    reason: str
    node: str = ""
    """The node that has room for it, or will have once pods have left that are being deleted."""


NOT_ENTITLED: Final = "its own quota may not use that much"
NOBODY_OVERDUE: Final = "no quota has used more than it may for longer than the grace"
HAS_ROOM: Final = "a node has room for it"
WILL_HAVE_ROOM: Final = "a node has room for it once pods have left that are being deleted"
NO_NODE: Final = "no node that it may use fits it, even with every borrower evicted"


def plan(
    tree: Tree,
    waiter: Waiter,
    sites: Iterable[Site],
    on_node: Mapping[str, Sequence[Holder]],
    terms: Terms,
) -> Reclaim | Nothing:
    """Choose node and victims for a pod that its quota is entitled to run.

    `tree` counts pods that are expected on a node as used, and pods that are being deleted not at
    all. Of several nodes: the fewest victims whose quota falls below its minimum, or of quotas that
    use no more than they may, then the lowest priority of the most important victim, the smallest
    sum, the fewest, the youngest.
    """
    short = tree.shortage(waiter.quota, waiter.requests, preemptible=waiter.preemptible)
    if short is not None:
        return Nothing(NOT_ENTITLED)
    lenders = borrowers.Borrowers(tree, waiter, terms.overdue)
    if not lenders:
        return Nothing(NOBODY_OVERDUE)
    short_of: list[tuple[Site, Sequence[Holder], Amounts]] = []
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
        short_of.append((site, held, lacking))
    for displaces in (False, True):
        choices = (lenders.choose(*one, terms.excluded, displaces=displaces) for one in short_of)
        found = [choice for choice in choices if choice is not None]
        if found:
            break
    else:
        return Nothing(NO_NODE)
    best = min(found, key=lambda choice: choice.cost)
    return Reclaim(waiter, best.site.name, best.victims, _sentence(tree, waiter, best))


def revoke(figures: model.Figures, held: Iterable[Holder]) -> tuple[Holder, ...]:
    """Return the pods to evict so that a quota uses no more than it may, even if no pod waits.

    The least important first; those that turn out to have room after all stay.
    """
    limit = figures.limit
    used = {name: figures.used.get(name, 0) for name in limit}
    taken: list[Holder] = []
    for holder in sorted(held, key=lambda one: one.order):
        if not _exceeds(used, limit):
            break
        if holder.preemptible and not holder.leaving:
            holders.add(used, holder.requests, -1)
            taken.append(holder)
    if _exceeds(used, limit):
        return tuple(taken)
    leaving: list[Holder] = []
    for holder in reversed(taken):
        holders.add(used, holder.requests, 1)
        if _exceeds(used, limit):
            holders.add(used, holder.requests, -1)
            leaving.append(holder)
    return tuple(reversed(leaving))


def _exceeds(used: Amounts, limit: Amounts) -> bool:
    return any(used[name] > most for name, most in limit.items())


def _usable(site: Site, waiter: Waiter, terms: Terms) -> bool:
    """Whether a pod may run on a node, as far as is looked at."""
    if not site.schedulable or site.name in terms.avoided:
        return False
    offered = dict(site.allocatable)
    if any(amount > offered.get(name, 0) for name, amount in waiter.requests if amount):
        return False
    return placement.eligible(waiter.requires, site.name, site.labels, site.taints)


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


def _sentence(tree: Tree, waiter: Waiter, choice: borrowers.Choice) -> str:
    """Return the arithmetic in one sentence of bounded length."""
    lines = []
    for name in sorted({holder.quota for holder in choice.victims})[:_MOST_NAMED]:
        figures = tree.figures(name)
        assert figures is not None
        lines.append(f"quota {name[:100]} {_overuse(figures) or _borrowed(figures, waiter)}")
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


def _overuse(figures: model.Figures) -> str:
    over = overdrawn(figures)[:_MOST_NAMED]
    used = ", ".join(model.amount_text(one, figures.used[one]) for one in over)
    may = ", ".join(model.amount_text(one, figures.limit[one]) for one in over)
    return f"uses {used} and may use {may}" if over else ""


def _borrowed(figures: model.Figures, waiter: Waiter) -> str:
    """Say what a quota uses that gives way although it may use that much."""
    asked = [name for name, _ in waiter.requests if figures.used.get(name)][:_MOST_NAMED]
    used = ", ".join(model.amount_text(one, figures.used[one]) for one in asked)
    least = ", ".join(model.amount_text(one, figures.minimum.get(one, 0)) for one in asked)
    return f"uses {used} of which {least} is guaranteed, and may have what is overused elsewhere"
