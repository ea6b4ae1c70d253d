"""What the descheduler keeps of nodes and of what their agents have measured. Pure."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator import nodemetric_structs
from api.kubernetes import core
from api.wire import durations, quantity, untrusted
from descheduler.model import nodeinfo, podinfo
from domain.pods import resources

_BOUNDS: Final = untrusted.Bounds(bytes=4 << 10, depth=4, parts=256)
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, ArithmeticError)
_NEVER: Final = 0.0


def node(written: core.Node) -> nodeinfo.Node:
    """Return what is kept of a node."""
    allocatable = _amounts(written.status.allocatable)
    ready = written.status.condition("Ready")
    return nodeinfo.Node(
        name=sys.intern(written.metadata.name),
        uid=written.metadata.uid,
        labels=written.metadata.labels,
        taints=written.spec.taints,
        is_ready=ready is None or ready.status == "True",
        is_schedulable=not written.spec.unschedulable,
        allocatable=allocatable,
        capacity=_before_amplification(written.metadata.annotations, allocatable),
    )


def _before_amplification(
    notes: Mapping[str, str], allocatable: podinfo.Amounts
) -> podinfo.Amounts:
    """Return what usage is measured against; an annotation that cannot be read counts as absent."""
    text = notes.get(names.ANNOTATION_RAW_ALLOCATABLE, "")
    if not text:
        return allocatable
    try:
        raw = untrusted.decode(text, dict[str, Any], "annotation", bounds=_BOUNDS)
        return {**allocatable, **quantity.amounts(raw)}
    except _UNREADABLE:
        return allocatable


def usage(metric: nodemetric_structs.NodeMetric) -> nodeinfo.Usage | None:
    """Return what a NodeMetric says was used; None while it reports nothing of its node."""
    status = metric.status
    if status.node_metric is None:
        return None
    return nodeinfo.Usage(
        node=sys.intern(metric.metadata.name),
        updated_at=durations.timestamp(status.update_time) if status.update_time else _NEVER,
        system=_amounts(status.node_metric.system_usage.resources),
        by_pod=dict(_by_pod(status)),
    )


def _by_pod(status: nodemetric_structs.Status) -> Iterator[tuple[str, podinfo.Amounts]]:
    """Yield what pods use; one of which nothing is reported is left out."""
    for pod in status.pods_metric or ():
        if pod.pod_usage.resources:
            yield sys.intern(f"{pod.namespace}/{pod.name}"), _amounts(pod.pod_usage.resources)
    for short in () if status.pods_metric else status.pod_metrics or ():
        total = _sum(short.containers)
        if total:
            yield sys.intern(f"{short.pod_ref.namespace}/{short.pod_ref.name}"), total


def _sum(containers: Sequence[nodemetric_structs.ShortContainer]) -> podinfo.Amounts:
    total: dict[str, int] = {}
    for container in containers:
        total = resources.add(total, _amounts(container.usage))
    return total


def _amounts(written: Mapping[str, quantity.Written]) -> dict[str, int]:
    return {sys.intern(name): quantity.amount(name, value) for name, value in written.items()}
