"""What the descheduler keeps of nodes and of what their agents have measured. Pure."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator.metrics import nodemetric_structs
from api.kubernetes import core
from api.wire import durations, quantity, untrusted
from descheduler.model import nodeinfo, podinfo
from domain.pods import resources

_BOUNDS: Final = untrusted.Bounds(bytes=4 << 10, depth=4, parts=256)
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, ArithmeticError)
_NEVER: Final = 0.0
_MOST_SIGNALS: Final = 16
_PERCENT: Final = 100.0
_LONGEST: Final = 32
"""Characters of the name of a signal."""


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
        throttled=dict(_throttled(status)),
        slowed=dict(_slowed(status)),
    )


def _slowed(
    status: nodemetric_structs.Status,
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the pods that fare worse than usual, with what says so; mostly there are none."""
    for pod in status.pods_metric or ():
        if pod.extensions is not None and (signals := _signals(pod.extensions)):
            yield sys.intern(f"{pod.namespace}/{pod.name}"), signals


def _throttled(status: nodemetric_structs.Status) -> Iterator[tuple[str, float]]:
    """Yield the pods whose throttling our agent reports."""
    for pod in status.pods_metric or ():
        if pod.extensions is not None and (share := _share(pod.extensions)) is not None:
            yield sys.intern(f"{pod.namespace}/{pod.name}"), share


def _share(extensions: Any) -> float | None:
    try:
        found = float(extensions["Object"][names.THROTTLED])
    except (*_UNREADABLE, LookupError):
        return None
    return found if 0.0 <= found <= _PERCENT else None


def _signals(extensions: Any) -> Mapping[str, float]:
    """Return the signals that our agent reports; what is anything else counts as absent."""
    try:
        # The published Go type writes what there is below `Object`.
        found = extensions["Object"][names.INTERFERENCE][:_MOST_SIGNALS]
        return {str(one["signal"])[:_LONGEST]: float(one["value"]) for one in found}
    except (*_UNREADABLE, LookupError):
        return {}


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
