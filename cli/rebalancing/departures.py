"""Pods that terminate already: how long a drain waits for them, and what holds those that stay.

Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from api.wire import durations
from descheduler.migration.plan import facts
from descheduler.model import nodeinfo, podinfo


def rest(pod: podinfo.Pod, now: float) -> str:
    """Return how long a pod has left to end, for people."""
    seconds = round(pod.leaves_at - now)
    if seconds > 0:
        return f"it has {durations.text(seconds)} left to end"
    return f"its grace period ended {durations.text(-seconds)} ago"


def waited_until(pod: podinfo.Pod, begun: float, ttl: float) -> float:
    """Return until when a pod is waited for: as long as its job would, if it had one."""
    return max(begun + ttl, pod.leaves_at + facts.SETTLING_SECONDS)


def are_awaited(pods: Iterable[podinfo.Pod], begun: float, ttl: float, now: float) -> bool:
    """Whether one of some pods may still end in time."""
    return any(now < waited_until(pod, begun, ttl) for pod in pods)


def overdue(pods: Iterable[podinfo.Pod], now: float) -> list[podinfo.Pod]:
    """Return the pods that should have ended long ago, of those that a watch shows terminating."""
    return [pod for pod in pods if 0 <= pod.leaves_at <= now - facts.SETTLING_SECONDS]


def held(pod: podinfo.Pod, raw: Mapping[str, Any], node: nodeinfo.Node | None, now: float) -> str:
    """Return what keeps a pod that should have ended; `raw` is the pod as the API server has it."""
    metadata = raw.get("metadata") or {}
    grace = metadata.get("deletionGracePeriodSeconds")
    given = f" (of {durations.text(grace)})" if isinstance(grace, int) else ""
    said = f"{pod.key} is still terminating, {rest(pod, now)}{given}"
    finalizers = metadata.get("finalizers")
    if finalizers:
        return f"{said}: it stays until its finalizers are removed, {', '.join(finalizers)}"
    if node is None or not node.is_ready:
        return f"{said}: no kubelet ends it, since node {pod.node} is not ready"
    return f"{said}: it has no finalizers, the kubelet of node {pod.node} has not ended it"
