"""The strategies as a whole, on a generated host: what they set, and that they let it go."""

import msgspec
import pytest

from agent.decide import planner
from agent.loop import ticks
from agent.model import edits, slo_settings, state
from api.kubernetes import core
from domain.cluster_settings import node_slo
from process.runtime import clock as clocks
from process.runtime import metrics

GIB = 1 << 30
ENFORCE, OBSERVE, OFF = planner.Mode.ENFORCE, planner.Mode.OBSERVE, planner.Mode.OFF
GATES = frozenset(
    {"BECPUSuppress", "BatchResource", "CPUBurst", "CPUSetAllocator", "CgroupReconcile"}
    | {"BEMemoryEvict", "SystemConfig", "GroupIdentity", "CPUEvict"}
)
FILES = {
    1: {"shares": "cpu/cpu.shares", "quota": "cpu/cpu.cfs_quota_us"}
    | {"memory": "memory/memory.limit_in_bytes", "cpus": "cpuset/cpuset.cpus"},
    2: {"shares": "cpu.weight", "quota": "cpu.max", "memory": "memory.max", "cpus": "cpuset.cpus"},
}


class Evictor:
    """Remembers what was wanted."""

    def __init__(self):
        self.leaving, self.refused, self.wanted, self.observed = set(), set(), (), ()

    def want(self, evictions, present, observed=()):
        self.wanted, self.observed, self.present = tuple(evictions), tuple(observed), present


class World:
    """A host whose agent ticks once per second."""

    def __init__(self, host, folder, default=ENFORCE, *, writing=True, **habits):
        self.host, self.clock = host, clocks.ManualClock()
        self.modes = {}
        self.loop = ticks.Ticks(
            host.observer,
            lambda: host.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder, writing=writing, gates=GATES, modes=self.modes, default=default, **habits
            ),
        )
        self.loop.evictor = self.evictor = Evictor()

    def enforce(self, **spec):
        complete = node_slo.of_spec(spec)
        self.host.know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )

    async def seconds(self, count):
        for _ in range(count):
            self.host.tree.advance(1)
            await self.clock.advance(1)
            self.loop.tick()
        return self.loop.picture

    def text(self, what, group):
        controller, _, name = FILES[self.host.tree.version][what].rpartition("/")
        return (self.host.tree.cgroup / controller / group / name).read_text().strip()


@pytest.fixture
def world(host, tmp_path):
    host.add("online", "Burstable", 2000)
    host.add("batch", "BestEffort", 1000)
    return World(host, tmp_path / "state")


def with_batch_limits(host):
    """Let the batch pod ask for two cores and a gibibyte, limited to the same."""
    asked = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": str(GIB)}
    resources = core.ResourceRequirements(requests=asked, limits=asked)
    pods = []
    for pod in host.known.pods:
        if pod.metadata.uid == "batch":
            containers = (msgspec.structs.replace(pod.spec.containers[0], resources=resources),)
            spec = msgspec.structs.replace(pod.spec, containers=containers)
            pod = msgspec.structs.replace(pod, spec=spec)
        pods.append(pod)
    host.know(pods=tuple(pods))


async def test_batch_pods_get_what_they_ask_for_and_lose_it_again(world):
    with_batch_limits(world.host)
    world.enforce()
    picture = await world.seconds(3)
    batch = picture.pods[1]
    first = world.host.tree.version == 1
    for group in (batch.group, batch.containers[0].group):
        assert world.text("shares", group) == ("2048" if first else "79")
        assert world.text("quota", group) == ("200000" if first else "200000 100000")
        assert world.text("memory", group) == str(GIB)
    world.modes["batch-resources"] = OFF
    await world.seconds(2)
    assert world.text("shares", batch.group) == ("1024" if first else "100")
    assert world.text("quota", batch.group) == ("-1" if first else "max 100000")


async def test_by_default_strategies_only_observe(host, tmp_path):
    host.add("batch", "BestEffort", 1000)
    world = World(host, tmp_path / "state", default=OBSERVE)
    with_batch_limits(host)
    world.enforce()
    before = host.snapshot()
    await world.seconds(4)
    roles = {record.role for record in world.loop.audit.records()}
    assert {record.outcome for record in world.loop.audit.records()} == {"would have written"}
    assert roles == {edits.Role.CPU_SHARES, edits.Role.CPU_QUOTA, edits.Role.MEMORY_LIMIT}
    ours = ("shares", "weight", "limit_in_bytes", "memory.max", "cpu.max", "quota_us")
    after = host.snapshot()
    assert {p: b for p, b in after.items() if p.endswith(ours)} == {
        p: b for p, b in before.items() if p.endswith(ours)
    }


async def test_an_agent_that_observes_tells_each_change_once(host, tmp_path):
    host.add("batch", "BestEffort", 1000)
    world = World(host, tmp_path / "state", writing=False)
    with_batch_limits(host)
    world.enforce()
    await world.seconds(5)
    told = len(world.loop.audit)
    await world.seconds(35)
    assert told
    assert len(world.loop.audit) == told


async def test_online_pods_keep_off_bound_cpus(world, new_pod):
    key = "scheduling.koordinator.sh/resource-status"
    bound = new_pod("bound", "Guaranteed", **{key: '{"cpuset":"2-3"}'})
    world.host.tree.add_pod("bound", "Guaranteed", ["c-bound"])
    world.host.know(pods=(*world.host.known.pods, bound))
    world.enforce()
    picture = await world.seconds(3)
    online, _, bound = picture.pods
    assert world.text("cpus", bound.containers[0].group) == "2-3"
    assert world.text("cpus", online.containers[0].group) == "0-1,4-7"
    world.host.know(pods=world.host.known.pods[:2])
    world.host.tree.remove_pod("bound")
    await world.seconds(2)
    back = "0-7" if world.host.tree.version == 1 else ""
    assert world.text("cpus", online.containers[0].group) == back


async def test_memory_pressure_asks_for_an_eviction_once(world):
    world.host.tree.set_load("batch", 1000, 12 * GIB)
    world.host.tree.set_load("online", 1000, 2 * GIB)
    world.enforce(resourceUsedThresholdWithBE={"enable": True, "memoryEvictThresholdPercent": 70})
    await world.seconds(3)
    (wanted,) = world.evictor.wanted
    assert (wanted.uid, wanted.feature) == ("batch", "BEMemoryEvict")
    assert world.evictor.observed == ()
    assert world.evictor.present == {"online", "batch"}
    assert "threshold 70 %" in wanted.reason
    world.evictor.leaving = {"batch"}
    await world.seconds(1)
    assert world.evictor.wanted == ()
    world.modes["memory-evict"] = OBSERVE
    world.evictor.leaving = set()
    await world.seconds(5)
    assert (len(world.evictor.wanted), len(world.evictor.observed)) == (0, 1)


async def test_another_pod_leaves_while_the_first_takes_an_hour_to_stop(world):
    world.host.add("second", "BestEffort", 1000, 6 * GIB)
    world.host.tree.set_load("batch", 1000, 8 * GIB)
    world.enforce(resourceUsedThresholdWithBE={"enable": True, "memoryEvictThresholdPercent": 70})
    await world.seconds(3)
    assert [one.uid for one in world.evictor.wanted] == ["batch"]
    world.evictor.leaving = {"batch"}
    await world.seconds(6)
    assert world.evictor.wanted == ()
    world.evictor.leaving, world.evictor.refused = set(), {"batch"}
    await world.seconds(6)
    assert [one.uid for one in world.evictor.wanted] == ["second"]


async def test_cpu_usage_evicts_only_after_a_while(world):
    world.host.tree.set_load("batch", 6000, GIB)
    spec = {"enable": True, "cpuSuppressThresholdPercent": 100, "cpuEvictThresholdPercent": 80}
    world.enforce(resourceUsedThresholdWithBE={**spec, "cpuEvictTimeWindowSeconds": 5})
    await world.seconds(15)
    assert world.evictor.wanted == ()
    await world.seconds(10)
    assert [one.feature for one in world.evictor.wanted] == ["CPUEvict"]


async def test_without_a_node_slo_everything_is_put_back(world):
    with_batch_limits(world.host)
    world.enforce()
    picture = await world.seconds(3)
    world.host.know(thresholds=None, enforced=None)
    await world.seconds(2)
    assert world.loop.decided.reason == "no NodeSLO of this node has been seen"
    first = world.host.tree.version == 1
    assert world.text("quota", picture.pods[1].group) == ("-1" if first else "max 100000")
    assert world.evictor.wanted == ()


async def test_each_strategy_says_why(world):
    world.enforce(resourceUsedThresholdWithBE={"enable": True})
    await world.seconds(3)
    said = {name: decision.reason for name, decision in world.loop.decisions.items()}
    assert "best effort may use" in said["cpu-suppress"]
    assert world.loop.mode("cpu-suppress") is ENFORCE
    world.modes["cpu-suppress"] = OBSERVE
    assert world.loop.mode("cpu-suppress") is OBSERVE
    assert said["memory-qos"] == "memory is set neither for a class nor for a pod"
    assert "gate CoreSched is off" in said["core-sched"]
    assert said["cpu-burst"] == "bursting is on neither for the node nor for a pod"


async def test_a_throttled_container_gets_more_quota(world):
    online = world.host.step().pods[0].group
    for controller, name, text in (
        ("cpu", FILES[world.host.tree.version]["quota"].rpartition("/")[2], "200000"),
    ):
        root = world.host.tree.cgroup / (controller if world.host.tree.version == 1 else "")
        for folder in (root / online, *(root / online).glob("cri-*")):
            (folder / name).write_text(text)
    world.enforce(cpuBurstStrategy={"policy": "cfsQuotaBurstOnly"})
    group = world.host.look().pods[0].containers[0].group
    for times in (0, 0, 100):
        await throttled_second(world, group, times)
    assert world.text("quota", group).split()[0] == "240000"
    world.enforce()
    await world.seconds(1)
    assert world.text("quota", group).split()[0] == "200000"


async def throttled_second(world, group, times):
    """A second at whose end the kernel says how often the group was throttled so far."""
    tree = world.host.tree
    tree.advance(1)
    path = tree.cgroup / ("cpu" if tree.version == 1 else "") / group / "cpu.stat"
    usage = path.read_text().splitlines()[:3] if tree.version == 2 else []
    path.write_text("\n".join([*usage, f"nr_periods {10 * times}", f"nr_throttled {times}\n"]))
    await world.clock.advance(1)
    world.loop.tick()


def test_a_picture_of_strategies_cannot_be_changed(placed):
    with pytest.raises(AttributeError):
        placed().containers[0].quota_us = 5
    assert state.ContainerState("a").usage == state.Usage()
