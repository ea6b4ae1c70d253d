"""The kernel is asked to take memory back as far as the agent may, and not where tasks wait."""

import pytest

from agent.decide import planner
from agent.decide.strategies import memory_reclaim
from agent.loop import memory_reclaimer
from agent.model import cgroup_layout, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from process.runtime import clock as clocks
from process.runtime import metrics

MIB = 1 << 20
ENFORCE, OBSERVE, OFF = planner.Mode.ENFORCE, planner.Mode.OBSERVE, planner.Mode.OFF
CALM = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
BUSY = "some avg10=42.00 avg60=0.00 avg300=0.00 total=0\n"


class Loop:
    """A loop that has looked."""

    def __init__(self, arranged, pods):
        self.layout, self.mode_of = arranged, ENFORCE
        self.picture = state.NodeState(at=0, pods=pods)
        self.decisions = {memory_reclaimer.STRATEGY: edits.Decision("because")}

    def mode(self, _name):
        return self.mode_of

    def reach(self, _name, _pod):
        return self.mode_of


class Bench:
    def __init__(self, root, placed):
        limits = {names.BATCH_MEMORY: "1000Mi"}
        self.group = root / "job" / "app"
        self.group.mkdir(parents=True)
        arranged = cgroup_layout.Layout(str(root), 2, "cgroupfs")
        self.loop = Loop(arranged, (placed("job", quality="BE", limits=limits), placed("web")))
        self.memory = {qos.QoS.BE: strategy_settings.Memory(wmark_ratio=95, wmark_scale=20)}
        self.figures = metrics.Registry()
        self.reclaimer = memory_reclaimer.Reclaimer(
            self.loop,
            clocks.ManualClock(),
            memory_reclaim.Rules(),
            self.figures,
            lambda: (self.memory, strategy_settings.Overrides()),
        )
        self.told = []
        self.reclaimer.tell = self.told.append
        self.write(current=950 * MIB, pressure=CALM, reclaim="")

    def write(self, **files):
        for name, text in files.items():
            (self.group / f"memory.{name}").write_text(str(text))

    def asked(self):
        return (self.group / "memory.reclaim").read_text()

    def said(self):
        return [(one["reason"], one["to"]) for one in self.told]


@pytest.fixture
def bench(tmp_path, placed):
    return Bench(tmp_path, placed)


async def test_what_is_above_the_mark_is_taken_back_and_said(bench):
    await bench.reclaimer.step()
    assert bench.asked() == str(52 * MIB)
    assert bench.said() == [("reclaimed", str(52 * MIB))]
    assert bench.told[0]["groups"] == ["job/app"]
    assert bench.figures.value("koord_agent_reclaimed_bytes_total") == 52 * MIB
    assert bench.reclaimer.problem is None


@pytest.mark.parametrize("why", ["off", "waits", "no ratio", "no strategy", "no layout"])
async def test_nothing_is_asked_for_where_it_must_not_be(bench, why):
    if why == "off":
        bench.loop.mode_of = OFF
    elif why == "waits":
        bench.write(pressure=BUSY)
    elif why == "no ratio":
        bench.memory = {}
    elif why == "no strategy":
        bench.loop.decisions = {}
    else:
        bench.loop.layout = None
    await bench.reclaimer.step()
    assert (bench.asked(), bench.told) == ("", [])


async def test_observing_says_it_once(bench):
    bench.loop.mode_of = OBSERVE
    for _ in range(3):
        await bench.reclaimer.step()
    assert bench.asked() == ""
    assert bench.said() == [("would have reclaimed", str(52 * MIB))]


async def test_a_kernel_that_cannot_is_named(bench):
    (bench.group / "memory.reclaim").unlink()
    await bench.reclaimer.step()
    assert "no memory.reclaim" in bench.reclaimer.problem
    bench.write(reclaim="")
    (bench.group / "memory.pressure").unlink()
    await bench.reclaimer.step()
    assert "psi=1" in bench.reclaimer.problem
    assert bench.asked() == ""


async def test_a_container_that_vanished_is_normal(bench):
    (bench.group / "memory.current").unlink()
    await bench.reclaimer.step()
    assert (bench.asked(), bench.told) == ("", [])
    assert bench.reclaimer.problem is None


async def test_a_figure_that_cannot_be_read_is_named(bench):
    bench.write(current="much")
    await bench.reclaimer.step()
    assert "memory.current" in bench.reclaimer.problem
    assert (bench.asked(), bench.told) == ("", [])
    bench.write(current=1)
    await bench.reclaimer.step()
    assert bench.reclaimer.problem is None


async def test_a_container_without_a_problem_does_not_hide_that_of_another_one(bench, placed):
    limits = {names.BATCH_MEMORY: "1000Mi"}
    one, other = (placed(name, quality="BE", limits=limits) for name in ("job", "later"))
    bench.loop.picture = state.NodeState(at=0, pods=(one, other))
    later = bench.group.parent.parent / "later" / "app"
    later.mkdir(parents=True)
    for name, text in (("current", "1"), ("pressure", CALM), ("reclaim", "")):
        (later / f"memory.{name}").write_text(text)
    bench.write(current="much")
    await bench.reclaimer.step()
    assert "job/app/memory.current" in bench.reclaimer.problem


async def test_a_failure_is_named_and_the_group_left_alone(bench):
    # What is no file cannot be written, and says so as the kernel would.
    (bench.group / "memory.reclaim").unlink()
    (bench.group / "memory.reclaim").mkdir()
    await bench.reclaimer.step()
    assert "memory.reclaim: Is a directory" in bench.reclaimer.problem
    await bench.reclaimer.step()
    assert bench.said() == [("failed", str(52 * MIB))]
