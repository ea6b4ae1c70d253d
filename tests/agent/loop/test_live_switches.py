"""A live switch that is thrown while the agent holds back, limits and evicts."""

import msgspec
import pytest

from agent.apply import journal
from agent.decide import planner
from agent.loop import ticks
from agent.model import edits, live_switches, slo_settings
from api.kubernetes import core
from domain.cluster_settings import node_slo
from process.runtime import clock as clocks
from process.runtime import metrics
from tests.agent import spec_verdicts

GIB = 1 << 30
ENFORCE, OBSERVE, OFF = (
    live_switches.Mode.ENFORCE,
    live_switches.Mode.OBSERVE,
    live_switches.Mode.OFF,
)
GATES = frozenset({"BECPUSuppress", "BatchResource", "BEMemoryEvict"})
SPEC = {
    "enable": True,
    "cpuSuppressThresholdPercent": 65,
    "memoryEvictThresholdPercent": 70,
}
# Properties that the strategies of this test set.
OURS = ("shares", "weight", "limit_in_bytes", "memory.max", "cpu.max", "quota_us", "cpuset.cpus")


class Evictor:
    """Remembers what was wanted."""

    def __init__(self):
        self.leaving, self.refused, self.wanted, self.observed = set(), set(), (), ()

    def want(self, evictions, present, observed=()):
        self.wanted, self.observed = tuple(evictions), tuple(observed)

    def cease(self):
        self.wanted = ()


class World:
    """A node short of cpu and memory, whose agent ticks once per second."""

    def __init__(self, host, folder):
        self.host, self.folder, self.clock = host, folder, clocks.ManualClock()
        host.add("online", "Burstable", 2000)
        host.add("batch", "BestEffort", 6000, 12 * GIB)
        asked = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": str(GIB)}
        resources = core.ResourceRequirements(requests=asked, limits=asked)
        online, batch = host.known.pods
        inner = (msgspec.structs.replace(batch.spec.containers[0], resources=resources),)
        spec = msgspec.structs.replace(batch.spec, containers=inner)
        host.know(pods=(online, msgspec.structs.replace(batch, spec=spec)))
        complete = node_slo.of_spec({"resourceUsedThresholdWithBE": SPEC})
        host.know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )
        self.before = self.ours()
        self.start()

    def start(self):
        self.loop = ticks.Ticks(
            self.host.observer,
            lambda: self.host.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                self.folder, writing=True, gates=GATES, modes={}, default=planner.Mode.ENFORCE
            ),
        )
        self.loop.evictor = self.evictor = Evictor()

    def say(self, here):
        self.loop.switches = lambda: here
        self.loop.switched()

    def ours(self):
        found = self.host.snapshot().items()
        return {path: text.strip() for path, text in found if path.endswith(OURS)}

    async def seconds(self, count):
        for _ in range(count):
            self.host.tree.advance(1)
            await self.clock.advance(1)
            self.loop.tick()

    def left_in_the_journal(self):
        kept = journal.Journal(self.folder, "00000000-0000-4000-8000-000000000001")
        kept.load()
        return kept.entries


@pytest.fixture
async def world(host, tmp_path):
    made = World(host, tmp_path / "state")
    await made.seconds(3)
    assert made.ours() != made.before
    assert [one.uid for one in made.evictor.wanted] == ["batch"]
    return made


async def test_off_puts_the_node_back_at_once_and_back_on_goes_on(world):
    world.say(live_switches.Here(agent=OFF))
    assert world.ours() == world.before
    assert world.evictor.wanted == ()
    await world.seconds(3)
    assert world.ours() == world.before
    assert (world.evictor.wanted, world.evictor.observed) == ((), ())
    assert {one.reason for one in world.loop.decisions.values()} == {
        "switched off by the live switch agent"
    }
    assert world.left_in_the_journal() == ()
    assert not spec_verdicts.of(world.loop).applied
    assert "switched off: cpu-suppress" in spec_verdicts.of(world.loop).condition.message
    world.say(live_switches.Here())
    await world.seconds(2)
    assert world.ours() != world.before
    assert [one.uid for one in world.evictor.wanted] == ["batch"]


async def test_off_takes_effect_though_every_tick_fails(world):
    def broken():
        raise RuntimeError("broken")

    world.loop._known = broken
    world.loop.switches = lambda: live_switches.Here(agent=OFF)
    with pytest.raises(RuntimeError):
        world.loop.tick()
    assert world.ours() == world.before


async def test_observe_puts_the_node_back_and_goes_on_deciding(world):
    world.say(live_switches.Here(agent=OBSERVE))
    await world.seconds(2)
    assert world.ours() == world.before
    assert world.evictor.wanted == ()
    assert [one.uid for one in world.evictor.observed] == ["batch"]
    assert "would have written" in {one.outcome for one in world.loop.audit.records()}
    assert {world.loop.mode(name) for name in world.loop.names} == {OBSERVE}
    assert not spec_verdicts.of(world.loop).applied
    assert "only observed: cpu-suppress" in spec_verdicts.of(world.loop).condition.message


async def test_one_strategy_leaves_the_others_alone(world):
    world.say(live_switches.Here(strategies={"batch-resources": OFF}))
    await world.seconds(2)
    wanted = {name: len(one.wanted) for name, one in world.loop.decisions.items()}
    assert (wanted["batch-resources"], wanted["cpu-suppress"] > 0) == (0, True)
    reason = world.loop.decisions["batch-resources"].reason
    assert reason == "switched off by the live switch agent.batch-resources"
    roles = {entry.role for entry in world.left_in_the_journal()}
    assert roles == {edits.Role.CPUSET}
    assert world.evictor.wanted


async def test_evictions_alone(world):
    set_before = world.ours()
    world.say(live_switches.Here(evictions=OFF))
    assert world.evictor.wanted == ()
    await world.seconds(1)
    assert (world.evictor.wanted, world.evictor.observed) == ((), ())
    reason = world.loop.decisions["memory-evict"].reason
    assert reason == "switched off by the live switch agent.evictions"
    assert world.ours() == set_before
    world.say(live_switches.Here(evictions=OBSERVE))
    await world.seconds(1)
    assert (world.evictor.wanted, len(world.evictor.observed)) == ((), 1)


async def test_a_namespace_that_is_off_is_let_go_without_a_word(world):
    world.say(live_switches.Here(namespaces={"default": OFF}))
    await world.seconds(2)
    assert {entry.role for entry in world.left_in_the_journal()} == {edits.Role.CPUSET}
    assert (world.evictor.wanted, world.evictor.observed) == ((), ())


async def test_thrown_while_no_agent_was_here_it_takes_effect_as_soon_as_it_is_heard(world):
    """The agent is killed, the switch is thrown, the next agent does not know it yet."""
    held = world.ours()
    assert world.left_in_the_journal()
    # As a kill would leave it: nothing put back, the folder free.
    world.loop.enforcer.close()
    world.start()
    world.loop.switches = lambda: None
    await world.seconds(40)
    assert world.ours() == held
    assert world.loop.decisions == {}
    world.say(live_switches.Here(agent=OFF))
    assert world.ours() == world.before
    await world.seconds(2)
    assert world.ours() == world.before
    assert world.left_in_the_journal() == ()


async def test_spared_pods_hide_nobody_who_may_be_evicted(host, tmp_path):
    world = World(host, tmp_path / "state")
    second = host.add("batch-2", "BestEffort", 100, 3 * GIB)
    spared = msgspec.structs.replace(second.metadata, namespace="spared")
    online, batch, _ = host.known.pods
    spared_pod = msgspec.structs.replace(second, metadata=spared)
    host.know(pods=(online, batch, spared_pod))
    world.say(live_switches.Here(namespaces={"default": OBSERVE}))
    await world.seconds(3)
    assert [one.uid for one in world.evictor.wanted] == ["batch-2"]
    assert [one.uid for one in world.evictor.observed] == ["batch"]


def test_a_restart_with_the_switch_on_writes_nothing(host, tmp_path):
    world = World(host, tmp_path / "state")
    world.say(live_switches.Here(agent=OFF))
    for _ in range(3):
        host.tree.advance(1)
        world.loop.tick()
    assert world.ours() == world.before
    assert world.left_in_the_journal() == ()
    assert msgspec.structs.asdict(world.loop.switched())["agent"] == "off"
