"""Devices that the Device object of a node and a driver offer at the same time."""

import pytest

from cli.doctor.checkup import facts
from tests.cli.devices.test_table import a_device, a_slice, gpu

SHARED = [a_device("n1", gpu(0), gpu(1))]
TRAP = "devices.offered-twice"


def test_a_gpu_that_both_offer_is_named(found):
    told = found(devices=SHARED, resource_slices=[a_slice("GPU-1", "second")])
    assert told[TRAP].sentence == (
        "a driver offers devices of node n1 too: gpu 1 as gpu.example.com/n1/second"
    )


def test_addresses_tell_it_too(found):
    there = a_slice("x")
    there["spec"]["devices"][0]["attributes"] = {
        "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"}
    }
    listed = a_device("n1", gpu(0, bus_id="00000000:3B:00.0"))
    assert TRAP in found(devices=[listed], resource_slices=[there])


FINE = {
    "other GPUs": [a_slice("GPU-9")],
    "another node": [a_slice("GPU-1", node="n2")],
    "no drivers": [],
}


@pytest.mark.parametrize("slices", FINE.values(), ids=FINE)
def test_devices_that_one_of_both_offers_are_fine(found, slices):
    assert TRAP not in found(devices=SHARED, resource_slices=slices)


def test_many_nodes_are_not_named_one_by_one(healthy, found):
    many = [f"n{number}" for number in range(20)]
    listed = [a_device(name, gpu(0)) for name in many]
    slices = [a_slice("GPU-0", node=name) for name in many]
    assert found(devices=listed, resource_slices=slices)[TRAP].sentence == (
        "the same on 12 more nodes"
    )


def test_what_cannot_be_read_is_said(found):
    odd = {"metadata": {"name": "odd"}, "spec": []}
    told = found(devices=SHARED, resource_slices=[odd])
    assert "ResourceSlice odd cannot be read" in told["devices.unreadable"].sentence
    unknown = facts.Unknown("devices", "403")
    assert "could not be checked" in found(devices=unknown)["devices"].sentence
