"""Which device requests are legal, what they mean, and over how many GPUs they are spread."""

import pytest

from api import names
from domain.devices.allocation import gpus as admission
from domain.devices.requests import requests

GIB = 2**30
CORE, RATIO, MEMORY = names.GPU_CORE, names.GPU_MEMORY_RATIO, names.GPU_MEMORY


@pytest.mark.parametrize(
    ("asked", "count", "per_gpu", "shared"),
    [
        pytest.param({names.NVIDIA_GPU: 2}, 2, {CORE: 100, RATIO: 100}, False, id="vendor"),
        pytest.param({names.GPU: 50}, 1, {CORE: 50, RATIO: 50}, True, id="half"),
        pytest.param({names.GPU: 800}, 8, {CORE: 100, RATIO: 100}, False, id="machine"),
        pytest.param(
            {names.GPU_SHARED: 2, RATIO: 100, CORE: 100},
            2,
            {CORE: 50, RATIO: 50},
            True,
            id="two-halves",
        ),
        pytest.param({MEMORY: 8 * GIB}, 1, {MEMORY: 8 * GIB}, True, id="memory"),
        pytest.param(
            {names.GPU_SHARED: 2, MEMORY: 8 * GIB}, 2, {MEMORY: 4 * GIB}, True, id="memory-of-two"
        ),
        pytest.param({CORE: 200, MEMORY: GIB}, 1, {CORE: 200, MEMORY: GIB}, True, id="fits-no-gpu"),
        pytest.param(
            {names.NPU_CORE: 20, RATIO: 100}, 1, {names.NPU_CORE: 20, RATIO: 100}, False, id="npu"
        ),
    ],
)
def test_gpus_are_counted_and_divided(asked, count, per_gpu, shared):
    found = requests.gpus(requests.normalised(asked)["gpu"])
    assert (found.count, found.per_gpu, found.shared) == (count, per_gpu, shared)


@pytest.mark.parametrize(
    ("asked", "names_it"),
    [
        pytest.param({names.GPU: 150}, "invalid resource unit koordinator.sh/gpu: 150", id="gpu"),
        pytest.param({names.RDMA: 101}, names.RDMA, id="rdma"),
        pytest.param({CORE: 50}, CORE, id="cores-alone"),
        pytest.param({names.GPU_SHARED: 3, RATIO: 100}, names.GPU_SHARED, id="uneven"),
        pytest.param({names.GPU_SHARED: 1, RATIO: 200}, RATIO, id="more-than-one-gpu-has"),
        pytest.param({names.NVIDIA_GPU: 1, names.GPU: 100}, names.NVIDIA_GPU, id="twice"),
        pytest.param(
            {names.GPU_SHARED: 2, names.NPU_CORE: 5, names.NPU_CPU: 1, MEMORY: GIB},
            names.NPU_CPU,
            id="slices-of-two",
        ),
    ],
)
def test_other_combinations_are_refused_by_name(asked, names_it):
    found = requests.normalised(asked)
    assert isinstance(found, requests.Fault)
    assert names_it in found.reason


def test_pods_without_devices_ask_for_none():
    assert requests.normalised({"cpu": 1000, names.RDMA: 0}) == {}


@pytest.mark.parametrize("written", ["50", "100", "400"])
def test_admission_rewrites_gpus_to_what_means_the_same(written):
    """What the webhook stores asks for as many GPUs, and for as much of each, as the original."""
    rewritten = admission.normalised(admission.Asked({names.GPU: written}, {}))
    stored = {name: int(value) for name, value in rewritten.requests.items()}
    before = requests.gpus(requests.normalised({names.GPU: int(written)})["gpu"])
    assert requests.gpus(requests.normalised(stored)["gpu"]) == before
