"""Check an ElasticQuota against its parent, its children and its siblings."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from api import names
from api.wire import quantity
from domain import wording
from domain.quota.tree import quota_trees
from webhook import gates, review

_MOST_NAMED: Final = 16
_PARENT: Final = f"metadata.labels[{names.LABEL_QUOTA_PARENT}]"
_IS_PARENT: Final = f"metadata.labels[{names.LABEL_QUOTA_IS_PARENT}]"
_TREE: Final = f"metadata.labels[{names.LABEL_QUOTA_TREE}]"
_FORCE: Final = f"set the label {names.LABEL_QUOTA_FORCE_UPDATE} to true to write it all the same"

Amounts = Mapping[str, int]


class Asked(NamedTuple):
    """A quota that is to be stored, and what it is compared with."""

    new: quota_trees.Member
    old: quota_trees.Member | None
    trees: quota_trees.Trees
    on: frozenset[str] = frozenset()
    """Feature gates."""
    pods: tuple[str, ...] = ()
    """Some of the pods that the quota itself is charged for."""


def check(asked: Asked) -> Iterator[review.Fault]:
    """Yield what does not fit into the tree; the root of all quotas fits anywhere."""
    if asked.new.name == names.ROOT_QUOTA:
        return
    children = asked.trees.children.get(asked.new.name, ())
    yield from _flipped(asked, children)
    yield from _tree(asked, children)
    if asked.new.parent == names.ROOT_QUOTA and not asked.new.is_parent:
        return
    parent = None
    if asked.new.parent != names.ROOT_QUOTA:
        parent = asked.trees.by_name.get(asked.new.parent)
        found = tuple(_parent(asked, parent))
        yield from found
        if found or parent is None:
            return
    yield from _keys(asked, parent, children)
    if not (asked.new.is_forced or asked.new.is_root):
        yield from _sums(asked, parent, children)
        if gates.GUARANTEE in asked.on and asked.new.tree:
            yield from _guarantee(asked)
    if any(one.name == asked.new.name for one in _above(asked)):
        yield review.Fault(
            "parent-below",
            f'{_PARENT}: Invalid value: "{asked.new.parent}": it is the quota itself or below it',
        )


def namespaces(asked: Asked, explicit: Iterable[str]) -> Iterator[review.Fault]:
    """Yield the namespaces that the quota names and another quota has."""
    holders: dict[str, list[quota_trees.Member]] = {namespace: [] for namespace in explicit}
    if not holders:
        return
    for other in asked.trees.by_name.values():
        if other.name != asked.new.name:
            for namespace in holders.keys() & other.namespaces:
                holders[namespace].append(other)
    for namespace, others in holders.items():
        for other in others:
            key = names.ANNOTATION_QUOTA_NAMESPACES
            yield review.Fault(
                "namespace-bound",
                f'metadata.annotations[{key}]: Invalid value: "{namespace}": bound to '
                f"ElasticQuota {other.key}; a namespace has one quota",
            )


def _flipped(asked: Asked, children: tuple[quota_trees.Member, ...]) -> Iterator[review.Fault]:
    if asked.old is None or asked.old.is_parent == asked.new.is_parent:
        return
    if asked.old.is_parent and children:
        yield review.Fault(
            "has-children",
            f"{_IS_PARENT}: Forbidden: {wording.count(len(children), 'quota is', 'quotas are')} "
            f"below it, such as {children[0].key}; move or delete "
            f"{wording.form(len(children), 'that', 'them')} first",
        )
    if asked.new.is_parent and asked.pods:
        yield review.Fault(
            "has-pods",
            f"{_IS_PARENT}: Forbidden: it is charged for pods, such as "
            f"{', '.join(asked.pods[:2])}, and a parent holds quotas only; delete them first",
        )


def _tree(asked: Asked, children: tuple[quota_trees.Member, ...]) -> Iterator[review.Fault]:
    new, parent = asked.new, asked.trees.by_name.get(asked.new.parent)
    if asked.old is not None and asked.old.tree != new.tree:
        yield review.Fault(
            "tree-changed",
            f'{_TREE}: Invalid value: "{new.tree}": field is immutable, it was '
            f'"{asked.old.tree}"; delete the quota and create it anew',
        )
        return
    if new.parent == names.ROOT_QUOTA:
        parent = None
    for other in (*((parent,) if parent else ()), *children):
        if other.tree != new.tree:
            what = "its parent" if other is parent else "below it"
            yield review.Fault(
                "tree-differs",
                f'{_TREE}: Invalid value: "{new.tree}": ElasticQuota {other.key} {what} is of '
                f'tree "{other.tree}"; a quota is of the tree of its parent',
            )


def _parent(asked: Asked, parent: quota_trees.Member | None) -> Iterator[review.Fault]:
    if parent is None:
        yield review.Fault(
            "parent-unknown",
            f'{_PARENT}: Not found: no ElasticQuota is named "{asked.new.parent}"; create it first',
        )
    elif not parent.is_parent:
        yield review.Fault(
            "parent-is-leaf",
            f"{_PARENT}: Forbidden: ElasticQuota {parent.key} holds no quotas; label it "
            f"{names.LABEL_QUOTA_IS_PARENT}=true first",
        )


def _above(asked: Asked) -> Iterator[quota_trees.Member]:
    """Yield the quotas above, the nearest first; each once, whatever circles there are."""
    seen, name = set[str](), asked.new.parent
    while name not in seen and (found := asked.trees.by_name.get(name)) is not None:
        seen.add(name)
        yield found
        name = found.parent


def _keys(
    asked: Asked, parent: quota_trees.Member | None, children: tuple[quota_trees.Member, ...]
) -> Iterator[review.Fault]:
    pairs = [*([(parent, asked.new)] if parent else ()), *((asked.new, one) for one in children)]
    for above, below in pairs:
        missing = below.cap.keys() - above.cap.keys()
        if gates.CHILD_KEYS not in asked.on:
            missing = missing | (above.cap.keys() - below.cap.keys())
        if missing:
            yield review.Fault(
                "max-keys",
                f"spec.max: Forbidden: {_listed(missing)} not in spec.max of both "
                f"ElasticQuota {above.key} and {below.key} below it; name the same resources",
            )
        missing = below.minimum.keys() - above.minimum.keys()
        if missing:
            yield review.Fault(
                "min-keys",
                f"spec.min: Forbidden: {_listed(missing)} not in spec.min of "
                f"ElasticQuota {above.key}, and in that of {below.key} below it; add it above",
            )


def _listed(resources: Collection[str]) -> str:
    """Name resources, boundedly many."""
    more = len(resources) - _MOST_NAMED
    named = ", ".join(sorted(resources)[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _sums(
    asked: Asked, parent: quota_trees.Member | None, children: tuple[quota_trees.Member, ...]
) -> Iterator[review.Fault]:
    if parent is not None:
        others = asked.trees.children.get(parent.name, ())
        siblings = [one.minimum for one in others if one.name != asked.new.name]
        for name, total in _exceeding(_added(*siblings, asked.new.minimum), parent.minimum):
            least = quantity.text(name, parent.minimum.get(name, 0))
            yield review.Fault(
                "min-sum-parent",
                f"spec.min[{name}]: Forbidden: with its siblings {quantity.text(name, total)}, "
                f"and ElasticQuota {parent.key} has {least}; lower it, raise that one, or {_FORCE}",
            )
    below = _added(*(one.minimum for one in children))
    for name, total in _exceeding(below, asked.new.minimum):
        yield review.Fault(
            "min-sum-children",
            f"spec.min[{name}]: Forbidden: the quotas below it have {quantity.text(name, total)} "
            f"in all; raise it, lower those, or {_FORCE}",
        )


def _guarantee(asked: Asked) -> Iterator[review.Fault]:
    """Yield a fault if no quota above has enough guaranteed for a minimum that is raised."""
    guaranteed = asked.trees.by_name.get(asked.new.name, asked.new).guaranteed
    if not _exceeding(asked.new.minimum, guaranteed):
        return
    need, name = _most(asked.new.minimum, guaranteed), asked.new.name
    for above in _above(asked):
        others = asked.trees.children.get(above.name, ())
        siblings = [one.guaranteed for one in others if one.name != name]
        need, name = _most(above.minimum, _added(need, *siblings)), above.name
        if not _exceeding(need, above.guaranteed):
            return
    yield review.Fault(
        "not-guaranteed",
        f"spec.min: Forbidden: no quota above has so much guaranteed, up to the root of tree "
        f'"{asked.new.tree}"; lower it, raise the minimum there, or {_FORCE}',
    )


def _added(*amounts: Amounts) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in amounts:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def _most(one: Amounts, other: Amounts) -> dict[str, int]:
    both = {**one, **other}
    return {name: max(one.get(name, value), value) for name, value in both.items()}


def _exceeding(amounts: Amounts, limit: Amounts) -> list[tuple[str, int]]:
    """Return what is above the limit; what the limit lacks is 0 there."""
    return [(name, value) for name, value in amounts.items() if value > limit.get(name, 0)]
