"""Figures under the names of Koordinator's agent, for the dashboards that people already have.

Nothing is kept for it: the values are made from what is known anyway, when metrics are read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import core, registry

from agent.model import state
from agent.observe import collectors
from api import names
from api.kubernetes import core as api_core
from api.wire import quantity
from process.runtime import metrics

_ALLOWED: Final = "koord_agent_best_effort_allowed_cores"
_FRESH_SECONDS: Final = 150.0
_POD: Final = ("pod_uid", "pod_name", "pod_namespace")
_CONTAINER: Final = (*_POD, "container_id", "container_name")
_WAITS: Final = {"cpu": "cpu", "memory": "mem", "io": "io"}
_LENT: Final = (*names.BATCH_RESOURCES, *names.MID_RESOURCES)
_PRESSURE: Final = ("psi_resource_type", "psi_precision", "psi_degree", "cpu_full_supported")
_AMOUNT: Final = ("resource", "unit")
FAMILIES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "start_time": ((), "When the agent started, in seconds since 1970."),
    "node_used_cpu_cores": ((), "Cores used on the node."),
    "node_used_memory_bytes": ((), "Memory used on the node."),
    "node_metric_node_usage": (_AMOUNT, "What is used on the node."),
    "node_metric_system_usage": (_AMOUNT, "What is used on the node outside pods."),
    "node_resource_allocatable": (_AMOUNT, "Batch and mid resources that the node lends."),
    "be_suppress_cpu_cores": (("type",), "Cores that best-effort work may use, by policy."),
    "be_suppress_be_used_cpu_cores": ((), "Cores that best-effort pods use."),
    "be_suppress_ls_used_cpu_cores": ((), "Cores used by everything but best-effort pods."),
    "host_application_resource_usage": (
        ("host_application_name", "resource", "priority_class", "qos"),
        "What a host application uses.",
    ),
    "container_resource_requests": ((*_AMOUNT, *_CONTAINER), "Batch and mid requests."),
    "container_resource_limits": ((*_AMOUNT, *_CONTAINER), "Batch and mid limits."),
    "pod_psi": ((*_POD, *_PRESSURE), "Share of time in which tasks of a pod wait."),
    "container_psi": ((*_CONTAINER, *_PRESSURE), "Share of time in which tasks wait."),
    "container_cpi": ((*_CONTAINER, "cpi_field"), "Cycles and instructions of a container."),
    "resctrl_llc_occupancy": (("cache_id", "qos"), "Bytes that a class holds in a cache."),
    "resctrl_memory_bandwidth": (
        ("cache_id", "qos", "mb_type"),
        "Memory bandwidth of a class in bytes per second.",
    ),
}
"""The labels, beside `node`, and the meaning of every figure."""
Row = tuple[tuple[str, ...], float]


class Seen:
    """Remembers what the latest look had to tell; costs nothing else until metrics are read."""

    name = "koordlet names"
    seconds = 0.0

    def __init__(self) -> None:
        self.sight: collectors.Sight | None = None

    def collect(self, sight: collectors.Sight) -> None:
        """Remember what was seen."""
        self.sight = sight

    def close(self) -> None:
        """Tell nothing any more."""
        self.sight = None


class Names(registry.Collector):
    """Tells the figures of one node by other names, at every scrape."""

    def __init__(
        self,
        figures: metrics.Registry,
        node: str,
        picture: Callable[[], state.NodeState | None],
        began: float,
    ) -> None:
        self._figures, self._node, self._picture, self._began = figures, node, picture, began
        self.seen = Seen()
        figures.collector.register(self)

    def describe(self) -> Iterable[core.Metric]:
        """Return nothing: the names are not ours."""
        return ()

    def collect(self) -> Iterable[core.Metric]:
        """Return every figure that there is."""
        return [family for family in self._families() if family.samples]

    def _families(self) -> Iterator[core.GaugeMetricFamily]:
        yield self._family("start_time", [((), self._began)])
        picture, sight = self._picture(), self.seen.sight
        if picture is None or sight is None or picture.node is None:
            return
        yield from self._of_node(picture)
        yield from self._of_suppression(picture)
        yield self._family("host_application_resource_usage", _applications(picture))
        yield from self._of_containers(picture)
        yield from self._of_pressure(picture, sight)
        yield self._family("container_cpi", _cycles(picture, sight))
        yield from self._of_caches(sight)

    def _of_node(self, picture: state.NodeState) -> Iterator[core.GaugeMetricFamily]:
        used, rest = picture.usage, picture.system
        if used.cpu is not None:
            yield self._family("node_used_cpu_cores", [((), used.cpu)])
        if used.memory is not None:
            yield self._family("node_used_memory_bytes", [((), used.memory)])
        yield self._family("node_metric_node_usage", _usage(used))
        yield self._family("node_metric_system_usage", _usage(rest))
        assert picture.node is not None
        allocatable = _amounts(picture.node.status.allocatable)
        rows = [((name, _unit(name)), amount) for name, amount in allocatable]
        yield self._family("node_resource_allocatable", rows)

    def _of_suppression(self, picture: state.NodeState) -> Iterator[core.GaugeMetricFamily]:
        allowed = self._figures.value(_ALLOWED)
        if picture.thresholds is not None and allowed:
            kind = picture.thresholds.cpu_suppress_policy
            yield self._family("be_suppress_cpu_cores", [((kind,), allowed)])
        if picture.usage.cpu is None:
            return
        batch = sum(pod.usage.cpu or 0.0 for pod in picture.pods if pod.best_effort)
        online = max(0.0, picture.usage.cpu - batch)
        yield self._family("be_suppress_be_used_cpu_cores", [((), batch)])
        yield self._family("be_suppress_ls_used_cpu_cores", [((), online)])

    def _of_containers(self, picture: state.NodeState) -> Iterator[core.GaugeMetricFamily]:
        # The unit says which of the two it is and not what is counted; dashboards are used to it.
        for kind, unit in (("requests", "integer"), ("limits", "byte")):
            rows = [
                ((name, unit, *_labels(pod, container)), amount)
                for pod in picture.pods
                for container in pod.containers
                for name, amount in _amounts(getattr(container.container.resources, kind))
            ]
            yield self._family(f"container_resource_{kind}", rows)

    def _of_pressure(
        self, picture: state.NodeState, sight: collectors.Sight
    ) -> Iterator[core.GaugeMetricFamily]:
        pods, containers = list[Row](), list[Row]()
        for pod in picture.pods:
            uid = pod.pod.metadata.uid
            of_pod = _labels(pod, None)
            pods += [((*of_pod, *rest), value) for rest, value in _waits(sight, ("pod", uid))]
            for container in pod.containers:
                of_one, key = _labels(pod, container), ("container", uid, container.name)
                containers += [((*of_one, *rest), value) for rest, value in _waits(sight, key)]
        yield self._family("pod_psi", pods)
        yield self._family("container_psi", containers)

    def _of_caches(self, sight: collectors.Sight) -> Iterator[core.GaugeMetricFamily]:
        held, moved = list[Row](), list[Row]()
        for key in sight.samples.words():
            value = _newest(sight, key)
            if key[0] != "node" or len(key) != 4 or value is None or key[2] == "default":
                continue
            _, kind, name, cache = key
            if kind == "cache":
                held.append(((cache, name), value))
            elif kind.startswith("memory-traffic-"):
                moved.append(((cache, name, f"mbm_{kind.rpartition('-')[2]}"), value))
        yield self._family("resctrl_llc_occupancy", held)
        yield self._family("resctrl_memory_bandwidth", moved)

    def _family(self, name: str, rows: Iterable[Row]) -> core.GaugeMetricFamily:
        labels, meaning = FAMILIES[name]
        made = core.GaugeMetricFamily(f"koordlet_{name}", meaning, labels=["node", *labels])
        for values, value in rows:
            made.add_metric([self._node, *values], value)
        return made


def _labels(pod: state.PodState, container: state.ContainerState | None) -> tuple[str, ...]:
    metadata, status = pod.pod.metadata, pod.pod.status
    labels = (metadata.uid, metadata.name, metadata.namespace)
    if container is None:
        return labels
    statuses = (*status.container_statuses, *status.init_container_statuses)
    found = (one.container_id for one in statuses if one.name == container.name)
    return (*labels, next(found, ""), container.name)


def _newest(sight: collectors.Sight, key: tuple[str, ...]) -> float | None:
    return sight.samples.newest(key, sight.at - _FRESH_SECONDS)


def _waits(sight: collectors.Sight, key: tuple[str, ...]) -> Iterator[Row]:
    for ours, theirs in _WAITS.items():
        some, full = (
            _newest(sight, (*key, f"pressure-{ours}-{degree}")) for degree in ("some", "full")
        )
        said = str(full is not None).lower()
        for degree, value in (("some", some), ("full", full)):
            if value is not None:
                yield (theirs, "avg10", degree, said), value


def _cycles(picture: state.NodeState, sight: collectors.Sight) -> Iterator[Row]:
    for pod in picture.pods:
        for container in pod.containers:
            key = ("container", pod.pod.metadata.uid, container.name)
            for field, figure in (("cycles", "cycles"), ("instructions", "instructions")):
                value = _newest(sight, (*key, figure))
                if value is not None:
                    yield (*_labels(pod, container), field), value


def _applications(picture: state.NodeState) -> Iterator[Row]:
    for one in picture.host_applications:
        for (resource, _), value in _usage(state.Usage(one.cpu, one.memory)):
            yield (one.name, resource, one.priority, one.qos), value


def _usage(used: state.Usage) -> Iterator[Row]:
    if used.cpu is not None:
        yield ("cpu", "core"), used.cpu
    if used.memory is not None:
        yield ("memory", "byte"), used.memory


def _amounts(resources: api_core.ResourceList) -> Iterator[tuple[str, float]]:
    for name in _LENT:
        written = resources.get(name)
        if written is not None:
            yield name, quantity.whole(written)


def _unit(name: str) -> str:
    return "integer" if name.endswith("cpu") else "byte"
