"""Pods without a node, with why; the longest waiting first. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from manager.console.access import scope
from manager.console.views import nodes, paging, pods

_MOST_KINDS: Final = 12


def document(
    waiting: Iterable[pods.Pod], allowed: scope.Scope, wanted: paging.Asked
) -> dict[str, Any]:
    """Return the pods that may be shown, one page of them, and how many wait for what."""
    visible = [pod for pod in waiting if allowed.allows(pod.namespace)]
    if wanted.namespace:
        visible = [pod for pod in visible if pod.namespace == wanted.namespace]
    kinds = Counter(pod.waiting.kind for pod in visible if pod.waiting is not None)
    found = [pod for pod in visible if _is_wanted(pod, wanted)]
    found.sort(key=_since)
    return {
        **paging.page(found, wanted, _row),
        "kinds": [{"kind": kind, "pods": count} for kind, count in kinds.most_common(_MOST_KINDS)],
        "waiting": len(visible),
        "partial": allowed.partial,
        "everywhere": allowed.everywhere,
    }


def _since(pod: pods.Pod) -> tuple[float, str]:
    return (pod.waiting.since if pod.waiting is not None else 0.0, pod.name)


def _is_wanted(pod: pods.Pod, wanted: paging.Asked) -> bool:
    why = pod.waiting
    if why is None or (wanted.kind and why.kind != wanted.kind):
        return False
    if not wanted.text:
        return True
    return wanted.text in f"{pod.namespace}/{pod.name}".lower() or wanted.text in why.text.lower()


def _row(pod: pods.Pod) -> dict[str, Any]:
    why = pod.waiting
    assert why is not None
    return {
        **nodes.row(pod),
        "reason": why.text,
        "since": why.since,
        "scheduler": why.scheduler,
        "priority": why.priority,
        "gang": pod.gang,
    }
