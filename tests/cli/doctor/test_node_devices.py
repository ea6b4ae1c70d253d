"""Devices in the table of `koord doctor node`."""

import argparse

import pytest

from agent.devices import device_inventory
from agent.model import capability_matrix
from cli.doctor import node_devices, node_strategies
from tests.planes.devices import gpu_driver, pci_tree


@pytest.fixture
def tree(tmp_path):
    return pci_tree.PciTree(tmp_path / "sys")


def rows(tree, driver):
    return node_devices.rows(str(tree.sys), lambda: driver)


def test_a_host_without_devices_has_no_row(tree):
    assert rows(tree, gpu_driver.Scripted()) == ()


def test_what_is_there_and_how_it_is(tree):
    driver = gpu_driver.Scripted([gpu_driver.gpu(0), gpu_driver.gpu(1)])
    for one in driver.gpus:
        tree.add_gpu(one.bus)
    tree.add_adapter("0000:d8:00.0", "mlx5_0", states=("1: DOWN",))
    found = rows(tree, driver)
    assert found == (
        capability_matrix.Row("gpus", capability_matrix.Verdict.WORKS, "2 found, 2 healthy"),
        capability_matrix.Row("rdma", capability_matrix.Verdict.SUBSTITUTE, "1 found, 0 healthy"),
    )
    assert not driver.open


def test_a_driver_that_is_missing_is_named(tree):
    tree.add_gpu("0000:3b:00.0")
    driver = gpu_driver.Scripted(
        failure=device_inventory.DriverError("no library", gpu_driver.UNLOADED)
    )
    (found,) = rows(tree, driver)
    assert found.verdict is capability_matrix.Verdict.UNAVAILABLE
    assert found.how == "0 found, 0 healthy; no library"


async def test_they_stand_below_the_strategies_of_this_host(tree, tmp_path):
    tree.add_adapter("0000:d8:00.0", "mlx5_0")
    parser = argparse.ArgumentParser()
    node_strategies.add_arguments(parser)
    words = ("--cgroup", str(tmp_path), "--proc", str(tmp_path), "--sys", str(tree.sys))
    chosen = parser.parse_args(words, argparse.Namespace(name=""))
    _, found = await node_strategies.rows(chosen)
    assert found[-1] == capability_matrix.Row(
        "rdma", capability_matrix.Verdict.WORKS, "1 found, 1 healthy"
    )
