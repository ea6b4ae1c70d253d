"""Annotations are read, and remembered, within bounds."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import eviction
from agent.decide.strategies import memory_qos
from agent.hooks import batch_resources, oom_score, resctrl
from agent.hooks.cpu import cpu_burst, group_identity
from agent.hooks.devices import gpu_env, rdma_devices
from agent.hooks.network import bandwidth
from agent.model import annotations, blkio_annotation
from agent.model.cpus import reserved_cpus, resource_status
from agent.store import peaks
from api import names
from api.koordinator.settings import strategies as wire
from api.kubernetes import core
from tests.agent import conftest

DEEP = '{"x":' + "[" * 3000 + "]" * 3000 + "}"
UNBOUNDED = "9" * 4000
POISON = {
    "three thousand levels": DEEP,
    "levels in a known field": DEEP.replace('"x"', '"policy"'),
    "levels never closed": '{"x":' * 5000,
    "numbers of 4000 digits": json.dumps(
        dict.fromkeys(
            [
                *("cpuBurstPercent", "cfsQuotaBurstPercent", "cfsQuotaBurstPeriodSeconds"),
                *("minLimitPercent", "groupIdentity", "app"),
            ],
            0,
        )
    ).replace(" 0", UNBOUNDED),
    "another shape": "[1]",
    "a text": '"x"',
    "nothing": "null",
    "not JSON": "{",
    "lone surrogate": '{"policy":"\ud800"}',
    "256 KiB": '{"x":"' + "y" * (256 << 10) + '"}',
    "many entries": '{"containers":{' + ",".join(f'"c{i}":{{}}' for i in range(9000)) + "}}",
    "long cpu list": json.dumps({"cpuset": "0-4096," * 3600 + "x"}),
    "quantities": '{"ingressLimit":"1e999999999","egressLimit":"-5"}',
}
ERRORS = (
    annotations.ReadError,
    bandwidth.BandwidthError,
    resource_status.StatusError,
    group_identity.IdentityError,
    gpu_env.AllocationError,
    rdma_devices.AllocationError,
)
"""What readers say instead of an answer."""


def _container(text):
    return gpu_env.Container({}, {names.ANNOTATION_DEVICE_ALLOCATED: text})


def _pod(placed, key, text):
    return placed(annotations={key: text})


def _node(text):
    keys = (
        *(names.ANNOTATION_NODE_RESERVATION, names.ANNOTATION_SYSTEM_QOS),
        *(names.ANNOTATION_CPU_MANAGER_POLICY, names.ANNOTATION_RAW_ALLOCATABLE),
    )
    raw = {"metadata": {"name": "n", "annotations": dict.fromkeys(keys, text)}}
    return msgspec.convert(raw, core.Node)


READERS = {
    "cpuBurst": lambda p, text: cpu_burst.overridden(
        cpu_burst.strategy_settings.Burst(), _pod(p, names.ANNOTATION_CPU_BURST, text)
    ),
    "memoryQOS": lambda p, text: memory_qos.of_pod(_pod(p, names.ANNOTATION_MEMORY_QOS, text), {}),
    "resctrl": lambda p, text: resctrl._wish(_pod(p, names.ANNOTATION_RESCTRL, text)),
    "networkQOS": lambda p, text: bandwidth.of_pod(_pod(p, names.ANNOTATION_NETWORK_QOS, text)),
    "extended-resource-spec": lambda p, text: batch_resources.extended(
        _pod(p, names.ANNOTATION_EXTENDED_RESOURCE_SPEC, text).pod, from_spec=False
    ),
    "resource-status": lambda _, text: resource_status.read(text),
    "bound cpus": lambda p, text: reserved_cpus.claimed_cpus(
        _pod(p, names.ANNOTATION_RESOURCE_STATUS, text).pod
    ),
    "cpuQOS": lambda _, text: group_identity.of_pod(
        group_identity.Rule(True, {}, 0),
        group_identity.qos.QoS.LS,
        "Burstable",
        {names.ANNOTATION_CPU_QOS: text},
    ),
    "oom-score-adj-spec": lambda _, text: oom_score.of_container(
        {names.ANNOTATION_OOM_SCORE_ADJ_SPEC: text}, "app"
    ),
    "oom-score-adj": lambda _, text: oom_score.of_container(
        {names.ANNOTATION_OOM_SCORE_ADJ: text}, "app"
    ),
    "blkioQOS": lambda _, text: blkio_annotation.read(text),
    "eviction-policy": lambda p, text: eviction.allows(
        _pod(p, names.ANNOTATION_EVICTION_POLICY, text), "BECPUEvict"
    ),
    "gpu": lambda _, text: gpu_env.injection(_container(text)),
    "rdma": lambda _, text: rdma_devices.addresses({names.ANNOTATION_DEVICE_ALLOCATED: text}),
    "node": lambda _, text: reserved_cpus.read(_node(text)),
    "raw allocatable": lambda _, text: peaks.offered(_node(text)),
}


def read(reader, placed, text):
    try:
        return READERS[reader](placed, text)
    except ERRORS as error:
        return str(error)


@pytest.mark.parametrize("text", POISON.values(), ids=POISON)
@pytest.mark.parametrize("reader", READERS)
def test_no_annotation_makes_a_reader_fail_or_take_long(placed, reader, text):
    seconds = []
    for number in range(3):
        # Spaces make it another text, which nobody remembers.
        begin = time.thread_time()
        read(reader, placed, text + " " * number)
        seconds.append(time.thread_time() - begin)
    assert min(seconds) < 0.02


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
MODELS = (wire.CPUBurst, wire.MemoryQOS, wire.CPUQOS, wire.BlkIOQOS, wire.ResctrlQOS)
FIELDS = [
    *(field.alias or name for model in MODELS for name, field in model.model_fields.items()),
    *("cpuset", "numaNodeResources", "containers", "llc", "mb", "gpu", "rdma", "blocks", "app"),
]


@pytest.mark.parametrize("reader", READERS)
@given(value=st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=4) | ANY)
def test_no_generated_annotation_makes_a_reader_fail(reader, value):
    read(reader, conftest.Placed(), json.dumps(value))


def test_what_is_remembered_is_bounded_in_characters():
    made = []
    reader = annotations.Reader("a", dict[str, str], lambda value: made.append(1) or len(value))
    for number in range(2000):
        reader(json.dumps({"x": f"{number:05}" * 300}))
    assert reader.characters <= annotations.REMEMBERED_CHARACTERS
    newest = json.dumps({"x": "01999" * 300})
    before = len(made)
    assert reader(newest) == 1
    assert len(made) == before
    assert reader(json.dumps({"x": "00000" * 300})) == 1
    assert len(made) == before + 1


def test_a_text_that_is_too_long_is_not_remembered():
    reader = annotations.Reader("a", dict[str, str], len)
    with pytest.raises(annotations.ReadError, match="annotation a: 200008 bytes are more than"):
        reader('{"x":"' + "y" * 200_000 + '"}')
    assert reader.characters == 0


def test_what_cannot_be_read_is_remembered_as_well():
    made = []

    def refuse(value):
        made.append(value)
        raise ValueError("never")

    reader = annotations.Reader("a", dict[str, int], refuse)
    for _ in range(3):
        with pytest.raises(annotations.ReadError, match="annotation a: never"):
            reader("{}")
    assert len(made) == 1
