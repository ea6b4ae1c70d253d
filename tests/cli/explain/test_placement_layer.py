"""The topology and device layers of a pod's story."""

import json

import pytest

from api import names
from cli.explain import stories
from cli.explain.pod import pod_facts, pod_story
from tests import builders
from tests.extender.clusters import device_cluster, numa_cluster

NUMA = {
    "cpuset": "2-3,10-11", "numaNodes": "0 (cpu 4, memory 1Gi)", "policy": "SingleNUMANode",
    "others": "1: 2 CPUs free of 4 asked; 2: has enough, scores 40 and not 60",
}  # fmt: skip


def told(granted):
    notes = {names.PLACEMENT: json.dumps({"at": "now", "granted": granted})}
    raw = builders.a_pod("p", node="n1", annotations=notes)
    return "\n".join(stories.lines(pod_story.told(pod_facts.Facts("default/p", raw))))


def test_the_chosen_cpus_and_numa_nodes_are_told_with_why_others_lost():
    text = told({"NodeNUMAResource": NUMA})
    assert (
        "Topology\n"
        "  It was given CPUs 2-3,10-11 of its own.\n"
        "  It was aligned by topology policy SingleNUMANode with NUMA node 0 (cpu 4, memory 1Gi).\n"
        "  NUMA node 1: 2 CPUs free of 4 asked.\n"
        "  NUMA node 2: has enough, scores 40 and not 60."
    ) in text
    assert "NodeNUMAResource granted" not in text


def test_the_chosen_devices_are_told_with_why_others_lost():
    text = told({"DeviceShare": {"gpu": "2,3", "gpuOthers": "0: unhealthy; 1: fits", "rdma": "1"}})
    assert (
        "Devices\n"
        "  It was given gpu 2,3.\n"
        "  Not gpu 0: unhealthy.\n"
        "  Not gpu 1: fits.\n"
        "  It was given rdma 1."
    ) in text


@pytest.mark.parametrize(
    "granted",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"BatchFit": {"cpu": "2"}}, id="another plug-in"),
        pytest.param({"NodeNUMAResource": "x"}, id="no object"),
        pytest.param({"NodeNUMAResource": {"cpuset": 3, "others": ["x"]}}, id="no texts"),
        pytest.param(["x"], id="no object of plug-ins"),
    ],
)
def test_without_a_record_that_can_be_read_there_is_nothing_to_tell(granted):
    text = told(granted)
    assert "Topology" not in text
    assert "Devices" not in text


def test_what_a_bind_records_is_what_is_told():
    cpus = numa_cluster.NumaCluster()
    cpus.node("n1", numa_cluster.topology())
    view = cpus.state.view()
    prepared = cpus.pipeline.cycle(numa_cluster.views.PodInfo.of(cpus.pod("p", "4")), view)
    grants = {numa_cluster.NAME: cpus.reserve(cpus.pod("p", "4"))}
    wanted = prepared.prepared[numa_cluster.NAME]
    found = cpus.plugin.reserve(prepared.pod, wanted, view, 0, grants).told()
    gpus = device_cluster.DeviceCluster()
    gpus.node()
    gpus.devices(device_cluster.eight())
    asked, shown = gpus.cycle(gpus.pod("p", {names.GPU: "100"}))
    granted = gpus.pipeline.reserve(asked, shown, 0)[device_cluster.NAME].told()
    text = told({"NodeNUMAResource": found, "DeviceShare": granted})
    assert "It was given CPUs 0-1,8-9 of its own." in text
    assert "NUMA node 1: has enough, 8 CPUs free." in text
    assert "It was given gpu 0." in text
    assert "Not gpu 2-3: fits, on NUMA node 0, PCIe switch 1." in text
