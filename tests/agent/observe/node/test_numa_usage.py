"""The use of NUMA nodes: measured, and told beside that of the node."""

import pytest

from agent.model import collect_policy, state
from agent.observe import observation
from agent.observe.node import meminfo, numa_usage
from agent.report import node_metric
from agent.store import time_series
from simulator.kubelet import machines, nodefs

GIB = 1 << 30
PAGE = 4096
TWO = machines.Machine(machines.grid(2, 1, 2, 2), caches=False, siblings=False)


@pytest.fixture(params=[TWO, None], ids=["two", "one"])
def measured(request, host):
    host.observer.close()
    if request.param is not None:
        host.tree.build(request.param)
    tree = host.tree
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    sources = [numa_usage.Numa(roots.proc, roots.sys)]
    host.observer = observation.Observer(roots, 1.0, sources)
    return host, 1 if request.param is None else 2


def test_the_use_of_numa_nodes_is_measured_and_told(measured):
    host, nodes = measured
    host.add("p1", "Burstable", 1000, 2 * GIB)
    host.tree.set_load(nodefs.SYSTEM, 600, GIB)
    for _ in range(12):
        picture = host.step()
    assert not picture.problems
    made = node_metric.status(
        node_metric.Reporting(host.observer.samples, picture, collect_policy.Policy(), host.at)
    )
    told = made["nodeMetric"]["numaUsages"]
    assert [one["numaNodeID"] for one in told] == list(range(nodes))
    cpu = [int(one["nodeUsage"]["resources"]["cpu"].removesuffix("m")) for one in told]
    assert sum(cpu) == pytest.approx(1600, abs=30)
    assert max(cpu) - min(cpu) < 30
    system = [int(one["systemUsage"]["resources"]["cpu"].removesuffix("m")) for one in told]
    assert sum(system) == pytest.approx(600, abs=30)
    memory = {1: ["3Gi"], 2: ["1536Mi", "1536Mi"]}[nodes]
    assert [one["nodeUsage"]["resources"]["memory"] for one in told] == memory
    # All memory of pods is on the first node.
    left = {1: ["1Gi"], 2: ["0", "1536Mi"]}[nodes]
    assert [one["systemUsage"]["resources"]["memory"] for one in told] == left


def test_nodes_without_figures_are_left_out():
    samples = time_series.Histories()
    for key in (("node",), ("node", "numa", "1")):
        samples.add((*key, "cpu"), 10.0, 1.0, 60.0)
        samples.add((*key, "memory"), 10.0, GIB, 60.0)
    cpus = tuple(state.Processor(cpu, cpu, 0, cpu) for cpu in range(2))
    picture = state.NodeState(at=0, processors=cpus)
    made = node_metric.status(
        node_metric.Reporting(samples, picture, collect_policy.Policy(), 10.0)
    )
    resources = {"cpu": "1", "memory": "1Gi"}
    assert made["nodeMetric"]["numaUsages"] == [
        {"numaNodeID": 1, "nodeUsage": {"resources": resources}}
    ]


def test_what_a_group_holds_by_numa_node():
    first = (
        b"total=9 N0=4 N1=5\nanon=1 N0=1 N1=0\nhierarchical_total=9 N0=4 N1=5\n"
        b"hierarchical_anon=5 N0=2 N1=3\nhierarchical_unevictable=1 N0=0 N1=1\n"
    )
    assert meminfo.held(first, 1, PAGE) == {0: 2 * PAGE, 1: 4 * PAGE}
    second = b"anon N0=9 N1=9\ninactive_anon N0=1 N1=2\nactive_anon N0=10 N1=20\nunevictable N0=x\n"
    assert meminfo.held(second, 2, PAGE) == {0: 11, 1: 22}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["MemTotal: 100 kB", "MemFree: 40 kB"], 60 * 1024),
        (["MemTotal: 100 kB", "MemFree: 40 kB", "Inactive(file): 30 kB", "SReclaimable: 50 kB"], 0),
        (["MemTotal: 100 kB"], None),
        (["MemTotal: many kB", "MemFree: 1 kB"], None),
    ],
    ids=["plain", "reclaimable", "half", "unreadable"],
)
def test_memory_in_use(lines, expected):
    text = "\n".join(f"Node 3 {line}" for line in lines).encode()
    assert meminfo.used(meminfo.figures(text, meminfo.of_node(3))) == expected


def test_the_time_of_cpus():
    lines = ["cpu  9 9 9 9 9 9 9 0", "cpu0 1 2 3 100 50 4 5 7", "cpu1 1 x 3 4 5 6 7", "cpu12 1 0"]
    text = "\n".join([*lines, "intr 5", "cpu3 1 1 1 1 1 1 1"]).encode()
    assert numa_usage.ticks_of_cpus(text) == {0: 15}
