"""Device files of RDMA adapters."""

import json

import pytest

from agent.hooks.devices import rdma_devices

KEY = "scheduling.koordinator.sh/device-allocated"
PF, VF, OTHER = "0000:d8:00.0", "0000:d8:00.2", "0000:d8:00.3"
VERBS = {PF: "uverbs0", VF: "uverbs3", OTHER: "uverbs4"}
NUMBERS = {
    "/dev/infiniband/uverbs0": (231, 192),
    "/dev/infiniband/uverbs3": (231, 195),
    "/dev/infiniband/uverbs4": (231, 196),
    "/dev/infiniband/rdma_cm": (10, 58),
}


def written(*adapters):
    return {KEY: json.dumps({"rdma": adapters, "gpu": [{"minor": 0}]})}


def functions(*addresses):
    return {"id": PF, "extension": {"vfs": [{"minor": -1, "busID": one} for one in addresses]}}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ()),
        ({KEY: ""}, ()),
        ({KEY: '{"gpu":[{"minor":0}]}'}, ()),
        (written({"minor": 0, "id": PF}), (PF,)),
        (written(functions(VF, OTHER)), (VF, OTHER)),
        (written(functions()), (PF,)),
        (written(functions(VF), functions(VF)), (VF,)),
        (written({"id": "0000:D8:00.0"}), (PF,)),
    ],
    ids=["none", "empty", "gpu", "whole", "functions", "no function", "twice", "capitals"],
)
def test_addresses(annotations, expected):
    assert rdma_devices.addresses(annotations) == expected


@pytest.mark.parametrize(
    "written_",
    ["{", '{"rdma": 1}', '{"rdma":[{}]}', '{"rdma":[{"id":"../../x"}]}', '{"rdma":[{"id":7}]}'],
)
def test_an_allocation_that_cannot_be_read_is_refused(written_):
    with pytest.raises(rdma_devices.AllocationError, match=KEY):
        rdma_devices.addresses({KEY: written_})


def test_the_files_and_once_the_manager_of_connections():
    found = rdma_devices.nodes((VF, OTHER), VERBS, NUMBERS)
    assert [one.path for one in found] == [
        "/dev/infiniband/uverbs3",
        "/dev/infiniband/uverbs4",
        "/dev/infiniband/rdma_cm",
    ]
    assert found[0] == rdma_devices.Node("/dev/infiniband/uverbs3", 231, 195, 0o666)
    assert rdma_devices.nodes((), VERBS, NUMBERS) == ()


def test_what_the_host_lacks_is_refused():
    with pytest.raises(rdma_devices.AllocationError, match="verbs interface"):
        rdma_devices.nodes((PF,), {}, NUMBERS)
    with pytest.raises(rdma_devices.AllocationError, match="verbs interface"):
        rdma_devices.nodes((PF,), {PF: "../uverbs0"}, NUMBERS)
    with pytest.raises(rdma_devices.AllocationError, match="no such character device"):
        rdma_devices.nodes((PF,), VERBS, {})
