"""One run: pods arrive in random order and never leave; the production code places each.

The state, the plug-in and the bind are those of the extender. In place of kube-scheduler stand the
fit of CPU and memory, and a choice at random among nodes of equal scores.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from api import names
from api.kubernetes import core
from api.plugin_args import node as node_arguments
from api.plugin_args.arguments import Arguments
from benchmarks.openb import trace
from benchmarks.plane import gpus
from domain.devices import inventory
from extender import plugin_selection, registry, settings
from extender.framework import pipeline, verdicts, views
from extender.plugins.device_share import columns
from extender.state import claims, cluster_state, deltas, records

PLUGIN: Final = "DeviceShare"
DEMAND: Final = 1.3
"""Pods arrive until they ask for so many times the GPUs that there are."""
ARGUMENTS: Final = {"scoringStrategy": {"type": "LeastFragmented"}}
"""What the configuration of a scheduler says of the plug-in."""
_MIB: Final = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """An empty cluster and the plug-ins that decide; runs work on forks of its state."""

    state: cluster_state.ClusterState
    line: pipeline.Pipeline
    projector: records.Projector
    capacity: int
    """Thousandths of GPUs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What became of one run."""

    workload: str
    seed: int
    allocated: float
    """Percent of all GPUs."""
    arrived: int
    placed: int


def cluster(nodes: int = 0) -> Cluster:
    """Return the cluster of the trace without pods; with a number of nodes, a smaller one."""
    arguments: Mapping[str, Arguments] = {
        PLUGIN: node_arguments.DeviceShareArgs.model_validate(ARGUMENTS).complete()
    }
    chosen = plugin_selection.select(
        settings.PluginSettings(enabled=(PLUGIN,), weights={PLUGIN: 1})
    )
    built = registry.build(dataclasses.replace(chosen, arguments={**chosen.arguments, **arguments}))
    plugins = tuple(built.plugins.values())
    projector = records.Projector(None, registry.codecs(plugins), registry.inputs(plugins))
    state = cluster_state.ClusterState(registry.state_trackers(plugins), ("cpu", "memory"))
    capacity = number = 0
    for shape in trace.nodes(nodes):
        record = inventory.Inventory({"gpu": _gpus(shape)})
        for _ in range(shape.count):
            name, number = f"node-{number:04}", number + 1
            state.apply(deltas.NodeDelta(name, None, _node(projector, name, shape)))
            state.apply(deltas.ObjectDelta(deltas.DEVICE, name, None, record, node=name))
        capacity += shape.gpus * shape.count * 1000
    state.view()
    return Cluster(state, registry.assemble(built), projector, capacity)


def _node(projector: records.Projector, name: str, shape: trace.NodeShape) -> records.NodeRecord:
    raw = {
        "metadata": {"name": name, "uid": name},
        "status": {"allocatable": {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi"}},
    }
    return projector.node(msgspec.convert(raw, core.Node))


def _gpus(shape: trace.NodeShape) -> dict[int, inventory.Device]:
    total = {names.GPU_CORE: 100, names.GPU_MEMORY_RATIO: 100, names.GPU_MEMORY: gpus.MEMORY}
    labels = {names.LABEL_GPU_MODEL: shape.model}
    return {
        minor: inventory.Device(minor, total, f"GPU-{minor}", labels) for minor in range(shape.gpus)
    }


def manifest(shape: trace.PodShape) -> dict[str, Any]:
    """Return metadata and spec of a pod, without a name."""
    requests = {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi"}
    if shape.gpus:
        requests[names.GPU] = str(shape.demand // 10)
    notes = {}
    if shape.models and shape.gpus:
        models = {"key": names.LABEL_GPU_MODEL, "operator": "In"}
        selector = {"matchExpressions": [{**models, "values": shape.models.split("|")}]}
        hint = msgspec.json.encode({"gpu": {"selector": selector}})
        notes[names.ANNOTATION_DEVICE_HINT] = hint.decode()
    resources = {"requests": requests, "limits": requests}
    container = {"name": "main", "image": "app:v1", "resources": resources}
    return {"metadata": {"annotations": notes}, "spec": {"containers": [container]}}


def _pod(projector: records.Projector, shape: trace.PodShape) -> records.PodRecord:
    raw = manifest(shape)
    raw["metadata"] |= {"name": "pod", "namespace": "openb", "uid": "pod"}
    found = projector.pod(msgspec.convert(raw, core.Pod))
    assert found is not None
    return found


class Arrivals:
    """The pods of a workload in one random order; when it is used up they are drawn again."""

    def __init__(self, workload: str, seed: int) -> None:
        self.shapes = trace.pods(workload)
        self._random = random.Random(seed)
        self.order = [i for i, shape in enumerate(self.shapes) for _ in range(shape.count)]
        """The kinds of all pods of the workload, as they arrive."""
        self._random.shuffle(self.order)

    def kind(self, number: int) -> int:
        """Return the kind of the pod that arrives next, the one of this number."""
        if number < len(self.order):
            return self.order[number]
        return self._random.choice(self.order)

    def until(self, capacity: int) -> list[int]:
        """Return the kinds of pods that arrive until they ask for enough thousandths of GPUs."""
        found: list[int] = []
        demand = 0
        while demand < DEMAND * capacity:
            found.append(self.kind(len(found)))
            demand += self.shapes[found[-1]].demand
        return found


class Run:
    """One workload in one random order, on a fork of the empty cluster."""

    def __init__(self, given: Cluster, workload: str, seed: int) -> None:
        self._line = given.line
        self._state = given.state.fork()
        self._capacity = given.capacity
        self._dice = np.random.default_rng(seed)
        self._arrivals = Arrivals(workload, seed)
        self._shapes = self._arrivals.shapes
        self._records = [_pod(given.projector, shape) for shape in self._shapes]
        self._waiting = 0
        self.arrived = self.demand = self.placed = self.allocated = 0

    def prepare(self, kinds: Sequence[int] = ()) -> None:
        """Let the pods of the workload wait, or these, so that it is known which to expect."""
        for number, kind in enumerate(kinds or self._arrivals.order):
            self._wait(self._named(number, kind))
            self._waiting += 1

    def step(self) -> bool:
        """Let one pod arrive, and place it where it fits; False once enough have."""
        if self.demand >= DEMAND * self._capacity:
            return False
        number, self.arrived = self.arrived, self.arrived + 1
        kind = self._arrivals.kind(number)
        pod, shape = self._named(number, kind), self._shapes[kind]
        if number >= self._waiting:
            self._wait(pod)
        self.demand += shape.demand
        if self._place(pod):
            self.placed += 1
            self.allocated += shape.demand
        return True

    def _named(self, number: int, kind: int) -> records.PodRecord:
        name = f"openb/pod-{number}"
        return msgspec.structs.replace(self._records[kind], key=name, uid=name)

    def _wait(self, pod: records.PodRecord) -> None:
        self._state.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, pod.uid, None, pod))

    def _place(self, pod: records.PodRecord) -> bool:
        view = self._state.view()
        asked = self._line.cycle(views.PodInfo.of(pod), view)
        rows = _with_room(view, pod)
        if rows.size:
            rows = rows[self._line.filter(asked, view, rows, 0.0).codes == 0]
        if not rows.size:
            return False
        scores = self._line.score(asked, view, rows, 0.0)
        row = int(self._dice.choice(rows[scores == scores.max()]))
        granted = self._line.reserve(asked, view, row)
        assert not isinstance(granted, pipeline.Refusal), granted
        held = {name: one.allocation for name, one in granted.items() if one.allocation is not None}
        bound = msgspec.structs.replace(pod, node=view.names[row])
        claim = claims.Claim(pod.uid, claims.ClaimKind.BOUND, bound.node, bound, held)
        self._state.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, pod.uid, pod, None))
        self._state.apply(deltas.ClaimDelta(claim.id, None, claim))
        return True

    def result(self, workload: str, seed: int) -> Result:
        """Return what became of it, counted from what pods hold."""
        view = self._state.view()
        ratio = view.figures[PLUGIN][columns.RATIO : columns.MEMORY]
        free = int(np.maximum(ratio, 0).sum()) * 10
        assert self._capacity - free == self.allocated, "allocations and a recount differ"
        share = 100 * self.allocated / self._capacity
        return Result(workload, seed, share, self.arrived, self.placed)


def _with_room(view: views.View, pod: records.PodRecord) -> verdicts.Rows:
    fits: verdicts.Flags = view.known
    asked = dict(pod.requirements.requests)
    for name in ("cpu", "memory"):
        place = view.resources[name]
        fits = fits & (view.allocatable[place] - view.requested[place] >= asked.get(name, 0))
    return np.flatnonzero(fits)


def run(given: Cluster, workload: str, seed: int) -> Result:
    """Replay one workload in the order that a seed gives."""
    return _ended(Run(given, workload, seed), workload, seed)


def run_expected(given: Cluster, workload: str, seed: int) -> Result:
    """Replay one workload while just those pods wait that will arrive."""
    one = Run(given, workload, seed)
    return _ended(one, workload, seed, Arrivals(workload, seed).until(given.capacity))


def _ended(one: Run, workload: str, seed: int, kinds: Sequence[int] = ()) -> Result:
    one.prepare(kinds)
    while one.step():
        pass
    return one.result(workload, seed)


def means(results: Sequence[Result]) -> dict[str, float]:
    """Return by workload the mean percentage that was allocated."""
    found: dict[str, list[float]] = {}
    for one in results:
        found.setdefault(one.workload, []).append(one.allocated)
    return {workload: sum(shares) / len(shares) for workload, shares in found.items()}
