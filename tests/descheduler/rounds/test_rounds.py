"""When rounds run, what they see, and what they remember."""

import dataclasses

import pytest

from descheduler.framework import objective
from descheduler.framework.planning import history, round_plan
from descheduler.rounds import configured, round_metrics, rounds
from process.configuration import switches
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from tests.descheduler import builders

TEXT = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: {interval}
profiles:
- name: tidy
  plugins:
    deschedule: {{enabled: [{{name: RemoveFailedPods}}]}}
  pluginConfig:
  - name: RemoveFailedPods
    args: {{minPodLifetimeSeconds: 0}}
  - name: MigrationController
    args: {{evictFailedBarePods: true, schedulerNames: [default-scheduler]}}
"""


@dataclasses.dataclass
class Sight:
    """A cluster with a pod that has failed."""

    clock: ManualClock
    waits: str | None = None
    looks: int = 0
    fails: bool = False

    def waits_for(self):
        return self.waits

    async def look(self):
        self.looks += 1
        nodes = [builders.node("n1"), builders.node("n2")]
        pods = [builders.pod("bad", "n1", controller="", phase="Failed", ready=False)]
        seen = builders.picture_of(nodes, pods, now=self.clock.now())
        return (dataclasses.replace(seen, nodes=None) if self.fails else seen), None


@dataclasses.dataclass
class Judge:
    """Lets every move be made."""

    moves: history.History = dataclasses.field(default_factory=dict)
    asked: list = dataclasses.field(default_factory=list)

    def objective(self, seen, moves):
        self.asked.append(moves)
        return objective.ACCEPT_ALL

    def permitted(self, known, now):
        return known

    def decided(self, plan, seen):
        return {}

    def halted(self, now):
        return {}


@dataclasses.dataclass
class Carrying:
    """Remembers plans in place of carrying them out."""

    plans: list[round_plan.RoundPlan] = dataclasses.field(default_factory=list)

    async def apply(self, plan, seen, receipts):
        self.plans.append(plan)
        return sum(not move.dry_run for move in plan.moves)


class Bench:
    """Rounds on a cluster in memory."""

    def __init__(self, clock, interval="10s", **given):
        self.clock, self.registry = clock, metrics.Registry()
        self.sight, self.judge, self.carrying = Sight(clock), Judge(), Carrying()
        self.live = switches.Switches(rounds.SWITCH)
        parts = {
            "chosen": configured.read(TEXT.format(interval=interval)),
            "sight": self.sight,
            "judge": self.judge,
            "live": self.live,
            "figures": round_metrics.RoundMetrics(self.registry),
            "clock": clock,
        }
        self.rounds = rounds.Rounds(rounds.Parts(**{**parts, **given}))

    async def once(self):
        return await self.rounds.once(self.carrying)


@pytest.fixture
def clock():
    return ManualClock(builders.NOW)


async def test_a_round_plans_and_reports(clock):
    bench = Bench(clock)
    outcome = await bench.once()
    assert (outcome.result, outcome.message) == ("planned", "moves 1 pod")
    assert outcome.moved == 1
    assert bench.rounds.last is outcome
    assert bench.registry.value("koord_descheduler_rounds_total", {"result": "planned"}) == 1


async def test_what_one_round_moves_the_next_one_remembers(clock):
    bench = Bench(clock)
    bench.judge.moves = {"earlier": history.Moved(builders.NOW - 60, "default", "n9")}
    await bench.once()
    await clock.advance(10)
    await bench.once()
    first, second = bench.judge.asked
    assert set(first) == {"earlier"}
    assert set(second) == {"earlier", "uid-bad"}


@pytest.mark.parametrize(
    ("change", "result", "message"),
    [
        ({"waits": "nodes not listed yet"}, "waiting", "no round: nodes not listed yet"),
        ({"fails": True}, "failed", "no round: AttributeError"),
    ],
    ids=["caches", "a fault of ours"],
)
async def test_a_round_that_is_not_possible_says_why(clock, change, result, message):
    bench = Bench(clock)
    bench.sight = dataclasses.replace(bench.sight, **change)
    parts = dataclasses.replace(bench.rounds._parts, sight=bench.sight)
    outcome = await rounds.Rounds(parts).once(bench.carrying)
    assert outcome.result == result
    assert outcome.message.startswith(message)
    assert bench.carrying.plans == []


async def test_without_plug_ins_nothing_is_looked_at(clock):
    bench = Bench(clock, chosen=configured.read(""))
    outcome = await bench.once()
    assert outcome.message == "no round: no plug-in looks for pods to move"
    assert bench.sight.looks == 0


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_the_live_switch_is_asked_in_every_round(clock, mode):
    bench = Bench(clock)
    bench.live.take({rounds.SWITCH: mode})
    outcome = await bench.once()
    assert outcome.moved == 0
    assert len(bench.carrying.plans) == (mode == "observe")
    bench.live.take({})
    assert (await bench.once()).moved == 1


async def run(bench, clock, seconds):
    """Run rounds for some time; return how many there were."""
    async with supervise.Supervisor("test") as tasks:
        tasks.start("rounds", lambda: bench.rounds.run(bench.carrying))
        await clock.settle()
        for _ in range(seconds):
            await clock.advance(1.0)
    return bench.sight.looks


async def test_rounds_come_at_their_interval(clock):
    assert await run(Bench(clock), clock, 35) == 4


async def test_without_an_interval_one_round_runs_as_soon_as_it_can(clock):
    bench = Bench(clock, interval="0s")
    bench.sight.waits = "nodes not listed yet"
    assert await run(bench, clock, 20) == 0
    bench = Bench(clock, interval="0s")
    assert await run(bench, clock, 600) == 1
