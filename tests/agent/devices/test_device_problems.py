"""What a node lacks of devices stands on its Node, where `koord doctor node NAME` finds it."""

import threading

import pytest

from agent.devices import device_discovery, device_inventory, latest_findings
from agent.host import files
from agent.model import capability_matrix, cgroup_layout
from agent.observe import collectors
from agent.store import time_series
from api import names, resources
from api.kubernetes import crds
from process.runtime import metrics
from tests.agent import test_app
from tests.agent.app_world import NODE
from tests.planes.devices import pci_tree

world = test_app.world
GPU = device_inventory.Device("gpu", "GPU-0", 0, {})


@pytest.mark.parametrize(
    ("devices", "problems", "expected"),
    [
        ((), {}, []),
        ((), {"gpu": "no library"}, ["gpus unavailable no library"]),
        ((GPU,), {"gpu": "one of two"}, ["gpus substitute one of two"]),
        ((GPU,), {"rdma": "no files"}, ["rdma unavailable no files"]),
        ((GPU,), {"xpu": "bad file"}, ["accelerators substitute bad file"]),
        ((GPU,), {"use": "hidden"}, ["device-use substitute hidden"]),
        ((), {"object": "two names"}, ["device-object substitute two names"]),
        ((GPU,), {"look": "hangs"}, ["devices unavailable hangs"]),
        ((), {"gpu": "x" * 5000}, ["gpus unavailable " + "x" * 300]),
    ],
    ids=[
        "nothing", "no driver", "some", "no adapter", "files", "use", "object", "hangs", "long",
    ],
)  # fmt: skip
def test_what_is_lacking(devices, problems, expected):
    latest = latest_findings.Latest()
    latest.inventory, latest.problems = device_inventory.Inventory(devices), problems
    assert [f"{row.strategy} {row.verdict} {row.how}" for row in latest.lacks()] == expected


async def test_a_missing_driver_is_told_on_the_node(world):
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] == "Device":
            world.plane.objects.create(resources.CRDS, definition)
    pci_tree.PciTree(world.tree.sys).add_gpu("0000:3b:00.0")

    def rows():
        node = world.plane.objects.get(resources.NODES, NODE)
        text = (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_STRATEGIES, "{}")
        return {row.strategy: row for row in capability_matrix.read(text)}

    async with world.agent(mode="observe", feature_gates={"Accelerators": True}):
        await world.until_ticking(lambda: "gpus" in rows(), most=90)
    found = rows()
    assert found["gpus"].verdict is capability_matrix.Verdict.UNAVAILABLE
    assert "NVML" in found["gpus"].how
    assert set(capability_matrix.STRATEGIES) <= found.keys()


def test_a_driver_that_hangs_is_told_without_the_time_that_it_takes(tmp_path):
    answer, latest = threading.Event(), latest_findings.Latest()

    def hang():
        answer.wait(30)
        return device_inventory.Found()

    collector = device_discovery.Collector(
        device_discovery.Discovery(device_discovery.Sources(xpus=hang)),
        latest,
        tmp_path,
        metrics.Registry(),
    )

    def collect(at):
        layout = cgroup_layout.Layout("/", 2, "systemd")
        collector.collect(collectors.Sight(at, layout, files.Kept(), time_series.Histories(), ()))

    collect(0.0)
    collect(1.0)
    for at in (10.0, 20.0):
        with pytest.raises(files.ReadingError, match=f"{at:.0f} seconds"):
            collect(at)
        assert latest.problems == {"look": "a driver does not answer"}
    answer.set()
    collector.close()
