"""Where every ElasticQuota stands in its tree, and which quota a pod belongs to. Pure.

Bad objects stop no others: of two that claim one name or namespace the older counts, and a quota
whose parent is missing, stands in another tree or leads back to itself stands directly below the
root. Each of these is reported.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from api import names
from api.koordinator import quota

DEEPEST: Final = 32
"""Most levels of a tree; a quota further down stands below the root."""
_MOST_TOLD: Final = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a quota stands: its parent (empty below the root of the tree), its tree and depth."""

    quota: quota.Quota
    parent: str
    tree: str
    depth: int


@dataclasses.dataclass(frozen=True, slots=True)
class Membership:
    """All quotas by name, in their trees, parents before their children."""

    places: Mapping[str, Place]
    children: Mapping[str, tuple[str, ...]]
    """Names in order, by parent; those at the top of a tree by `top` of that tree."""
    namespaces: Mapping[str, str]
    """Namespace to the quota of its pods."""
    roots: Mapping[str, str]
    """Tree to the quota whose total-resource is the total of that tree."""
    reserved: Mapping[str, quota.Quota]
    """Objects of the default and the system quota."""
    conflicts: tuple[str, ...]

    def with_quota(self, one: quota.Quota) -> "Membership":
        """Return the same with another object for a quota that stands where it stood."""
        place = dataclasses.replace(self.places[one.name], quota=one)
        return dataclasses.replace(self, places={**self.places, one.name: place})

    def name_of(self, label: str, namespace: str, *, default: bool = True) -> str:
        """Return the quota of a pod: by label, namespace, else the default quota.

        Without `default` only the label counts, and a pod without a known one has none.
        """
        if not default:
            known = label in self.places or label in names.RESERVED_QUOTAS
            return label if known and label != names.ROOT_QUOTA else ""
        if not label:
            return self.namespaces.get(namespace, names.DEFAULT_QUOTA)
        if label in self.places or label == names.SYSTEM_QUOTA:
            return label
        return names.DEFAULT_QUOTA


def top(tree: str) -> str:
    """Return the key of `children` for what stands directly below the root of a tree."""
    return f"{names.ROOT_QUOTA}/{tree}"


def path(members: Membership, name: str) -> tuple[str, ...]:
    """Return a quota and its ancestors, without the root quota; empty where it is unknown."""
    found = []
    while name in members.places:
        found.append(name)
        name = members.places[name].parent
    return tuple(found)


def membership(quotas: Iterable[quota.Quota], *, multi_tree: bool = True) -> Membership:
    """Give every quota its place."""
    told: list[str] = []
    ordered = sorted(quotas, key=_age)
    known = _by_name(ordered, told)
    reserved = {name: known.pop(name) for name in names.RESERVED_QUOTAS if name in known}
    trees = _trees(known) if multi_tree else dict.fromkeys(known, "")
    parents = _parents(known, trees, told)
    depths = _depths(parents, told)
    places = {
        name: Place(known[name], parents[name], trees[name], depths[name])
        for name in sorted(known, key=lambda name: (depths[name], name))
    }
    return Membership(
        places,
        _children(places),
        _namespaces([one for one in ordered if known.get(one.name) is one], told),
        _roots(ordered, places, told) if multi_tree else {},
        reserved,
        _bounded(told),
    )


def _age(one: quota.Quota) -> tuple[float, str]:
    return one.created_at, one.identity


def _by_name(ordered: Iterable[quota.Quota], told: list[str]) -> dict[str, quota.Quota]:
    known: dict[str, quota.Quota] = {}
    for one in ordered:
        first = known.setdefault(one.name, one)
        if first is not one:
            told.append(
                f"ElasticQuota {one.identity}: the name {one.name} is taken by the older "
                f"{first.identity}; this object is ignored, give it another name"
            )
    return known


def _trees(known: Mapping[str, quota.Quota]) -> dict[str, str]:
    """Return the tree of each quota; one that names none is in that of its parent."""
    trees: dict[str, str] = {}
    for name in known:
        chain: list[str] = []
        at, seen = name, set[str]()
        while at in known and at not in trees and at not in seen and not known[at].tree:
            seen.add(at)
            chain.append(at)
            at = known[at].parent
        found = trees.get(at) or (known[at].tree if at in known else "")
        for each in (*chain, name):
            trees[each] = known[each].tree or found
    return trees


def _parents(
    known: Mapping[str, quota.Quota], trees: Mapping[str, str], told: list[str]
) -> dict[str, str]:
    parents: dict[str, str] = {}
    for name, one in known.items():
        parents[name] = ""
        if one.parent == names.ROOT_QUOTA:
            continue
        if one.parent not in known:
            told.append(
                f"ElasticQuota {one.identity}: its parent {one.parent} does not exist; "
                "it stands below the root until it does"
            )
        elif trees[one.parent] != trees[name]:
            told.append(
                f"ElasticQuota {one.identity}: its parent {one.parent} is in tree "
                f'"{trees[one.parent]}", not in "{trees[name]}"; it stands below the root of its '
                "own tree until both agree"
            )
        else:
            parents[name] = one.parent
    for name in _cyclic(parents):
        told.append(
            f"ElasticQuota {known[name].identity}: its ancestors lead back to itself; "
            "it stands below the root until they no longer do"
        )
        parents[name] = ""
    return parents


def _cyclic(parents: Mapping[str, str]) -> list[str]:
    """Return the quotas that are ancestors of themselves."""
    done: set[str] = set()
    found: list[str] = []
    for name in parents:
        path: dict[str, int] = {}
        at = name
        while at and at not in done and at not in path:
            path[at] = len(path)
            at = parents[at]
        if at in path:
            found += list(path)[path[at] :]
        done.update(path)
    return found


def _depths(parents: dict[str, str], told: list[str]) -> dict[str, int]:
    """Return the level of each quota, 0 at the top; what is too deep is put there."""
    depths: dict[str, int] = {}
    for name in parents:
        chain: list[str] = []
        at = name
        while at and at not in depths:
            chain.append(at)
            at = parents[at]
        depth = depths[at] + 1 if at else 0
        for each in reversed(chain):
            if depth >= DEEPEST:
                told.append(
                    f"ElasticQuota {each}: it is more than {DEEPEST} levels deep; "
                    "it stands below the root"
                )
                parents[each], depth = "", 0
            depths[each] = depth
            depth += 1
    return depths


def _children(places: Mapping[str, Place]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name in sorted(places):
        place = places[name]
        found.setdefault(place.parent or top(place.tree), []).append(name)
    return {parent: tuple(listed) for parent, listed in found.items()}


def _namespaces(ordered: Iterable[quota.Quota], told: list[str]) -> dict[str, str]:
    bound: dict[str, str] = {}
    own: dict[str, str] = {}
    known: dict[str, quota.Quota] = {}
    for one in ordered:
        known[one.name] = one
        if one.name == one.namespace:
            own[one.namespace] = one.name
        # A quota may name thousands: each is looked at by nothing slower than a dict.
        mine = dict.fromkeys(one.namespaces, one.name)
        taken = bound.keys() & mine.keys()
        for namespace in [name for name in mine if name in taken] if taken else ():
            first = known[bound[namespace]]
            del mine[namespace]
            if one.name != one.namespace:
                told.append(_bound_twice(one, namespace, first) if len(told) < _MOST_TOLD else "")
        bound.update(mine)
    return bound | own


def _bound_twice(one: quota.Quota, namespace: str, first: quota.Quota) -> str:
    return (
        f"ElasticQuota {one.identity}: namespace {namespace} is bound to the older "
        f"{first.identity}; bind it once"
    )


def _roots(
    ordered: Iterable[quota.Quota], places: Mapping[str, Place], told: list[str]
) -> dict[str, str]:
    roots: dict[str, str] = {}
    for one in ordered:
        place = places.get(one.name)
        if place is None or place.quota is not one or not one.is_root or not place.tree:
            continue
        first = roots.setdefault(place.tree, one.name)
        if first != one.name:
            told.append(
                f"ElasticQuota {one.identity}: tree {place.tree} has the older root {first}; "
                "its total-resource is ignored"
            )
    return roots


def _bounded(told: list[str]) -> tuple[str, ...]:
    if len(told) <= _MOST_TOLD:
        return tuple(told)
    return (*told[:_MOST_TOLD], f"and {len(told) - _MOST_TOLD} more")
