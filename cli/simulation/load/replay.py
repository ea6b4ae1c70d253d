"""Hours of load on a snapshot, step by step in virtual time.

Every step: pods use what they want as far as their node gives it, each agent suppresses, evicts,
predicts and reports, the manager calculates the lent resources, and waiting pods get their places.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations
from cli import reading
from cli.output import progress
from cli.simulation import lent, placing
from cli.simulation.load import node_agent, series, slow_down
from cli.snapshot import format as formats
from domain.cluster_settings import node_slo
from domain.pods import resources as amounts
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.model import projections
from manager.nodeslo import plan as node_slos

MOST_STEPS: Final = 5000
_LENT_CPU: Final = (names.BATCH_CPU, names.MID_CPU)
_LENT_MEMORY: Final = (names.BATCH_MEMORY, names.MID_MEMORY)
_IDLE: Final = series.Use(0.0, 0)
_USED: Final = series.Use(0.9, 80)
"""Batch and mid pods use this share of the cores that they request, and percent of the memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What is replayed."""

    hours: float = 24.0
    step_seconds: float = 300.0
    plugins: tuple[str, ...] = ()
    gates: frozenset[str] = node_agent.GATES
    """Features of the agents that are on."""
    places: bool = True
    """Whether waiting pods are placed."""

    @property
    def steps(self) -> int:
        """Return how many steps that are."""
        return max(1, round(self.hours * 3600 / self.step_seconds))


class Moment(NamedTuple):
    """Figures of all nodes at one moment: cores, or what the name says."""

    hour: float
    online: float
    """Used by online pods and the system."""
    used: float
    """Used by batch and mid pods."""
    wanted: float
    """What these would use."""
    lent: float
    """To batch pods."""
    mid: float
    """To mid pods, out of the same capacity."""
    held: float
    """Requested of the lent resources."""
    waiting: int
    evicted: int
    stretch: float
    """Mean of online work, by the model of `slow_down`."""
    alone: float
    """The same, had there been no best-effort work."""
    worst: float


@dataclasses.dataclass(frozen=True, slots=True)
class Replay:
    """Everything that happened."""

    nodes: int
    cores: float
    step_hours: float
    moments: tuple[Moment, ...]
    started: int = 0
    """Pods that got a place."""
    evictions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """By namespace."""
    notes: tuple[str, ...] = ()


def replayed(
    snapshot: formats.Snapshot,
    source: series.Source,
    options: Options,
    step: progress.Step = progress.silent,
) -> Replay:
    """Replay a source of load on a snapshot."""
    case = _Case(snapshot, source, options)
    moments = []
    for number in range(options.steps):
        hour = number * options.step_seconds / 3600
        step(f"hour {hour:.1f} of {options.hours:g}", number, options.steps)
        moments.append(case.step(number * options.step_seconds))
    return Replay(
        len(case.agents),
        sum(agent.cores for agent in case.agents.values()),
        options.step_seconds / 3600,
        tuple(moments),
        case.started,
        dict(sorted(case.evictions.items())),
        tuple(dict.fromkeys(case.notes)),
    )


class _Case:
    """The cluster in virtual time."""

    def __init__(self, snapshot: formats.Snapshot, source: series.Source, options: Options) -> None:
        self._snapshot, self._source, self._options = snapshot, source, options
        self._begin = reading.either(0.0, durations.timestamp, snapshot.taken_at)
        self._pods = {
            str(raw["metadata"].get("uid", "")): raw for raw in snapshot.of(resources.PODS)
        }
        self._read: dict[str, core.Pod] = {}
        self._measured = dict(_measured(snapshot))
        self._systems = dict(_system(snapshot))
        self.agents = dict(_agents(snapshot, options.gates))
        self.evictions: dict[str, int] = {}
        self.started = 0
        self.notes: list[str] = []

    def step(self, seconds: float) -> Moment:
        """Let one step pass."""
        at = self._begin + seconds
        running: dict[str, list[node_agent.Running]] = {name: [] for name in self.agents}
        for uid in self._pods:
            pod = self._pod(uid)
            if pod is not None and pod.spec.node_name in running and not pod.finished:
                wants = self._wants(pod, seconds)
                running[pod.spec.node_name].append(node_agent.Running(pod, wants))
        steps = {
            name: agent.step(
                running[name],
                at,
                self._options.step_seconds,
                self._source.system(name, seconds) or self._systems.get(name, _IDLE),
            )
            for name, agent in self.agents.items()
        }
        evicted = [uid for one in steps.values() for uid in one.evicted]
        for uid in evicted:
            self._evict(uid)
        given, waiting = self._placed(at, [one.report for one in steps.values()])
        return self._moment(seconds, steps, (given, waiting, len(evicted)))

    def _placed(self, at: float, reports: Sequence[Mapping[str, Any]]) -> tuple[lent.Lent, int]:
        """Publish the lent resources, and place the pods that wait on them."""
        objects = {
            **self._snapshot.objects,
            resources.NODE_METRICS.review_name(): tuple(map(dict, reports)),
            resources.PODS.review_name(): tuple(self._pods.values()),
        }
        now = msgspec.structs.replace(
            self._snapshot, objects=objects, taken_at=durations.moment(at)
        )
        given = lent.calculated(now)
        self.notes += given.problems
        waits = self._waiting()
        if not waits or not self._options.places:
            return given, waits
        found = placing.played(lent.published(now, given), self._options.plugins)
        self.notes += found.notes
        for place in found.places:
            self._bind(place.uid, place.node)
        self.started += len(found.places)
        return given, waits - len(found.places)

    def _waiting(self) -> int:
        pods = (self._pod(uid) for uid in self._pods)
        return sum(
            1
            for pod in pods
            if pod is not None
            and not pod.spec.node_name
            and not pod.finished
            and not pod.spec.scheduling_gates
        )

    def _moment(
        self,
        seconds: float,
        steps: Mapping[str, node_agent.Step],
        others: tuple[lent.Lent, int, int],
    ) -> Moment:
        given, waiting, evicted = others
        weight = stretch = alone = 0.0
        worst = 1.0
        for name, one in steps.items():
            cores = int(self.agents[name].cores)
            both = slow_down.stretch(cores, one.online + one.granted)
            weight += one.online
            stretch += one.online * both
            alone += one.online * slow_down.stretch(cores, one.online)
            worst = max(worst, both)
        return Moment(
            hour=seconds / 3600,
            online=sum(one.online for one in steps.values()),
            used=sum(one.granted for one in steps.values()),
            wanted=sum(one.wanted for one in steps.values()),
            lent=given.total(names.BATCH_CPU) / 1000,
            mid=given.total(names.MID_CPU) / 1000,
            held=self._held(),
            waiting=waiting,
            evicted=evicted,
            stretch=stretch / weight if weight else 1.0,
            alone=alone / weight if weight else 1.0,
            worst=worst,
        )

    def _held(self) -> float:
        total = 0
        for uid in self._pods:
            pod = self._pod(uid)
            if pod is not None and pod.spec.node_name in self.agents and not pod.finished:
                requests = amounts.pod_requests(pod)
                total += sum(requests.get(resource, 0) for resource in _LENT_CPU)
        return total / 1000

    # -- pods --------------------------------------------------------------------------------

    def _pod(self, uid: str) -> core.Pod | None:
        found = self._read.get(uid)
        if found is None:
            read = reading.either(None, msgspec.convert, self._pods[uid], core.Pod)
            if read is None:
                return None
            found = self._read[uid] = read
        return found

    def _wants(self, pod: core.Pod, seconds: float) -> series.Use:
        requests = amounts.pod_requests(pod)
        if runs_on_lent(pod):
            cpu = sum(requests.get(name, 0) for name in _LENT_CPU) / 1000
            memory = sum(requests.get(name, 0) for name in _LENT_MEMORY)
            return series.Use(cpu * _USED.cpu, memory * _USED.memory // 100)
        key = pod.metadata.key
        asks = series.Asks(
            key,
            requests.get(names.CPU, 0) / 1000,
            requests.get(names.MEMORY, 0),
            self._measured.get(key),
        )
        return self._source.use(asks, seconds)

    def _bind(self, uid: str, node: str) -> None:
        raw = self._pods[uid]
        status = {**(raw.get("status") or {}), "phase": "Running"}
        self._pods[uid] = {
            **raw,
            "spec": {**(raw.get("spec") or {}), "nodeName": node},
            "status": status,
        }
        self._read.pop(uid, None)

    def _evict(self, uid: str) -> None:
        """Let a pod wait again: its controller creates one like it."""
        raw = self._pods[uid]
        spec = {key: value for key, value in (raw.get("spec") or {}).items() if key != "nodeName"}
        status = {"phase": "Pending"}
        self._pods[uid] = {**raw, "spec": spec, "status": status}
        self._read.pop(uid, None)
        namespace = str(raw["metadata"].get("namespace", ""))
        self.evictions[namespace] = self.evictions.get(namespace, 0) + 1


def runs_on_lent(pod: core.Pod) -> bool:
    """Whether a pod runs on lent resources; of others a source of load tells what they use."""
    return qos.band_of_pod(pod) in (qos.Band.BATCH, qos.Band.MID)


def _agents(
    snapshot: formats.Snapshot, gates: frozenset[str]
) -> Iterator[tuple[str, node_agent.NodeAgent]]:
    """Yield an agent for every node, which enforces what the settings say of it."""
    read = cluster_settings.read(None, lent.settings(snapshot)).settings
    usable = effective.usable(read)
    for raw in snapshot.of(resources.NODES):
        node = reading.either(None, msgspec.convert, raw, core.Node)
        seen = None if node is None else reading.either(None, projections.node, node)
        if node is None or seen is None or usable is None:
            continue
        rendered = node_slos.render(usable.parts(seen.labels), seen.annotations)
        enforced = node_slo.of_spec(rendered.spec)
        yield seen.name, node_agent.NodeAgent(node, enforced, gates)


def _system(snapshot: formats.Snapshot) -> Iterator[tuple[str, series.Use]]:
    """Yield what the system of each node used when the snapshot was taken."""
    for raw in snapshot.of(resources.NODE_METRICS):
        report = reading.either(None, projections.report, raw)
        if report is not None:
            outside = report.outside
            yield raw["metadata"]["name"], series.Use(outside.cpu / 1000, outside.memory)


def _measured(snapshot: formats.Snapshot) -> Iterator[tuple[str, series.Use]]:
    for raw in snapshot.of(resources.NODE_METRICS):
        report = reading.either(None, projections.report, raw)
        for key, (used, _) in (report.pods if report is not None else {}).items():
            yield key, series.Use(used.cpu / 1000, used.memory)
