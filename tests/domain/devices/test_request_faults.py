"""Every illegal device request has a sentence that names the resource and the remedy."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from api import names
from domain.devices import pod_devices
from domain.devices.requests import request_faults, requests
from tests import draws

CORE, RATIO, MEMORY = names.GPU_CORE, names.GPU_MEMORY_RATIO, names.GPU_MEMORY
SHARED, NPU = names.GPU_SHARED, names.NPU_CORE
REMEDIES = ("leave out", "leave it out", "keep one", "add ", "ask for", "set ")
VALUES = st.sampled_from((0, 1, 2, 3, 50, 100, 150, 200, 250, 300, 1 << 33))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        pytest.param({names.GPU: 150}, f"{names.GPU}: 150 is above 100", id="gpu"),
        pytest.param(
            {names.NVIDIA_GPU: 1, CORE: 50},
            f"{names.NVIDIA_GPU} asks for whole GPUs; leave out {CORE}",
            id="vendor-and-share",
        ),
        pytest.param(
            {names.GPU: 50, MEMORY: 1 << 30}, f"{names.GPU} asks for cores and memory", id="twice"
        ),
        pytest.param({CORE: 50}, f"{CORE} without memory; add {MEMORY}", id="cores-alone"),
        pytest.param({SHARED: 1}, f"{SHARED} without memory", id="count-alone"),
        pytest.param({MEMORY: 1, RATIO: 1}, "say the same in two ways", id="memory-twice"),
        pytest.param({CORE: 50, RATIO: 150}, f"{RATIO}: 150 is above 100", id="ratio"),
        pytest.param({SHARED: 2, RATIO: 75}, "does not divide by the 2 GPUs", id="uneven"),
        pytest.param({SHARED: 2, RATIO: 300}, "ask for at most 200", id="more-than-shared"),
        pytest.param({NPU: 5}, "ask for huawei.com/npu-core and", id="npu-alone"),
        pytest.param({names.NPU_CPU: 1}, "is no part of an NPU", id="npu-cpu-alone"),
        pytest.param(
            {NPU: 5, names.NPU_CPU: 1, MEMORY: 8, SHARED: 2}, f"set {SHARED} to 1", id="two-slices"
        ),
        pytest.param({NPU: 5, MEMORY: 8}, f"without {names.NPU_CPU}; add it", id="half-a-slice"),
        pytest.param(
            {NPU: 5, names.NPU_CPU: 1, MEMORY: 8, SHARED: 1, names.NPU_DVPP: 101},
            f"{names.NPU_DVPP}: 101 is above 100",
            id="dvpp",
        ),
        pytest.param({NPU: 20, RATIO: 100, CORE: 1}, f"leave out {CORE}", id="npu-and-cores"),
        pytest.param({names.RDMA: 150}, f"{names.RDMA}: 150", id="rdma"),
        pytest.param({names.FPGA: 250}, "ask for 200 or 300", id="fpga"),
    ],
)
def test_sentences(asked, sentence):
    found = request_faults.faults(asked)
    assert any(sentence in text for text in found), found
    assert all(text.startswith(request_faults.FIELD) for text in found)


@hypothesis.settings(max_examples=draws.at_least(200))
@hypothesis.given(st.dictionaries(st.sampled_from(sorted(requests.RESOURCES)), VALUES, max_size=6))
def test_there_is_a_remedy_exactly_where_a_request_is_illegal(asked):
    illegal = isinstance(requests.normalised(asked), requests.Fault)
    found = request_faults.faults(asked)
    assert bool(found) is illegal
    for text in found:
        assert any(name in text for name in asked)
        assert any(remedy in text for remedy in REMEDIES)


def test_every_pair_of_names_is_legal_or_has_a_remedy():
    for pair in itertools.combinations(sorted(requests.RESOURCES), 2):
        asked = dict.fromkeys(pair, 100)
        illegal = isinstance(requests.normalised(asked), requests.Fault)
        assert bool(request_faults.faults(asked)) is illegal, pair


@pytest.mark.parametrize(
    ("asked", "metadata", "doubt"),
    [
        pytest.param({names.GPU: 50}, {}, "", id="none"),
        pytest.param(
            {names.GPU: 50},
            {names.ANNOTATION_DEVICE_HINT: '{"rdma":{}}'},
            "asks for no rdma",
            id="hint-without-request",
        ),
        pytest.param(
            {names.GPU: 200},
            {names.ANNOTATION_DEVICE_HINT: '{"gpu":{"requiredTopologyScope":"Device"}}'},
            "use PCIe",
            id="scope-that-is-never-met",
        ),
        pytest.param(
            {names.RDMA: 2},
            {names.ANNOTATION_DEVICE_HINT: '{"rdma":{"exclusivePolicy":"DeviceLevel"}}'},
            "RequestsAsCount only",
            id="exclusive-without-count",
        ),
        pytest.param(
            {names.GPU: 50},
            {names.ANNOTATION_GPU_PARTITION_SPEC: "{}"},
            "ask for whole ones",
            id="partition-of-a-share",
        ),
        pytest.param(
            {names.GPU: 50},
            {names.LABEL_GPU_ISOLATION_PROVIDER: "hami-core"},
            "write HAMi-core",
            id="isolation",
        ),
    ],
)
def test_what_has_no_effect_is_doubted(asked, metadata, doubt):
    found = list(request_faults.doubts(pod_devices.read(asked, metadata)))
    assert [doubt in text for text in found] == [True] * bool(doubt)
