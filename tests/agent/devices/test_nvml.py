"""NVML: the real binding on a library that looks like the driver's, and a double of both."""

import ctypes
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from agent.device_daemon.hardware import findings, registry
from agent.devices import device_discovery, device_inventory, device_object, gpus, nvml, pci, rdma
from api.koordinator import devices as wire
from tests.planes.devices import pci_tree, pynvml_double

SOURCE = pathlib.Path(__file__).parents[2] / "planes" / "devices" / "nvml.c"
COMPILER = next((found for name in ("cc", "gcc", "tcc") if (found := shutil.which(name))), None)
GIB = 1 << 30


class FakeGpu(ctypes.Structure):
    """One GPU of the library; the order is that of its source."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("lost", "divided", "silent", "action", "core")),
        ("used", ctypes.c_ulonglong),
        ("pid", ctypes.c_uint),
        ("held", ctypes.c_ulonglong),
        ("share", ctypes.c_uint),
    )


class Fake(ctypes.Structure):
    """What the library answers."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("gpus", "broken", "events", "unused")),
        ("xid", ctypes.c_ulonglong),
        *((name, ctypes.c_uint) for name in ("about", "anonymous", "padding")),
        ("gpu", FakeGpu * 16),
    )


# The binding keeps the library that it has loaded first for as long as the process lives.
@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if importlib.util.find_spec(nvml.PACKAGE) is None:
        pytest.skip(nvml.EXTRA)
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", path, SOURCE],
        check=True,
    )
    # Whoever asks for this name from now on gets what is loaded under it already.
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@pytest.fixture(params=["binding", "double"])
def loaded(request):
    """What is answered, and who asks."""
    if request.param == "double":
        made = Fake()
        return made, lambda: nvml.Nvml(pynvml_double.Double(made))
    found = Fake.in_dll(request.getfixturevalue("library"), "fake")
    ctypes.memset(ctypes.byref(found), 0, ctypes.sizeof(found))
    return found, nvml.load


@pytest.fixture
def fake(loaded):
    found, _ = loaded
    found.gpus = 2
    return found


@pytest.fixture
def found(fake, loaded, tmp_path):
    tree = pci_tree.PciTree(tmp_path / "sys")
    for bus in ("0000:3b:00.0", "0000:3c:00.0"):
        tree.add_gpu(bus)
    found = gpus.Gpus(str(tree.sys), loaded[1])
    yield found
    found.close()


def test_the_device_daemon_labels_what_the_driver_tells(fake, loaded, tmp_path):
    tree = pci_tree.PciTree(tmp_path / "sys")
    for bus in ("0000:3b:00.0", "0000:3c:00.0"):
        tree.add_gpu(bus)
    fake.gpu[1].action = 1
    host = findings.Host(str(tree.sys), "/nowhere", lambda *_: "", loaded[1])
    told = registry.HARDWARE["nvidia"](host, 0.0)
    assert told.labels == {
        "node.koordinator.sh/gpu-vendor": "nvidia",
        "node.koordinator.sh/gpu-model": "A100-SXM4-80GB",
        "node.koordinator.sh/gpu-driver-version": "550.54.15",
    }
    assert [(card.bus, card.identity, card.minor, card.healthy) for card in told.cards] == [
        ("0000:3b:00.0", "GPU-0", 0, True),
        ("0000:3c:00.0", "GPU-1", 1, False),
    ]
    assert told.problems == ()


SWITCHES = (("pci0000:3a", "0000:3a:00.0/0000:70:00.0", 0), ("pci0000:ae", "0000:ae:01.0", 1))


def test_eight_gpus_and_four_adapters_behind_two_switches_become_a_device_object(
    fake, loaded, tmp_path
):
    fake.gpus = 8
    tree = pci_tree.PciTree(tmp_path / "sys")
    for number in range(8):
        root, switch, node = SWITCHES[number // 4]
        port = f"{switch}/0000:{0x80 + number:02x}:10.0"
        tree.add_gpu(f"0000:{0x3B + number:02x}:00.0", node, root=root, below=port)
    for number in range(4):
        root, switch, node = SWITCHES[number // 2]
        functions = [f"0000:{0xC0 + number:02x}:00.{n}" for n in (1, 2)] if number == 3 else ()
        states = ("4: ACTIVE", "1: DOWN") if number == 2 else ("4: ACTIVE",)
        tree.add_adapter(
            f"0000:{0xC0 + number:02x}:00.0", f"mlx5_{number}", states=states,
            functions=functions, node=node, root=root, below=switch,
        )  # fmt: skip
    # A display adapter and a plain network card are no devices to hand out.
    tree.add("0000:01:00.0", vendor="0x1a03", kind="0x030000")
    tree.add("0000:02:00.0", vendor="0x8086", kind="0x020000")
    found = gpus.Gpus(str(tree.sys), loaded[1])
    sources = device_discovery.Sources(found, None, lambda: rdma.discover(str(tree.sys)))
    inventory = device_discovery.Discovery(sources).look(0.0).inventory
    about = device_object.About("node-1", "uid", "2026-01-01T00:00:00Z")
    made = device_object.told(None, inventory, about).object
    found.close()
    listed = wire.read_device(made).spec.devices
    places = {
        (one.type, one.minor): (one.topology.node_id, one.topology.pcie_id, one.topology.bus_id)
        for one in listed
    }
    assert places == {
        ("gpu", n): (n // 4, SWITCHES[n // 4][0], f"0000:{0x3B + n:02x}:00.0") for n in range(8)
    } | {("rdma", n): (n // 2, SWITCHES[n // 2][0], f"0000:{0xC0 + n:02x}:00.0") for n in range(4)}
    assert {one.minor for one in listed if not one.health} == {2}
    assert {one.id for one in listed if one.type == "gpu"} == {f"GPU-{n}" for n in range(8)}
    functions = {one.minor: one.vf_groups for one in listed if one.type == "rdma"}
    assert [vf.bus_id for vf in functions[3][0].vfs] == ["0000:c3:00.1", "0000:c3:00.2"]
    assert not functions[0]


REAL = """
import json
from agent.devices import nvml
driver = nvml.load()
driver.start()
found = [driver.facts(index) for index in range(driver.count())]
print(json.dumps([(one.identity, one.minor, one.memory, one.bus) for one in found]))
driver.stop()
"""


def test_the_driver_of_this_machine_is_understood():
    """In a process of its own: here the library from C has the name of the driver's."""
    if not pathlib.Path("/proc/driver/nvidia/version").exists():
        pytest.skip("no driver of NVIDIA is loaded here (/proc/driver/nvidia/version)")
    if importlib.util.find_spec(nvml.PACKAGE) is None:
        pytest.skip(nvml.EXTRA)
    done = subprocess.run(
        [sys.executable, "-c", REAL], capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(done.stdout)
    assert found, "a driver without GPUs"
    for identity, minor, memory, bus in found:
        assert identity.startswith("GPU-")
        assert minor >= 0
        assert memory >= GIB
        assert pci.ADDRESS.fullmatch(bus)


def reasons(found, at=0.0):
    return [one.verdict and one.verdict.reason for one in found.discover(at).devices]


def test_the_inventory(found):
    told = found.discover(0.0)
    assert told.problems == ()
    assert [(one.identity, one.minor, one.healthy) for one in told.devices] == [
        ("GPU-0", 0, True),
        ("GPU-1", 1, True),
    ]
    assert told.devices[0].resources["koordinator.sh/gpu-memory"] == "80Gi"
    assert told.devices[1].place.bus == "0000:3c:00.0"
    assert told.labels["node.koordinator.sh/gpu-model"] == "A100-SXM4-80GB"
    assert told.labels["node.koordinator.sh/gpu-driver-version"] == "550.54.15"


@pytest.mark.parametrize(
    ("anonymous", "xid", "expected"),
    [(0, 79, [None, "Xid79"]), (1, 79, ["Xid79", "Xid79"]), (0, 31, [None, None])],
    ids=["one device", "nobody in particular", "a program's fault"],
)
def test_events(found, fake, anonymous, xid, expected):
    found.discover(0.0)
    fake.events, fake.xid, fake.about, fake.anonymous = 1, xid, 1, anonymous
    found.use()
    assert reasons(found) == expected


def test_use_and_processes(found, fake):
    fake.gpu[0] = FakeGpu(core=55, used=10 * GIB, pid=4711, held=8 * GIB, share=30)
    found.discover(0.0)
    busy, idle = found.use()
    assert busy == device_inventory.Reading(
        "GPU-0", 10 * GIB, 55.0, (device_inventory.Process(4711, 8 * GIB, 40.0),)
    )
    assert idle == device_inventory.Reading("GPU-1", 0, 0.0, ())
    later, _ = found.use()
    assert later.processes == (device_inventory.Process(4711, 8 * GIB, 0.0),), (
        "no newer sample: idle"
    )


def test_a_divided_gpu_tells_no_share(found, fake):
    fake.gpu[0] = FakeGpu(divided=1, core=55, used=GIB, pid=4711, held=GIB)
    assert "MIG" in found.discover(0.0).problems[0]
    reading = found.use()[0]
    assert reading == device_inventory.Reading(
        "GPU-0", GIB, None, (device_inventory.Process(4711, GIB),)
    )


def test_recovery_as_the_driver_says(found, fake):
    fake.gpu[1].action = 1
    assert reasons(found) == [None, "NeedsGpuReset"]
    fake.gpu[1].action = 99
    assert reasons(found) == [None, "NeedsGpuReset"]
    fake.gpu[1].action = 0
    assert reasons(found) == [None, None]


def test_a_device_that_tells_nothing_of_its_health(found, fake):
    fake.gpu[0].silent = 1
    assert reasons(found) == [device_inventory.UNWATCHED, None]


def test_a_lost_device_and_a_driver_that_goes_and_comes(found, fake):
    found.discover(0.0)
    fake.gpu[1].lost = 1
    assert reasons(found) == [None, "Lost"]
    fake.broken = 9
    told = found.discover(10.0)
    assert not told.complete
    assert "NVML error 9" in told.problems[0]
    fake.broken, fake.gpu[1].lost = 0, 0
    assert reasons(found, 20.0) == [None, None]


@pytest.mark.parametrize(("refused", "used"), [(13, GIB), (3, GIB), (999, None)])
def test_older_drivers_count_what_they_keep(tmp_path, refused, used):
    made = Fake(gpus=1, unused=refused)
    made.gpu[0].used = GIB // 2
    driver = nvml.Nvml(pynvml_double.Double(made))
    driver.start()
    assert driver.use(0, 0)[0].memory == used
    driver.stop()


def test_a_session_without_events_is_ended_again():
    double = pynvml_double.Double(Fake(gpus=1))

    def refused():
        raise pynvml_double.NVMLError(999)

    double.nvmlEventSetCreate = refused
    driver = nvml.Nvml(double)
    with pytest.raises(device_inventory.DriverError, match="events"):
        driver.start()
    assert double.sessions == 0


@pytest.mark.parametrize(
    ("method", "function"),
    [("wants", "nvmlDeviceGetFieldValues"), ("facts", "nvmlDeviceGetMigMode")],
)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (999, device_inventory.Failure.OTHER),
        (15, device_inventory.Failure.LOST),
        (9, device_inventory.Failure.UNLOADED),
    ],
)
def test_what_a_refusal_means(method, function, value, kind):
    double = pynvml_double.Double(Fake(gpus=1))
    driver = nvml.Nvml(double)
    driver.start()

    def refused(*_):
        raise pynvml_double.NVMLError(value)

    setattr(double, function, refused)
    with pytest.raises(device_inventory.DriverError) as caught:
        getattr(driver, method)(0)
    assert caught.value.kind is kind


def test_a_driver_that_never_says_what_it_wants():
    double = pynvml_double.Double(Fake(gpus=1))
    driver = nvml.Nvml(double)
    driver.start()

    def refused(*_):
        raise pynvml_double.NVMLError(13)

    double.nvmlDeviceGetFieldValues = refused
    assert driver.wants(0) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("00010000:3B:00.0", "10000:3b:00.0"),
        ("odd", "odd"),
    ],
)
def test_addresses_as_the_kernel_writes_them(text, address):
    assert nvml.bus(text) == address


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(nvml, "PACKAGE", "no_such_package_of_nvidia")
    with pytest.raises(device_inventory.DriverError, match=r"koord\[gpu\]"):
        nvml.load()
