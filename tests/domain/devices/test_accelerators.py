"""What a node offers of its accelerators: the sum over the healthy ones."""

import pathlib
from typing import Any

import pytest
import yaml

from api import names
from api.koordinator import devices
from domain.devices.requests import accelerators

GIB = 1 << 30
MANIFESTS = pathlib.Path(__file__).parents[2] / "manifests"


def gpu(*, health: bool = True, **resources: str) -> dict[str, Any]:
    found = {
        names.GPU_CORE: "100",
        names.GPU_MEMORY_RATIO: "100",
        names.GPU_MEMORY: "80Gi",
        **resources,
    }
    return {"type": "gpu", "health": health, "resources": found}


def rdma(*, health: bool = True) -> dict[str, Any]:
    return {"type": "rdma", "health": health, "resources": {names.RDMA: "100"}}


def fpga(*, health: bool = True) -> dict[str, Any]:
    return {"type": "fpga", "health": health, "resources": {names.FPGA: "100"}}


def found(*items: dict[str, Any], **labels: str) -> accelerators.Inventory:
    marks = {f"node.koordinator.sh/gpu-{key}": value for key, value in labels.items()}
    raw = {"metadata": {"name": "n1", "labels": marks}, "spec": {"devices": list(items)}}
    return accelerators.inventory(devices.read_device(raw))


def test_only_healthy_devices_count() -> None:
    sick = (gpu(health=False), rdma(health=False), fpga(health=False))
    inventory = found(gpu(), gpu(), rdma(), fpga(), fpga(), *sick)
    assert inventory.adapters == {names.RDMA: 100, names.FPGA: 200}
    assert inventory.gpus == {
        names.GPU: 200,
        names.GPU_CORE: 200,
        names.GPU_MEMORY_RATIO: 200,
        names.GPU_MEMORY: 160 * GIB,
        names.GPU_SHARED: 200,
    }


def test_no_healthy_device_is_none() -> None:
    sick = (gpu(health=False), rdma(health=False), fpga(health=False))
    assert found(*sick) == accelerators.NOTHING


def test_devices_written_in_short_count_too() -> None:
    text = (MANIFESTS / "000-device-node-001.yaml").read_text(encoding="utf-8")
    inventory = accelerators.inventory(devices.read_device(yaml.safe_load(text)))
    assert inventory.gpus is not None
    assert inventory.gpus[names.GPU] == 200
    assert inventory.gpus[names.GPU_MEMORY] == 80 * GIB
    assert inventory.adapters == {names.RDMA: 100, names.FPGA: 100}
    assert inventory.labels == {names.LABEL_GPU_MODEL: "nvidia-a100"}


@pytest.mark.parametrize(
    ("vendor", "expected"),
    [
        pytest.param("", True, id="unknown"),
        pytest.param("nvidia", True, id="nvidia"),
        pytest.param("huawei", False, id="huawei"),
    ],
)
def test_the_combined_name_is_for_some_vendors(vendor: str, expected: bool) -> None:
    inventory = found(gpu(), **({"vendor": vendor} if vendor else {}))
    assert inventory.gpus is not None
    assert (names.GPU in inventory.gpus) is expected


def test_labels_that_nodes_carry_too() -> None:
    inventory = found(gpu(), vendor="nvidia", model="a100", other="x")
    assert inventory.labels == {names.LABEL_GPU_VENDOR: "nvidia", names.LABEL_GPU_MODEL: "a100"}


def test_what_is_gone_is_taken_off() -> None:
    wanted = accelerators.offered(accelerators.NOTHING, {names.GPU_CORE: 100}, shared=True)
    assert wanted == dict.fromkeys(accelerators.RESOURCES)


def test_what_devices_do_not_name_stays_as_it_is() -> None:
    wanted = accelerators.offered(found(gpu()), {names.NPU_CORE: 7, names.GPU: 3}, shared=False)
    assert wanted == {
        names.GPU: 100,
        names.GPU_CORE: 100,
        names.GPU_MEMORY_RATIO: 100,
        names.GPU_MEMORY: 80 * GIB,
        names.NPU_CORE: 7,
        names.RDMA: None,
        names.FPGA: None,
    }


def test_slices_are_offered_where_that_is_on() -> None:
    assert accelerators.offered(found(gpu(), gpu()), {}, shared=True)[names.GPU_SHARED] == 200
    assert names.GPU_SHARED not in accelerators.offered(found(gpu()), {}, shared=False)


@pytest.mark.parametrize("left", [None, accelerators.NOTHING], ids=["no Device", "no GPU"])
def test_slices_that_another_controller_offers_stay(left):
    published = {names.GPU_SHARED: 100, names.GPU_CORE: 100}
    assert names.GPU_SHARED not in accelerators.offered(left, published, shared=False)
    assert accelerators.offered(left, published, shared=False)[names.GPU_CORE] is None
    assert accelerators.offered(left, published, shared=True)[names.GPU_SHARED] is None
