"""What the agent remembers survives restarts, outages and damage; virtual time, real files."""

import pytest

from agent.model import state
from agent.store import learner, peaks, time_series
from api.koordinator.metadata import qos
from api.kubernetes import core
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock

GIB = 1 << 30
RULES = peaks.Rules(cold_start_seconds=600)


def make_pod(uid):
    request = core.ResourceRequirements(requests={"cpu": "2", "memory": "4Gi"})
    return core.Pod(
        metadata=core.ObjectMeta(
            name=f"name-{uid}",
            namespace="default",
            uid=uid,
            labels={"koordinator.sh/qosClass": "LS"},
            creation_timestamp="2025-06-15T13:00:00Z",
        ),
        spec=core.PodSpec(containers=(core.Container(name="app", resources=request),)),
        status=core.PodStatus(phase="Running", qos_class="Burstable"),
    )


class Agent:
    """The memory of an agent without the rest of it."""

    def __init__(self, folder, clock, boot_id="boot-1", habits=None):
        self.samples, self.clock = time_series.Histories(), clock
        self.recall = learner.Recall(
            folder, boot_id, self.samples, RULES, clock, habits or learner.Habits()
        )
        self.recall.load()

    def sample(self, picture, node=4.0, pod=1.0):
        at = self.clock.monotonic()
        figures = {("node",): (node, 3 * GIB)}
        figures |= {("pod", one.pod.metadata.uid): (pod, GIB) for one in picture.pods}
        for key, (cpu, memory) in figures.items():
            self.samples.add((*key, "cpu"), at, cpu, 1800)
            self.samples.add((*key, "memory"), at, memory, 1800)

    async def minutes(self, picture, count=1, **used):
        for _ in range(count):
            for _ in range(6):
                await self.clock.advance(10)
                self.sample(picture(), **used)
            await self.recall.learn(picture())


@pytest.fixture
def clock():
    return ManualClock(1.75e9)


@pytest.fixture
def picture(clock, node):
    pods = tuple(state.PodState(make_pod(uid), "Burstable") for uid in ("a", "b"))
    return lambda: state.NodeState(at=clock.now(), node=node, pods=pods)


async def test_an_interval_is_its_ninetieth_percentile(picture, clock):
    samples = time_series.Histories()
    for second in range(121):
        for key in (("node",), ("pod", "a")):
            samples.add((*key, "cpu"), second, float(second), 1800)
            samples.add((*key, "memory"), second, second * 1e6, 1800)
    found = learner.interval(samples, picture(), 120.0, 60.0)
    # Samples 60 to 120: the figure at index int(61 * 0.9) - 1.
    assert found.node == peaks.Sample(113.0, 113e6)
    assert found.pods == {"a": (peaks.Sample(113.0, 113e6), qos.Band.PROD)}
    assert found.at == clock.now()


async def test_what_was_learned_is_forecast(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    assert agent.recall.forecast(picture()).reclaimable is None
    await agent.minutes(picture, 30)
    found = agent.recall.forecast(picture())
    # Two pods request 2 cores each, use 1 and the node as a whole 4, of which 2 are the system's.
    assert found.reclaimable.cpu == 0
    assert found.peak.cpu == pytest.approx(4000 * 1.1, rel=0.06)


async def test_a_quiet_node_lends(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 30, node=2.0, pod=1.0)
    found = agent.recall.forecast(picture())
    assert found.reclaimable.cpu == pytest.approx(4000 - 2 * 1100, abs=150)
    assert 4 * GIB < found.reclaimable.memory < 5 * GIB
    figures = metrics.Registry()
    agent.recall.show(figures)
    assert figures.value("koord_agent_prod_reclaimable_cores") == found.reclaimable.cpu / 1000
    assert figures.value("koord_agent_prod_reclaimable_bytes") == found.reclaimable.memory
    assert figures.value("koord_agent_prod_peak_cores") == found.peak.cpu / 1000


async def test_a_restart_goes_on_where_it_was(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 30)
    forecast = agent.recall.forecast(picture())
    agent.recall.stop()
    again = Agent(tmp_path, clock)
    for key in (("node", "cpu"), ("pod", "a", "memory")):
        assert list(again.samples.get(key).window(0, 1e9)) == list(
            agent.samples.get(key).window(0, 1e9)
        )
    await again.minutes(picture, 1)
    assert len(again.recall.models) == len(agent.recall.models)
    assert again.recall.forecast(picture()).peak == forecast.peak


async def test_a_killed_agent_loses_little(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 10)
    await agent.recall.keep()
    await agent.minutes(picture, 1)
    again = Agent(tmp_path, clock)
    newest = again.samples.get(("node", "cpu")).newest
    assert newest == (clock.monotonic() - 60, 4.0)
    await again.minutes(picture, 1)
    assert "a" in again.recall.models


async def test_another_boot_keeps_what_is_young_enough(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 10)
    agent.recall.stop()
    rebooted = ManualClock(clock.now() + 300)
    again = Agent(tmp_path, rebooted, boot_id="boot-2")
    assert again.samples.get(("node", "cpu")).newest[0] == pytest.approx(-300.0)
    late = ManualClock(clock.now() + 7200)
    assert len(Agent(tmp_path, late, boot_id="boot-3").samples) == 0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_a_clock_that_jumps_an_hour_costs_nothing(tmp_path, clock, picture, node, jump):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 30)
    before = agent.recall.forecast(picture()).peak
    agent.recall.stop()
    moved = ManualClock(clock.now() + jump)
    await moved.advance(clock.monotonic())
    again = Agent(tmp_path, moved)
    assert len(again.samples) == len(agent.samples)
    pods = picture().pods
    await again.minutes(lambda: state.NodeState(at=moved.now(), node=node, pods=pods), 3)
    seen = state.NodeState(at=moved.now(), node=node, pods=pods)
    assert again.recall.forecast(seen).peak.cpu == pytest.approx(before.cpu, rel=0.06)


async def test_damage_is_named_and_begun_afresh(tmp_path, clock, picture):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 3)
    agent.recall.stop()
    (tmp_path / "samples").write_bytes(b"\0" * 100)
    (tmp_path / "peaks" / "a").write_bytes(b"{")
    again = Agent(tmp_path, clock)
    assert "begins afresh" in again.recall.problem
    await again.minutes(picture, 1)
    assert "a" in again.recall.models
    await again.recall.keep()
    assert again.recall.problem is None


async def test_a_disk_that_takes_nothing_costs_no_history(tmp_path, clock, picture):
    (tmp_path / "file").write_text("")
    agent = Agent(tmp_path / "file", clock)
    await agent.minutes(picture, 3)
    await agent.recall.keep()
    assert "not written" in agent.recall.problem
    assert agent.recall.forecast(picture()).peak is not None
    agent.recall.stop()


async def test_files_of_pods_that_went_go(tmp_path, clock, picture, node):
    agent = Agent(tmp_path, clock)
    await agent.minutes(picture, 3)
    agent.recall.stop()
    assert (tmp_path / "peaks" / "a").exists()
    await agent.minutes(lambda: state.NodeState(at=clock.now(), node=node), 40)
    assert not (tmp_path / "peaks" / "a").exists()


async def test_it_works_for_ever_by_itself(tmp_path, clock, picture):
    habits = learner.Habits(training_seconds=60, keep_seconds=120)
    agent = Agent(tmp_path, clock, habits=habits)
    figures = metrics.Registry()
    agent.recall.show(figures)
    seen = {"picture": None}
    async with supervise.Supervisor("test") as tasks:
        tasks.start("recall", lambda: agent.recall.run(lambda: seen["picture"]))
        for minute in range(5):
            agent.sample(picture())
            seen["picture"] = picture() if minute else None
            await clock.advance(60)
        for _ in range(200):
            if (tmp_path / "samples").exists() and (tmp_path / "peaks" / "a").exists():
                break
            await clock.settle()
    assert figures.value("koord_agent_peak_models") == 2 + len(peaks.SHARED)
    assert figures.value("koord_agent_history_series") == 6
    assert figures.value("koord_agent_history_samples") == 30
