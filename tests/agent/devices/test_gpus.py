"""The GPUs of a node through a driver that does what it is told."""

import pytest

from agent.devices import device_inventory, gpus
from tests.planes.devices import gpu_driver, pci_tree


class World:
    """A host with GPUs and their driver."""

    def __init__(self, folder):
        self.tree = pci_tree.PciTree(folder / "sys")
        self.driver = gpu_driver.Scripted()
        self.loads = 0
        self.gpus = gpus.Gpus(str(self.tree.sys), self.load)
        self.at = 0.0

    def load(self):
        self.loads += 1
        return self.driver

    def add(self, *found):
        for one in found:
            self.tree.add_gpu(one.bus, node=-1 if one.minor == 0 else 1)
            self.driver.gpus.append(one)

    def look(self, seconds=10.0):
        self.at += seconds
        return self.gpus.discover(self.at)

    def reasons(self):
        return [one.verdict and one.verdict.reason for one in self.look().devices]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.gpus.close()
    assert not world.driver.open


def test_a_host_without_gpus_never_loads_a_driver(world):
    world.tree.add("0000:01:00.0", vendor="0x8086", kind="0x030000")
    world.tree.add("0000:02:00.0", vendor="0x10de", kind="0x040300")
    assert world.look() == device_inventory.Found()
    assert world.loads == 0
    assert world.gpus.use() == ()


def test_the_inventory(world):
    world.add(gpu_driver.gpu(1), gpu_driver.gpu(0))
    found = world.look()
    assert found.complete
    assert found.problems == ()
    first, second = found.devices
    assert (first.identity, first.minor, first.healthy, first.verdict) == ("GPU-0", 0, True, None)
    assert first.resources == {
        "koordinator.sh/gpu-core": "100",
        "koordinator.sh/gpu-memory": "80Gi",
        "koordinator.sh/gpu-memory-ratio": "100",
    }
    assert first.place == device_inventory.Place(0, "pci0000:3a", "0000:3b:00.0")
    assert second.place.node == 1
    assert found.labels == {
        "node.koordinator.sh/gpu-vendor": "nvidia",
        "node.koordinator.sh/gpu-model": "A100-SXM4-80GB",
        "node.koordinator.sh/gpu-driver-version": "550.54.15",
    }


def test_many_gpus_of_several_models_have_no_model(world):
    world.add(*(gpu_driver.gpu(n, "Tesla T4" if n % 2 else "NVIDIA L4") for n in range(16)))
    found = world.look()
    assert len(found.devices) == 16
    assert "node.koordinator.sh/gpu-model" not in found.labels
    assert sorted(world.driver.watched) == list(range(16))


def test_a_divided_gpu_is_told_as_a_whole_and_named(world):
    world.add(gpu_driver.gpu(0, divided=True))
    found = world.look()
    assert found.devices[0].healthy
    assert "MIG" in found.problems[0]


@pytest.mark.parametrize("xid", sorted(gpus.APPLICATION_ERRORS))
def test_errors_of_programs_say_nothing_about_the_device(world, xid):
    world.add(gpu_driver.gpu(0))
    world.driver.events.append(device_inventory.Event(xid, "GPU-0"))
    assert world.reasons() == [None]


def test_a_critical_error_stays_until_the_driver_is_loaded_anew(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.look()
    world.driver.events.append(device_inventory.Event(79, "GPU-1"))
    assert world.gpus.use()
    assert world.reasons() == [None, "Xid79"]
    world.driver.events.append(device_inventory.Event(48, "GPU-1"))
    assert world.reasons() == [None, "Xid79"], "the first one counts"
    world.driver.failure = device_inventory.DriverError("Driver Not Loaded", gpu_driver.UNLOADED)
    assert world.reasons() == [None, "Xid79"], "nobody has said that it is better"
    world.driver.failure = None
    assert world.reasons() == [None, None]
    assert world.driver.sessions == 2


def test_an_error_without_a_device_hits_all(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.look()
    world.driver.events.append(device_inventory.Event(92, None))
    assert world.reasons() == ["Xid92", "Xid92"]


def test_an_error_of_a_device_that_nobody_knows_yet_waits_for_it(world):
    world.add(gpu_driver.gpu(0))
    world.driver.events.append(device_inventory.Event(79, "GPU-1"))
    assert world.reasons() == [None]
    world.add(gpu_driver.gpu(1))
    assert world.reasons() == [None, "Xid79"]


@pytest.mark.parametrize("kind", [gpu_driver.UNLOADED, device_inventory.Failure.OTHER])
def test_a_device_that_cannot_be_watched_now_is_asked_again(world, kind):
    world.add(gpu_driver.gpu(0))
    world.driver.refusals = [device_inventory.DriverError("not now", kind)]
    assert "not now" in world.look().problems[0]
    found = world.look()
    assert (found.problems, world.driver.watched) == ((), [0])
    assert found.devices[0].healthy


def test_a_session_that_breaks_heals_nobody(world):
    world.add(gpu_driver.gpu(0))
    world.driver.events.append(device_inventory.Event(79, "GPU-0"))
    assert world.reasons() == ["Xid79"]
    world.driver.broken = device_inventory.DriverError("events: Unknown Error")
    assert world.gpus.use() == ()
    world.driver.broken = None
    assert world.reasons() == ["Xid79"]
    assert world.driver.sessions == 2


def test_the_driver_says_when_a_device_has_recovered(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.driver.actions = {"GPU-0": "NeedsGpuReset", "GPU-1": ""}
    world.driver.events.append(device_inventory.Event(79, "GPU-1"))
    assert world.reasons() == ["NeedsGpuReset", "Xid79"]
    world.driver.actions["GPU-0"] = ""
    assert world.reasons() == [None, "Xid79"], "of the other it never asked for anything"


def test_a_lost_device_stays_in_the_list_and_comes_back(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.look()
    world.driver.lost.add("GPU-1")
    assert [one.identity for one in world.gpus.use()] == ["GPU-0"]
    found = world.look()
    assert [one.healthy for one in found.devices] == [True, False]
    assert found.devices[1].verdict.reason == "Lost"
    assert "lost" in found.problems[0]
    world.driver.lost.clear()
    world.driver.watched.clear()
    assert world.reasons() == [None, None]
    assert world.driver.watched == [1], "it is asked for its errors anew"


def test_a_device_that_was_lost_from_the_start_is_missing(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.driver.lost.add("GPU-1")
    found = world.look()
    assert [one.identity for one in found.devices] == ["GPU-0"]
    assert not found.complete
    assert "2 GPUs are plugged in" in found.problems[1]


def test_one_that_stays_missing_is_not_called_healthy(world):
    world.add(gpu_driver.gpu(0))
    world.driver.lost.add("GPU-0")
    assert not world.look().silent
    assert world.look(gpus.PATIENCE_SECONDS).silent
    world.driver.lost.clear()
    assert not world.look().silent


def test_a_device_of_a_virtual_machine_is_not_missed(world):
    world.add(gpu_driver.gpu(0))
    for bus, driver in (("0000:3b:00.0", "nvidia"), ("0000:5e:00.0", "vfio-pci")):
        folder = world.tree.sys / "bus/pci/devices" / bus
        if driver != "nvidia":
            folder = world.tree.add_gpu(bus)
        (folder / "driver").symlink_to(f"../../bus/pci/drivers/{driver}")
    found = world.look()
    assert (len(found.devices), found.complete, found.problems) == (1, True, ())


def test_a_device_without_events_is_not_trusted(world):
    world.add(gpu_driver.gpu(0))
    world.driver.unwatchable.add("GPU-0")
    assert world.reasons() == [device_inventory.UNWATCHED]
    assert world.reasons() == [device_inventory.UNWATCHED]


def test_a_driver_that_is_not_there_is_asked_again(world):
    world.add(gpu_driver.gpu(0))
    world.driver.failure = device_inventory.DriverError("no library", gpu_driver.UNLOADED)
    first = world.look()
    assert (first.devices, first.complete, first.silent) == ((), False, False)
    assert first.problems == ("no library",)
    assert world.look(gpus.PATIENCE_SECONDS).silent
    world.driver.failure = None
    assert world.look().complete
    assert world.loads == 3


def test_a_driver_that_goes_away_takes_the_health_with_it(world):
    world.add(gpu_driver.gpu(0))
    world.look()
    world.driver.failure = device_inventory.DriverError("gone", gpu_driver.UNLOADED)
    assert world.look().devices[0].healthy, "a driver may be loaded anew"
    found = world.look(gpus.PATIENCE_SECONDS)
    assert found.devices[0].verdict == device_inventory.Verdict(
        False, device_inventory.SILENT, "gone"
    )
    assert found.labels["node.koordinator.sh/gpu-vendor"] == "nvidia"


def test_a_device_that_is_pulled_out_is_forgotten(world):
    world.add(gpu_driver.gpu(0), gpu_driver.gpu(1))
    world.look()
    world.tree.remove("0000:3c:00.0")
    world.driver.gpus.pop()
    assert [one.identity for one in world.look().devices] == ["GPU-0"]


def test_a_package_that_is_missing_is_named(tmp_path):
    def missing():
        raise device_inventory.DriverError("install koord[gpu]", gpu_driver.UNLOADED)

    tree = pci_tree.PciTree(tmp_path / "sys")
    tree.add_gpu("0000:3b:00.0")
    found = gpus.Gpus(str(tree.sys), missing).discover(0.0)
    assert found.problems == ("install koord[gpu]",)


def test_use_goes_on_where_it_stopped(world):
    world.add(gpu_driver.gpu(0))
    world.look()
    world.gpus.use()
    world.gpus.use()
    assert world.driver.asked_since == [0, 1]
