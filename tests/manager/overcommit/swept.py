"""Clusters of any nodes, pods, reports and settings, for comparisons of whole sweeps."""

import json
from typing import Any

from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import annotations, node_payloads, qos
from domain.devices.requests import accelerators
from domain.lending import colocation
from kube.informers import store
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.model import projections
from manager.overcommit import controller as controllers
from manager.overcommit import inventory, sweep
from manager.reconcile import node_objects

NOW = 1_000_000.0
GIB = 1 << 30
BANDS = st.sampled_from(qos.Band)
cores = st.integers(0, 4_000)
amounts = st.builds(colocation.Amount, cores, st.integers(0, 16 * GIB))
machines = st.builds(
    colocation.Amount, st.integers(20_000, 64_000), st.integers(100 * GIB, 256 * GIB)
)
policies = st.sampled_from([policy.value for policy in colocation.Policy])
percents = st.integers(60, 120)
PRESENT = node_objects.present({"metadata": {"name": "n"}})


class Cluster:
    """Stores as their watches would fill them, and everything that listens to them."""

    def __init__(self) -> None:
        self.nodes: store.Store[projections.Node] = store.Store()
        self.metrics: store.Store[projections.Metric] = store.Store()
        self.pods: store.Store[projections.Pod] = store.Store()
        self.topologies: store.Store[inventory.Topology] = store.Store()
        self.devices: store.Store[accelerators.Inventory] = store.Store()
        seen = sweep.Sources(self.nodes, self.metrics, self.pods, self.topologies, self.devices)
        self.stores = controllers.Stores(seen, slices=False)
        self.sweep = self.stores.sweep
        self._version = 0

    def put(self, member: store.Store[Any], key: str, value: Any) -> None:
        self._version += 1
        if value is None:
            member.remove(key, self._version)
        else:
            member.put(store.Meta(key, key, self._version), value)


def node(name: str, **changed: Any) -> projections.Node:
    given_: dict[str, Any] = {
        "name": name,
        "uid": name,
        "labels": {},
        "annotations": {names.ANNOTATION_CPU_NORMALIZATION: "1.00"},
        "capacity": colocation.Amount(64_000, 256 * GIB),
        "allocatable": colocation.Amount(62_000, 248 * GIB),
        "reserved": colocation.Amount(2_000, 8 * GIB),
        "published": ({}, {}),
    }
    return projections.Node(**{**given_, **changed})


def metric(report: projections.Report) -> projections.Metric:
    return projections.Metric(PRESENT, report)


def read(**sections: Any) -> effective.ClusterSettings:
    data = {key.replace("_", "-"): json.dumps(value) for key, value in sections.items()}
    return cluster_settings.read(None, data).settings


published = st.dictionaries(
    st.sampled_from([*names.BATCH_RESOURCES, *names.MID_RESOURCES]), st.integers(0, 64_000)
)


def _taken(cpu: int, memory: int) -> str:
    """The annotation of somebody else who has handed out batch resources."""
    taken = {names.BATCH_CPU: str(cpu), names.BATCH_MEMORY: str(memory)}
    item = node_payloads.ThirdPartyAllocation(priority="koord-batch", resources=taken)
    return annotations.THIRD_PARTY.text(node_payloads.ThirdPartyAllocations(allocations=(item,)))


marks = st.fixed_dictionaries(
    {},
    optional={
        names.ANNOTATION_CPU_NORMALIZATION: st.sampled_from(["1.00", "1.33", "2.00", "odd"]),
        names.ANNOTATION_AMPLIFICATION: st.sampled_from(['{"cpu":1.50}', '{"cpu":2.00}']),
        names.ANNOTATION_THIRD_PARTY: st.builds(_taken, cores, cores) | st.just("{"),
        names.ANNOTATION_COLOCATION_STRATEGY: st.sampled_from(
            ['{"cpuReclaimThresholdPercent":90}', '{"enable":false}', "odd"]
        ),
        names.ANNOTATION_ORIGIN_ALLOCATABLE: st.sampled_from(
            ['{"resources":{"kubernetes.io/batch-cpu":"5"}}', "odd"]
        ),
    },
)
labels = st.fixed_dictionaries(
    {},
    optional={
        "pool": st.sampled_from(["a", "b"]),
        names.LABEL_CPU_RECLAIM_RATIO: st.just("0.8"),
        names.LABEL_CPU_NORMALIZATION: st.sampled_from(["true", "false", "odd"]),
    },
)
nodes = st.builds(
    lambda **changed: node("?", **changed),
    labels=labels,
    annotations=marks,
    capacity=st.one_of(machines, machines, machines, st.none()),
    allocatable=machines,
    reserved=amounts,
    published=st.tuples(published, published),
)
pods = st.builds(
    projections.Pod,
    node=st.sampled_from(["n0", "n1", "n2", ""]),
    band=BANDS,
    request=amounts,
    exclusive=st.booleans(),
    zones=st.sampled_from([(), (), (0,), (1,), (0, 1), (5,), (1, 5)]),
)
POD_NAMES = ["d/p0", "d/p1", "d/p2", "d/p3"]
reports = st.builds(
    projections.Report,
    updated_at=st.sampled_from([NOW, NOW, NOW, NOW - 100, NOW - 900, NOW - 901, None]),
    system=amounts,
    pods=st.dictionaries(st.sampled_from(POD_NAMES), st.tuples(amounts, BANDS)),
    hosts=amounts,
    prod_hosts=amounts,
    usage=st.none() | machines,
    reclaimable=amounts,
    measured=st.sampled_from([True] * 7 + [False]),
)


def _topology(zones: list[colocation.Amount], model: str) -> inventory.Topology:
    written = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": "cpu", **dict.fromkeys(inventory.SIDES, f"{zone.cpu}m")},
                {"name": "memory", **dict.fromkeys(inventory.SIDES, str(zone.memory))},
                {"name": names.BATCH_CPU, **dict.fromkeys(inventory.SIDES, "5k")},
            ][: 2 + number],
        }
        for number, zone in enumerate(zones)
    ]
    found = {names.ANNOTATION_CPU_BASIC_INFO: json.dumps({"cpuModel": model})}
    return inventory.read_topology({"metadata": {"annotations": found}, "zones": written})


topologies = st.builds(
    _topology, st.lists(machines, min_size=1, max_size=3), st.sampled_from(["fast", "slow"])
)
colocations = st.fixed_dictionaries(
    {"enable": st.sampled_from([True] * 9 + [False]), "cpuCalculatePolicy": policies},
    optional={
        "memoryCalculatePolicy": policies,
        "overcommitPercent": percents,
        "cpuReclaimThresholdPercent": percents,
        "memoryReclaimThresholdPercent": percents,
        "batchCPUThresholdPercent": percents,
        "midUnallocatedPercent": st.integers(0, 100),
        "midReclaimMode": st.sampled_from(["static", "dynamic"]),
        "midStaticCPUReservedPercent": st.integers(0, 100),
        "nodeConfigs": st.just(
            [
                {
                    "nodeSelector": {"matchLabels": {"pool": "a"}},
                    "cpuCalculatePolicy": "overcommitRatio",
                    "overcommitPercent": 30,
                    "resourceDiffThreshold": 0.5,
                }
            ]
        ),
    },
)
normalizations = st.fixed_dictionaries(
    {"enable": st.booleans()},
    optional={
        "ratioModel": st.just({"fast": {"baseRatio": 1.33}}),
        "defaultRatio": st.sampled_from([1.5, 7]),
    },
)
amplifications = st.fixed_dictionaries(
    {"enable": st.booleans()},
    optional={"resourceAmplificationRatio": st.just({"cpu": 1.5})},
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("nodes"), st.sampled_from(["n0", "n1", "n2"]), st.none() | nodes),
        st.tuples(st.just("metrics"), st.sampled_from(["n0", "n1", "n2"]), st.none() | reports),
        st.tuples(st.just("pods"), st.sampled_from(POD_NAMES), pods),
        st.tuples(st.just("pods"), st.sampled_from(POD_NAMES), st.none() | pods),
        st.tuples(st.just("topologies"), st.sampled_from(["n0", "n1"]), st.none() | topologies),
    ),
    min_size=5,
    max_size=30,
)
NODE = colocation.Amount(32_000, 128 * GIB)
