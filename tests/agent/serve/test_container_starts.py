"""What a container that is about to start waits for, and what it does not wait for."""

import threading

import pytest

from agent.hooks import batch_resources, blkio, resctrl
from agent.hooks.cpu import core_sched, cpu_burst, cpuset, group_identity
from agent.hooks.lifecycle import adjustment, stages
from agent.model import cgroup_layout, edits, live_switches, state, strategy_settings
from agent.model.cpus import shared_pools
from agent.nri import messages
from agent.serve import container_events, container_starts
from api.koordinator.metadata import qos
from tests.agent.nri import stand_in

R = edits.Role
wire = stand_in.wire
BLOCKS = (
    '{"blocks":[{"name":"/dev/sda","type":"device","ioCfg":{"readIOPS":10,"ioWeightPercent":60}}]}'
)
BATCH = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
CPU = {
    qos.QoS.LS: strategy_settings.Cpu(True, identity=2),
    qos.QoS.BE: strategy_settings.Cpu(True, identity=-1),
}
POOLS = shared_pools.Pools((shared_pools.Pool(0, 0, frozenset({1, 2})),))
BURST = strategy_settings.NodeBurst(strategy_settings.Burst("auto"))


def rules(*, native=True):
    identities = group_identity.Rule(True, {qos.QoS.LS: 2, qos.QoS.BE: -1}, 0)
    return stages.freeze(
        [
            cpuset.HOOK.bind(cpuset.Rule(cpuset.Known(POOLS))),
            core_sched.HOOK.bind(strategy_settings.Classes(cpu=CPU, cpu_policy="coreSched")),
            group_identity.HOOK.bind(group_identity.OnKernel(identities, native=native)),
            batch_resources.HOOK.bind(batch_resources.Rule()),
            cpu_burst.HOOK.bind(cpu_burst.Rule(BURST, state.Kernel())),
            blkio.HOOK.bind({"device:/dev/sda": "8:0"}),
            resctrl.HOOK.bind(resctrl.rule({}, state.Caches((0,), 0xFFF, "GenuineIntel"))),
        ]
    )


class Loop:
    """The side that writes; it may be away."""

    def __init__(self):
        self.events = container_events.Events(lambda: 0.0)
        self.events.starts = container_starts.Starts(wait_seconds=0.0)
        self.events.starts.write = self.write
        self.away = False
        self.written = []
        self.results = []
        self.events.counted = lambda event, result: self.results.append((event, result))

    def write(self, wanted, done):
        self.written.append({one.key: one.value for one in wanted})
        if not self.away:
            done()

    def knows(self, *pods, by=None, **more):
        by_uid = {pod.pod.metadata.uid: pod for pod in pods}
        layout = cgroup_layout.Layout("/sys/fs/cgroup", 1, "cgroupfs")
        given = {"cgroup_version": 1, "layout": layout, **more}
        self.events.snapshot = container_events.Snapshot(by or rules(), by_uid, **given)

    def start(self, uid, name="app", labels=None, **annotations):
        """Let the first process of a container wait, as a runtime does."""
        pod = messages.read("PodSandbox", stand_in.pod(uid, labels, **annotations))
        path = wire.field(11, wire.field(5, f"/kubepods/pod{uid}/c-1".encode()))
        container = messages.read("Container", stand_in.container("c-1", uid, name) + path)
        self.events.state_changed(messages.Event.START_CONTAINER, pod, container)


@pytest.fixture
def loop():
    made = Loop()
    made.knows()
    return made


def test_what_a_runtime_cannot_set_is_written_before_a_container_starts(loop, placed):
    wish = {"koordinator.sh/blkioQOS": BLOCKS}
    pod = placed("u", quality="BE", requests=BATCH, limits=BATCH, annotations=wish)
    loop.knows(pod)
    loop.start("uid-u")
    (wanted,) = loop.written
    assert wanted == {
        (R.PROCESS_COOKIE, "u/c-1"): "group/",
        (R.CPU_IDENTITY, "u/c-1"): "-1",
        (R.CPU_IDENTITY, "u"): "-1",
        (R.CPU_SHARES, "u"): "1536",
        (R.CPU_QUOTA, "u"): "150000",
        (R.MEMORY_LIMIT, "u"): str(1 << 30),
        (R.IO_READ_IOPS, "u"): "8:0 10",
        (R.IO_WEIGHT, "u"): "8:0 60",
    }
    assert loop.results == [("start", "adjusted")]


def test_the_cgroup_of_a_pod_is_written_once(loop, placed):
    loop.knows(placed("u", quality="BE", limits=BATCH))
    loop.start("uid-u")
    loop.start("uid-u")
    groups = [{group for _, group in wanted} for wanted in loop.written]
    assert groups == [{"u", "u/c-1"}, {"u/c-1"}]


def test_where_nothing_is_left_nothing_waits(loop, placed):
    by = stages.freeze([batch_resources.HOOK.bind(batch_resources.Rule())])
    loop.knows(placed("u", quality="BE", limits=BATCH), placed("other", quality="LS"), by=by)
    loop.events.starts.pod_written("uid-u")
    loop.start("uid-u")
    loop.start("uid-other")
    assert loop.written == []
    assert loop.results == [("start", "unchanged")] * 2


def test_a_burst_follows_where_the_runtime_has_no_field_for_it(loop, placed):
    asked = {"cpu": "1"}
    pod = placed("u", quality="LS", requests=asked, limits=asked)
    by = stages.freeze([cpu_burst.HOOK.bind(cpu_burst.Rule(BURST, state.Kernel()))])
    for version, expected in ((1, {(R.CPU_BURST, "u/c-1")}), (2, set())):
        loop.written.clear()
        loop.knows(pod, by=by, cgroup_version=version, roles=frozenset({"cpu-burst"}))
        loop.events.starts.pod_written("uid-u")
        loop.start("uid-u")
        assert {key for wanted in loop.written for key in wanted} == expected


def test_a_resctrl_group_that_does_not_exist_is_made_first(loop, placed):
    annotations = {"node.koordinator.sh/resctrl": '{"llc":{"schemata":{"range":[0,50]}}}'}
    pod = placed("u", quality="LS", annotations=annotations)
    by = stages.freeze(
        [resctrl.HOOK.bind(resctrl.rule({}, state.Caches((0,), 0xFFF, "GenuineIntel")))]
    )
    for groups, made in ((frozenset(), True), (frozenset({"koordlet-uid-u"}), False)):
        loop.written.clear()
        loop.knows(pod, by=by, resctrl_groups=groups)
        loop.start("uid-u")
        wanted = {key for wanted in loop.written for key in wanted}
        assert ((R.RESCTRL_GROUP, "koordlet-uid-u") in wanted) is made
        assert ((R.PROCESS_RESCTRL, "u/c-1") in wanted) is made


def test_the_idle_policy_stands_for_an_identity(loop, placed):
    loop.knows(placed("u", quality="BE", limits=BATCH), by=rules(native=False))
    loop.start("uid-u")
    assert loop.written[0][R.PROCESS_POLICY, "u/c-1"] == "idle"


def test_a_loop_that_is_busy_holds_no_container_up(loop, placed):
    loop.knows(placed("u", quality="BE", limits=BATCH))
    loop.away = True
    loop.start("uid-u")
    assert loop.results == [("start", "late")]
    # Nobody has said that the pod's own cgroup is written.
    loop.away = False
    loop.start("uid-u")
    assert (R.CPU_QUOTA, "u") in loop.written[1]


def test_a_start_waits_until_another_thread_has_written(loop, placed):
    loop.events.starts = container_starts.Starts(wait_seconds=stand_in.PATIENCE)
    loop.events.starts.write = lambda _wanted, done: threading.Thread(target=done).start()
    loop.knows(placed("u", quality="BE", limits=BATCH))
    loop.start("uid-u")
    assert loop.results == [("start", "adjusted")]


def test_of_an_unknown_pod_the_metadata_counts(loop):
    loop.start("new", labels={"koordinator.sh/qosClass": "BE"})
    (wanted,) = loop.written
    assert wanted[R.CPU_IDENTITY, "kubepods/podnew/c-1"] == "-1"
    assert wanted[R.CPU_IDENTITY, "kubepods/podnew"] == "-1"


@pytest.mark.parametrize(
    "more",
    [
        {"live": live_switches.Here(namespaces={"default": live_switches.Mode.OBSERVE})},
        {"by": adjustment.Rules()},
    ],
    ids=["namespace", "no-rules"],
)
def test_what_may_not_be_set_is_not_written(loop, placed, more):
    loop.knows(placed("u", quality="BE", limits=BATCH), **more)
    loop.start("uid-u")
    assert loop.written == []
    assert loop.results == [("start", "held-back")]


def test_a_poisoned_pod_holds_nobody_up(loop, placed):
    poison = {"koordinator.sh/cpuQOS": "[" * 60_000, "koordinator.sh/blkioQOS": '{"blocks":3}'}
    bad = placed("bad", quality="LS", annotations=poison)
    loop.knows(bad, placed("u", quality="BE", limits=BATCH))
    loop.start("uid-bad")
    loop.start("uid-u")
    assert loop.written[-1][R.CPU_IDENTITY, "u/c-1"] == "-1"


def test_what_is_remembered_of_pods_is_bounded():
    starts = container_starts.Starts()
    for number in range(container_starts.MOST_PODS + 10):
        starts.pod_written(str(number))
    assert len(starts._pods) == container_starts.MOST_PODS


def test_cpu_lists_of_best_effort_pods_follow_with_reconciliation(loop, placed):
    status = {
        "scheduling.koordinator.sh/resource-status": (
            '{"numaNodeResources":[{"node":0,"resources":{"cpu":"1"}}]}'
        )
    }
    by = stages.freeze([cpuset.HOOK.bind(cpuset.Rule(cpuset.Known(POOLS)))])
    loop.knows(placed("u", kubernetes_qos="BestEffort", annotations=status), by=by)
    loop.start("uid-u")
    assert loop.results == [("start", "unchanged")]
