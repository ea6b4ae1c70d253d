"""What a runtime is answered when containers are created and updated."""

import threading

import msgspec
import pytest

from agent.decide import catalogue, frozen_look, hook_rules, planner
from agent.model import cgroup_layout, live_switches, state, strategy_settings
from agent.serve import container_events, snapshots, write_rivals
from api.kubernetes import core
from tests.agent.nri import stand_in
from tests.agent.serve.container_node import (
    ALLOCATED,
    BATCH,
    GIVEN,
    GPU,
    QOS,
    RULES,
    Node,
    linux,
    wire,
)


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.link.close()
    made.runtime.close()


def limits(adjusted):
    cpu, memory = adjusted.linux.resources.cpu, adjusted.linux.resources.memory
    return cpu.cpus, cpu.shares.value, cpu.quota.value, memory.limit.value


def test_a_batch_pod_has_its_limits_from_the_start(node, placed):
    node.knows(placed("u", quality="BE", limits=BATCH, requests=BATCH))
    found = node.create(stand_in.pod("uid-u"))
    assert limits(found) == ("", 1536, 150_000, 1 << 30)
    assert found.linux.resources.cpu.period.value == 100_000


def test_a_pod_that_is_not_known_yet_is_adjusted_by_what_the_runtime_says(node):
    spec = '{"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"500"}}}}'
    annotations = {"node.koordinator.sh/extended-resource-spec": spec}
    found = node.create(stand_in.pod("new", {QOS: "BE"}, **annotations))
    assert limits(found) == ("", 2, 50_000, -1)


def test_cpus_devices_and_scores_reach_the_runtime(node, placed):
    annotations = {
        ALLOCATED: GIVEN,
        "koordinator.sh/oom-score-adj": "500",
        "node.koordinator.sh/resctrl": '{"llc":{"schemata":{"range":[0,50]}}}',
    }
    asked = GPU | {"cpu": "1"}
    pod = placed("u", quality="LS", requests=asked, limits=asked, annotations=annotations)
    spec = msgspec.structs.replace(pod.pod.spec, node_name="node-1")
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    node.knows(pod, resctrl_groups=frozenset({"koordlet-uid-u"}))
    found = node.create(stand_in.pod("uid-u"))
    linux = found.linux
    assert limits(found) == ("1-2", 0, 50_000, 0)
    assert dict(linux.resources.unified) == {"cpu.max.burst": "50000"}
    assert linux.resources.rdt_class.value == "koordlet-uid-u"
    assert linux.oom_score_adj.value == 500
    assert {one.key: one.value for one in found.env} == {"NVIDIA_VISIBLE_DEVICES": "1"}
    assert [(one.path, one.type, one.major, one.minor) for one in linux.devices] == [
        ("/dev/infiniband/uverbs0", "c", 231, 192),
        ("/dev/infiniband/rdma_cm", "c", 10, 58),
    ]


def test_an_update_keeps_the_limits_of_batch_pods(node, placed):
    node.knows(placed("u", quality="BE", limits=BATCH, requests=BATCH))
    asked = wire.field(1, stand_in.pod("uid-u")) + wire.field(2, stand_in.container("c-7", "u"))
    resources = wire.field(3, wire.field(2, wire.field(1, wire.field(1, 2))))
    answer = node.runtime.call("UpdateContainer", asked + resources, "UpdateContainerResponse")
    (update,) = answer.update
    assert update.container_id == "c-7"
    assert limits(update) == ("", 1536, 150_000, 1 << 30)


def test_a_quota_that_is_resized_stays_in_the_update(node, placed):
    """The kubelet shows limits as the runtime has them; reconciliation lifts the quota below."""
    asked = {"cpu": "1100m", "memory": "1Gi"}
    pod = placed("u", quality="LSR", requests=asked, limits=asked)
    node.knows(msgspec.structs.replace(pod, cpus=frozenset({1})))
    assert limits(node.create(stand_in.pod("uid-u")))[2] == -1
    quota = wire.field(2, wire.field(1, 110_000)) + wire.field(3, wire.field(1, 100_000))
    said = wire.field(1, stand_in.pod("uid-u")) + wire.field(2, stand_in.container("c-7", "u"))
    answer = node.runtime.call(
        "UpdateContainer", said + wire.field(3, wire.field(2, quota)), "UpdateContainerResponse"
    )
    (update,) = answer.update
    assert limits(update) == ("1", 0, 0, 0)


POISON = {
    "device-allocated": (ALLOCATED, "[" * 100_000),
    "oom": ("koordinator.sh/oom-score-adj", "9" * 100_000),
    "resctrl": ("node.koordinator.sh/resctrl", '{"llc":{"schemata":{"range":[9,1]}}}'),
    "spec": ("node.koordinator.sh/extended-resource-spec", '{"containers":[]}'),
    "status": ("scheduling.koordinator.sh/resource-status", '{"cpuset":"0-999999999"}'),
}


@pytest.mark.parametrize(("key", "value"), POISON.values(), ids=POISON)
def test_a_poisoned_pod_starts_and_changes_nothing_for_others(node, placed, key, value):
    node.knows(placed("u", quality="BE", limits=BATCH, requests=BATCH))
    for label in ("BE", "LS", "SYSTEM", "x" * 1000):
        node.create(stand_in.pod("bad", {QOS: label}, **{key: value}))
    assert limits(node.create(stand_in.pod("uid-u"))) == ("", 1536, 150_000, 1 << 30)
    assert node.link.current.failures == 0


def test_no_pod_names_itself_system_or_gives_itself_cpus(node):
    status = {"scheduling.koordinator.sh/resource-status": '{"cpuset":"0"}'}
    found = node.create(stand_in.pod("new", {QOS: "LSE"}, **status))
    assert found.linux.resources.cpu.cpus != "0"


HELD = {
    "scope": {"scope": planner.Scope(namespaces=frozenset({"default"}))},
    "live": {"live": live_switches.Here(namespaces={"default": live_switches.Mode.OBSERVE})},
}


@pytest.mark.parametrize("more", HELD.values(), ids=HELD)
def test_what_is_only_observed_is_not_adjusted(node, placed, more):
    node.knows(placed("u", quality="BE", limits=BATCH), **more)
    assert not node.create(stand_in.pod("uid-u")).byte_size()
    assert node.events.counts["held-back"] == 1


def test_init_containers_are_known_as_such(placed):
    pod = placed("u")
    spec = core.PodSpec(init_containers=(core.Container("first"),))
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    assert container_events.container_of(pod, "first").initial
    assert container_events.container_of(pod, "other").container == core.Container("other")


def test_another_plug_in_that_sets_the_same_fields_gets_them(node, placed):
    pod = stand_in.pod("uid-u")
    node.knows(placed("u", quality="BE", limits=BATCH))
    assert [bool(node.create(pod).byte_size()) for _ in range(3)] == [True, True, False]
    assert node.events.problem == ""
    node.created(pod)
    assert "another NRI plug-in" in node.events.problem
    assert not node.create(pod).byte_size()
    node.now = write_rivals.STAND_DOWN_SECONDS
    assert node.events.problem == ""
    assert node.create(pod).byte_size()


def test_a_container_that_starts_again_and_again_shows_no_rival(node, placed):
    pod = stand_in.pod("uid-u")
    node.knows(placed("u", quality="BE", limits=BATCH))
    for _ in range(5):
        assert node.create(pod).byte_size()
        node.created(pod)
    assert node.events.problem == ""


def test_a_container_that_is_never_adjusted_shows_no_rival(node, placed):
    pod = stand_in.pod("uid-u")
    node.knows(placed("u", quality="BE", limits=BATCH), **HELD["scope"])
    for _ in range(3):
        assert not node.create(pod).byte_size()
    node.created(pod)
    assert node.events.problem == ""


def test_a_container_that_fails_without_an_adjustment_too_shows_no_rival(node, placed):
    pod = stand_in.pod("uid-u")
    node.knows(placed("u", quality="BE", limits=BATCH))
    adjusted = [bool(node.create(pod).byte_size()) for _ in range(4)]
    assert adjusted == [True, True, False, True]
    node.created(pod)
    assert node.events.problem == ""


def test_what_is_remembered_of_containers_is_bounded():
    rivals = write_rivals.Rivals()
    for number in range(write_rivals.MOST_PENDING + 10):
        assert rivals.may_adjust((str(number), "app"))
        rivals.adjusted((str(number), "app"))
    assert len(rivals._pending) == write_rivals.MOST_PENDING


def test_a_resctrl_group_that_does_not_exist_is_not_named(node, placed):
    annotations = {"node.koordinator.sh/resctrl": '{"llc":{"schemata":{"range":[0,50]}}}'}
    node.knows(placed("u", annotations=annotations))
    assert not node.create(stand_in.pod("uid-u")).linux.resources.has_field("rdt_class")


@pytest.mark.parametrize(("version", "roles"), [(1, {"cpu-burst"}), (2, set())])
def test_a_burst_is_left_to_reconciliation_where_the_runtime_cannot_set_it(
    node, placed, version, roles
):
    pod = placed("u", requests={"cpu": "1"}, limits={"cpu": "1"})
    node.knows(pod, cgroup_version=version, roles=frozenset(roles))
    assert not node.create(stand_in.pod("uid-u")).linux.resources.unified


def test_best_effort_pods_keep_the_cpus_of_the_cgroup_above(node, placed):
    status = {
        "scheduling.koordinator.sh/resource-status": (
            '{"numaNodeResources":[{"node":0,"resources":{"cpu":"1"}}]}'
        )
    }
    for kubernetes_qos, cpus in (("Burstable", "1-2"), ("BestEffort", "")):
        node.knows(placed("u", kubernetes_qos=kubernetes_qos, annotations=status))
        assert node.create(stand_in.pod("uid-u")).linux.resources.cpu.cpus == cpus


UID = "11111111-2222-3333-4444-555555555555"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
GROUPS = {
    "cgroupfs": (
        f"/kubepods/burstable/pod{UID}/c-1",
        f"kubepods/burstable/pod{UID}/c-1",
    ),
    "systemd": (
        f"{SLICE}:cri-containerd:c-1",
        f"kubepods.slice/kubepods-burstable.slice/{SLICE}/cri-containerd-c-1.scope",
    ),
}


@pytest.mark.parametrize("driver", GROUPS)
def test_what_was_requested_is_kept_beside_what_is_delivered(node, placed, driver):
    path, group = GROUPS[driver]
    layout = cgroup_layout.Layout("/sys/fs/cgroup", 2, driver)
    pod = placed("u", quality="BE", limits=BATCH, requests=BATCH)
    pod = msgspec.structs.replace(pod, group=layout.pod_group(UID, "Burstable"))
    node.knows(pod, layout=layout)
    node.create(stand_in.pod("uid-u"), linux=linux(path, quota=20_000, shares=2))
    assert {(one.role, one.group, one.value, one.requested) for one in node.kept} == {
        ("cpu-shares", group, "1536", "2"),
        ("cpu-quota", group, "150000", "20000"),
        ("memory-limit", group, str(1 << 30), None),
    }


@pytest.mark.parametrize("lost", ["record", "path"])
def test_what_cannot_be_recorded_is_not_delivered(node, placed, lost):
    layout = cgroup_layout.Layout("/sys/fs/cgroup", 2, "cgroupfs")
    node.knows(placed("u", quality="BE", limits=BATCH, requests=BATCH), layout=layout)
    path = "/kubepods/podu/c" if lost == "record" else "nowhere"
    if lost == "record":
        node.kept = None
    assert not node.create(stand_in.pod("uid-u"), linux=linux(path)).byte_size()
    assert node.events.counts["unrecorded"] == 1


def test_a_pod_that_is_not_known_is_asked_for_when_it_starts_and_when_it_asks(node, placed):
    said = wire.field(1, 1) + wire.field(2, stand_in.pod("new"))
    node.runtime.call("StateChange", said, "Empty")
    node.create(stand_in.pod("new"))
    assert node.asked == ["new", "new"]
    node.knows(placed("u"))
    node.create(stand_in.pod("uid-u"))
    assert node.asked == ["new", "new"]


def test_an_answer_waits_for_a_pod_that_becomes_known_meanwhile(node, placed):
    known = placed("u", quality="BE", limits=BATCH, requests=BATCH)
    node.events._wait_seconds = stand_in.PATIENCE
    node.events.unknown = lambda _uid: threading.Thread(
        target=node.knows, args=(known,), daemon=True
    ).start()
    assert limits(node.create(stand_in.pod("uid-u")))[1:] == (1536, 150_000, 1 << 30)


def told(node_annotations=None, **changes):
    """What a tick hands on; only what is named here differs from one to the next."""
    kubernetes = core.Node(core.ObjectMeta("n", annotations=node_annotations or {}))
    picture = state.NodeState(at=0, node=kubernetes, kubelet=state.KubeletCpus())
    look = catalogue.Look(
        picture, strategy_settings.Strategies(), {}, 0.0, enabled=frozenset({"BatchResource"})
    )
    layout = cgroup_layout.Layout("/sys/fs/cgroup", 2, "cgroupfs")
    given = {"enforced": ("batch-resources",), "seen": "same", **changes}
    scope, live = planner.Scope(), live_switches.Here()
    return frozen_look.Frozen(look=look, scope=scope, live=live, layout=layout, **given)


def test_rules_are_made_anew_only_where_something_of_them_changed():
    freezer = snapshots.Freezer(hook_rules.Devices)
    first = freezer.freeze(told()).rules
    assert [one.name for one in first.stages["PreCreateContainer"]] == ["BatchResource"]
    assert freezer.freeze(told()).rules is first
    assert freezer.freeze(told(seen="other")).rules is not first
    assert not freezer.freeze(told(enforced=())).rules.stages["PreCreateContainer"]


def fresh_pod(uid="fresh", quality="LSR", cpus="0", cpu="1", namespace="default"):
    raw = {
        "metadata": {
            "name": uid,
            "namespace": namespace,
            "uid": uid,
            "labels": {QOS: quality},
            "annotations": {
                "scheduling.koordinator.sh/resource-status": '{"cpuset":"' + cpus + '"}'
            },
        },
        "spec": {
            "nodeName": "n",
            "containers": [
                {"name": "app", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    return msgspec.convert(raw, core.Pod)


CLAIMS = {
    "granted": (fresh_pod(), {0}),
    "more-than-requested": (fresh_pod(cpus="0-1"), set()),
    "of-another-pod": (fresh_pod(cpus="3"), set()),
    "no-right-to-cpus": (fresh_pod(quality="LS"), set()),
}


@pytest.mark.parametrize(("pod", "cpus"), CLAIMS.values(), ids=CLAIMS)
def test_a_pod_that_no_tick_has_seen_has_the_cpus_that_it_may_claim(placed, pod, cpus):
    owner = placed("owner", cpus=frozenset({3}))
    layout = cgroup_layout.Layout("/sys/fs/cgroup", 2, "cgroupfs")
    before = snapshots.Snapshot(RULES, {"uid-owner": owner}, layout=layout)
    now = snapshots.with_pods(before, (pod,))
    assert now.pods["fresh"].cpus == cpus
    assert now.pods["fresh"].group == "kubepods/burstable/podfresh"
    assert snapshots.with_pods(now, (pod,)) is now


def test_a_pod_of_the_system_counts_as_one_in_its_namespaces_only():
    before = snapshots.Snapshot(
        RULES, overrides=lambda pod: pod.metadata.namespace == "kube-system"
    )
    for namespace, demoted in (("kube-system", False), ("default", True)):
        pod = fresh_pod(quality="SYSTEM", namespace=namespace)
        assert snapshots.with_pods(before, (pod,)).pods["fresh"].demoted is demoted
