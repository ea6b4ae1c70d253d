"""An agent that stops hands over; the next one goes on, and nothing opens in between."""

import errno

import msgspec
import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.decide import planner
from agent.loop import ticks
from agent.model import departure, edits, live_switches, slo_settings, state
from agent.store import heartbeat
from api.kubernetes import core
from domain.cluster_settings import node_slo
from process.runtime import clock as clocks
from process.runtime import metrics

GIB = 1 << 30
GATES = frozenset({"BECPUSuppress", "BatchResource"})
OURS = ("shares", "weight", "limit_in_bytes", "memory.max", "cpu.max", "quota_us", "cpuset.cpus")
CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA


class World:
    """A node whose batch pod has a memory limit, shares and cpus from the agent."""

    def __init__(self, host, folder):
        self.host, self.folder, self.clock = host, folder, clocks.ManualClock()
        self.registry = metrics.Registry()
        host.add("online", "Burstable", 3000)
        host.add("batch", "BestEffort", 6000, 2 * GIB)
        asked = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": str(4 * GIB)}
        resources = core.ResourceRequirements(requests=asked, limits=asked)
        online, batch = host.known.pods
        inner = (msgspec.structs.replace(batch.spec.containers[0], resources=resources),)
        spec = msgspec.structs.replace(batch.spec, containers=inner)
        host.know(pods=(online, msgspec.structs.replace(batch, spec=spec)))
        spec = {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 65}}
        complete = node_slo.of_spec(spec)
        host.know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )
        self.before = self.ours()
        self.start()

    def start(self, **habits):
        chosen = {"writing": True, "gates": GATES, "modes": {}, "default": planner.Mode.ENFORCE}
        self.loop = ticks.Ticks(
            self.host.observer,
            lambda: self.host.known,
            self.clock,
            ticks.Figures(self.registry),
            ticks.Habits(self.folder, **{**chosen, **habits}),
        )

    def ours(self):
        found = self.host.snapshot().items()
        return {path: text.strip() for path, text in found if path.endswith(OURS)}

    async def seconds(self, count):
        """Let time pass and return how often each state of the limits was seen."""
        seen = []
        for _ in range(count):
            self.host.tree.advance(1)
            await self.clock.advance(1)
            self.loop.tick()
            seen.append(self.ours())
        return seen

    def memory(self):
        return {text for path, text in self.ours().items() if path.endswith(("in_bytes", ".max"))}

    def journal(self):
        kept = journal.Journal(self.folder, "00000000-0000-4000-8000-000000000001")
        kept.load()
        return kept.entries


@pytest.fixture
async def world(host, tmp_path):
    made = World(host, tmp_path / "state")
    await made.seconds(5)
    assert made.ours() != made.before
    assert {entry.role for entry in made.journal()} >= {CPUSET, edits.Role.MEMORY_LIMIT}
    return made


def changed(states, held):
    return {path for seen in states for path in seen if seen[path] != held[path]}


async def test_a_stop_leaves_every_value_standing_and_hands_the_journal_over(world):
    held, entries = world.ours(), world.journal()
    world.loop.stop()
    assert world.ours() == held
    assert world.journal() == entries
    world.start()
    seen = await world.seconds(40)
    memory = {path for path in held if "memory" in path}
    assert changed(seen, held) & memory == set()
    assert world.journal()
    world.loop.put_back("uninstalled")
    assert world.ours() == world.before


async def test_nothing_opens_while_the_next_agent_knows_less(world):
    """It starts without pods, Node, NodeSLO and switches, which come one after another."""
    held, known = world.ours(), world.host.known
    world.loop.stop()
    world.start()
    world.host.know(thresholds=None, enforced=None, heard=False, pods=None, node=None)
    world.loop.switches = lambda: None
    seen = await world.seconds(30)
    world.loop.switches = live_switches.Here
    seen += await world.seconds(30)
    world.host.know(thresholds=known.thresholds, enforced=known.enforced, heard=True)
    seen += await world.seconds(30)
    world.host.know(node=known.node)
    seen += await world.seconds(30)
    world.host.know(pods=known.pods, remembered=True)
    seen += await world.seconds(30)
    assert changed(seen, held) & {path for path in held if "memory" in path} == set()
    cpus = {path for path in held if path.endswith("cpuset.cpus") and "besteffort" in path}
    assert all(seen_[path] not in ("", "0-7") for seen_ in seen for path in cpus if held[path])
    world.host.know(remembered=False)
    await world.seconds(30)
    world.loop.put_back("uninstalled")
    assert world.ours() == world.before


@pytest.mark.parametrize("how", ["the gate is off", "the pod is another's", "it is off"])
async def test_what_nobody_wants_after_a_restart_is_put_back_once_that_is_certain(world, how):
    held = world.ours()
    world.loop.stop()
    off = {"modes": {"batch-resources": planner.Mode.OFF}} if how == "it is off" else {}
    world.start(**({"gates": frozenset({"BECPUSuppress"})} if how == "the gate is off" else off))
    if how == "the pod is another's":
        online, batch = world.host.known.pods
        none = core.Container(name="app")
        spec = msgspec.structs.replace(batch.spec, containers=(none,))
        world.host.know(pods=(online, msgspec.structs.replace(batch, spec=spec)))
    memory = {path for path in held if "memory" in path}
    early = await world.seconds(int(planner.ADOPTED_SECONDS) - 2)
    assert changed(early, held) & memory == set()
    await world.seconds(10)
    now = world.ours()
    assert {now[path] for path in memory} == {world.before[path] for path in memory}
    assert {entry.role for entry in world.journal()} == {CPUSET}


async def test_an_agent_that_was_uninstalled_before_its_first_look_puts_back_as_well(world):
    world.loop.stop()
    world.start()
    world.host.step()
    world.loop.put_back("uninstalled")
    assert world.ours() == world.before


class Refusing(property_files.Knobs):
    """A kernel that refuses to take some values for a while."""

    def __init__(self, arranged):
        super().__init__(arranged)
        self.refuses, self.tried = frozenset(), []

    def write(self, role, group, text):
        if (role, text) in self.refuses:
            self.tried.append(text)
            raise OSError(errno.EBUSY, "busy")
        super().write(role, group, text)


@pytest.fixture
def bench(host, tmp_path):
    host.add("be", "BestEffort", 4000)
    host.know(thresholds=state.Thresholds(True))
    group = host.step().best_effort.groups[0].path
    kept = journal.Journal(tmp_path / "state", "boot")
    handles = Refusing(host.observer.layout)
    acting = executor.Executor(handles, kept, writing=True)
    before = handles.read(QUOTA, group)
    acting.apply([edits.Edit(QUOTA, group, "150000", "busy")], 0)
    handles.refuses = frozenset({(QUOTA, before)})
    return handles, acting, kept, group, before


def test_a_release_that_is_refused_is_tried_until_it_is_done(bench):
    handles, acting, kept, group, before = bench
    said = [*acting.apply([edits.Edit(QUOTA, group, None, "off")], 1).records]
    for second in range(2, 3600):
        said += acting.apply([], second).records
    assert {what for what, _, _ in said} == {"failed"}
    # At once a few times, then ever more seldom, and every five minutes for ever.
    assert 12 <= len(handles.tried) <= 20
    assert len(kept) == 1
    handles.refuses = frozenset()
    later = [record for second in range(3600, 3901) for record in acting.apply([], second).records]
    assert "put back" in {what for what, _, _ in later}
    assert handles.read(QUOTA, group) == before
    assert len(kept) == 0


def test_a_release_that_was_refused_is_dropped_when_the_value_is_wanted_again(bench):
    handles, acting, kept, group, _ = bench
    acting.apply([edits.Edit(QUOTA, group, None, "off")], 1)
    acting.apply([edits.Edit(QUOTA, group, "150000", "busy")], 30)
    handles.refuses = frozenset()
    for second in range(31, 1000):
        assert acting.apply([], second).records == []
    assert handles.read(QUOTA, group).split()[0] == "150000"
    assert len(kept) == 1


def test_a_release_that_was_refused_outlives_the_agent(bench, tmp_path):
    handles, acting, _, group, before = bench
    acting.apply([edits.Edit(QUOTA, group, None, "off")], 1)
    again = journal.Journal(tmp_path / "state", "boot")
    again.load()
    handles.refuses = frozenset()
    second = executor.Executor(handles, again, writing=True)
    second.apply([edits.Edit(*key, None, "nobody wants it") for key in [(QUOTA, group)]], 0)
    assert handles.read(QUOTA, group) == before


def test_put_back_leaves_what_just_refused_alone_for_a_while(bench):
    """A switch that is off puts back in every tick; one file must not cost a write each time."""
    handles, acting, _, _, _ = bench
    for second in range(1, 600):
        acting.put_back("off", second)
    assert 5 <= len(handles.tried) <= 10


NODE = msgspec.convert(
    {"metadata": {"name": "n", "labels": {"pool": "batch"}}, "spec": {"taints": []}}, core.Node
)


def daemon_set(**spec):
    return {"metadata": {}, "spec": {"template": {"spec": spec}}}


TAINTED = msgspec.structs.replace(
    NODE, spec=core.NodeSpec(taints=(core.Taint("lent", "no", "NoExecute"),))
)
UNREACHABLE = msgspec.structs.replace(
    NODE, spec=core.NodeSpec(taints=(core.Taint("node.kubernetes.io/not-ready", "", "NoExecute"),))
)
TERM = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["batch"]}]}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}
    }
}


@pytest.mark.parametrize(
    ("found", "node", "word"),
    [
        (daemon_set(), NODE, None),
        ({**daemon_set(), "metadata": {"deletionTimestamp": "now"}}, NODE, "being deleted"),
        (daemon_set(nodeSelector={"pool": "batch"}), NODE, None),
        (daemon_set(nodeSelector={"pool": "web"}), NODE, "does not select"),
        (daemon_set(nodeSelector={"pool": "web"}), None, None),
        (daemon_set(affinity=AFFINITY), NODE, "does not select"),
        (daemon_set(), TAINTED, "taint lent"),
        (daemon_set(tolerations=[{"operator": "Exists"}]), TAINTED, None),
        (daemon_set(), UNREACHABLE, None),
        ({"spec": {"template": {"spec": {"nodeSelector": 5}}}}, NODE, None),
        ({}, NODE, None),
    ],
    ids=[
        *("restart", "deleting", "still selected", "not selected", "node unknown", "affinity"),
        *("tainted", "tolerated", "taint of Kubernetes", "unreadable", "empty"),
    ],
)
def test_who_follows_is_told_by_the_daemon_set(found, node, word):
    said = departure.why(found, node)
    assert (said is None) if word is None else (word in said)


def test_a_gap_is_measured_from_the_last_mark(tmp_path):
    beat = heartbeat.Heartbeat(tmp_path, "boot")
    assert beat.gap(5.0) is None
    beat.mark(10.0)
    beat.mark(1200.125)
    beat.mark(30.0)
    beat.close()
    assert heartbeat.Heartbeat(tmp_path, "boot").gap(42.5) == heartbeat.Gap(12.5, False)
    assert heartbeat.Heartbeat(tmp_path, "another boot").gap(42.5) is None
    assert heartbeat.Heartbeat(tmp_path, "boot").gap(3.0) is None
    beat.mark(50.0, handed_over=True)
    assert heartbeat.Heartbeat(tmp_path, "boot").gap(51.0) == heartbeat.Gap(1.0, True)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\xff" * 99, b"x" * 9000, b'{"boot_id": 5}', b'{"boot_id": "\xff"}'],
)
def test_a_damaged_mark_says_nothing(tmp_path, data):
    (tmp_path / heartbeat.NAME).write_bytes(data)
    assert heartbeat.Heartbeat(tmp_path, "boot").gap(5.0) is None


def test_a_mark_that_cannot_be_left_is_named_and_harms_nobody(tmp_path):
    beat = heartbeat.Heartbeat(tmp_path / "nowhere", "boot")
    beat.mark(1.0)
    assert "nowhere" in beat.problem
    (tmp_path / "nowhere").mkdir()
    beat.mark(2.0)
    assert beat.problem is None
    beat.close()
