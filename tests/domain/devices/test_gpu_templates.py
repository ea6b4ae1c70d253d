"""Slices of NPUs are given by the template of the node's model that says exactly what is asked."""

import pathlib

import pytest

from api import names
from domain.devices.requests import gpu_templates, requests
from domain.scheduler_settings import bounded_yaml

SHIPPED = pathlib.Path(__file__).parents[3] / "deploy" / "helm" / "koord" / "files"
GIB = 1 << 30
MATCHED = (names.NPU_CORE,)


@pytest.fixture(scope="module")
def shipped():
    return gpu_templates.read(bounded_yaml.parse((SHIPPED / "gpu-templates.yaml").read_text()))


def slice_of(core, cpu, gib, dvpp=0):
    asked = {names.NPU_CORE: core, names.NPU_CPU: cpu, names.GPU_MEMORY: gib * GIB}
    asked |= {names.GPU_SHARED: 1} | ({names.NPU_DVPP: dvpp} if dvpp else {})
    return requests.gpus(requests.normalised(asked)["gpu"])


@pytest.mark.parametrize(
    ("gpu", "found"),
    [
        pytest.param(
            slice_of(5, 1, 8, 25), (("huawei-Ascend-910B4", ("vir05_1c_8g",)),), id="one-model"
        ),
        pytest.param(
            slice_of(4, 3, 12),
            tuple((f"huawei-Ascend-{one}", ("vir04_3c_ndvpp",)) for one in ("310P", "310P3")),
            id="two-models",
        ),
        pytest.param(slice_of(5, 1, 9, 25), (), id="no-such-size"),
        pytest.param(slice_of(5, 1, 8), (), id="without-dvpp"),
        pytest.param(
            requests.gpus({names.NPU_CORE: 20, names.GPU_MEMORY_RATIO: 100}), None, id="whole"
        ),
        pytest.param(requests.gpus({names.GPU_MEMORY: GIB}), None, id="another-resource"),
        pytest.param(None, None, id="no-gpu"),
    ],
)
def test_templates_are_matched_exactly(shipped, gpu, found):
    assert gpu_templates.matching(shipped, gpu, MATCHED) == found


def test_all_shipped_models_are_read(shipped):
    counts = {model: len(known) for model, known in shipped.by_model.items()}
    assert counts == {
        "huawei-Ascend-310P": 7,
        "huawei-Ascend-310P3": 7,
        "huawei-Ascend-910": 4,
        "huawei-Ascend-910B1": 3,
        "huawei-Ascend-910B2": 3,
        "huawei-Ascend-910B2C": 3,
        "huawei-Ascend-910B3": 2,
        "huawei-Ascend-910B4": 4,
    }


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        pytest.param([], "VENDOR-MODEL as its keys", id="list"),
        pytest.param({"a": 1}, "a: write the name of each template", id="no-templates"),
        pytest.param({"a": {"b": {"c": "much"}}}, "a: ", id="no-quantity"),
        pytest.param({"a": {str(n): {} for n in range(5000)}}, "more than 4096", id="too-many"),
    ],
)
def test_what_cannot_be_read_is_named(written, wrong):
    with pytest.raises(ValueError, match=wrong):
        gpu_templates.read(written)
