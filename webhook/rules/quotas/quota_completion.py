"""Complete new ElasticQuotas: add what readers assume anyway; what the author wrote stays."""

from collections.abc import Mapping
from typing import Any

from api import names, resources
from api.koordinator.metadata import annotations
from api.wire import base, untrusted
from domain.quota.tree import quota_trees
from webhook import review

GROUP = "quota"
_WITH_WEIGHTS = (resources.ELASTIC_QUOTAS.group, resources.ELASTIC_QUOTAS.plural)


def complete(asked: review.Review, trees: quota_trees.Trees) -> review.Decision:
    """Add the parent, the tree of the parent, and the weights of a quota of the first group.

    The short groups get no weights: there the weight follows the maximum as long as no one
    writes one, and a copy would hold it where it was.
    """
    metadata = review.section(asked.object, "metadata")
    most = review.section(asked.object, "spec").get("max") or {}
    labels, notes = (metadata.get(part) or {} for part in ("labels", "annotations"))
    parts = (most, labels, notes)
    if metadata.get("name") == names.ROOT_QUOTA or not all(isinstance(p, Mapping) for p in parts):
        return review.Decision()
    found = _labels(labels, trees)
    if isinstance(found, review.Fault):
        return review.Decision(review.Refusal(GROUP, (found.text,), causes=(found.reason,)))
    added: dict[str, Any] = {"labels": {**labels, **found}} if found else {}
    if asked.resource == _WITH_WEIGHTS:
        try:
            weight = _weight(notes, most)
        except (base.ReadError, ValueError) as wrong:
            text = f"metadata.annotations: {wrong}"
            return review.Decision(review.Refusal(GROUP, (text,), causes=("weight-unreadable",)))
        if weight is not None:
            added["annotations"] = {**notes, names.ANNOTATION_QUOTA_WEIGHT: weight}
    if not added:
        return review.Decision()
    return review.Decision(object={**asked.object, "metadata": {**metadata, **added}})


def _labels(labels: Mapping[str, Any], trees: quota_trees.Trees) -> dict[str, str] | review.Fault:
    """Return the labels that are missing, or why they cannot be known."""
    parent = labels.get(names.LABEL_QUOTA_PARENT)
    if not parent:
        return {names.LABEL_QUOTA_PARENT: names.ROOT_QUOTA}
    if labels.get(names.LABEL_QUOTA_TREE) or parent == names.ROOT_QUOTA:
        return {}
    found = trees.by_name.get(parent) if isinstance(parent, str) else None
    if found is None:
        return review.Fault(
            "parent-unknown",
            f"metadata.labels[{names.LABEL_QUOTA_PARENT}]: Not found: no ElasticQuota is named "
            f'"{parent}"; create it first',
        )
    return {names.LABEL_QUOTA_TREE: found.tree} if found.tree else {}


def _weight(notes: Mapping[str, Any], most: Mapping[str, Any]) -> str | None:
    """Return the weights with those that are missing; None if none are."""
    written = notes.get(names.ANNOTATION_QUOTA_WEIGHT)
    if not written:
        return base.encoded(most) if most else None
    if not isinstance(written, str):
        return None
    known = annotations.QUOTA_WEIGHT.read({names.ANNOTATION_QUOTA_WEIGHT: written}) or {}
    missing = {name: value for name, value in most.items() if name not in known}
    if not missing:
        return None
    raw = untrusted.parsed(written, f"annotation {names.ANNOTATION_QUOTA_WEIGHT}")
    return base.encoded({**(raw or {}), **missing})
