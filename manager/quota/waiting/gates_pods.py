"""How a pod is seen by the line of its quota, and what is written on it. Pure."""

from typing import Any, Final

import msgspec

from api import names
from domain.quota.waiting import line
from manager.quota import objects

State = line.State

EXEMPT_NAMESPACES: Final = frozenset({"kube-system"})
SYSTEM_CRITICAL: Final = 2_000_000_000
"""The priority of the class system-cluster-critical; such pods wait for no quota."""


def line_pod(
    pod: objects.QuotaPod,
    *,
    opened: bool = False,
    held: bool = False,
    exempt: bool = False,
    forgotten_since: float = 0.0,
) -> line.LinePod | None:
    """Return a pod as its line knows it; None where it neither waits nor counts.

    `opened`: its gate was opened by a write that the watch has not shown yet. `held`: its gate
    cannot be opened for now. An `exempt` pod waits for no quota. `forgotten_since`: since when it
    could have been scheduled, if no scheduler has said anything about it for long.
    """
    state = _state(pod, opened=opened, held=held)
    if pod.terminating and state is not State.BOUND:
        return None
    use = pod.use
    if exempt:
        use = msgspec.structs.replace(use, quota="", namespace="")
    return line.LinePod(
        uid=pod.uid,
        use=use,
        state=state,
        priority=pod.priority,
        created_at=pod.created_at,
        preempts=pod.preempts,
        unschedulable_since=None
        if pod.gated
        else pod.unschedulable_since or forgotten_since or None,
        nominated=bool(pod.nominated),
        leaving=pod.terminating,
        placement=pod.requires,
    )


def is_exempt(pod: objects.QuotaPod, own_namespace: str) -> bool:
    """Whether a pod must not wait for quota, even with our gate on it."""
    namespace = pod.use.namespace
    return (
        pod.pinned
        or namespace in EXEMPT_NAMESPACES
        or namespace == own_namespace
        or pod.priority >= SYSTEM_CRITICAL
    )


def _state(pod: objects.QuotaPod, *, opened: bool, held: bool) -> State:
    if pod.node:
        return State.BOUND
    if not pod.gated or opened:
        return State.BLOCKED if _others(pod) else State.OPENED
    return State.BLOCKED if held or _others(pod) else State.GATED


def _others(pod: objects.QuotaPod) -> bool:
    """Whether gates of others keep a pod out of the scheduling queue."""
    return any(name != names.GATE_QUOTA for name in pod.gates)


def is_rewritten(before: objects.QuotaObject | None, after: objects.QuotaObject | None) -> bool:
    """Whether a quota has come, gone or changed in anything but its status."""
    return before is None or after is None or before.quota != after.quota


def opening(pod: objects.QuotaPod) -> dict[str, Any]:
    """Return the patch that removes our gate from exactly this pod as it was seen."""
    return {
        "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": names.GATE_QUOTA}]},
    }
