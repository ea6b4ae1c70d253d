"""RDMA adapters of generated hosts."""

import pytest

from agent.devices import device_inventory, rdma
from tests.planes.devices import pci_tree


@pytest.fixture
def tree(tmp_path):
    return pci_tree.PciTree(tmp_path / "sys")


def discover(tree):
    return rdma.discover(str(tree.sys))


def test_a_host_without_pci_has_none(tmp_path):
    assert rdma.discover(str(tmp_path / "nothing")) == device_inventory.Found()


def test_an_adapter_with_its_virtual_functions(tree):
    functions = ("0000:d8:00.3", "0000:d8:00.2")
    tree.add_adapter("0000:d8:00.0", "mlx5_2", functions=functions)
    (found,) = discover(tree).devices
    assert found == device_inventory.Device(
        "rdma",
        "0000:d8:00.0",
        2,
        {"koordinator.sh/rdma": "100"},
        place=device_inventory.Place(1, "pci0000:3a", "0000:d8:00.0"),
        functions=functions,
    )


def test_only_network_devices_with_an_rdma_interface_count(tree):
    tree.add("0000:01:00.0", vendor="0x8086", kind="0x020000")
    other = tree.add("0000:02:00.0", vendor="0x8086", kind="0x010802")
    (other / "infiniband" / "mlx5_0").mkdir(parents=True)
    tree.add_adapter("0000:03:00.0", "bnxt_re0")
    (found,) = discover(tree).devices
    assert (found.identity, found.minor) == ("0000:03:00.0", None)


@pytest.mark.parametrize(
    ("states", "healthy"),
    [
        (("4: ACTIVE",), True),
        (("4: ACTIVE", "4: ACTIVE"), True),
        (("4: ACTIVE", "1: DOWN"), False),
        (("2: INIT",), False),
        ((), False),
    ],
    ids=["one", "both", "one of two", "not yet", "no port"],
)
def test_every_port_has_to_be_active(tree, states, healthy):
    tree.add_adapter("0000:d8:00.0", "mlx5_0", states=states)
    (found,) = discover(tree).devices
    assert found.healthy is healthy


def test_what_the_kernel_does_not_say_is_left_out(tree):
    folder = tree.add_adapter("0000:d8:00.0", "mlx5_0", functions=("0000:d8:00.2",))
    (folder / "numa_node").unlink()
    (folder / "virtfn1").mkdir()
    (folder / "virtfn2").symlink_to("elsewhere")
    (found,) = discover(tree).devices
    assert (found.place, found.functions) == (None, ("0000:d8:00.2",))
    (folder / "sriov_numvfs").write_text("many")
    assert discover(tree).devices[0].functions == ()
    (folder / "sriov_numvfs").unlink()
    assert discover(tree).devices[0].functions == ()


def test_an_adapter_that_cannot_be_read_hides_no_other(tree):
    tree.add_adapter("0000:d8:00.0", "mlx5_0")
    broken = tree.add_adapter("0000:d9:00.0", "mlx5_1")
    (broken / "class").unlink()
    (broken / "class").mkdir()
    found = discover(tree)
    assert [one.identity for one in found.devices] == ["0000:d8:00.0"]
    assert not found.complete
    assert "0000:d9:00.0/class" in found.problems[0]


def test_one_that_goes_while_it_is_read_is_no_problem(tree):
    gone = tree.add_adapter("0000:d9:00.0", "mlx5_1")
    (gone / "class").unlink()
    assert discover(tree) == device_inventory.Found()


def test_verbs_interfaces(tree):
    tree.add_adapter("0000:d8:00.0", "mlx5_0")
    tree.add("0000:01:00.0", vendor="0x8086", kind="0x020000")
    assert rdma.verbs(str(tree.sys)) == {"0000:d8:00.0": "uverbs0"}
