"""What a NodeMetric says, from samples and one picture of the node. Pure."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from agent.decide.interference import findings
from agent.devices import usage_figures
from agent.model import collect_policy, state
from agent.store import peaks, time_series
from api import names
from api.koordinator.metadata import qos
from api.wire import durations, quantity
from domain.pods import resources

CPU_NAMES = (names.CPU, names.BATCH_CPU, names.MID_CPU)
MEMORY_NAMES = (names.MEMORY, names.BATCH_MEMORY, names.MID_MEMORY)
FIGURES = ("avg", *time_series.PERCENTILES)
Figures = Mapping[str, int]
THROTTLED: Final = "throttled"
"""The figure of a pod's throttling, where it is measured."""
PLAIN: Final = "memory"
"""Memory without page cache."""
MEMORY: Final[Mapping[str, str]] = {
    "usageWithoutPageCache": PLAIN,
    "usageWithPageCache": "memory+cache",
    "usageWithHotPageCache": "memory+hot",
}
"""The figure that each policy of collecting memory counts; of pods, hosts and nodes alike."""


class Reporting(msgspec.Struct, frozen=True):
    """Everything that one report is made of."""

    samples: time_series.Histories
    picture: state.NodeState
    policy: collect_policy.Policy
    monotonic: float
    forecast: peaks.Forecast | None = None
    """What production is predicted to leave and to need; None without a prediction."""
    gpus: tuple[usage_figures.Counted, ...] = ()
    """The GPUs whose use is counted."""
    interference: tuple[findings.Finding, ...] = ()
    """The pods that their neighbours slow down."""

    @property
    def memory(self) -> str:
        """The memory figure that counts.

        Hot pages are told apart from cold ones only where the kernel can; elsewhere no cache
        counts.
        """
        wanted = MEMORY.get(self.policy.collect, PLAIN)
        if wanted != MEMORY["usageWithHotPageCache"]:
            return wanted
        start = self.monotonic - self.policy.aggregate_seconds
        known = self.samples.average(("node", wanted), start, self.monotonic)
        return PLAIN if known is None else wanted

    def average(self, key: tuple[str, ...], memory: str) -> Figures | None:
        """Return mean cpu (milli) and memory (bytes) of a series pair, None without either."""
        start = self.monotonic - self.policy.aggregate_seconds
        cpu = self.samples.average((*key, "cpu"), start, self.monotonic)
        held = self.samples.average((*key, memory), start, self.monotonic)
        if cpu is None or held is None:
            return None
        return {names.CPU: int(cpu * 1000), names.MEMORY: int(held)}

    def mean(self, series: time_series.Series) -> float | None:
        """Return the mean of a series over the window of averages."""
        return time_series.average(
            series.window(self.monotonic - self.policy.aggregate_seconds, self.monotonic)
        )

    def devices(self, key: tuple[str, ...]) -> dict[str, Any]:
        """Return the mean use of every GPU, as an entry beside the resources."""
        found = usage_figures.entries(self.samples, key, self.gpus, self.mean)
        return {"devices": found} if found else {}


def status(reporting: Reporting) -> dict[str, Any] | None:
    """Return the status of the NodeMetric; None while the node has no figures yet."""
    picture, memory = reporting.picture, reporting.memory
    node = reporting.average(("node",), memory)
    if node is None:
        return None
    system = reporting.average(("system",), PLAIN) or {}
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
            # Said to be none rather than left out, which would leave what was said before.
            "nodeUsage": {**_map(node), "devices": None, **reporting.devices(("node",))},
            "aggregatedNodeUsages": _aggregated(reporting, ("node",), memory),
            "systemUsage": _map(system),
            "aggregatedSystemUsages": _aggregated(reporting, ("system",), PLAIN),
            "numaUsages": _numa(reporting) or None,
            "usage": _texts(node),
            **_asked(pods),
        },
        "podsMetric": [
            {
                **_pod(pod),
                "podUsage": {**_map(found), **reporting.devices(_key(pod))},
                **_extensions(reporting, pod),
            }
            for pod in pods
            if (found := used[pod.pod.metadata.uid]) is not None
        ],
        "hostApplicationMetric": list(_host_applications(reporting, memory)),
        **_forecast(reporting.forecast),
        "beMetric": {"usage": _texts(batch), **_asked(best_effort)},
        "lsMetric": {"usage": _texts(online), **_asked(others)},
        "podMetrics": [
            _containers(reporting, pod, memory) for pod in pods if used[pod.pod.metadata.uid]
        ],
    }


def _numa(reporting: Reporting) -> list[dict[str, Any]]:
    """Return the use of every NUMA node that has figures, page cache left out."""
    found = []
    for number in sorted({one.node for one in reporting.picture.processors}):
        key = ("node", "numa", str(number))
        if (used := reporting.average(key, PLAIN)) is None:
            continue
        system = reporting.average((*key, "system"), PLAIN)
        entry = {"numaNodeID": number, "nodeUsage": _map(used)}
        found.append(entry if system is None else {**entry, "systemUsage": _map(system)})
    return found


def _pod_usage(reporting: Reporting, pod: state.PodState, memory: str) -> Figures | None:
    return reporting.average(_key(pod), memory)


def _key(pod: state.PodState) -> tuple[str, ...]:
    return ("pod", pod.pod.metadata.uid)


def _pod(pod: state.PodState) -> dict[str, Any]:
    return {
        "namespace": pod.pod.metadata.namespace,
        "name": pod.pod.metadata.name,
        "priority": qos.band_of_pod(pod.pod).value,
        "qos": qos.of_pod(pod.pod).value,
    }


def _extensions(reporting: Reporting, pod: state.PodState) -> dict[str, Any]:
    """Return what the published type has no field for: who slows a pod down, and its throttling."""
    found: dict[str, Any] = {}
    if slowed := _interference(reporting, pod):
        found[names.INTERFERENCE] = slowed
    start = reporting.monotonic - reporting.policy.aggregate_seconds
    key = (*_key(pod), THROTTLED)
    throttled = reporting.samples.average(key, start, reporting.monotonic)
    if throttled is not None:
        found[names.THROTTLED] = round(100 * throttled, 1)
    # Extensions travel below `Object`: that is what the published Go type reads and writes.
    return {"extensions": {"Object": found}} if found else {}


def _interference(reporting: Reporting, pod: state.PodState) -> list[dict[str, Any]]:
    """Return who slows a pod down, at most one entry for each resource."""
    return [
        {
            "signal": one.signal.value,
            "container": one.container,
            "value": round(one.value, 3),
            "baseline": round(one.usual, 3),
            "deviations": round(one.deviations, 1),
            "since": durations.moment(one.since),
            "confidence": one.confidence.value,
            "suspects": [
                {
                    "namespace": suspect.namespace,
                    "name": suspect.name,
                    "qos": suspect.qos,
                    "rise": round(suspect.rise, 3),
                    "share": round(suspect.share, 3),
                }
                for suspect in one.suspects
            ],
        }
        for one in reporting.interference
        if one.uid == pod.pod.metadata.uid
    ]


def _host_applications(reporting: Reporting, memory: str) -> Iterable[dict[str, Any]]:
    for one in sorted(reporting.picture.host_applications, key=lambda one: one.name):
        used = reporting.average(("host", one.name), memory)
        if used is not None:
            identity = {"name": one.name, "priority": one.priority, "qos": one.qos}
            yield {**identity, "usage": _map(used)}


def _forecast(found: peaks.Forecast | None) -> dict[str, Any]:
    """What cannot be told takes what was told before out of the object."""
    amounts = (None, None) if found is None else (found.reclaimable, found.peak)
    reclaimable, peak = (
        None if amount is None else {"resource": _map(amount._asdict())} for amount in amounts
    )
    cleared = {"resource": {"resources": None}}
    return {"prodReclaimableMetric": reclaimable or cleared, "prodPeakMetric": peak}


def _containers(reporting: Reporting, pod: state.PodState, memory: str) -> dict[str, Any]:
    metadata = pod.pod.metadata
    found = []
    for container in resources.lasting(pod.pod.spec):
        used = reporting.average(("container", metadata.uid, container.name), memory)
        if used is None:
            continue
        asked = container.resources
        key = ("container", metadata.uid, container.name)
        gpus = usage_figures.total(reporting.samples, key, reporting.gpus, reporting.mean)
        entry = {
            "name": container.name,
            "usage": _texts({**used, **gpus}),
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
            cores = time_series.summary(cpu.window(start, end))
            size = time_series.summary(held.window(start, end))
            gpus = _devices(reporting, key, start)
            usage = {
                name: {
                    **_map({names.CPU: int(cores[name] * 1000), names.MEMORY: int(size[name])}),
                    **gpus.get(name, {}),
                }
                for name in FIGURES
            }
        found.append({"duration": durations.text(window), "usage": usage})
    return found


def _devices(reporting: Reporting, key: tuple[str, ...], start: float) -> dict[str, dict[str, Any]]:
    """Return the statistics of every GPU by their names, nothing where there is none."""
    known: dict[int, dict[str, float]] = {}

    def statistic(name: str, series: time_series.Series) -> float | None:
        found = known.get(id(series))
        if found is None:
            found = time_series.summary(series.window(start, reporting.monotonic))
            known[id(series)] = found
        return found.get(name)

    return {
        name: {"devices": found}
        for name in FIGURES
        if (
            found := usage_figures.entries(
                reporting.samples, key, reporting.gpus, functools.partial(statistic, name)
            )
        )
    }


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
    return {"resources": _texts(figures) or None}


def _texts(figures: Figures) -> dict[str, str]:
    return quantity.texts(figures)
