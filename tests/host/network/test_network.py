"""Bandwidth on a real kernel: a pair of interfaces between two networks that nobody else has."""

import contextlib
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.assembly import undo
from agent.decide import planner
from agent.hooks.network import network_qos
from agent.loop import ticks
from agent.model import cgroup_layout, edits, state, strategy_settings
from agent.observe import observation
from agent.observe.node import boot
from api.kubernetes import core
from process.runtime import clock as clocks
from process.runtime import metrics
from simulator.kubelet import nodefs
from tests.host.network.network_pair import (
    BATCH,
    LIMIT,
    LIMITED,
    LIVES,
    MOST_BATCH,
    NETWORK_QOS,
    ONLINE,
    PODS,
    SELF,
    THERE,
    TOTAL,
    WANTED,
    Network,
    acting,
    decided,
    outcomes,
    pod,
    run,
    speed,
    standing,
    together,
    unshare,
)


@pytest.fixture
def networks():
    """The network of a node, and another one at the other end of its only interface."""
    near, far = Network(), Network()
    try:
        try:
            near(unshare)
            end = far(unshare)
            near(run, f"ip link add k0 type veth peer name k1 netns {end}")
            for address in (SELF, ONLINE, BATCH, LIMITED):
                near(run, f"ip addr add {address}/24 dev k0")
            far(run, f"ip addr add {THERE}/24 dev k1")
            near(run, "ip link set k0 up")
            far(run, "ip link set k1 up")
            near(run, f"ip route add default via {THERE}")
            near(run, "tc qdisc add dev lo root handle 9: htb")
        except OSError as error:
            pytest.skip(f"this machine has no pair of interfaces or no HTB: {error}")
        yield near, far
    finally:
        near.close()
        far.close()


def test_classes_and_limits_are_real_and_all_is_gone_afterwards(networks, tmp_path, capsys):
    near, _ = networks
    before = near(standing)
    free = {source: speed(networks, source) for source in (ONLINE, BATCH, LIMITED)}
    decision = near(decided)
    assert near(acting(tmp_path).apply, decision.wanted, 0)
    shared = {source: speed(networks, source) for source in (ONLINE, BATCH, LIMITED)}
    with capsys.disabled():
        for name, source in (("online", ONLINE), ("batch", BATCH), ("limited", LIMITED)):
            print(
                f"\n{name}: {free[source] / 1e6:.0f} MB/s without, {shared[source] / 1e6:.2f} with,"
                f" ratio {free[source] / shared[source]:.1f}",
                end="",
            )
    assert free[LIMITED] > 4 * shared[LIMITED]
    # A loaded machine may send less; nothing lets it send much more.
    assert shared[LIMITED] < LIMIT / 8 * 1.6
    assert shared[BATCH] < MOST_BATCH / 8 * 1.6
    assert shared[ONLINE] < TOTAL / 8 * 1.6
    assert shared[LIMITED] < shared[BATCH] < shared[ONLINE]
    # Another process undoes it from the journal alone.
    assert outcomes(near(acting(tmp_path).put_back, "undo")) == {"put back"}
    assert near(standing) == before
    assert "htb" not in before
    assert speed(networks, LIMITED) > 4 * shared[LIMITED]


def test_a_pod_gets_the_bandwidth_that_it_requests_beside_others(networks, tmp_path, capsys):
    """Two batch pods want all there is, and one of them requested three quarters of it."""
    near, _ = networks
    before = near(standing)
    bits, total = 150_000_000, 200_000_000
    wanted = strategy_settings.Strategies(system=strategy_settings.System(bandwidth=total))
    pods = (pod("asks", BATCH, "BE", str(bits)), pod("takes", LIMITED, "BE"))
    decision = near(decided, pods, wanted)
    assert near(acting(tmp_path).apply, decision.wanted, 0)
    assert "rate 150Mbit" in near(standing)
    asks, takes = together(networks, [BATCH, LIMITED], 1.5)
    with capsys.disabled():
        print(f"\nrequested {bits / 8e6:.1f} MB/s: {asks / 1e6:.2f}, beside it {takes / 1e6:.2f}")
    assert asks > bits / 8 * 0.75
    assert asks > 2 * takes
    assert asks + takes < total / 8 * 1.4
    # Alone it may have more than it requested, and so may the other.
    assert speed(networks, LIMITED) > 2 * takes
    near(acting(tmp_path).put_back, "uninstalled")
    assert near(standing) == before


def flows(shown):
    return [line.split("*flowid ")[1] for line in shown.splitlines() if "*flowid" in line]


def test_a_second_round_finds_everything_as_it_shall_be(networks, tmp_path):
    near, _ = networks
    doing = acting(tmp_path)
    assert outcomes(near(doing.apply, near(decided).wanted, 0)) == {"written"}
    # The picture now shows a root that is ours.
    again = near(decided)
    assert len(again.wanted) == 5
    assert outcomes(near(doing.apply, again.wanted, 1)) == set()
    # Somebody takes all rules of one protocol away, and the table with them.
    rules = near(standing)
    near(run, "tc filter del dev k0 parent 4b00: pref 1")
    assert outcomes(near(doing.apply, again.wanted, 31)) <= {"written", "conflict"}
    assert set(flows(near(standing))) == set(flows(rules))
    assert outcomes(near(doing.apply, again.wanted, 61)) == set()
    # A pod goes and another one comes.
    pods = (*PODS[:1], pod("late", "10.99.0.77", "BE", **{NETWORK_QOS: '{"egressLimit":"8M"}'}))
    later = near(decided, pods).wanted
    gone = {edit.key for edit in again.wanted} - {edit.key for edit in later}
    released = [edits.Edit(role, group, None, "gone") for role, group in gone]
    assert outcomes(near(doing.apply, [*later, *released], 62)) == {"written", "put back"}
    shown = near(standing)
    assert "rate 8Kbit ceil 8Mbit" in shown
    assert "ceil 40Mbit" not in shown
    assert shown.count("match 0a6300") == 2
    near(doing.put_back, "stop")
    assert "htb" not in near(standing)


def test_what_somebody_chose_stays(networks, tmp_path):
    near, _ = networks
    near(run, "tc qdisc add dev k0 root tbf rate 1gbit burst 100k latency 1s")
    before = near(standing)
    assert "which another program chose" in near(decided).reason
    assert near(decided).wanted == ()
    # Also where it comes between the look and the write.
    wanted = network_qos.decide(
        state.NodeState(
            at=0,
            pods=PODS,
            network=state.Network("k0", str(near(namespace)), "noqueue 0:", permitted=True),
        ),
        WANTED,
    ).wanted
    outcome = near(acting(tmp_path).apply, wanted, 0)
    assert outcomes(outcome) == {"failed"}
    assert "File exists" in outcome.records[0][2]
    near(acting(tmp_path).put_back, "undo")
    assert near(standing) == before


def namespace():
    return Path("/proc/thread-self/ns/net").stat().st_ino


def test_another_network_is_not_touched_and_not_forgotten(networks, tmp_path):
    near, far = networks
    near(acting(tmp_path).apply, near(decided).wanted, 0)
    undone = far(acting(tmp_path).put_back, "undo from elsewhere")
    assert outcomes(undone) == {"failed"}
    assert "hostNetwork" in undone.records[0][2]
    assert "htb" in near(standing)
    near(acting(tmp_path).put_back, "undo")
    assert "htb" not in near(standing)


def test_what_is_only_observed_changes_nothing(networks, tmp_path):
    near, _ = networks
    before = near(standing)
    outcome = near(acting(tmp_path, writing=False).apply, near(decided).wanted, 0)
    assert outcomes(outcome) == {"would have written"}
    assert near(standing) == before


def agent(folder, mode):
    """An agent on a generated tree of groups; its network is the one that it is called in."""
    tree = nodefs.HostTree(folder / "host", 2, 1 << 30, 1, "cgroupfs")
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    pods = []
    for one in PODS:
        tree.add_pod(one.pod.metadata.uid, "Burstable", ["c"])
        pods.append(one.pod)
    addresses = (core.NodeAddress("InternalIP", SELF),)
    known = observation.Known(
        node=core.Node(status=core.NodeStatus(addresses=addresses)),
        thresholds=state.Thresholds(enable=False),
        pods=pods,
        enforced=WANTED,
    )
    habits = ticks.Habits(
        folder / "state",
        writing=True,
        gates=frozenset({"TCNetworkQoS"}),
        modes={"network-qos": mode},
    )
    observer = observation.Observer(roots, 1.0)
    figures = ticks.Figures(metrics.Registry())
    return ticks.Ticks(observer, lambda: known, clocks.ManualClock(), figures, habits)


@pytest.mark.parametrize("mode", list(planner.Mode))
def test_an_agent_goes_as_far_as_it_may(networks, tmp_path, mode):
    near, _ = networks
    before = near(standing)
    loop = near(agent, tmp_path, mode)
    near(loop.tick)
    assert loop.problem is None
    assert (near(standing) == before) is (mode is not planner.Mode.ENFORCE)
    if mode is planner.Mode.ENFORCE:
        assert near(standing).count("*flowid 4b00:") == len(PODS)
        near(loop.tick)
    near(loop.put_back, "uninstalled")
    near(loop.stop)
    assert near(standing) == before
    told = {record.outcome for record in loop.audit.records() if record.role in edits.OF_NETWORK}
    expected = {"enforce": {"written", "put back"}, "observe": {"would have written"}}
    assert told == expected.get(mode.value, set())


def test_undo_by_hand_works_in_the_network_of_the_node_alone(networks, tmp_path, capsys):
    near, far = networks
    before = near(standing)
    tree = nodefs.HostTree(tmp_path / "host", 2, 1 << 30, 1, "cgroupfs")
    kept = journal.Journal(tmp_path / "state", boot.boot_id(str(tree.proc)))
    kept.load()
    handles = property_files.Knobs(cgroup_layout.Layout("/nowhere", 1, "cgroupfs"))
    near(executor.Executor(handles, kept, writing=True).apply, near(decided).wanted, 0)
    words = [f"--state={tmp_path / 'state'}", f"--cgroup={tree.cgroup}", f"--proc={tree.proc}"]
    assert far(undo.main, words) == undo.FAILED
    assert "hostNetwork" in capsys.readouterr().out
    assert near(undo.main, [*words, "--dry-run"]) == undo.OK
    assert "would put back network-queue of" in capsys.readouterr().out
    assert near(standing) != before
    assert near(undo.main, words) == undo.OK
    assert near(standing) == before


VICTIM = """
import random, sys
sys.path[:0] = {path!r}
from pathlib import Path
from agent.host import netlink_socket
from agent.model import cgroup_layout, edits
from agent.apply import executor, journal
from agent.apply.properties import property_files
R = edits.Role
kept = journal.Journal(Path({folder!r}), "boot")
kept.load()
handles = property_files.Knobs(cgroup_layout.Layout("/nowhere", 1, "cgroupfs"))
acting = executor.Executor(handles, kept, writing=True)
rng = random.Random({seed})
where = f"{{netlink_socket.Kernel().namespace()}}/k0"
keys, second = set(), 0
acting.put_back("an earlier run left it behind")
while True:
    second += 1
    top = rng.randrange(10**6, 10**8)
    tree = ["htb 4b00:", f"1 0 {{top}} {{top}} 0", f"2 1 1000 {{top}} 1", "tables"]
    wanted = {{(R.NETWORK_QUEUE, where): "\\n".join(tree)}}
    for number in rng.sample(range(16), 5):
        group = f"{{where}}/{{number + 0x100:x}}"
        wanted[R.NETWORK_LIMIT, group] = f"1 1000 {{top}} 2"
        wanted[R.NETWORK_RULE, f"{{group}}/10.99.0.{{number}}"] = "present"
    if rng.random() < 0.2:
        wanted = {{}}
    wanted |= dict.fromkeys(sorted(keys - set(wanted)))
    outcome = acting.apply([edits.Edit(*key, value, "r") for key, value in wanted.items()], second)
    assert not outcome.failures, outcome.records
    keys = {{key for key, value in wanted.items() if value is not None}}
    print(len(wanted), flush=True)
"""


def live(folder, seed):
    """Change the interface again and again, until death."""
    source = VICTIM.format(path=[str(Path(edits.__file__).parents[2])], seed=seed, folder=folder)
    rng, done = random.Random(seed), 0
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as victim:
        try:
            for _ in range(rng.randrange(3, 12)):
                line = victim.stdout.readline()
                assert line, "the victim died by itself"
                done += int(line)
            with contextlib.suppress(subprocess.TimeoutExpired):
                victim.wait(rng.random() * 0.01)
        finally:
            victim.send_signal(signal.SIGKILL)
    return done


def test_nothing_is_left_after_crashes(networks, tmp_path):
    near, _ = networks
    before = near(standing)
    made = sum(near(live, str(tmp_path), seed) for seed in range(LIVES))
    assert made > 100
    undone = near(acting(tmp_path).put_back, "undo")
    assert outcomes(undone) <= {"put back"}
    assert near(standing) == before
