"""The layout of a node: sockets, NUMA nodes, CPUs, devices, and which pod holds what."""

import json

import pytest

from api import names
from cli.explain import layout_text, node_layout

CPU_TOPOLOGY = names.ANNOTATION_CPU_TOPOLOGY


def machine(cores=128, sockets=2, zones=4, sibling="apart", **notes):
    """A NodeResourceTopology; threads of a core are neighbours or as many CPUs apart as cores."""

    def cpu(core, thread):
        number = 2 * core + thread if sibling == "next" else core + cores * thread
        return {
            "id": number,
            "core": core,
            "socket": core * sockets // cores,
            "node": core * zones // cores,
        }

    cpus = [cpu(core, thread) for thread in range(2) for core in range(cores)]
    amounts = [
        {"name": "cpu", "allocatable": str(2 * cores // zones)},
        {"name": "memory", "allocatable": "64Gi"},
    ]
    texts = {CPU_TOPOLOGY: json.dumps({"detail": cpus})} | notes
    return {
        "metadata": {"name": "n1", "annotations": texts},
        "topologyPolicies": ["SingleNUMANodePodLevel"],
        "zones": [
            {"name": f"node-{zone}", "type": "Node", "resources": amounts} for zone in range(zones)
        ],
    }


def pod(name, cpu="4", status=None, devices=None, **requests):
    notes = {names.ANNOTATION_RESOURCE_STATUS: json.dumps(status)} if status else {}
    notes |= {names.ANNOTATION_DEVICE_ALLOCATED: json.dumps(devices)} if devices else {}
    asked = {"cpu": cpu, "memory": "1Gi"} | requests
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "annotations": notes},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": asked}}],
        },
    }


def gpus():
    resources = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"}
    return {
        "metadata": {"name": "n1"},
        "spec": {
            "devices": [
                {
                    "type": "gpu", "minor": minor, "id": f"GPU-{minor}", "health": minor != 3,
                    "resources": resources,
                    "topology": {"socketID": 0, "nodeID": minor // 2, "pcieID": f"0:{minor // 2}"},
                }
                for minor in range(4)
            ]
            + [{"type": "fpga", "minor": 0, "health": True, "resources": {names.FPGA: "100"}}]
        },
    }  # fmt: skip


NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "256"}}}
ALIGNED = {
    "cpuset": "2-3,130-131",
    "numaNodeResources": [{"node": 0, "resources": {"cpu": "4", "memory": "1Gi"}}],
}
HALF = {names.GPU_CORE: "50", names.GPU_MEMORY_RATIO: "50"}


def laid_out(*pods, topology=None, device=None):
    return node_layout.document(
        node_layout.Objects(NODE, machine() if topology is None else topology, device, pods)
    )


def test_a_machine_of_256_cpus_is_shown_by_ranges():
    system = {names.ANNOTATION_SYSTEM_QOS: json.dumps({"cpuset": "0-1"})}
    shared = {"gpu": [{"minor": 1, "resources": HALF}]}
    asks = {names.GPU: "50"}
    found = laid_out(
        pod("web", status=ALIGNED),
        pod("wide", "34", status={"cpuset": "32-64,100"}),
        pod("train", devices=shared, **asks),
        topology=machine(**system),
        device=gpus(),
    )
    lines = list(layout_text.lines(found))
    assert lines[:13] == [
        "Node n1: 256 CPUs, 2 sockets, 4 NUMA nodes, 1 fpga, 4 gpu.",
        "CPUs: 128 cores with 2 threads; threads of a core: CPUs n, n+128.",
        "Pods hold 38 of them, 2 are reserved, 216 are free, 180 of these in whole cores.",
        "The node has topology policy SingleNUMANode.",
        "",
        "Socket 0",
        "  NUMA node 0: CPUs 0-31,128-159",
        "    reserved  0-1                   2 CPUs",
        "    shop/web  2-3,130-131           4 CPUs   cpu 4, memory 1Gi",
        "    free      4-31,128-129,132-159  58 CPUs  56 in whole cores",
        "    memory  64Gi allocatable  1Gi held  63Gi free",
        "    PCIe switch 0:0",
        "      gpu 0  GPU-0  free",
    ]
    assert "      gpu 1  GPU-1  shop/train 50 % of the cores, 50 % of the memory" in lines
    assert "      gpu 3  GPU-3  unhealthy" in lines
    assert "Devices whose NUMA node is not known" in lines
    assert len(lines) < 60
    assert max(map(len, lines)) < 120
    assert sum("shop/wide" in line for line in lines) == 3


def test_columns_are_aligned_and_long_lists_are_wrapped():
    scattered = pod("b", "24", status={"cpuset": ",".join(map(str, range(8, 56, 2)))})
    found = laid_out(pod("web", status=ALIGNED), scattered)
    lines = list(layout_text.lines(found))
    at = next(place for place, line in enumerate(lines) if line.startswith("    shop/b"))
    assert lines[at : at + 4] == [
        "    shop/b    8,10,12,14,16,18,20,22,24,26,28,30          12 CPUs",
        "    shop/web  2-3,130-131                                 4 CPUs   cpu 4, memory 1Gi",
        "    free      0-1,4-7,9,11,13,15,17,19,21,23,25,27,29,31  48 CPUs  36 in whole cores",
        "              128-129,132-159",
    ]


def test_the_document_names_every_holder_and_is_json():
    shared = {"gpu": [{"minor": 1, "resources": HALF}]}
    found = laid_out(
        pod("web", status=ALIGNED), pod("train", devices=shared, **{names.GPU: "50"}), device=gpus()
    )
    assert json.loads(json.dumps(found)) == found
    assert found["pods"] == [
        {"pod": "shop/train", "cpus": "", "numaNodes": {}, "devices": {"gpu": "1"}},
        {
            "pod": "shop/web", "cpus": "2-3,130-131", "devices": {},
            "numaNodes": {"0": {"cpu": "4", "memory": "1Gi"}},
        },
    ]  # fmt: skip
    gpu = next(one for one in found["devices"] if (one["type"], one["minor"]) == ("gpu", 1))
    assert (gpu["pcie"], gpu["numaNode"], gpu["healthy"]) == ("0:0", 0, True)
    assert gpu["free"][names.GPU_CORE] == "50"
    assert [held["pod"] for held in gpu["holders"]] == ["shop/train"]


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        pytest.param(machine(), "n, n+128", id="apart"),
        pytest.param(machine(sibling="next"), "n, n+1", id="neighbours"),
    ],
)
def test_siblings_are_told_by_their_rule(made, rule):
    assert laid_out(topology=made)["cpus"]["siblings"] == rule


@pytest.mark.parametrize(
    ("pods", "topology", "problem"),
    [
        pytest.param(
            [pod("a", status={"cpuset": "2-3"}), pod("b", status={"cpuset": "3-4"})], machine(),
            "CPUs 3 of pod shop/b are held by another pod as well.", id="held twice",
        ),
        pytest.param(
            [pod("a", status={"cpuset": "0-1"})],
            machine(**{names.ANNOTATION_SYSTEM_QOS: json.dumps({"cpuset": "1"})}),
            "CPUs 1 of pod shop/a are reserved on the node.", id="reserved",
        ),
        pytest.param(
            [pod("a", status={"cpuset": "300"})], machine(),
            "CPUs 300 of pod shop/a do not exist on the node.", id="absent",
        ),
        pytest.param(
            [pod("a", "1", status={"cpuset": "0-1"})], machine(),
            "Pod shop/a carries allocations of NodeNUMAResource that it cannot have been given; "
            "they are not counted.", id="more than requested",
        ),
        pytest.param(
            [], {"metadata": {"name": "n1", "annotations": {CPU_TOPOLOGY: "{"}}},
            f"Annotation {CPU_TOPOLOGY} of the NodeResourceTopology cannot be read.", id="void",
        ),
        pytest.param(
            [{"metadata": "x"}], machine(), "A pod of the node cannot be read", id="another shape"
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_true_is_named(pods, topology, problem):
    found = laid_out(*pods, topology=topology)
    assert any(problem in one for one in found["problems"])
    assert any(problem in line for line in layout_text.lines(found))


def test_a_node_without_a_topology_shows_its_devices():
    found = node_layout.document(node_layout.Objects(NODE, None, gpus(), ()))
    lines = list(layout_text.lines(found))
    assert lines[0] == "Node n1: 0 CPUs, 0 sockets, 0 NUMA nodes, 1 fpga, 4 gpu."
    assert "  The node has no NodeResourceTopology, which its agent writes." in lines
    assert "      gpu 0  GPU-0  free" in lines
