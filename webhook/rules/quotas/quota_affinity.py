"""Keep a pod on the nodes that the tree of its quota is made of."""

from typing import Any

from domain.quota.tree import quota_trees
from webhook import review

GROUP = "quota"


def pin(
    asked: review.Review, pod: review.Pod, trees: quota_trees.Trees, *, default: bool
) -> tuple[review.Pod, str]:
    """Demand the nodes of the pod's tree; returns the pod and the tree, none if it has none.

    `default`: pods without the label of a quota belong to one as well.
    """
    labels = review.section(review.section(pod, "metadata"), "labels")
    quota = trees.of_pod(labels, asked.namespace, default=default)
    pool = trees.pools.get(quota.tree) if quota is not None and quota.tree else None
    if pool is None:
        return pod, ""
    wanted = quota_trees.requirements(pool.selector)
    spec = review.section(pod, "spec")
    affinity: Any = spec.get("affinity")
    if not wanted or not _is_affinity(affinity):
        return pod, ""
    changed = quota_trees.within(affinity, wanted)
    if changed == affinity:
        return pod, ""
    return {**pod, "spec": {**spec, "affinity": changed}}, pool.tree


def _is_affinity(affinity: Any) -> bool:
    """Tell whether everything that is built upon has the shape that the API server accepts."""
    found = affinity
    for name in (quota_trees.NODE_AFFINITY, quota_trees.REQUIRED):
        if found is None:
            return True
        if not isinstance(found, dict):
            return False
        found = found.get(name)
    if found is None:
        return True
    terms = found.get("nodeSelectorTerms") if isinstance(found, dict) else ()
    return terms is None or (
        isinstance(terms, list)
        and all(
            isinstance(term, dict) and isinstance(term.get("matchExpressions") or [], list)
            for term in terms
        )
    )
