"""What a snapshot keeps of CPUs, NUMA nodes and devices, and what renaming leaves of names."""

import json

import pytest

from api import names, resources
from api.koordinator import devices
from cli.snapshot import format as formats
from cli.snapshot import projection, renaming
from domain.devices import inventory
from domain.numa import node_topology
from tests.cli.placement import clusters
from tests.extender.clusters import device_cluster

WORDS = ("acme", "rocket", "berlin")


def a_topology():
    raw = clusters.a_topology("berlin-7")
    pods = [{"name": "rocket-1", "namespace": "acme", "uid": "acme-uid", "cpuset": "0-1",
             "managedByKubelet": True}]  # fmt: skip
    raw["metadata"]["annotations"] |= {
        names.ANNOTATION_POD_CPU_ALLOCS: json.dumps(pods),
        "acme.example/note": "acme",
    }
    raw["zones"][0]["costs"] = [{"name": "acme", "value": 10}]
    return raw


def a_device():
    gpu = device_cluster.gpu(0, labels={"site": "berlin"}) | {"id": "acme-gpu-0"}
    gpu["conditions"] = [
        {
            "type": "Healthy",
            "status": "True",
            "reason": "acme",
            "message": "acme",
            "lastTransitionTime": clusters.NOW,
        }
    ]
    adapter = device_cluster.rdma(0)
    adapter |= {"vfGroups": [{"labels": {"team": "rocket"}, "vfs": [{"minor": 0}]}]}
    raw = clusters.a_device("berlin-7") | {"status": {"allocations": "acme"}}
    raw["spec"] = {"devices": [gpu, adapter]}
    return raw


def a_pod():
    allocated = {"gpu": [{"minor": 0, "id": "acme-gpu-0", "resources": {names.GPU_CORE: "50"}}]}
    hint = {"gpu": {"selector": {"matchLabels": {"site": "berlin"}}}}
    notes = {
        names.ANNOTATION_DEVICE_ALLOCATED: json.dumps(allocated),
        names.ANNOTATION_DEVICE_HINT: json.dumps(hint),
        names.ANNOTATION_RESOURCE_STATUS: json.dumps({"cpuset": "2-3"}),
    }
    return clusters.low("rocket-1", node="berlin-7", annotations=notes)


MADE = (
    (resources.NODE_RESOURCE_TOPOLOGIES, a_topology),
    (resources.DEVICES, a_device),
    (resources.PODS, a_pod),
)


def kept():
    return formats.Snapshot(
        clusters.NOW,
        {kind.review_name(): (projection.kept(kind, make()),) for kind, make in MADE},
    )


def devices_of(raw):
    return inventory.read(devices.read_device(raw))


def test_what_decisions_read_is_kept_and_the_rest_left_out():
    found = kept()
    (topology,) = found.of(resources.NODE_RESOURCE_TOPOLOGIES)
    (device,) = found.of(resources.DEVICES)
    assert node_topology.read(topology) == node_topology.read(a_topology())
    assert devices_of(device) == devices_of(a_device() | {"status": None})
    assert "status" not in device
    assert "conditions" not in device["spec"]["devices"][0]
    assert set(topology["zones"][0]) == {"name", "type", "resources"}
    assert "acme.example/note" not in topology["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("length", "stays"), [(projection.LONGEST_TOPOLOGY, True), (600 << 10, False)]
)
def test_the_long_list_of_cpus_is_kept_up_to_a_bound(length, stays):
    raw = a_topology()
    raw["metadata"]["annotations"][names.ANNOTATION_CPU_TOPOLOGY] = "7" * length
    found = projection.kept(resources.NODE_RESOURCE_TOPOLOGIES, raw)
    assert (names.ANNOTATION_CPU_TOPOLOGY in found["metadata"]["annotations"]) is stays


def test_renaming_leaves_no_name_and_who_holds_what():
    found = renaming.renamed(kept())
    text = json.dumps(found.objects)
    assert not [word for word in WORDS if word in text]
    (topology,) = found.of(resources.NODE_RESOURCE_TOPOLOGIES)
    (device,) = found.of(resources.DEVICES)
    (pod,) = found.of(resources.PODS)
    assert topology["metadata"]["name"] == device["metadata"]["name"] == pod["spec"]["nodeName"]
    assert node_topology.read(topology) == node_topology.read(a_topology())
    notes, first = pod["metadata"]["annotations"], device["spec"]["devices"][0]
    allocated = json.loads(notes[names.ANNOTATION_DEVICE_ALLOCATED])["gpu"][0]
    assert (allocated["id"], allocated["minor"]) == (first["id"], 0)
    hint = json.loads(notes[names.ANNOTATION_DEVICE_HINT])["gpu"]["selector"]["matchLabels"]
    assert hint == first["labels"]
    assert json.loads(notes[names.ANNOTATION_RESOURCE_STATUS]) == {"cpuset": "2-3"}
    (held,) = json.loads(topology["metadata"]["annotations"][names.ANNOTATION_POD_CPU_ALLOCS])
    assert held["name"] == pod["metadata"]["name"]


def test_an_older_file_says_what_it_lacks():
    older = formats.Snapshot(clusters.NOW, {"pods": ()}, {"nodes": "403: no"})
    lacking = [one for one in projection.RESOURCES if older.lacks(one)]
    assert {resources.DEVICES, resources.NODE_RESOURCE_TOPOLOGIES} <= set(lacking)
    assert resources.PODS not in lacking
    assert resources.NODES not in lacking, "it was read for, and refused"
