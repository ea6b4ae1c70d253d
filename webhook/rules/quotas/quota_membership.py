"""Refuse pods of quotas that hold other quotas, and changes of what a quota is charged with."""

from collections.abc import Iterator, Mapping
from typing import Any

from api import names
from domain.quota.tree import quota_trees
from webhook import gates, review

GROUP = "quota"


def check(
    asked: review.Review, trees: quota_trees.Trees, on: frozenset[str]
) -> review.Refusal | None:
    """Refuse a pod that no quota may be charged for."""
    found = (*_changed(asked), *_parent(asked, trees, on))
    if not found:
        return None
    texts = tuple(fault.text for fault in found)
    return review.Refusal(GROUP, texts, causes=tuple(fault.reason for fault in found))


def _changed(asked: review.Review) -> Iterator[review.Fault]:
    if asked.operation != "UPDATE" or asked.old is None:
        return
    key = names.LABEL_QUOTA_PREEMPTIBLE
    now, before = _labels(asked.object).get(key), _labels(asked.old).get(key)
    if now != before:
        yield review.Fault(
            "pod-preemptible",
            f'labels.{key}: Invalid value: "{now or ""}": field is immutable, it was '
            f'"{before or ""}"; delete the pod and create it anew',
        )


def _parent(
    asked: review.Review, trees: quota_trees.Trees, on: frozenset[str]
) -> Iterator[review.Fault]:
    if gates.ANY_QUOTA in on:
        return
    found = _quota(asked.object, asked.namespace, trees, on)
    if found is None or not found.is_parent or found.name == names.DEFAULT_QUOTA:
        return
    if asked.old is not None and _quota(asked.old, asked.namespace, trees, on) == found:
        # It was there before the quota became a parent; nothing is gained by holding it up.
        return
    yield review.Fault(
        "pod-of-parent",
        f"labels.{names.LABEL_QUOTA_NAME}: Forbidden: ElasticQuota {found.namespace}/{found.name} "
        f"holds other quotas ({names.LABEL_QUOTA_IS_PARENT}=true); name one of those below it",
    )


def _quota(
    pod: review.Pod, namespace: str, trees: quota_trees.Trees, on: frozenset[str]
) -> quota_trees.Member | None:
    return trees.of_pod(_labels(pod), namespace, default=gates.NO_DEFAULT_QUOTA not in on)


def _labels(pod: review.Pod) -> Mapping[str, Any]:
    return review.section(review.section(pod, "metadata"), "labels")
