"""Device is read in both shapes; the documented figures come out."""

import pytest

from api import names, resources
from api.koordinator import devices
from api.wire import base
from tests import builders


def device(**given):
    return {"health": True, **given}


def test_the_example(manifests):
    read = devices.review_device(manifests["000-device-node-001"])
    assert read.warnings == ()
    found = [(item.type, item.id, item.minor, item.health) for item in read.value.spec.devices]
    assert found == [
        ("gpu", "gpu-uuid-001", 0, True),
        ("gpu", "gpu-uuid-002", 1, True),
        ("rdma", "rdma-uuid-001", 0, True),
        ("fpga", "fpga-uuid-001", 0, True),
    ]
    gpu, _, rdma, fpga = read.value.spec.devices
    assert gpu.resources == {
        names.GPU_CORE: "100",
        names.GPU_MEMORY_RATIO: "100",
        names.GPU_MEMORY: "40Gi",
    }
    assert gpu.labels == {names.LABEL_GPU_MODEL: "nvidia-a100"}
    assert (rdma.resources, fpga.resources) == ({names.RDMA: "100"}, {names.FPGA: "100"})


def test_shares_are_kept_and_told_by_pod(manifests):
    status = devices.read_device(manifests["000-device-node-001"]).status
    shares = [
        (item.device.uuid, portion.pod.name, portion.container, portion.allocated)
        for item in status.device_allocations
        for portion in item.allocations
    ]
    assert shares == [
        ("gpu-uuid-001", "ml-training-1", "training", "50%"),
        ("gpu-uuid-002", "ml-training-2", "training", "100%"),
    ]
    (allocation,) = status.allocations
    assert allocation.type == "gpu"
    assert [(entry.name, entry.minors) for entry in allocation.entries] == [
        ("ml-training-1", (0,)),
        ("ml-training-2", (1,)),
    ]


def test_the_published_shape_is_left_alone():
    spec = {
        "devices": [
            device(
                type="gpu",
                id="GPU-1",
                minor=3,
                moduleID=1,
                resources={names.GPU_CORE: "100"},
                topology={"socketID": -1, "nodeID": 0, "pcieID": "0", "busID": "0000:3b:00.0"},
                vfGroups=[{"labels": {"a": "b"}, "vfs": [{"minor": -1, "busID": "x"}]}],
            )
        ]
    }
    raw = builders.an_object(resources.DEVICES, "n", spec=spec)
    assert devices.read_device(raw).spec.wire() == spec


def test_minors_follow_the_order_within_a_type():
    spec = {"devices": [device(type="gpu", minor=4), device(deviceType="gpu"), device(type="rdma")]}
    read = devices.read_device(builders.an_object(resources.DEVICES, "n", spec=spec))
    assert [item.minor for item in read.spec.devices] == [4, 5, 0]


def test_spellings_that_differ_are_reported():
    spec = {"devices": [device(type="gpu", deviceType="rdma", id="a", uuid="b")]}
    read = devices.review_device(builders.an_object(resources.DEVICES, "n", spec=spec))
    (found,) = read.value.spec.devices
    assert (found.type, found.id) == ("gpu", "a")
    assert read.warnings == (
        "spec.devices[0].deviceType: differs from spec.devices[0].type, which is used instead",
        "spec.devices[0].uuid: differs from spec.devices[0].id, which is used instead",
    )


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "gpu"}, r"spec.devices\[0\].health: Field required"),
        (device(minor="0"), r"spec.devices\[0\].minor"),
        (device(topology={"nodeID": 0}), r"spec.devices\[0\].topology.socketID: Field required"),
        ("gpu", r"spec.devices\[0\]"),
        (device(deviceType="gpu", totalMemory="much"), r"totalMemory.*no quantity"),
    ],
)
def test_bad_devices_are_refused(item, field):
    raw = builders.an_object(resources.DEVICES, "n", spec={"devices": [item]})
    with pytest.raises(base.ReadError, match=f"Device n: .*{field}"):
        devices.read_device(raw)


def test_resources_that_an_older_release_wrote_have_their_present_names():
    old = {"kubernetes.io/gpu-core": "100", "kubernetes.io/gpu-memory": "16Gi"}
    written = [
        device(type="gpu", id="a", minor=0, resources=old),
        device(type="rdma", id="b", minor=0, resources={"kubernetes.io/rdma": "100"}),
    ]
    gpu, adapter = devices.read_device({"spec": {"devices": written}}).spec.devices
    assert gpu.resources == {names.GPU_CORE: "100", names.GPU_MEMORY: "16Gi"}
    assert adapter.resources == {names.RDMA: "100"}
