"""What a NodeMetric says, from samples and one picture of the node. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from agent import history, state
from api import durations, names, nodemetric, qos, quantity
from domain import resources

CPU_NAMES = (names.CPU, names.BATCH_CPU, names.MID_CPU)
MEMORY_NAMES = (names.MEMORY, names.BATCH_MEMORY, names.MID_MEMORY)
FIGURES = ("avg", *history.PERCENTILES)
Figures = Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """How a node is measured and reported."""

    interval_seconds: float = 60.0
    aggregate_seconds: float = 300.0
    windows: tuple[float, ...] = (300.0, 600.0, 1800.0)
    page_cache: bool = False
    """Whether page cache counts as used memory."""

    @property
    def longest(self) -> float:
        """The longest window of node figures."""
        return max(self.aggregate_seconds, *self.windows)

    @property
    def memory(self) -> str:
        """The name of the memory figure that counts."""
        return "memory+cache" if self.page_cache else "memory"


def policy(spec: nodemetric.Spec) -> Policy:
    """Return the policy of a NodeMetric, with what it leaves open filled in."""
    default = Policy()
    written = spec.metric_collect_policy or nodemetric.CollectPolicy()
    aggregate = written.node_aggregate_policy
    return Policy(
        interval_seconds=written.report_interval_seconds or default.interval_seconds,
        aggregate_seconds=written.aggregate_duration_seconds or default.aggregate_seconds,
        windows=(aggregate.durations if aggregate else ()) or default.windows,
        page_cache=written.node_memory_collect_policy == "usageWithPageCache",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Reporting:
    """Everything that one report is made of."""

    samples: history.Histories
    picture: state.NodeState
    policy: Policy
    monotonic: float

    def average(self, key: tuple[str, ...], memory: str) -> Figures | None:
        """Return mean cpu (milli) and memory (bytes) of a series pair, None without either."""
        start = self.monotonic - self.policy.aggregate_seconds
        cpu = self.samples.average((*key, "cpu"), start, self.monotonic)
        held = self.samples.average((*key, memory), start, self.monotonic)
        if cpu is None or held is None:
            return None
        return {names.CPU: int(cpu * 1000), names.MEMORY: int(held)}


def status(reporting: Reporting) -> dict[str, Any] | None:
    """Return the status of the NodeMetric; None while the node has no figures yet."""
    picture, memory = reporting.picture, reporting.policy.memory
    node = reporting.average(("node",), memory)
    if node is None:
        return None
    system = reporting.average(("system",), "memory") or {}
    pods = sorted(picture.pods, key=lambda p: (p.pod.metadata.namespace, p.pod.metadata.name))
    used = {p.pod.metadata.uid: _pod_usage(reporting, p, memory) for p in pods}
    best_effort = [p for p in pods if qos.of_pod(p.pod) is qos.QoS.BE]
    others = [p for p in pods if qos.of_pod(p.pod) is not qos.QoS.BE]
    batch = _total(used[p.pod.metadata.uid] or {} for p in best_effort)
    # Whatever is not best effort counts as latency-sensitive, so that the two make up the node.
    online = {name: max(0, value - batch.get(name, 0)) for name, value in node.items()}
    return {
        "updateTime": durations.moment(picture.at),
        "nodeMetric": {
            "nodeUsage": _map(node),
            "aggregatedNodeUsages": _aggregated(reporting, ("node",), memory),
            "systemUsage": _map(system),
            "aggregatedSystemUsages": _aggregated(reporting, ("system",), "memory"),
            "usage": _texts(node),
            **_asked(pods),
        },
        "podsMetric": [
            _pod(pod, found) for pod in pods if (found := used[pod.pod.metadata.uid]) is not None
        ],
        "hostApplicationMetric": [],
        "beMetric": {"usage": _texts(batch), **_asked(best_effort)},
        "lsMetric": {"usage": _texts(online), **_asked(others)},
        "podMetrics": [
            _containers(reporting, pod, memory) for pod in pods if used[pod.pod.metadata.uid]
        ],
    }


def _pod_usage(reporting: Reporting, pod: state.PodState, memory: str) -> Figures | None:
    return reporting.average(("pod", pod.pod.metadata.uid), memory)


def _pod(pod: state.PodState, used: Figures) -> dict[str, Any]:
    return {
        "namespace": pod.pod.metadata.namespace,
        "name": pod.pod.metadata.name,
        "podUsage": _map(used),
        "priority": qos.band_of_pod(pod.pod).value,
        "qos": qos.of_pod(pod.pod).value,
    }


def _containers(reporting: Reporting, pod: state.PodState, memory: str) -> dict[str, Any]:
    metadata = pod.pod.metadata
    found = []
    for container in pod.pod.spec.containers:
        used = reporting.average(("container", metadata.uid, container.name), memory)
        if used is None:
            continue
        asked = container.resources
        entry = {
            "name": container.name,
            "usage": _texts(used),
            "request": _texts(_native(resources.amounts(asked.requests))),
            "limit": _texts(_native(resources.amounts(asked.limits))),
        }
        found.append({key: value for key, value in entry.items() if value})
    return {
        "podRef": {"namespace": metadata.namespace, "name": metadata.name},
        "containers": found,
    }


def _aggregated(reporting: Reporting, key: tuple[str, ...], memory: str) -> list[dict[str, Any]]:
    """Statistics per window, empty where less than half of the window has been seen."""
    found = []
    for window in reporting.policy.windows:
        start, end = reporting.monotonic - window, reporting.monotonic
        cpu = reporting.samples.get((*key, "cpu"))
        held = reporting.samples.get((*key, memory))
        usage: dict[str, Any] = {name: {} for name in FIGURES}
        if cpu and held and cpu.covered(start, end) >= window / 2:
            cores = history.summary(cpu.window(start, end))
            size = history.summary(held.window(start, end))
            usage = {
                name: _map({names.CPU: int(cores[name] * 1000), names.MEMORY: int(size[name])})
                for name in FIGURES
            }
        found.append({"duration": durations.text(window), "usage": usage})
    return found


def _asked(pods: Iterable[state.PodState]) -> dict[str, dict[str, str]]:
    """Requests and limits of pods, whatever names they go by."""
    listed = list(pods)
    return {
        "request": _texts(_total(_native(resources.pod_requests(p.pod)) for p in listed)),
        "limit": _texts(_total(_native(resources.pod_limits(p.pod)) for p in listed)),
    }


def _native(amounts: Mapping[str, int]) -> dict[str, int]:
    """Add up cpu and memory under their own names; lent cpu is counted in milli already."""
    found = {
        names.CPU: sum(amounts.get(name, 0) for name in CPU_NAMES),
        names.MEMORY: sum(amounts.get(name, 0) for name in MEMORY_NAMES),
    }
    return {name: value for name, value in found.items() if value}


def _total(parts: Iterable[Figures]) -> dict[str, int]:
    total = {names.CPU: 0, names.MEMORY: 0}
    for part in parts:
        total = resources.add(total, part)
    return total


def _map(figures: Figures) -> dict[str, Any]:
    return {"resources": _texts(figures)}


def _texts(figures: Figures) -> dict[str, str]:
    return quantity.texts(figures)
