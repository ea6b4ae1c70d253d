"""What device plug-ins of vendors read on pods, in the forms that these vendors document."""

import json

import pytest

from api import names
from domain.devices import inventory, plugin_annotations

GIB = 1 << 30
TIMES = (names.ANNOTATION_BIND_TIMESTAMP,)
MINORS = names.ANNOTATION_GPU_MINORS


def gpu(minor, core=50, memory=8 * GIB, template=""):
    amounts = {names.GPU_CORE: core, names.GPU_MEMORY: memory, names.GPU_MEMORY_RATIO: 50}
    held = {name: value for name, value in amounts.items() if value}
    return inventory.Granted(minor, held, template=template, id=f"GPU-{minor}")


def labels(vendor, model=""):
    return {names.LABEL_GPU_VENDOR: vendor, names.LABEL_GPU_MODEL: model}


def metax(*rows):
    devices = [{"uuid": f"GPU-{m}", "compute": core, "vRam": ram} for m, core, ram in rows]
    text = json.dumps([devices], separators=(",", ":"))
    return {"metax-tech.com/gpu-devices-allocated": text}


@pytest.mark.parametrize(
    ("gpus", "marks", "expected"),
    [
        pytest.param([gpu(0)], {}, {MINORS: "0"}, id="unknown vendor"),
        pytest.param([gpu(0), gpu(3)], labels("nvidia"), {MINORS: "0,3"}, id="nvidia"),
        pytest.param(
            [gpu(0), gpu(1)],
            labels("huawei", "Ascend-310P3-300I-DUO"),
            {MINORS: "0,1", "huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1"},
            id="ascend 310P",
        ),
        pytest.param(
            [gpu(0), gpu(1)],
            labels("huawei", "Ascend-910B4"),
            {MINORS: "0,1", "huawei.com/npu-core": "0,1"},
            id="ascend, whole",
        ),
        pytest.param(
            [gpu(2, template="vir05_1c_8g")],
            labels("huawei", "Ascend-910B4"),
            {MINORS: "2", "huawei.com/npu-core": "2-vir05_1c_8g"},
            id="ascend, slice",
        ),
        pytest.param(
            [gpu(1, 30, 4 * GIB + 1)],
            labels("cambricon"),
            {MINORS: "1", "CAMBRICON_DSMLU_ASSIGHED": "false",
             "CAMBRICON_DSMLU_PROFILE": "1_30_16"},
            id="cambricon",
        ),
        pytest.param(
            [gpu(0), gpu(1, 100, 64 * GIB)],
            labels("metax"),
            {MINORS: "0,1", **metax((0, 50, 8192), (1, 100, 65536))},
            id="metax",
        ),
    ],
)  # fmt: skip
def test_each_vendor_reads_its_own_form(gpus, marks, expected):
    found = plugin_annotations.annotations({"gpu": tuple(gpus)}, marks)
    huawei = marks.get(names.LABEL_GPU_VENDOR) == "huawei"
    times = (*TIMES, "predicate-time") if huawei else TIMES
    assert found == plugin_annotations.Annotations(expected, times)


@pytest.mark.parametrize(
    ("vendor", "gpus"),
    [
        pytest.param("cambricon", [gpu(0), gpu(1)], id="cambricon, two devices"),
        pytest.param("cambricon", [gpu(0, core=0)], id="cambricon, no cores"),
        pytest.param("cambricon", [gpu(0, memory=GIB // 4 - 1)], id="cambricon, little memory"),
        pytest.param("metax", [gpu(0), gpu(1, core=0)], id="metax, no cores"),
        pytest.param("metax", [gpu(0, memory=(1 << 20) - 1)], id="metax, little memory"),
    ],
)
def test_what_no_device_plug_in_can_serve_is_refused_by_name(vendor, gpus):
    found = plugin_annotations.annotations({"gpu": tuple(gpus)}, labels(vendor))
    assert isinstance(found, plugin_annotations.Unsupported)
    assert f"Device plug-in of {vendor} serves" in found.reason


def test_adapters_get_the_moment_of_the_bind_alone():
    card = inventory.Granted(0, {names.RDMA: 100})
    found = plugin_annotations.annotations({"rdma": (card,)}, labels("huawei"))
    assert found == plugin_annotations.Annotations({}, TIMES)
