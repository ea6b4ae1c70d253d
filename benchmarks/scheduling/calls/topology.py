"""What exact placement costs: one choice of CPUs, and filter calls of pods that want CPUs and GPUs.

python -m benchmarks.scheduling.calls.topology [--nodes 5000] [--calls 300] [--rounds 3]

The decisions of the extender without its server: no wire, no other process. Processor time of one
thread, a pod bound between two calls so that every call sees a state that has changed.
"""

import argparse
import dataclasses
import gc
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from api import names
from api.koordinator import devices
from api.kubernetes import core
from api.plugin_args import models, node
from benchmarks import figures
from domain.cpus import cpu_accumulator, cpu_topology, cpu_usage
from domain.devices import inventory
from domain.numa import node_topology
from extender import plugin_selection, registry, settings
from extender.framework import cycle, pipeline, views
from extender.state import claims, cluster_state, deltas, records

PLUGINS: Final = (*settings.PluginSettings().enabled, models.NODE_NUMA_RESOURCE,
                  models.NODE_RESOURCES_FIT_PLUS, models.SCARCE_RESOURCE_AVOIDANCE)  # fmt: skip
TEMPLATES: Final = 16
"""Nodes that are filled by decisions; the others are copies of them."""
_GOAL_PICK, _GOAL_FILTER = "<= 0.2 ms", "p99 <= 5 ms"
_SPEC, _NUMA = names.ANNOTATION_RESOURCE_SPEC, names.ANNOTATION_NUMA_TOPOLOGY_SPEC
_JOINT: Final = {names.ANNOTATION_DEVICE_JOINT: {"deviceTypes": ["gpu", "rdma"]}}
_ALIGNED: Final = {_NUMA: {"numaTopologyPolicy": "SingleNUMANode"}}
KINDS: Final[dict[str, tuple[str, dict[str, str], dict[str, Any]]]] = {
    "shared": ("LS", {"cpu": "2"}, {}),
    "cpus": ("LSR", {"cpu": "4"}, {}),
    "cpus-spread": ("LSR", {"cpu": "4"}, {_SPEC: {"requiredCPUBindPolicy": "SpreadByPCPUs"}}),
    "one-numa-node": ("LSR", {"cpu": "4"}, _ALIGNED),
    "half-gpu": ("LS", {"cpu": "2", names.GPU: "50"}, {}),
    "gpu": ("LS", {"cpu": "2", "nvidia.com/gpu": "1"}, {}),
    "gpus-and-rdma": ("LS", {"cpu": "2", names.GPU: "200", names.RDMA: "1"}, _JOINT),
    "gpu-one-numa-node": ("LSR", {"cpu": "4", names.GPU: "100"}, _ALIGNED),
}
"""Class, requests and annotations of the pods that are filtered."""


# -- one choice of CPUs ----------------------------------------------------------------------


def machine(sockets: int = 2, nodes: int = 4, cores: int = 128) -> cpu_topology.CpuTopology:
    """Return a machine with two threads per core; siblings are as many CPUs apart as cores."""
    return cpu_topology.build(
        cpu_topology.Cpu(n, n % cores, n % cores * sockets // cores, n % cores * nodes // cores)
        for n in range(2 * cores)
    )


def choices(topology: cpu_topology.CpuTopology) -> Iterator[tuple[str, float]]:
    """Yield a policy and the milliseconds of one choice, with more and more CPUs taken."""
    policies = (cpu_accumulator.BindPolicy.FULL_PCPUS, cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS)
    exclusive = cpu_usage.ExclusivePolicy
    for policy, count, alone in itertools.product(policies, (2, 8, 24, 96), exclusive):
        held: list[tuple[int, cpu_usage.ExclusivePolicy]] = []
        while True:
            taken = 0
            for cpus, _ in held:
                taken |= cpus
            usage = cpu_usage.count(held)
            free = cpu_accumulator.Cpus(topology, usage, topology.mask & ~taken, False)
            wanted = cpu_accumulator.CpuRequest(count, policy, alone)
            started = time.thread_time_ns()
            found = cpu_accumulator.take(free, wanted)
            spent = (time.thread_time_ns() - started) / 1e6
            if found is None:
                break
            yield f"{policy.value} {count}", spent
            held.append((found, alone))


# -- filter calls ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes with CPUs, NUMA nodes and devices under all plug-ins."""

    state: cluster_state.ClusterState
    line: pipeline.Pipeline
    projector: records.Projector


def build(count: int, *, fragmented: bool = False) -> Cluster:
    """Return so many nodes, two thirds of their CPUs and GPUs taken; perhaps all different."""
    weights = dict.fromkeys(PLUGINS, 1)
    chosen = plugin_selection.select(settings.PluginSettings(enabled=PLUGINS, weights=weights))
    own = {
        models.NODE_RESOURCES_FIT_PLUS: node.NodeResourcesFitPlusArgs.model_validate(
            {"resources": {"cpu": {"type": "LeastAllocated", "weight": 1}}}
        ),
        models.SCARCE_RESOURCE_AVOIDANCE: node.ScarceResourceAvoidanceArgs(resources=(names.GPU,)),
    }
    built = registry.build(dataclasses.replace(chosen, arguments={**chosen.arguments, **own}))
    plugins = tuple(built.plugins.values())
    projector = records.Projector(None, registry.codecs(plugins), registry.inputs(plugins))
    resources = ("cpu", "memory", names.BATCH_CPU, names.BATCH_MEMORY)
    made = Cluster(
        cluster_state.ClusterState(registry.state_trackers(plugins), resources),
        registry.assemble(built),
        projector,
    )
    _add_nodes(made, count)
    for number, name in enumerate(list(made.state.nodes()) if fragmented else ()):
        _fragment(made, name, number)
    made.state.view()
    return made


def _add_nodes(made: Cluster, count: int) -> None:
    names_ = [f"node-{number:05}" for number in range(count)]
    topology = node_topology.read(_topology())
    found = inventory.read(devices.read_device(_device()))
    for number, name in enumerate(names_):
        made.state.apply(deltas.NodeDelta(name, None, _node(made.projector, name, number)))
        told = deltas.ObjectDelta(deltas.NODE_TOPOLOGY, name, None, topology, node=name)
        made.state.apply(told)
        if number % 2:
            made.state.apply(deltas.ObjectDelta(deltas.DEVICE, name, None, found, node=name))
    templates = [_filled(made, name) for name in names_[:TEMPLATES]]
    for number, name in enumerate(names_[TEMPLATES:], TEMPLATES):
        for held in templates[number % TEMPLATES]:
            _bind(made, f"{name}-{held.pod.name}", held.pod, name, held.allocations)
    made.state.view()


def _filled(made: Cluster, name: str) -> list[claims.Claim]:
    """Let pods of all kinds take what they are given on one node."""
    kinds = ("cpus", "half-gpu", "one-numa-node", "cpus-spread", "gpu", "half-gpu", "shared")
    for number, kind in enumerate(kinds * 2):
        pod = _pod(made.projector, kind, f"{name}-{number}")
        view = made.state.view()
        row = view.rows[name]
        asked = made.line.cycle(views.PodInfo.of(pod), view)
        if made.line.filter(asked, view, pipeline.alone(row), 0.0).codes[0]:
            continue
        granted = made.line.reserve(asked, view, row)
        assert not isinstance(granted, cycle.Refusal), granted
        held = {one: grant.allocation for one, grant in granted.items() if grant.allocation}
        _bind(made, pod.name, pod, name, held)
    return list(made.state.claims_on(name))


def _fragment(made: Cluster, name: str, number: int) -> None:
    """Let a node hold an amount of memory that no other holds, and a share of a GPU if it has."""
    for resources in ({names.GPU: str(1 + number % 40)}, {}):
        asked = {"cpu": "1", "memory": f"{64 + number}Mi", **resources}
        pod = _made(made.projector, f"{name}-own", ("LSR", asked, _ALIGNED))
        view = made.state.view()
        cycle_ = made.line.cycle(views.PodInfo.of(pod), view)
        granted = made.line.reserve(cycle_, view, view.rows[name])
        if not isinstance(granted, cycle.Refusal):
            held = {one: grant.allocation for one, grant in granted.items() if grant.allocation}
            _bind(made, pod.name, pod, name, held)
            return


def _bind(made: Cluster, uid: str, pod: records.PodRecord, where: str, held: Any) -> claims.Claim:
    bound = msgspec.structs.replace(pod, key=f"bench/{uid}", uid=uid, node=where)
    claim = claims.Claim(uid, claims.ClaimKind.BOUND, where, bound, held)
    made.state.apply(deltas.ClaimDelta(uid, None, claim))
    return claim


def _node(projector: records.Projector, name: str, number: int) -> records.NodeRecord:
    offered = {"cpu": "128", "memory": "512Gi"} | ({"nvidia.com/gpu": "8"} if number % 2 else {})
    policy = {0: "SingleNUMANode", 1: "Restricted"}.get(number % 6)
    labels = {names.LABEL_NUMA_TOPOLOGY_POLICY: policy} if policy else {}
    raw = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": offered}}
    return projector.node(msgspec.convert(raw, core.Node))


def _topology() -> dict[str, Any]:
    cpus = [{"id": n, "core": n % 64, "socket": n % 64 // 32, "node": n % 64 // 32}
            for n in range(128)]  # fmt: skip
    amounts = [{"name": "cpu", "allocatable": "64"}, {"name": "memory", "allocatable": "256Gi"}]
    zones = [{"name": f"node-{n}", "type": "Node", "resources": amounts} for n in range(2)]
    notes = {names.ANNOTATION_CPU_TOPOLOGY: json.dumps({"detail": cpus})}
    return {"metadata": {"annotations": notes}, "zones": zones}


def _device() -> dict[str, Any]:
    def one(kind: str, minor: int, switch: int, **amounts: str) -> dict[str, Any]:
        place = {"socketID": switch, "nodeID": switch, "pcieID": str(switch)}
        resources = {f"koordinator.sh/{name.replace('_', '-')}": v for name, v in amounts.items()}
        return {"type": kind, "minor": minor, "id": f"{kind}-{minor}", "health": True,
                "resources": resources, "topology": place}  # fmt: skip

    gpu = {"gpu_core": "100", "gpu_memory_ratio": "100", "gpu_memory": "80Gi"}
    found = [one("gpu", minor, minor // 4, **gpu) for minor in range(8)]
    found += [one("rdma", minor, minor // 2, rdma="100") for minor in range(4)]
    return {"metadata": {"name": "node"}, "spec": {"devices": found}}


def _pod(projector: records.Projector, kind: str, name: str) -> records.PodRecord:
    return _made(projector, name, KINDS[kind])


def _made(
    projector: records.Projector, name: str, kind: tuple[str, dict[str, str], dict[str, Any]]
) -> records.PodRecord:
    qos, requests, notes = kind
    raw = {
        "metadata": {
            "name": name, "namespace": "bench", "uid": name,
            "labels": {names.LABEL_QOS: qos, "koordinator.sh/priority-class": "koord-prod"},
            "annotations": {key: json.dumps(one) for key, one in notes.items()},
        },
        "spec": {
            "priority": 9500,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
    }  # fmt: skip
    found = projector.pod(msgspec.convert(raw, core.Pod))
    assert found is not None
    return found


def filtered(made: Cluster, kind: str, calls: int, candidates: int = 0) -> list[float]:
    """Return the milliseconds of filter calls over all nodes, the state changing in between.

    With a number of candidates, of calls over so many nodes, others for each call.
    """
    spent, rng = [], np.random.default_rng(7)
    for number in range(calls):
        pod = _pod(made.projector, kind, f"asked-{number % 7}")
        churn = _pod(made.projector, "cpus", "churn")
        where = f"node-{number % len(made.state.nodes()):05}"
        started = time.thread_time_ns()
        claim = _bind(made, "churn", churn, where, {})
        view = made.state.view()
        asked = made.line.cycle(views.PodInfo.of(pod), view)
        rows = views.every(view.known.size)
        if candidates:
            rows = rng.permutation(rows)[:candidates]
        outcome = made.line.filter(asked, view, rows, 0.0)
        spent.append((time.thread_time_ns() - started) / 1e6)
        made.state.apply(deltas.ClaimDelta("churn", claim, None))
        assert np.count_nonzero(outcome.codes == 0), f"{kind}: no node passes"
    return spent


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    print(f"# {figures.machine()}")
    picks = [list(choices(machine())) for _ in range(arguments.rounds)]
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        values = [figures.percentile([ms for _, ms in one], share) for one in picks]
        what = f"{name} of one choice among 256 CPUs, all policies, empty to full"
        figures.show(figures.plain(f"cpus.pick.{name}", what, "ms", values, _GOAL_PICK))
    made = build(arguments.nodes)
    gc.freeze()
    print(f"# {arguments.nodes} nodes; plug-ins: {', '.join(PLUGINS)}")
    for kind in KINDS:
        first = filtered(made, kind, 1)
        what = f"the first filter call about such a pod, {arguments.nodes} nodes: {kind}"
        figures.show(figures.plain(f"topology.filter.{kind}.first", what, "ms", first))
        rounds = [filtered(made, kind, arguments.calls) for _ in range(arguments.rounds)]
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            values = [figures.percentile(one, share) for one in rounds]
            what = f"{name} of a filter call, {arguments.nodes} nodes, all plug-ins: {kind}"
            figures.show(
                figures.plain(f"topology.filter.{kind}.{name}", what, "ms", values, _GOAL_FILTER)
            )
    del made
    _show_fragmented(arguments.nodes)


def _show_fragmented(count: int) -> None:
    """Show first calls where no two nodes are alike."""
    made = build(count, fragmented=True)
    gc.freeze()
    for kind in KINDS:
        name = f"topology.filter.{kind}.fragmented"
        spent = filtered(made, kind, 20, min(500, count))
        what = f"filter calls over 500 of {count} nodes that all differ, about a new kind: {kind}"
        figures.show(figures.plain(f"{name}.first", f"the first of {what}", "ms", spent[:1]))
        figures.show(figures.plain(f"{name}.max", f"the longest of 20 {what}", "ms", [max(spent)]))


if __name__ == "__main__":
    main()
