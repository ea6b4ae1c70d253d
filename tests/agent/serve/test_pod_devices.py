"""What lists of the kubelet gain: the devices that the scheduler gave to pods."""

import json

import msgspec
import pytest

from agent.devices import device_inventory
from agent.serve import pod_devices
from api import names
from api.kubernetes import core, pod_resources
from tests import protobuf_messages as wire

KEY = names.ANNOTATION_DEVICE_ALLOCATED
GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
HALF = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}
RDMA = {"koordinator.sh/rdma": "100"}
LATER = wire.field(77, b"of a later release")


def pod(allocated, name="p", containers=None, phase="Running"):
    """A pod on a node; its containers by name, with what each asks for."""
    text = allocated if isinstance(allocated, str) else json.dumps(allocated)
    made = [
        {"name": one, "resources": {"requests": wanted, "limits": wanted}}
        for one, wanted in (containers or {"app": GPU}).items()
    ]
    raw = {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": {KEY: text}},
        "spec": {"nodeName": "n", "containers": made},
        "status": {"phase": phase, "qosClass": "Guaranteed"},
    }
    return msgspec.convert(raw, core.Pod)


def listed(*pods):
    """A list of the kubelet: names and containers, with fields that nothing here names."""
    parts = []
    for name, containers in pods:
        said = wire.field(1, name.encode()) + wire.field(2, b"ns")
        parts.append(wire.field(1, said + b"".join(containers) + LATER))
    return b"".join(parts) + LATER


def container(name="app", devices=b"", cpus=b""):
    return wire.field(3, wire.field(1, name.encode()) + devices + cpus + LATER)


def given(resource, *identifiers):
    said = wire.field(1, resource.encode())
    return wire.field(2, said + b"".join(wire.field(2, one.encode()) for one in identifiers))


def by_name(*pods):
    return {("ns", one.metadata.name): one for one in pods}


def devices_in(message):
    read = pod_resources.CLASSES["ListPodResourcesResponse"].FromString(message)
    return {
        (told.name, one.name): [(d.resource_name, list(d.device_ids)) for d in one.devices]
        for told in read.pod_resources
        for one in told.containers
    }


def gpu(minor=0, resources=GPU, **more):
    return {"minor": minor, "resources": resources, **more}


def rdma(minor=0, **more):
    return {"minor": minor, "resources": RDMA, **more}


def test_devices_are_added_and_all_other_bytes_stay():
    cpus = wire.field(3, b"\x01\x02")
    message = listed(("p", [container(cpus=cpus)]), ("other", [container()]))
    found = pod_devices.with_devices(message, by_name(pod({"gpu": [gpu(id="GPU-a")]})), None)
    assert devices_in(found.message) == {
        ("p", "app"): [("nvidia.com/gpu", ["GPU-a"])],
        ("other", "app"): [],
    }
    assert found.devices == {"nvidia.com/gpu": 1}
    assert found.message.count(LATER) == message.count(LATER) == 5
    assert cpus in found.message
    # What was not added is what the kubelet sent, in any order of the fields.
    assert len(found.message) == len(message) + len(given("nvidia.com/gpu", "GPU-a"))


@pytest.mark.parametrize("message", [b"", LATER, listed(("p", [container()])), listed(("p", []))])
def test_a_list_that_gains_nothing_keeps_its_bytes(message):
    assert pod_devices.with_devices(message, {}, None).message is message
    assert pod_devices.with_devices(message, by_name(pod({})), None).message is message


def test_types_are_sorted_by_resource_and_go_to_the_container_that_asks():
    allocated = {
        "rdma": [rdma(2, id="0000:3b:00.0")],
        "gpu": [gpu(1, id="GPU-b"), gpu(0, id="GPU-a")],
    }
    twice = {name: str(2 * int(value)) for name, value in GPU.items()}
    asking = pod(allocated, containers={"sidecar": {}, "app": twice | RDMA})
    message = listed(("p", [container("sidecar"), container("app")]))
    found = pod_devices.with_devices(message, by_name(asking), None)
    assert devices_in(found.message) == {
        ("p", "sidecar"): [],
        ("p", "app"): [
            ("koordinator.sh/rdma", ["0000:3b:00.0"]),
            ("nvidia.com/gpu", ["GPU-b", "GPU-a"]),
        ],
    }
    # The kubelet does not list the container that asks: the first one is told to have them.
    message = listed(("p", [container("sidecar"), container("late")]))
    found = pod_devices.with_devices(message, by_name(asking), None)
    assert len(devices_in(found.message)["p", "sidecar"]) == 2


def test_what_a_device_plugin_gave_is_not_listed_twice():
    plugin = container(devices=given("nvidia.com/gpu", "GPU-a"))
    allocated = {"gpu": [gpu(id="GPU-a")]}
    message = listed(("p", [plugin]))
    found = pod_devices.with_devices(message, by_name(pod(allocated)), None)
    assert found.message is message
    message = listed(("p", [container(devices=given("example.com/nic", "GPU-a"))]))
    found = pod_devices.with_devices(message, by_name(pod(allocated)), None)
    assert found.devices == {"nvidia.com/gpu": 1}


INVENTORY = device_inventory.Inventory(
    (
        device_inventory.Device("gpu", "GPU-known", 3, {}),
        device_inventory.Device("rdma", "0000:5e:00.0", 3, {}),
    )
)
VIRTUAL = {"vfs": [{"minor": 1, "busID": "0000:3b:00.2"}, {"minor": 2, "busID": "0000:3b:00.3"}]}


@pytest.mark.parametrize(
    ("allocated", "containers", "known", "identifiers", "fault"),
    [
        pytest.param({"gpu": [gpu(3)]}, None, INVENTORY, ["GPU-known"], "", id="by discovery"),
        pytest.param({"gpu": [gpu(3, id="GPU-x")]}, None, INVENTORY, ["GPU-x"], "", id="named"),
        pytest.param(
            {"gpu": [gpu(4)]}, None, INVENTORY, [], "no identifier is known of gpu 4", id="unknown"
        ),
        pytest.param(
            {"gpu": [gpu(3)]}, None, None, [], "no identifier is known of gpu 3", id="no discovery"
        ),
        pytest.param(
            {"rdma": [rdma(0, id="0000:3b:00.0", extension=VIRTUAL)]},
            {"app": RDMA},
            None,
            ["0000:3b:00.2", "0000:3b:00.3"],
            "",
            id="virtual functions",
        ),
        pytest.param(
            {"gpu": [gpu(0, HALF, id="GPU-a")]}, {"app": HALF}, None, ["GPU-a"], "", id="a share"
        ),
        pytest.param(
            {"gpu": [gpu(id="GPU-a"), gpu(1, id="GPU-b")]},
            None,
            None,
            [],
            "does not ask for what it is said",
            id="more than the pod asks for",
        ),
        pytest.param(
            {"gpu": [gpu(id="GPU-a")]}, {"app": {}}, None, [], "does not ask", id="asks for none"
        ),
        pytest.param("{", None, None, [], "device-allocated", id="no JSON"),
        pytest.param("[" * 5000, None, None, [], "device-allocated", id="deep"),
        pytest.param(
            {"gpu": [gpu(id="GPU-a\nkoord_up 1")]}, None, None, [], "gpu 0", id="a line break"
        ),
        pytest.param({"gpu": [gpu(id="G" * 254)]}, None, None, [], "gpu 0", id="a long one"),
        pytest.param(
            {"gpu": [{"id": "G"}] * 2000}, None, None, [], "more than 1024", id="thousands"
        ),
        pytest.param({"gpu": [gpu(-1, id="G")]}, None, None, [], "minor -1", id="below zero"),
    ],
)
def test_an_annotation_is_believed_as_far_as_the_pod_asks(
    allocated, containers, known, identifiers, fault
):
    asked = pod(allocated, containers=containers)
    message = listed(("p", [container()]), ("good", [container()]))
    good = pod({"gpu": [gpu(id="GPU-good")]}, "good")
    found = pod_devices.with_devices(message, by_name(asked, good), known)
    told = devices_in(found.message)
    assert [one for _, ids in told["p", "app"] for one in ids] == identifiers
    # Whatever a pod says of itself changes nothing of another.
    assert told["good", "app"] == [("nvidia.com/gpu", ["GPU-good"])]
    assert fault in found.faults.get("ns/p", "")
    assert bool(fault) == ("ns/p" in found.faults)


def test_a_pod_that_has_ended_holds_nothing():
    message = listed(("p", [container()]))
    ended = pod({"gpu": [gpu(id="GPU-a")]}, phase="Succeeded")
    assert pod_devices.with_devices(message, by_name(ended), None).message is message


def test_names_of_a_list_and_what_is_none():
    message = listed(("p", [container()]), ("\ufffd", []))
    assert pod_devices.names_of(message) == {("ns", "p"), ("ns", "\ufffd")}
    with pytest.raises(pod_devices.ListError, match="no list of pods"):
        pod_devices.names_of(b"\x0a\xff")
    with pytest.raises(pod_devices.ListError, match="more than 16777216 bytes"):
        pod_devices.names_of(bytes(pod_devices.MOST_BYTES + 1))
