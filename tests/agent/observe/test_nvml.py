"""NVML: the real binding on a library that looks like the driver's, and a double of both."""

import ctypes
import importlib.util
import pathlib
import shutil
import subprocess

import pytest

from agent import devices
from agent.observe import gpus, nvml
from tests.planes import pci_tree, pynvml_double

SOURCE = pathlib.Path(__file__).parents[2] / "planes" / "nvml.c"
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
    assert busy == devices.Reading("GPU-0", 10 * GIB, 55.0, (devices.Process(4711, 8 * GIB, 40.0),))
    assert idle == devices.Reading("GPU-1", 0, 0.0, ())
    later, _ = found.use()
    assert later.processes == (devices.Process(4711, 8 * GIB, 0.0),), "no newer sample: idle"


def test_a_divided_gpu_tells_no_share(found, fake):
    fake.gpu[0] = FakeGpu(divided=1, core=55, used=GIB, pid=4711, held=GIB)
    assert "MIG" in found.discover(0.0).problems[0]
    reading = found.use()[0]
    assert reading == devices.Reading("GPU-0", GIB, None, (devices.Process(4711, GIB),))


def test_recovery_as_the_driver_says(found, fake):
    fake.gpu[1].action = 1
    assert reasons(found) == [None, "NeedsGpuReset"]
    fake.gpu[1].action = 99
    assert reasons(found) == [None, "NeedsGpuReset"]
    fake.gpu[1].action = 0
    assert reasons(found) == [None, None]


def test_a_device_that_tells_nothing_of_its_health(found, fake):
    fake.gpu[0].silent = 1
    assert reasons(found) == [devices.UNWATCHED, None]


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
    with pytest.raises(devices.DriverError, match="events"):
        driver.start()
    assert double.sessions == 0


@pytest.mark.parametrize(
    ("method", "function"),
    [("wants", "nvmlDeviceGetFieldValues"), ("facts", "nvmlDeviceGetMigMode")],
)
@pytest.mark.parametrize(
    ("value", "kind"),
    [(999, devices.Failure.OTHER), (15, devices.Failure.LOST), (9, devices.Failure.UNLOADED)],
)
def test_what_a_refusal_means(method, function, value, kind):
    double = pynvml_double.Double(Fake(gpus=1))
    driver = nvml.Nvml(double)
    driver.start()

    def refused(*_):
        raise pynvml_double.NVMLError(value)

    setattr(double, function, refused)
    with pytest.raises(devices.DriverError) as caught:
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
    with pytest.raises(devices.DriverError, match=r"koord\[gpu\]"):
        nvml.load()
