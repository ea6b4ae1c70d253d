"""Where every ElasticQuota stands: what it borrows, what it lends and who holds that. Pure.

Siblings share what their parent has. A quota that uses more than its minimum borrows: first what no
minimum reserves, then what the minimums of siblings leave idle. What a parent lends to its own
siblings is lent by those of its children whose minimum is idle.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from api import names
from domain.quota import model
from domain.quota.shares import runtime
from domain.quota.tree import forest as forests

Amounts = model.Amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """One quota, by resource; amounts as ``quantity.amount`` counts."""

    used: Amounts
    """Requests of its pods that have a node."""
    entitled: Amounts
    """What its pods may use now: the runtime quota, or the cap."""
    guaranteed: Amounts
    """Its minimum, scaled down where not even the guarantee of its parent suffices for all."""
    cap: Amounts
    """The smaller of max and hard."""
    borrowed: Amounts
    """What it uses beyond its minimum."""
    lent: Amounts
    """What others use of its idle minimum."""
    waiting: Amounts
    """Requests of its pods without a node."""
    holders: Mapping[str, Amounts]
    """Who uses what it has lent: amounts by quota."""


Loans = dict[str, dict[str, int]]
"""Amounts by lender and holder, of one resource."""


def standings(forest: forests.Forest) -> dict[str, Standing]:
    """Return where each quota stands, also the default and the system quota."""
    known = [*forest.names(), names.DEFAULT_QUOTA, names.SYSTEM_QUOTA]
    figures = {name: found for name in known if (found := forest.figures(name)) is not None}
    waiting = _waiting(forest, figures)
    keys = sorted({key for found in figures.values() for key in found.cap})
    sides = {key: _sides(forest, figures, key) for key in keys}
    loans = {key: _loans(forest, sides[key]) for key in keys}
    return {name: _standing(name, found, waiting, sides, loans) for name, found in figures.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class _Sides:
    """One resource of all quotas."""

    guaranteed: Mapping[str, int]
    over: Mapping[str, int]
    """What is used beyond the guarantee."""
    idle: Mapping[str, int]
    """What of the guarantee is not used."""
    totals: Mapping[str, int]
    """What a parent, or the top of a tree, has for its children."""


def _standing(
    name: str,
    found: model.Figures,
    waiting: Mapping[str, Amounts],
    sides: Mapping[str, _Sides],
    loans: Mapping[str, Loans],
) -> Standing:
    holders: dict[str, dict[str, int]] = {}
    lent: dict[str, int] = {}
    for key in found.cap:
        for holder, amount in loans[key].get(name, {}).items():
            holders.setdefault(holder, {})[key] = amount
            lent[key] = lent.get(key, 0) + amount
    return Standing(
        used=found.used,
        entitled=found.limit,
        guaranteed={key: sides[key].guaranteed.get(name, 0) for key in found.cap},
        cap=found.cap,
        borrowed={key: sides[key].over.get(name, 0) for key in found.cap},
        lent={key: lent.get(key, 0) for key in found.cap},
        waiting=waiting[name],
        holders=holders,
    )


def _sides(forest: forests.Forest, figures: Mapping[str, model.Figures], key: str) -> _Sides:
    """Return what each quota is guaranteed, top down, and how far it is from that."""
    guaranteed: dict[str, int] = {}
    totals: dict[str, int] = {}
    for parent, children in _families(forest):
        if parent in figures:
            totals[parent] = max(figures[parent].runtime.get(key, 0), guaranteed.get(parent, 0))
        else:
            totals[parent] = forest.total(parent.partition("/")[2]).get(key, 0)
        minimums = [figures[name].minimum.get(key, 0) for name in children]
        if forest.rules.scale_min:
            minimums = list(runtime.scaled(totals[parent], minimums))
        guaranteed.update(zip(children, minimums, strict=True))
    for name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
        if name in figures:
            guaranteed[name] = figures[name].minimum.get(key, 0)
    used = {name: found.used.get(key, 0) for name, found in figures.items()}
    return _Sides(
        guaranteed,
        {
            name: 0 if model.is_reserved(name) else max(0, used[name] - least)
            for name, least in guaranteed.items()
        },
        {name: max(0, least - used[name]) for name, least in guaranteed.items()},
        totals,
    )


def _families(forest: forests.Forest) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield siblings with their parent, or with ``/`` and their tree; parents come first."""
    tops: dict[str, list[str]] = {}
    for name in forest.children(names.ROOT_QUOTA):
        tops.setdefault(f"/{forest.tree(name)}", []).append(name)
    yield from tops.items()
    for name in forest.names():
        if children := forest.children(name):
            yield name, children


def _waiting(
    forest: forests.Forest, figures: Mapping[str, model.Figures]
) -> dict[str, dict[str, int]]:
    """Return what pods without a node ask for, those of descendants included."""
    found: dict[str, dict[str, int]] = {
        name: {
            key: max(0, one.self_request.get(key, 0) - one.self_used.get(key, 0)) for key in one.cap
        }
        for name, one in figures.items()
    }
    for name in reversed(forest.names()):
        for parent in forest.path(name)[1:2]:
            for key, amount in found[name].items():
                if key in found[parent]:
                    found[parent][key] += amount
    return found


def _loans(forest: forests.Forest, sides: _Sides) -> Loans:
    """Return who holds what whose minimum leaves idle, in one resource."""
    found: Loans = {}
    for parent, siblings in _families(forest):
        _share_out(siblings, sides.totals[parent], sides, found)
        _pass_down(found.get(parent, {}), siblings, sides, found)
    return found


def _share_out(siblings: Sequence[str], total: int, sides: _Sides, found: Loans) -> None:
    """Add what siblings lend each other."""
    over = {name: sides.over[name] for name in siblings}
    idle = {name: sides.idle[name] for name in siblings}
    reserved = sum(sides.guaranteed[name] for name in siblings)
    taken = max(0, sum(over.values()) - max(0, total - reserved))
    for lender, amount in split(min(taken, sum(idle.values())), idle).items():
        _add(found, lender, split(amount, over))


def _pass_down(
    loans: Mapping[str, int], children: Sequence[str], sides: _Sides, found: Loans
) -> None:
    """Add to children what their parent lends; the idle minimum that lends it is theirs."""
    left = {name: max(0, sides.idle[name] - sum(found.get(name, {}).values())) for name in children}
    amount = min(sum(loans.values()), sum(left.values()))
    for lender, part in split(amount, left).items():
        _add(found, lender, split(part, loans))


def _add(found: Loans, lender: str, held: Mapping[str, int]) -> None:
    mine = found.setdefault(lender, {}) if any(held.values()) else {}
    for holder, amount in held.items():
        if amount:
            mine[holder] = mine.get(holder, 0) + amount


def split(amount: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Split an amount in proportion to weights, whole and without a rest."""
    total = sum(weights.values())
    if total <= 0 or amount <= 0:
        return dict.fromkeys(weights, 0)
    parts = {name: amount * weight // total for name, weight in weights.items()}
    rest = amount - sum(parts.values())
    for name in _by_remainder(amount, weights, total)[:rest]:
        parts[name] += 1
    return parts


def _by_remainder(amount: int, weights: Mapping[str, int], total: int) -> list[str]:
    named: Iterable[str] = (name for name, weight in weights.items() if weight > 0)
    return sorted(named, key=lambda name: (-(amount * weights[name] % total), name))
