"""A pod is tried once for nodes that are alike, with the same outcome as on each of them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from extender.framework import cycle, verdicts, views
from extender.framework.nodes import node_classes, numa, row_memo
from tests.extender.clusters.device_cluster import DeviceCluster, device, gpu, rdma
from tests.extender.clusters.numa_cluster import NumaCluster, topology

ALIGNED = {"numaTopologyPolicy": "SingleNUMANode"}
LATER = row_memo.LATER


def test_each_class_is_worked_out_once():
    memo, asked = node_classes.NodeClasses(), []

    def worked(place):
        asked.append(place)
        return place * 10

    classes = np.array([7, 5, 7, 9])
    assert memo.get("a", classes, worked).tolist() == [0, 10, 0, 30]
    assert asked == [0, 1, 3]
    assert memo.get("a", np.array([9, 8]), worked).tolist() == [30, 10]
    assert asked == [0, 1, 3, 1]
    assert memo.get("b", classes, worked).tolist() == [0, 10, 0, 30], "another kind of pod"


@pytest.mark.parametrize(
    ("most", "enough", "passing", "expected"),
    [
        (1, 2, 0, [0, 0, LATER, LATER]),
        (1, 3, 3, [0, 0, LATER, LATER]),
        (2, 2, 0, [0, 0, 5, LATER]),
        (1, 3, 0, [0, 0, 5, 0]),
    ],
    ids=["enough by then", "enough before", "so many in any case", "not enough"],
)
def test_the_rest_is_left_for_later_once_enough_nodes_pass(most, enough, passing, expected):
    memo = node_classes.NodeClasses()
    outcomes = [0, None, 5, 0]
    budget = node_classes.Budget(most, enough, passing)
    classes = np.array([1, 1, 2, 3])
    found = memo.get("a", classes, outcomes.__getitem__, budget)
    assert found.tolist() == expected
    assert memo.get("a", classes, outcomes.__getitem__).tolist() == [0, 0, 5, 0]


def one_by_one(cluster, pod, rows):
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(views.PodInfo.of(pod), view)
    return [cluster.pipeline.aligned.refusal(asked, view, int(row)) for row in rows]


def by_class(cluster, pod, rows):
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(views.PodInfo.of(pod), view)
    codes, refusals = cluster.pipeline.aligned.refusals(asked, view, rows)
    return [refusals[code - 1] if code else None for code in codes.tolist()]


CPU_PODS = (
    {"cpu": "4"},
    {"cpu": "4", "numa": ALIGNED},
    {"cpu": "6", "numa": {**ALIGNED, "singleNUMANodeExclusive": "Required"}},
    {"cpu": "2", "spec": {"requiredCPUBindPolicy": "FullPCPUs"}},
    {"cpu": "3", "spec": {"requiredCPUBindPolicy": "SpreadByPCPUs"}, "numa": ALIGNED},
    {"cpu": "2", "qos": "LS", "numa": {"numaTopologyPolicy": "Restricted"}},
)
MACHINES = (
    topology(),
    topology(policies=("SingleNUMANodeContainerLevel",)),
    topology(cores=2),
    None,
)


@settings(max_examples=12, deadline=None)
@given(
    held=st.lists(st.tuples(st.sampled_from(CPU_PODS[:5]), st.integers(0, 7)), max_size=10),
    kind=st.sampled_from(CPU_PODS),
)
def test_nodes_with_cpus_are_judged_alike(held, kind):
    cluster = NumaCluster()
    for number in range(8):
        cluster.node(f"n{number}", MACHINES[number % len(MACHINES)])
    for number, (asked, where) in enumerate(held):
        cluster.place(f"p{number}", node=f"n{where}", **asked)
    rows = np.arange(8)
    pod = cluster.pod("asked", **kind)
    assert by_class(cluster, pod, rows) == one_by_one(cluster, pod, rows)


def machine(name, serial):
    """Machines of one type, whose devices have identifiers of their own."""
    gpus = [gpu(m, numa=m // 2, pcie=str(m // 2)) for m in range(4)]
    cards = [rdma(m, numa=m, pcie=str(m)) for m in range(2)]
    return device(name, *({**one, "id": f"{one['id']}-{serial}"} for one in (*gpus, *cards)))


JOINT = {names.ANNOTATION_DEVICE_JOINT: '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'}
SCOPED = {names.ANNOTATION_DEVICE_HINT: json.dumps({"gpu": {"requiredTopologyScope": "PCIe"}})}
GPU_PODS = (
    ({names.GPU: "40"}, {}),
    ({names.NVIDIA_GPU: "1"}, {}),
    ({names.NVIDIA_GPU: "2"}, SCOPED),
    ({names.GPU: "100", names.RDMA: "1"}, JOINT),
    ({names.RDMA: "60"}, {}),
)


@settings(max_examples=12, deadline=None)
@given(
    held=st.lists(st.tuples(st.sampled_from(GPU_PODS), st.integers(0, 5)), max_size=10),
    kind=st.sampled_from(GPU_PODS),
)
def test_nodes_with_devices_are_judged_alike(held, kind):
    cluster = DeviceCluster()
    for number in range(6):
        labels = {names.LABEL_GPU_PARTITION_POLICY: "Honor"} if number == 5 else {}
        cluster.node(f"n{number}", labels={**labels, "kubernetes.io/hostname": f"n{number}"})
        cluster.devices(machine(f"n{number}", number))
    for number, ((requests, notes), where) in enumerate(held):
        cluster.bind(cluster.pod(f"p{number}", requests, annotations=notes), f"n{where}")
    rows = np.arange(6)
    requests, notes = kind
    pod = cluster.pod("asked", requests, annotations=notes)
    assert by_class(cluster, pod, rows) == one_by_one(cluster, pod, rows)


def test_machines_of_one_type_are_one_class_until_pods_hold_something():
    cluster = DeviceCluster()
    for number in range(4):
        cluster.node(f"n{number}", labels={"kubernetes.io/hostname": f"n{number}"})
        cluster.devices(machine(f"n{number}", number))
    rows = np.arange(4)
    assert len(set(cluster.plugin.alike(cluster.state.view(), rows).tolist())) == 1
    cluster.bind(cluster.pod("p", {names.GPU: "40"}), "n2")
    first, second, third, fourth = cluster.plugin.alike(cluster.state.view(), rows).tolist()
    assert first == second == fourth != third
    cluster.leave("p")
    assert len(set(cluster.plugin.alike(cluster.state.view(), rows).tolist())) == 1


class Odd:
    """Refuses every other node, and does not tell which are alike."""

    name = "Odd"
    REFUSED = verdicts.Status("odd")

    def hints(self, prepared, view, row):
        return {}

    def allocate(self, prepared, view, row, mask):
        return self.REFUSED if row % 2 else None


def test_without_classes_every_node_is_looked_at():
    cluster = NumaCluster()
    for number in range(4):
        cluster.node(f"n{number}", topology())
    view = cluster.state.view()
    aligned = numa.Aligned((Odd(),))
    asked = cycle.Cycle(views.PodInfo.of(cluster.pod("p", "1")), {"Odd": ()})
    for rows, refused in (([0, 2], 0), ([1, 3], 2), ([0, 1, 2, 3], 2)):
        codes, _ = aligned.refusals(asked, view, np.array(rows))
        assert np.count_nonzero(codes) == refused


NODES = 230


@pytest.fixture(scope="module")
def uneven():
    """Nodes that are all of different sizes."""
    cluster = NumaCluster()
    for number in range(NODES):
        cluster.node(f"n{number}", topology(cores=1, memory=f"{1024 + number}Mi"))
    cluster.state.view()
    return cluster


def passing(cluster, pod):
    found = by_class(cluster, pod, np.arange(NODES))
    return found.count(None), found.count(numa.UNTRIED)


def test_once_enough_nodes_fit_the_others_are_looked_at_by_later_calls(uneven):
    pod = uneven.pod("small", "1", numa=ALIGNED, memory="1Gi")
    assert passing(uneven, pod) == (numa.ENOUGH, NODES - numa.ENOUGH)
    assert passing(uneven, pod) == (numa.ENOUGH + numa.MOST_TRIED, NODES - numa.ENOUGH - 64)
    assert passing(uneven, pod) == (NODES - 2, 2)


def test_every_node_is_looked_at_while_few_fit(uneven):
    pod = uneven.pod("large", "1", numa=ALIGNED, memory="1200Mi")
    fitting, untried = passing(uneven, pod)
    assert untried == 0
    assert 0 < fitting < numa.ENOUGH
    assert fitting == one_by_one(uneven, pod, np.arange(NODES)).count(None)
