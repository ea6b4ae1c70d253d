"""Quotas as documents, in the shape that tools for Koordinator's scheduler know."""

from collections.abc import Iterable, Mapping
from typing import Any

from api import names
from api.wire import quantity
from domain.quota import model
from domain.quota.tree import forest as forests
from extender.framework import views
from extender.plugins.elastic_quota import uses

_OUTSIDE = (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA)
_AMOUNTS = {
    "max": "cap",
    "min": "minimum",
    "autoScaleMin": "scaled_minimum",
    "used": "used",
    "nonPreemptibleUsed": "non_preemptible_used",
    "request": "request",
    "nonPreemptibleRequest": "non_preemptible_request",
    "runtime": "runtime",
    "childRequest": "child_request",
    "allocated": "allocated",
    "guaranteed": "guaranteed",
    "selfUsed": "self_used",
    "selfRequest": "self_request",
}


def listed(
    forest: forests.Forest, pods: Iterable[tuple[views.PodRecord, bool]] | None, tree: str | None
) -> list[dict[str, Any]]:
    """Return all quotas, or those of one tree; the root quota, which has no object, is left out."""
    caches = _caches(forest, pods) if pods is not None else {}
    found = (*forest.names(), *_OUTSIDE)
    return [
        _summary(forest, name, caches.get(name))
        for name in found
        if tree is None or forest.tree(name) == tree
    ]


def summary(
    forest: forests.Forest, name: str, pods: Iterable[tuple[views.PodRecord, bool]] | None
) -> dict[str, Any] | None:
    """Return one quota, None where there is none of this name."""
    if name not in _OUTSIDE and name not in forest.names():
        return None
    caches = _caches(forest, pods) if pods is not None else {}
    return _summary(forest, name, caches.get(name))


def _summary(forest: forests.Forest, name: str, cache: Mapping[str, Any] | None) -> dict[str, Any]:
    written, figures, path = forest.quota(name), forest.figures(name), forest.path(name)
    document: dict[str, Any] = {"name": name}
    if written is not None:
        parent = path[1] if len(path) > 1 else names.ROOT_QUOTA
        document |= {
            "parentName": "" if name in _OUTSIDE else parent,
            "isParent": written.is_parent,
            "allowLentResource": written.lends,
            "tree": forest.tree(name),
            "sharedWeight": _written({key: written.weight_of(key) for key in written.cap}),
        }
    if figures is not None:
        document |= {key: _written(getattr(figures, field)) for key, field in _AMOUNTS.items()}
        if not forest.children(name):
            document["selfNonPreemptibleUsed"] = document["nonPreemptibleUsed"]
            document["selfNonPreemptibleRequest"] = document["nonPreemptibleRequest"]
    document["podCache"] = cache
    return {key: value for key, value in document.items() if value}


def _written(amounts: model.Amounts) -> dict[str, str]:
    return {name: quantity.text(name, value) for name, value in sorted(amounts.items()) if value}


def _caches(
    forest: forests.Forest, pods: Iterable[tuple[views.PodRecord, bool]]
) -> dict[str, dict[str, Any]]:
    """Return the pods of each quota by namespace/name."""
    found: dict[str, dict[str, Any]] = {}
    for pod, is_assigned in pods:
        use = uses.waiting(pod.requirements, pod.namespace)
        name = forest.name_of(use.quota, use.namespace)
        resource = _written(dict(use.requests))
        found.setdefault(name, {})[pod.key] = {"isAssigned": is_assigned, "resource": resource}
    return found
