"""What nodes and pods use, from metrics alone: metrics.k8s.io, or a Prometheus over days."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from api import names, resources
from api.wire import quantity
from cli import reading
from cli.prometheus import cadvisor, samples
from cli.prometheus import client as prometheus
from cli.report import uses
from domain import wording
from kube.client import client as clients
from kube.client import errors

NODES: Final = resources.Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False)
PODS: Final = resources.Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True)
PEAK: Final = 0.95
"""Of the figures of a Prometheus the one that is exceeded in one of twenty intervals."""
_STEP: Final = "5m"


class MetricsError(ValueError):
    """Metrics that cannot be read; says what to install or to name."""


async def now(kube: clients.Client) -> uses.Measured:
    """Return what the metrics API says at this moment."""
    try:
        nodes = (await kube.list(NODES)).items
        pods = (await kube.list(PODS)).items
    except errors.ApiError as error:
        if not error.is_of_unserved_kind and not isinstance(error, errors.NotFound):
            raise
        raise MetricsError(
            "the cluster has no metrics API (metrics.k8s.io): install metrics-server, or name a "
            "Prometheus with --prometheus"
        ) from error
    return uses.Measured(
        {one["metadata"]["name"]: _amount(one.get("usage")) for one in nodes if _is_named(one)},
        {_key(one): _of_containers(one) for one in pods if _is_named(one)},
        "use at this moment, by metrics.k8s.io",
    )


def _is_named(raw: Mapping[str, Any]) -> bool:
    metadata = raw.get("metadata")
    return isinstance(metadata, Mapping) and isinstance(metadata.get("name"), str)


def _key(raw: Mapping[str, Any]) -> str:
    return f"{raw['metadata'].get('namespace', '')}/{raw['metadata']['name']}"


def _amount(written: Any) -> uses.Use:
    found = written if isinstance(written, Mapping) else {}
    return uses.Use(
        reading.either(0, quantity.milli, found.get(names.CPU, 0)),
        reading.either(0, quantity.whole, found.get(names.MEMORY, 0)),
    )


def _of_containers(raw: Mapping[str, Any]) -> uses.Use:
    total = uses.NOTHING
    for container in raw.get("containers") or ():
        if isinstance(container, Mapping):
            total = total.plus(_amount(container.get("usage")))
    return total


async def over_days(source: prometheus.Prometheus, days: int, at: float) -> uses.Measured:
    """Return what a Prometheus knows of so many days: the peaks of pods and nodes."""
    containers, root = cadvisor.CONTAINERS, cadvisor.ROOT
    pod_cpu, pod_memory, node_cpu, node_memory = [
        await source.figures(_peak(query, days), at)
        for query in (
            cadvisor.of_pods(cadvisor.cpu(containers, _STEP)),
            cadvisor.of_pods(cadvisor.memory(containers)),
            cadvisor.whole(cadvisor.cpu(root, _STEP)),
            cadvisor.whole(cadvisor.memory(root)),
        )
    ]
    if not pod_cpu:
        raise MetricsError(
            "the Prometheus has no container_cpu_usage_seconds_total with namespace and pod: let "
            "it scrape the cAdvisor metrics of the kubelets"
        )
    return uses.Measured(
        _joined(node_cpu, node_memory, ("node",)),
        _joined(pod_cpu, pod_memory, ("namespace", "pod")),
        f"the use of {wording.count(days, 'day', 'days')} that is exceeded in one of twenty "
        "intervals, by a Prometheus",
    )


def _peak(query: str, days: int) -> str:
    return f"quantile_over_time({PEAK}, ({query})[{days}d:{_STEP}])"


def _joined(
    cpu: Sequence[samples.Figure], memory: Sequence[samples.Figure], by: tuple[str, ...]
) -> dict[str, uses.Use]:
    held = {_name(one, by): int(one.value) for one in memory}
    return {
        name: uses.Use(int(one.value * 1000), held.get(name, 0))
        for one in cpu
        if (name := _name(one, by))
    }


def _name(one: samples.Figure, by: tuple[str, ...]) -> str:
    parts = [one.labels.get(label, "") for label in by]
    return "/".join(parts) if all(parts) else ""
