"""Let new pods of a quota wait behind a scheduling gate until their quota has room for them."""

from collections.abc import Mapping
from typing import Any, Final

from api import names
from domain.quota.tree import quota_trees
from webhook import gates, review

NEVER: Final = ("kube-system",)
SYSTEM_CRITICAL: Final = 2_000_000_000
"""Priority from which on a pod belongs to the system itself."""
_SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")


def gated(
    asked: review.Review, pod: review.Pod, picture: review.Picture
) -> tuple[review.Pod, bool]:
    """Return the pod behind the gate of its quota, and whether that was added.

    Pods without a quota of their own, of the system, of DaemonSets and on a node already are let
    pass, and all pods while no controller opens gates. What they use counts all the same.
    """
    spec = review.section(pod, "spec")
    if not picture.opens_gates or charged_quota(asked, pod, picture) is None:
        return pod, False
    if spec.get("nodeName"):
        return pod, False
    present = spec.get("schedulingGates") or []
    if not isinstance(present, list) or {"name": names.GATE_QUOTA} in present:
        return pod, False
    opened = [*present, {"name": names.GATE_QUOTA}]
    return {**pod, "spec": {**spec, "schedulingGates": opened}}, True


def charged_quota(
    asked: review.Review, pod: review.Pod, picture: review.Picture
) -> quota_trees.Member | None:
    """Return the quota that admission has to ask before it lets a pod in, none for most pods."""
    if asked.namespace in (*NEVER, picture.namespace):
        return None
    labels = review.section(review.section(pod, "metadata"), "labels")
    default = gates.NO_DEFAULT_QUOTA not in picture.gates
    found = picture.trees.of_pod(labels, asked.namespace, default=default)
    if found is None or found.name in names.RESERVED_QUOTAS or _is_exempt(pod):
        return None
    return found


def _is_exempt(pod: review.Pod) -> bool:
    spec = review.section(pod, "spec")
    priority = spec.get("priority")
    if isinstance(priority, int) and priority >= SYSTEM_CRITICAL:
        return True
    if priority is None and spec.get("priorityClassName") in _SYSTEM_CLASSES:
        return True
    owners = review.section(pod, "metadata").get("ownerReferences")
    return isinstance(owners, list) and any(map(_is_daemon_set, owners))


def _is_daemon_set(owner: Any) -> bool:
    """Tell whether a reference is the one of a DaemonSet to its pod, which stands on one node."""
    return (
        isinstance(owner, Mapping)
        and owner.get("controller") is True
        and owner.get("kind") == "DaemonSet"
        and str(owner.get("apiVersion", "")).startswith("apps/")
    )
