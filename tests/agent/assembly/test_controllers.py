"""Controllers of other packages beside the parts of an agent."""

import itertools
import sys

import pytest

from agent.assembly import controllers
from process.http import health
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from tests import patience
from tests.agent import test_app

world = test_app.world
MODULE = '''
"""A package of somebody else."""

class Watcher:
    def __init__(self, given):
        self.given = given
        self.seen = given.figures.gauge("koord_other_pods", "Pods that were seen.")

    async def run(self):
        while True:
            await self.given.clock.sleep(1)
            picture = self.given.picture()
            if picture is not None:
                average = self.given.samples.average(
                    ("node", "cpu"), 0, self.given.clock.monotonic()
                )
                self.seen.set(len(picture.pods) if average else 0)

class Broken:
    def __init__(self, given):
        self.given = given

    async def run(self):
        raise LookupError(self.given.node_name)
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with two controllers, and one whose module is missing."""
    place = tmp_path / "site"
    described = place / "other-1.dist-info"
    described.mkdir(parents=True)
    (place / "other_controllers.py").write_text(MODULE)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    points = {
        "watcher": "other_controllers:Watcher",
        "broken": "other_controllers:Broken",
        "missing": "nowhere_at_all:Missing",
    }
    lines = [f"{name} = {where}" for name, where in points.items()]
    (described / "entry_points.txt").write_text("\n".join((f"[{controllers.GROUP}]", *lines)))
    monkeypatch.syspath_prepend(str(place))
    yield
    sys.modules.pop("other_controllers", None)


async def test_a_registered_controller_runs_beside_the_parts_of_the_agent(
    world, new_pod, installed
):
    world.add_pod(new_pod("batch", "BestEffort"), 100)
    async with world.agent(controllers=["watcher", "broken"]) as agent:
        seen = agent.registry.value
        await world.until_ticking(lambda: seen("koord_other_pods", {}) == 1)
        # A controller that fails is named, and ends nothing.
        assert "LookupError: node-1" in agent.health.warnings()["controller broken"]
        assert "controller watcher" not in agent.health.warnings()
        ticks = seen("koord_agent_tick_seconds_count", {})
        await world.until_ticking(lambda: seen("koord_agent_tick_seconds_count", {}) > ticks)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("abacus", "abacus is not installed; there are: broken, missing, watcher"),
        ("missing", "missing cannot be loaded: No module named 'nowhere_at_all'"),
    ],
)
async def test_a_controller_that_is_not_there_ends_the_start(world, installed, name, said):
    with pytest.raises(controllers.ControllerError, match=said):
        async with world.agent(controllers=["watcher", name]):
            pass


async def test_a_controller_that_ends_is_run_again_after_ever_longer_pauses():
    clock, began = ManualClock(), []

    class Ends:
        async def run(self):
            began.append(clock.monotonic())
            if len(began) == 4:
                await clock.sleep(10_000)

    given = controllers.Given("n", clock, lambda: None, None, metrics.Registry())
    beside = controllers.Beside("ends", lambda _: Ends(), given)
    start = clock.monotonic()
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("ends", beside.run)
        await patience.until(lambda: len(began) == 4, lambda: clock.advance(1))
        assert beside.problem is None
        await patience.until(lambda: beside.problem == "ends ended", lambda: clock.advance(1000))
        await patience.until(lambda: len(began) == 6, lambda: clock.advance(1))
    pauses = [later - one for one, later in itertools.pairwise((start, *began))]
    # After it has lasted for long, it begins anew with the shortest pause.
    assert pauses[:6] == [0, 5, 10, 20, 10_005, 10]


def test_without_names_nothing_is_looked_for():
    controllers.start((), None, health.Health(), None)
