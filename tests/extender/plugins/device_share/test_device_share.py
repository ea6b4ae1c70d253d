"""Which devices pods get, what is written on them, and why nodes are refused."""

import json

import numpy as np
import pytest

from api import names
from extender.framework import pipeline, views
from extender.framework.eviction import preemption
from extender.framework.nodes import hints
from extender.state import claims, deltas
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import NAME, DeviceCluster, device, eight, gpu, rdma

HALF, WHOLE = {names.GPU: "50"}, {names.NVIDIA_GPU: "1"}
SEED = {
    "metadata": {"name": "n1"},
    "spec": {
        "devices": [
            {
                "deviceType": kind,
                "deviceModel": "some",
                "uuid": uuid,
                "totalMemory": memory,
                "health": True,
            }
            for kind, uuid, memory in (
                ("gpu", "gpu-uuid-001", "40Gi"),
                ("gpu", "gpu-uuid-002", "40Gi"),
                ("rdma", "rdma-uuid-001", "0"),
                ("fpga", "fpga-uuid-001", "0"),
            )
        ]
    },
}


@pytest.fixture
def cluster():
    made = DeviceCluster()
    made.node()
    made.devices(eight())
    return made


def test_half_a_gpu_leaves_the_other_half_and_a_whole_one_leaves_nothing():
    """The short shape of a Device: two GPUs, an adapter and an FPGA without memory."""
    cluster = DeviceCluster()
    cluster.node()
    cluster.devices(SEED)
    assert cluster.bind(cluster.pod("half", HALF)) == ""
    assert cluster.bind(cluster.pod("whole", WHOLE)) == ""
    assert cluster.annotation("half")["gpu"] == [
        {
            "minor": 0,
            "resources": {
                names.GPU_CORE: "50",
                names.GPU_MEMORY: "20Gi",
                names.GPU_MEMORY_RATIO: "50",
            },
            "id": "gpu-uuid-001",
        }
    ]
    assert cluster.minors("whole") == [1]
    assert cluster.refusal(cluster.pod("more", WHOLE)) == "Insufficient GPU Devices"
    assert cluster.bind(cluster.pod("other", HALF)) == ""
    assert cluster.minors("other") == [0]
    assert cluster.refusal(cluster.pod("third", {names.GPU: "1"})) == "Insufficient GPU Devices"
    for kind in (names.RDMA, names.FPGA):
        assert cluster.bind(cluster.pod(f"all {kind}", {kind: "100"})) == ""
        assert cluster.refusal(cluster.pod("late", {kind: "1"})).startswith("Insufficient")


def test_unhealthy_devices_are_never_given(cluster):
    cluster.devices(device("n1", gpu(0, health=False), gpu(1)))
    assert cluster.bind(cluster.pod("one", WHOLE)) == ""
    assert cluster.minors("one") == [1]
    assert cluster.refusal(cluster.pod("two", WHOLE)) == "Insufficient GPU Devices"


def test_a_device_that_fails_under_a_pod_comes_back_as_it_was(cluster):
    cluster.devices(device("n1", gpu(0)))
    assert cluster.bind(cluster.pod("first", HALF)) == ""
    cluster.devices(device("n1", gpu(0, health=False)))
    assert cluster.refusal(cluster.pod("next", HALF)) == "Insufficient GPU Devices"
    cluster.told("n1", None)
    assert cluster.refusal(cluster.pod("next", HALF)) == "Insufficient gpu devices"
    cluster.devices(device("n1", gpu(0)))
    assert cluster.bind(cluster.pod("next", HALF)) == ""
    assert cluster.refusal(cluster.pod("third", HALF)) == "Insufficient GPU Devices"


def test_big_jobs_get_gpus_and_the_rdma_cards_beside_them(cluster):
    joint = {
        names.ANNOTATION_DEVICE_JOINT: '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'
    }
    pod = cluster.pod("job", {names.GPU: "400", names.RDMA: "1"}, annotations=joint)
    assert cluster.bind(pod) == ""
    assert cluster.minors("job") == [0, 1, 2, 3]
    assert cluster.minors("job", "rdma") == [0, 1]
    cluster.bind(cluster.pod("adapter", {names.RDMA: "100"}))
    assert cluster.minors("adapter", "rdma") == [2]
    rest = cluster.pod("rest", {names.GPU: "400", names.RDMA: "1"}, annotations=joint)
    assert cluster.refusal(rest) == "node(s) Device Joint-Allocate rules violation"


def test_whole_gpus_stay_on_one_switch(cluster):
    cluster.bind(cluster.pod("one", WHOLE))
    assert cluster.bind(cluster.pod("two", {names.NVIDIA_GPU: "2"})) == ""
    assert cluster.minors("two") == [2, 3]


@pytest.mark.parametrize(
    ("strategy", "second"),
    [pytest.param("LeastAllocated", 1, id="spread"), pytest.param("MostAllocated", 0, id="pack")],
)
def test_shares_are_spread_or_packed_by_the_strategy(strategy, second):
    cluster = DeviceCluster(device_cluster.plugin(scoringStrategy={"type": strategy}))
    for name in ("n1", "n2"):
        cluster.node(name)
        cluster.devices(device(name, gpu(0), gpu(1)))
    cluster.bind(cluster.pod("one", {names.GPU: "30"}))
    cluster.bind(cluster.pod("two", {names.GPU: "30"}))
    assert (cluster.minors("one"), cluster.minors("two")) == ([0], [second])
    scores = cluster.scores(cluster.pod("three", {names.GPU: "30"}))
    assert (scores["n1"] > scores["n2"]) is (strategy == "MostAllocated")


def test_nodes_that_say_nothing_of_devices_are_left_to_the_kubelet():
    cluster = DeviceCluster()
    cluster.node()
    assert cluster.bind(cluster.pod("one", WHOLE)) == ""
    assert NAME not in cluster.state.claim("uid-one").allocations


def test_illegal_requests_are_refused_everywhere(cluster):
    pod = cluster.pod("odd", {names.GPU: "150"})
    assert cluster.refusal(pod) == "invalid resource unit koordinator.sh/gpu: 150"


def test_refusals_say_what_is_lacking_and_what_would_help(cluster):
    cluster.devices(device("n1", gpu(0), gpu(1, health=False)))
    cluster.bind(cluster.pod("one", {names.GPU: "60"}))
    pod = cluster.pod("two", HALF)
    assert cluster.sentence(pod) == (
        "Insufficient GPU Devices: asks 1 gpu with 50 % of the cores and 50 % of the memory each; "
        "of 2 on the node 1 is healthy and 0 have that much free"
    )
    asked, view = cluster.cycle(pod)
    found = cluster.plugin.diagnose(asked.prepared[NAME], view, 0, 0.0)
    assert found.helps == (
        "1 more gpu with 50 % of the cores and 50 % of the memory free on n1",
        "gpu 1 of n1 healthy again",
    )
    shares = cluster.plugin.shortage(asked.prepared[NAME], view, np.array([0]), 0.0)
    assert shares.tolist() == pytest.approx([0.2])


def test_models_that_are_given_to_one_pod_only_are_not_shared():
    made = device_cluster.plugin(gpuShareUnsupportedModels=[{"vendor": "huawei", "model": "Duo"}])
    cluster = DeviceCluster(made)
    cluster.node(labels={names.LABEL_GPU_VENDOR: "huawei", names.LABEL_GPU_MODEL: "Duo"})
    cluster.devices(device("n1", gpu(0)))
    assert "does not support GPU Share" in cluster.refusal(cluster.pod("half", HALF))
    assert cluster.refusal(cluster.pod("whole", WHOLE)) == ""


def test_the_isolation_that_a_pod_counts_on_has_to_be_there(cluster):
    isolated = cluster.pod("one", HALF, labels={names.LABEL_GPU_ISOLATION_PROVIDER: "HAMi-core"})
    assert "GPUIsolationProvider" in cluster.refusal(isolated)
    cluster.node(labels={names.LABEL_GPU_ISOLATION_PROVIDER: "HAMi-core"})
    assert cluster.refusal(isolated) == ""


def test_devices_are_allocated_from_the_numa_nodes_that_were_merged(cluster):
    pod = cluster.pod("one", {names.NVIDIA_GPU: "3"})
    asked, view = cluster.cycle(pod)
    prepared, row = asked.prepared[NAME], view.rows["n1"]
    found = cluster.plugin.hints(prepared, view, row)
    assert [(one.mask, one.preferred) for one in found["gpu"]] == [(1, True), (2, True), (3, False)]
    given = cluster.plugin.allocate(prepared, view, row, 2)
    assert {one.minor for one in given.by_type["gpu"]} <= {4, 5, 6, 7}
    full = cluster.pod("all", {names.NVIDIA_GPU: "5"})
    asked, view = cluster.cycle(full)
    assert cluster.plugin.allocate(asked.prepared[NAME], view, row, hints.ANYWHERE).by_type["gpu"]
    impossible = cluster.pod("nine", {names.NVIDIA_GPU: "9"})
    asked, view = cluster.cycle(impossible)
    assert cluster.plugin.hints(asked.prepared[NAME], view, row) == {NAME: ()}


def test_the_fewest_pods_of_lower_priority_leave(cluster):
    cluster.devices(device("n1", gpu(0), gpu(1)))
    cluster.bind(cluster.pod("high", WHOLE, priority=9))
    cluster.bind(cluster.pod("low", {names.GPU: "20"}, priority=1))
    cluster.bind(cluster.pod("mid", {names.GPU: "80"}, priority=2))
    pod = cluster.pod("new", HALF, priority=5)
    _, view = cluster.cycle(pod)
    found = preemption.victims(cluster.pipeline, views.PodInfo.of(pod), view, 0, 0.0)
    assert found.claims == ("uid-mid",)
    both = cluster.pod("two", {names.NVIDIA_GPU: "2"}, priority=5)
    found = preemption.victims(cluster.pipeline, views.PodInfo.of(both), view, 0, 0.0)
    assert found.status.reason.startswith("Insufficient")


def test_devices_are_kept_for_the_pod_that_others_left_for(cluster):
    cluster.devices(device("n1", gpu(0)))
    preemptor = cluster.pod("preemptor", WHOLE, priority=5)
    kept = claims.Claim(
        claims.nominated(preemptor.uid), claims.ClaimKind.NOMINATED, "n1", preemptor,
        usable_by=preemptor.uid,
    )  # fmt: skip
    cluster.state.apply(deltas.ClaimDelta(kept.id, None, kept))
    assert cluster.refusal(cluster.pod("other", HALF)) == "Insufficient GPU Devices"
    assert cluster.refusal(preemptor) == ""
    # It holds none yet. What is kept for it is free once the nomination ends.
    ends = deltas.ClaimDelta(kept.id, kept, None)
    assert cluster.plugin.could_help(None, ends)
    cluster.state.apply(ends)
    assert cluster.refusal(cluster.pod("other", HALF)) == ""


def test_what_is_given_back_or_changes_wakes_pods(cluster):
    cluster.bind(cluster.pod("one", HALF))
    claim = cluster.state.claim("uid-one")
    could = cluster.plugin.could_help
    assert could(None, deltas.ClaimDelta(claim.id, claim, None))
    assert not could(None, deltas.ClaimDelta(claim.id, None, claim))
    assert could(None, deltas.ObjectDelta("Device", "n1", None, None))
    assert not could(None, deltas.ObjectDelta(views.UNSCHEDULED_POD, "u", None, None))
    known = cluster.state.node("n1")
    assert could(None, deltas.NodeDelta("n1", None, known))
    assert not could(None, deltas.NodeDelta("n1", known, known))


# -- what others wrote -----------------------------------------------------------------------


def text(*granted, kind="gpu"):
    listed = ",".join(
        f'{{"minor":{minor},"resources":{{"{name}":"{amount}"}}}}'
        for minor, name, amount in granted
    )
    return {names.ANNOTATION_DEVICE_ALLOCATED: f'{{"{kind}":[{listed}]}}'}


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({names.ANNOTATION_DEVICE_ALLOCATED: "{"}, id="no-json"),
        pytest.param({names.ANNOTATION_DEVICE_ALLOCATED: "[]"}, id="no-object"),
        pytest.param(text((0, names.GPU_CORE, 51)), id="more-than-asked"),
        pytest.param(text((0, names.GPU_CORE, 50), (1, names.GPU_CORE, 50)), id="two-gpus"),
        pytest.param(text((0, names.GPU_CORE, 25), (0, names.GPU_CORE, 25)), id="one-gpu-twice"),
        pytest.param(text((0, names.RDMA, 1), kind="rdma"), id="another-type"),
        pytest.param(text((-1, names.GPU_CORE, 50)), id="no-minor"),
        pytest.param(text((1 << 40, names.GPU_CORE, 50)), id="huge-minor"),
        pytest.param(text((0, names.GPU_CORE, -5)), id="negative"),
    ],
)
def test_texts_that_cannot_be_true_count_as_absent_and_are_reported(cluster, written):
    found = cluster.pod("odd", HALF, annotations=written, node="n1")
    assert found.unreadable == (NAME,)
    assert NAME not in found.allocations


def test_state_is_rebuilt_from_what_is_written(cluster):
    cluster.bind(cluster.pod("one", HALF))
    held = cluster.state.claim("uid-one").allocations[NAME]
    written = cluster.plugin.encode(held)
    again = cluster.pod("one", HALF, annotations=dict(written), node="n1")
    assert again.allocations[NAME] == held


def test_overlaps_and_what_cannot_be_are_shown(cluster):
    cluster.devices(device("n1", gpu(0), rdma(0)))
    for name in ("one", "two"):
        record = cluster.pod(name, WHOLE, annotations=text((0, names.GPU_CORE, 100)), node="n1")
        claim = claims.Claim(record.uid, claims.ClaimKind.BOUND, "n1", record, record.allocations)
        cluster.state.apply(deltas.ClaimDelta(claim.id, None, claim))
    record = cluster.pod("bare", WHOLE, node="n1")
    claim = claims.Claim(record.uid, claims.ClaimKind.BOUND, "n1", record)
    cluster.state.apply(deltas.ClaimDelta(claim.id, None, claim))
    view = cluster.state.view()
    seen = cluster.plugin.inspect(view.node(0))
    assert seen["overused"] == [f"gpu 0: pods hold 200 of {names.GPU_CORE}, it has 100"]
    assert seen["withoutRecord"] == ["default/bare"]
    assert seen["deviceFreeDetail"]["gpu"]["0"][names.GPU_CORE] == "0"
    (conflict,) = claims.conflicts(cluster.state.claims_on("n1"), (cluster.plugin,))
    assert {conflict.one, conflict.other} == {"uid-one", "uid-two"}
    shown = cluster.plugin.shown(view.node(0))
    assert shown["allocateSet"]["gpu"]["default/one"] == {"0": {names.GPU_CORE: "100"}}


def function(bus):
    held = {"minor": 0, "resources": {names.RDMA: "1"}, "extension": {"vfs": [{"busID": bus}]}}
    return {names.ANNOTATION_DEVICE_ALLOCATED: json.dumps({"rdma": [held]})}


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        pytest.param(text((0, names.GPU_CORE, 40)), text((0, names.GPU_CORE, 60)), False, id="all"),
        pytest.param(text((0, names.GPU_CORE, 41)), text((0, names.GPU_CORE, 60)), True, id="more"),
        pytest.param(
            text((0, names.GPU_CORE, 90)), text((1, names.GPU_CORE, 90)), False, id="two-gpus"
        ),
        pytest.param(function("0000:1f:00.2"), function("0000:1f:00.3"), False, id="functions"),
        pytest.param(function("0000:1f:00.2"), function("0000:1f:00.2"), True, id="function-twice"),
    ],
)
def test_who_holds_the_same_is_known_by_percent_and_by_virtual_function(
    cluster, one, other, overlap
):
    asked = {names.GPU: "100", names.RDMA: "1"}
    held = [
        cluster.pod("a", asked, annotations=note, node="n1").allocations[NAME]
        for note in (one, other)
    ]
    assert cluster.plugin.conflicts(*held) is overlap
    assert cluster.plugin.conflicts(*reversed(held)) is overlap


def test_pods_that_each_take_a_part_are_counted_together(cluster):
    part = text((0, names.GPU_CORE, 40))
    made = [cluster.pod(name, {names.GPU: "40"}, annotations=part, node="n1") for name in "abc"]
    one, *others = [pod.allocations[NAME] for pod in made]
    assert cluster.plugin.exceeds(one, others)
    assert not cluster.plugin.exceeds(one, others[:1])
    assert not cluster.plugin.exceeds(one, ())


def test_hints_that_cannot_be_read_refuse_the_pod(cluster):
    pod = cluster.pod("odd", HALF, annotations={names.ANNOTATION_DEVICE_HINT: "no json"})
    assert cluster.refusal(pod).startswith("invalid DeviceAllocateHint annotation")


def test_an_allocation_is_tried_only_where_columns_do_not_say_everything(cluster):
    cluster.node("honor", labels={names.LABEL_GPU_PARTITION_POLICY: "Honor"})
    cluster.devices(eight("honor"))
    asked, view = cluster.cycle(cluster.pod("one", WHOLE))
    rows = np.array([view.rows["n1"], view.rows["honor"]])
    looked = cluster.plugin.needs_trial(asked.prepared[NAME], view, rows)
    assert looked.tolist() == [False, True]
    assert cluster.plugin.needs_trial(asked.prepared[NAME], view, rows[:1]).tolist() == [False]
    assert cluster.refusal(cluster.pod("two", WHOLE), "honor").endswith("Partition Table")
    assert isinstance(cluster.pipeline, pipeline.Pipeline)


def test_no_allocation_is_tried_where_columns_say_everything_of_every_node(cluster):
    asked, view = cluster.cycle(cluster.pod("one", WHOLE))
    rows = np.arange(view.known.size)
    assert cluster.plugin.needs_trial(asked.prepared[NAME], view, rows) is None
    assert cluster.pipeline.aligned.trials(asked, view, rows) is None
    assert cluster.refusal(cluster.pod("two", WHOLE)) == ""


def test_the_page_in_the_shape_of_koordinator_lists_nodes_with_devices(cluster):
    cluster.node("bare")
    cluster.bind(cluster.pod("one", HALF))
    view = cluster.state.view()
    listed = cluster.plugin.listed(view, {}, ())
    assert list(listed) == ["n1"]
    assert listed["n1"]["allocateSet"]["gpu"]["default/one"]["0"][names.GPU_CORE] == "50"
    assert cluster.plugin.named("none", view, {}, ()) is None
    assert cluster.plugin.named("n1", view, {}, ()) == listed["n1"]


def test_a_bind_records_why_other_devices_were_not_chosen(cluster):
    gpus = [
        gpu(minor, numa=minor // 4, pcie=str(minor // 2), health=minor != 6) for minor in range(8)
    ]
    cluster.devices(device("n1", *gpus))
    cluster.bind(cluster.pod("half", HALF))
    asked, view = cluster.cycle(cluster.pod("two", {names.GPU: "200"}))
    granted = cluster.pipeline.reserve(asked, view, 0)
    assert granted[NAME].told() == {
        "gpu": "2,3",
        "gpuOthers": "0: 50 % of the cores free; 1: fits, on NUMA node 0, PCIe switch 0; "
        "4-5: fits, on NUMA node 1, PCIe switch 2; 6: unhealthy; "
        "7: fits, on NUMA node 1, PCIe switch 3",
    }
