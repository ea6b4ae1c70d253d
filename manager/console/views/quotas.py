"""Elastic quotas as a tree: what each uses, may use, borrows and lends. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from api import names, resources
from api.wire import quantity
from domain.quota.tree import forest as forests
from domain.quota.tree import standing as standings
from manager.console.access import scope

_UNLIMITED: Final = 1 << 60
"""An amount that no cluster has: the default quota may use everything."""
_DEEPEST: Final = 4
FIGURES: Final = ("used", "entitled", "guaranteed", "cap", "borrowed", "lent", "waiting")

Scopes = Mapping[resources.Resource, scope.Scope]
Row = dict[str, Any]


def rows(forest: forests.Forest) -> list[Row]:
    """Return every quota, parents before children, with the namespace and kind that show it."""
    found = standings.standings(forest)
    return [
        _row(forest, name, depth, found[name])
        for name, depth in _ordered(forest)
        if name in found and _is_told(forest, name, found[name])
    ]


def _ordered(forest: forests.Forest) -> Iterator[tuple[str, int]]:
    """Yield quotas depth first with how deep they are."""

    def below(name: str, depth: int) -> Iterator[tuple[str, int]]:
        for child in forest.children(name):
            yield child, depth
            yield from below(child, depth + 1)

    seen: dict[str, int] = dict(below(names.ROOT_QUOTA, 0))
    for name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
        seen.setdefault(name, 0)
    yield from seen.items()


def _is_told(forest: forests.Forest, name: str, standing: standings.Standing) -> bool:
    """Whether there is anything to tell: the default and system quota may state nothing."""
    return forest.quota(name) is not None or any(
        (*standing.used.values(), *standing.waiting.values())
    )


def _row(forest: forests.Forest, name: str, depth: int, standing: standings.Standing) -> Row:
    quota, path = forest.quota(name), forest.path(name)
    figures = {figure: getattr(standing, figure) for figure in FIGURES}
    return {
        "name": name,
        "namespace": quota.namespace if quota else "",
        "resource": quota.resource if quota else None,
        "parent": path[1] if len(path) > 1 else "",
        "tree": forest.tree(name),
        "depth": min(depth, _DEEPEST),
        "priority": quota.priority if quota else 0,
        "amounts": [
            {
                "resource": key,
                **{figure: _shown(key, values.get(key)) for figure, values in figures.items()},
                "bar": _bar(standing, key),
            }
            for key in _keys(standing)
        ],
        "lentTo": sorted(standing.holders),
    }


def _keys(standing: standings.Standing) -> list[str]:
    """Return the resources that a quota bounds, cpu and memory first."""
    first = {names.CPU: 0, names.MEMORY: 1}
    return sorted(standing.cap, key=lambda key: (first.get(key, 2), key))


def _shown(key: str, amount: int | None) -> str:
    if amount is None:
        return ""
    return "unlimited" if amount >= _UNLIMITED else quantity.text(key, amount)


def _bar(standing: standings.Standing, key: str) -> dict[str, float] | None:
    """Return what is used and guaranteed as shares of the larger of entitlement and use."""
    used, entitled = standing.used.get(key, 0), standing.entitled.get(key, 0)
    whole = max(used, entitled, standing.guaranteed.get(key, 0))
    if whole <= 0 or whole >= _UNLIMITED:
        return None
    own = min(used, standing.guaranteed.get(key, 0))
    parts = {"own": own, "borrowed": used - own, "free": max(entitled - used, 0)}
    return {part: round(amount / whole, 4) for part, amount in parts.items()}


def document(found: list[Row], scopes: Scopes) -> dict[str, Any]:
    """Return the quotas that may be shown; of others not even the names."""
    visible = [row for row in found if _allows(scopes, row)]
    known = {row["name"] for row in visible}
    return {
        "items": [_told(row, known.__contains__) for row in visible],
        "partial": any(one.partial for one in scopes.values()),
        "everywhere": all(one.everywhere for one in scopes.values()),
    }


def _allows(scopes: Scopes, row: Row) -> bool:
    resource = row["resource"]
    if resource is None:
        return scopes[resources.ELASTIC_QUOTAS].everywhere
    return scopes[resource].allows(row["namespace"])


def _told(row: Row, known: Callable[[str], bool]) -> Row:
    resource = row["resource"]
    return {
        **row,
        "resource": None,
        "group": resource.group if resource is not None else "",
        "parent": row["parent"] if known(row["parent"]) else "",
        "lentTo": [name for name in row["lentTo"] if known(name)],
    }
