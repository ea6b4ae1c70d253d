"""Every annotation with a structure is read and written by type."""

import json

import pytest

from api import names
from api.koordinator.metadata import annotations, payloads
from api.wire import base

EXAMPLES = [
    (
        annotations.EXTENDED_RESOURCE_SPEC,
        (
            '{"containers":{"worker":{"limits":{"kubernetes.io/batch-cpu":"4k"},'
            '"requests":{"kubernetes.io/batch-cpu":"2k"}}}}'
        ),
    ),
    (
        annotations.CPU_BURST,
        (
            '{"cfsQuotaBurstPercent":150,"cfsQuotaBurstPeriodSeconds":120,"cpuBurstPercent":200,'
            '"policy":"auto"}'
        ),
    ),
    (annotations.CPU_QOS, '{"groupIdentity":1}'),
    (annotations.MEMORY_QOS, '{"policy":"auto","throttlingPercent":80,"wmarkRatio":90}'),
    (
        annotations.BLKIO_QOS,
        (
            '{"blocks":[{"ioCfg":{"readIOPS":2000,"writeBPS":52428800},"name":"data-volume",'
            '"type":"podvolume"}]}'
        ),
    ),
    (annotations.NETWORK_QOS, '{"egressLimit":"50M","ingressLimit":"100M"}'),
    (
        annotations.RESCTRL,
        (
            '{"llc":{"schemata":{"range":[0,40]}},"mb":{"schemata":{"percent":50},'
            '"schemataPerCache":[{"cacheID":1,"percent":30}]}}'
        ),
    ),
    (annotations.OOM_SCORE_ADJ_SPEC, '{"container":-500}'),
    (annotations.EVICTION_POLICY, '["BECPUEvict","MemoryEvict"]'),
    (
        annotations.RESOURCE_SPEC,
        '{"preferredCPUBindPolicy":"FullPCPUs","preferredCPUExclusivePolicy":"PCPULevel"}',
    ),
    (
        annotations.RESOURCE_STATUS,
        (
            '{"cpuset":"4-7,52-55","numaNodeResources":[{"node":0,"resources":{"cpu":"8",'
            '"memory":"16Gi"}}]}'
        ),
    ),
    (
        annotations.NUMA_TOPOLOGY_SPEC,
        '{"numaTopologyPolicy":"SingleNUMANode","singleNUMANodeExclusive":"Required"}',
    ),
    (annotations.LOAD_SCALING_FACTORS, '{"cpu":85,"memory":70}'),
    (
        annotations.SCHEDULING_HINT,
        '{"extensions":{"NodeNUMAResource":{}},"preferredNodeNames":["n3","n7"]}',
    ),
    (
        annotations.GANG_NETWORK_TOPOLOGY,
        (
            '{"gatherStrategy":[{"layer":"RackLayer","strategy":"PreferGather"},'
            '{"layer":"SpineLayer","podCountMultiple":8,"strategy":"MustGather"}]}'
        ),
    ),
    (annotations.GANG_GROUPS, '["ns/gangA","ns/gangB"]'),
    (
        annotations.RESERVATION_AFFINITY,
        (
            '{"requiredDuringSchedulingIgnoredDuringExecution":{"reservationSelectorTerms":'
            '[{"matchExpressions":[{"key":"team","operator":"In","values":["ads"]}]}]},'
            '"tolerations":[{"key":"maintenance","operator":"Exists"}]}'
        ),
    ),
    (annotations.RESERVATION_ALLOCATED, '{"name":"r1","uid":"1"}'),
    (annotations.RESERVATION_RESTRICTED, '{"resources":["cpu","memory"]}'),
    (annotations.EXACT_MATCH_RESERVATION, '{"resourceNames":["cpu"]}'),
    (annotations.RESERVATION_OWNERS, '[{"labelSelector":{"matchLabels":{"a":"b"}}}]'),
    (annotations.RESERVATION_CURRENT_OWNER, '{"name":"p","namespace":"d"}'),
    (annotations.RESERVATION_RESIZE, '{"resources":{"koordinator.sh/gpu-memory":"80Gi"}}'),
    (
        annotations.DEVICE_ALLOCATED,
        (
            '{"gpu":[{"id":"GPU-5f0c","minor":2,"resources":{"koordinator.sh/gpu-core":"50"}}],'
            '"rdma":[{"extension":{"vfs":[{"busID":"0000:3b:00.4","minor":3}]},"id":"0000:3b:00.0",'
            '"minor":0,"resources":{"koordinator.sh/rdma":"1"}}]}'
        ),
    ),
    (
        annotations.DEVICE_HINTS,
        (
            '{"gpu":{"requiredTopologyScope":"NUMANode"},"rdma":{"allocateStrategy":"ApplyForAll",'
            '"selector":{"matchLabels":{"nic":"storage"}},"vfSelector":{}}}'
        ),
    ),
    (annotations.DEVICE_JOINT, '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'),
    (
        annotations.GPU_PARTITION_SPEC,
        '{"allocatePolicy":"Restricted","ringBusBandwidth":"200Gi"}',
    ),
    (
        annotations.GPU_PARTITIONS,
        (
            '{"1":[{"minors":[0]},{"minors":[1]}],"2":[{"allocationScore":2,"gpuLinkType":"NVLink",'
            '"minors":[0,1],"ringBusBandwidth":"300Gi"}]}'
        ),
    ),
    (
        annotations.NODE_RESERVATION,
        '{"applyPolicy":"Default","reservedCPUs":"0-3","resources":{"memory":"4Gi"}}',
    ),
    (annotations.SYSTEM_QOS, '{"cpuset":"0-1","cpusetExclusive":true}'),
    (annotations.AMPLIFICATION, '{"cpu":1.5,"memory":1.2}'),
    (annotations.RAW_ALLOCATABLE, '{"cpu":"16","memory":"64Gi"}'),
    (
        annotations.USAGE_THRESHOLDS,
        (
            '{"aggregatedUsage":{"usageAggregatedDuration":"10m0s","usageAggregationType":"p95",'
            '"usageThresholds":{"cpu":60}},"usageThresholds":{"cpu":75}}'
        ),
    ),
    (annotations.ORIGIN_ALLOCATABLE, '{"resources":{"kubernetes.io/batch-cpu":"25k"}}'),
    (
        annotations.THIRD_PARTY,
        (
            '{"allocations":[{"name":"hadoop-yarn","priority":"koord-batch",'
            '"resources":{"kubernetes.io/batch-cpu":"6k"}}]}'
        ),
    ),
    (annotations.COLOCATION_STRATEGY, '{"cpuReclaimThresholdPercent":70}'),
    (annotations.CPU_TOPOLOGY, '{"detail":[{"core":0,"id":0,"node":0,"socket":0}]}'),
    (
        annotations.POD_CPU_ALLOCS,
        '[{"cpuset":"0-1","managedByKubelet":true,"name":"p","namespace":"d","uid":"u"}]',
    ),
    (annotations.POD_CPU_ALLOCS, "null"),
    (annotations.CPU_SHARED_POOLS, '[{"cpuset":"0-3","node":0,"socket":0}]'),
    (
        annotations.CPU_MANAGER_POLICY,
        '{"options":{"full-pcpus-only":"true"},"policy":"static","reservedCPUs":"0-1"}',
    ),
    (
        annotations.CPU_BASIC_INFO,
        (
            '{"catL3CbmMask":"fff","cpuModel":"X","hyperThreadEnabled":true,"turboEnabled":true,'
            '"vendorID":"v"}'
        ),
    ),
    (annotations.QUOTA_WEIGHT, '{"cpu":"1","memory":"1Gi"}'),
    (annotations.QUOTA_NAMESPACES, '["a","b"]'),
    (
        annotations.SOFT_EVICTION,
        (
            '{"deleteOptions":{"gracePeriodSeconds":60},"initiator":"LowNodeLoad",'
            '"reason":"node is overutilized","timestamp":"2026-03-01T08:00:00Z"}'
        ),
    ),
    (
        annotations.PLACEMENT,
        (
            '{"at":"2026-03-01T08:00:00Z","granted":{"x":{"a":1}},"id":"i","node":"n","reasons":["r"],'
            '"v":1}'
        ),
    ),
]


@pytest.mark.parametrize(
    ("payload", "text"), EXAMPLES, ids=[f"{payload.key}-{len(text)}" for payload, text in EXAMPLES]
)
def test_a_value_reads_and_writes_back(payload, text):
    value = payload.read({payload.key: text})
    assert payload.text(value) == text
    assert payload.entry(value) == {payload.key: text}
    assert payload.read({}) is None
    with pytest.raises(base.ReadError, match=f"annotation {payload.key}"):
        payload.read({payload.key: "{"})


def test_names_count_without_case_and_map_keys_with():
    text = '{"IngressLimit":"1M","EGRESSLIMIT":"2M"}'
    read = annotations.NETWORK_QOS.read({names.ANNOTATION_NETWORK_QOS: text})
    assert read == payloads.NetworkQOS(ingress_limit="1M", egress_limit="2M")
    key = names.ANNOTATION_RAW_ALLOCATABLE
    assert annotations.RAW_ALLOCATABLE.read({key: '{"CPU":1}'}) == {"CPU": "1"}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (annotations.BLKIO_QOS, "default"),
        (annotations.RESERVATION_AFFINITY, "default"),
        (annotations.RESERVATION_RESTRICTED, None),
        (annotations.EXACT_MATCH_RESERVATION, None),
        (annotations.GPU_PARTITIONS, None),
        (annotations.GANG_GROUPS, None),
        (annotations.SCHEDULING_HINT, None),
        (annotations.CPU_BURST, "error"),
        (annotations.RESOURCE_SPEC, "error"),
        (annotations.DEVICE_ALLOCATED, "error"),
    ],
    ids=lambda item: getattr(item, "key", str(item)),
)
def test_an_empty_text_means_what_is_published(payload, expected):
    values = {payload.key: ""}
    if expected == "error":
        with pytest.raises(base.ReadError, match="not JSON"):
            payload.read(values)
    elif expected is None:
        assert payload.read(values) is None
    else:
        assert payload.read(values).wire() == {}


def test_the_old_key_of_the_scheduling_hint_counts_while_the_new_one_is_empty():
    old = {names.ANNOTATION_SCHEDULING_HINT_OLD: '{"nodeNames":["a"]}'}
    read = annotations.SCHEDULING_HINT.read({**old, names.ANNOTATION_SCHEDULING_HINT: ""})
    assert read is not None
    assert read.node_names == ("a",)
    new = {names.ANNOTATION_SCHEDULING_HINT: '{"nodeNames":["b"]}'}
    read = annotations.SCHEDULING_HINT.read({**old, **new})
    assert read is not None
    assert read.node_names == ("b",)


@pytest.mark.parametrize(
    ("payload", "text", "message"),
    [
        (annotations.CPU_QOS, '{"groupIdentity":3}', "groupIdentity: Input should be less"),
        (annotations.CPU_BURST, '{"policy":"x"}', "policy: Input should be 'none'"),
        (annotations.RESOURCE_SPEC, '{"requiredCPUBindPolicy":1}', "requiredCPUBindPolicy"),
        (annotations.RESERVATION_OWNERS, "[{}]", r"\[0\]: give at least one of"),
        (annotations.QUOTA_NAMESPACES, '"a"', "Input should be a valid tuple"),
        (annotations.AMPLIFICATION, '{"cpu":"1.5"}', "cpu: must be a number"),
    ],
    ids=lambda item: getattr(item, "key", ""),
)
def test_bad_values_are_named(payload, text, message):
    with pytest.raises(base.ReadError, match=f"annotation {payload.key}: .*{message}"):
        payload.read({payload.key: text})


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("-5", -5), ("+5", 5), ("", None), ("2147483647", 2147483647)]
)
def test_integers(text, value):
    assert annotations.integer({"k": text}, "k") == value
    assert annotations.integer({}, "k") is None


@pytest.mark.parametrize("text", ["x", "1.5", "2147483648", " 1", "1_0", "0x1", "9" * 50])
def test_bad_integers(text):
    with pytest.raises(base.ReadError, match=r"k: .*is no decimal integer of 32 bits"):
        annotations.integer({"k": text}, "k")


@pytest.mark.parametrize(
    ("text", "value"), [("0.7", 0.7), ("1", 1.0), (".5", 0.5), ("1e-2", 0.01), ("", None)]
)
def test_numbers(text, value):
    assert annotations.number({"k": text}, "k") == value


@pytest.mark.parametrize("text", ["x", "nan", "inf", "1,5", " 1", "1_0"])
def test_bad_numbers(text):
    with pytest.raises(base.ReadError, match="is no number"):
        annotations.number({"k": text}, "k")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("5", 5), ("-5", -5), ("2147483647", annotations.NEVER_EVICT)],
)
def test_eviction_cost(text, value):
    assert annotations.eviction_cost({names.ANNOTATION_EVICTION_COST: text}) == value


@pytest.mark.parametrize("text", ["", "+5", "05", "00", "x", "2147483648", "1.0", "-"])
def test_a_bad_eviction_cost_is_none(text):
    assert annotations.eviction_cost({names.ANNOTATION_EVICTION_COST: text}) == 0


@pytest.mark.parametrize(("count", "readable"), [(256, True), (257, False), (4000, False)])
def test_a_node_names_boundedly_many_resources(count, readable):
    key = names.ANNOTATION_RAW_ALLOCATABLE
    written = {key: json.dumps({f"r{number}": "1" for number in range(count)})}
    if readable:
        assert len(annotations.RAW_ALLOCATABLE.read(written)) == count
        return
    with pytest.raises(base.ReadError, match=f"{key}: .*must name at most 256 resources"):
        annotations.RAW_ALLOCATABLE.read(written)
