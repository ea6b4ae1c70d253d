"""The days of one agent, over midnight, restarts, damage and a clock that goes back."""

import msgspec
import pytest

from agent.apply import audit, audit_log
from agent.apply.evictions import evictor
from agent.decide import planner
from agent.model import edits, state
from agent.report import http_pages, scorecard, scorekeeper
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics

# Ten seconds before midnight.
EVENING = 1_700_006_390.0
DAY = 86_400.0


class Loop:
    """A loop that has just looked."""

    def __init__(self, placed, node):
        online, batch = placed("web"), placed("job", quality="BE")
        self.picture = state.NodeState(
            at=EVENING,
            node=node,
            pods=(online, batch),
            thresholds=state.Thresholds(True, 65),
            usage=state.Usage(cpu=7.0),
            qos_groups={"BestEffort": "kubepods/besteffort"},
        )
        self.decisions = {}

    def mode(self, _name):
        return planner.Mode.OBSERVE

    def owners(self, keys):
        return {key: "cpu-burst" for key in keys if key[0] is edits.Role.CPU_QUOTA}

    def strategy_of(self, feature):
        return {"BEMemoryEvict": "memory-evict"}.get(feature, "")


class Bench:
    def __init__(self, loop, folder):
        self.loop, self.folder = loop, folder
        self.clock = clocks.ManualClock(EVENING)
        self.start()

    def start(self):
        self.figures = metrics.Registry()
        self.keeper = scorekeeper.Scorekeeper(self.folder, self.clock, self.loop, self.figures)

    async def seconds(self, count, step=1.0):
        for _ in range(int(count / step)):
            await self.clock.advance(step)
            now = self.clock.now()
            self.loop.picture = msgspec.structs.replace(self.loop.picture, at=now)
            self.keeper.tick()


@pytest.fixture
def bench(placed, node, tmp_path):
    return Bench(Loop(placed, node), tmp_path / "scorecard")


def record(outcome, role, *groups):
    return audit.Record(EVENING, outcome, role, "1", groups, "because")


def answer(outcome, name, feature="BEMemoryEvict"):
    wish = edits.Eviction("default", name, f"uid-{name}", "because", feature)
    return evictor.Answer(outcome, wish, "because")


def rows(day):
    return {
        (row["strategy"], row["namespace"], row["class"]): row["outcomes"] for row in day["rows"]
    }


async def test_edits_and_evictions_are_told_apart_by_what_they_concern(bench):
    would = "would have written"
    bench.keeper.records([record(would, edits.Role.CPU_QUOTA, "web", "web/app")])
    bench.keeper.records([record("conflict", edits.Role.CPUSET, "kubepods/besteffort")])
    bench.keeper.answered(answer("would have evicted", "web"))
    bench.keeper.answered(answer("evicted", "job"))
    bench.keeper.answered(answer("evicted", "unknown", "Other"))
    (day,) = bench.keeper.days()
    assert rows(day) == {
        ("cpu-burst", "default", "LS"): {would: 2},
        ("", "", "BestEffort"): {"conflict": 1},
        ("memory-evict", "default", "LS"): {"would have evicted": 1},
        ("memory-evict", "default", "BE"): {"evicted": 1},
        ("", "default", ""): {"evicted": 1},
    }
    summary = day["summary"]
    assert (summary["wouldEvictPods"], summary["wouldEvictOnlinePods"]) == (1, 1)
    assert (summary["evictedPods"], summary["evictedOnlinePods"]) == (2, 0)


async def test_a_day_ends_at_midnight_and_is_told(bench, caplog):
    caplog.set_level("INFO")
    await bench.seconds(20)
    new, old = bench.keeper.days()
    assert (old["date"], new["date"]) == ("2023-11-14", "2023-11-15")
    assert old["summary"]["seconds"] + new["summary"]["seconds"] == pytest.approx(19)
    assert old["summary"]["overSeconds"] == pytest.approx(8)
    assert "scorecard date=2023-11-14 seconds=8" in caplog.text
    assert bench.figures.value("koord_agent_last_day", {"figure": "overSeconds"}) == 8


async def test_the_present_day_is_what_a_node_metric_carries(bench):
    assert bench.keeper.today() is None
    await bench.seconds(20)
    assert bench.keeper.today()["date"] == "2023-11-15"
    assert bench.keeper.today()["seconds"] == bench.keeper.days()[0]["summary"]["seconds"]


async def test_a_restart_goes_on_with_the_day(bench):
    await bench.seconds(20)
    bench.keeper.answered(answer("would have evicted", "job"))
    bench.keeper.stop()
    bench.start()
    assert bench.figures.value("koord_agent_last_day", {"figure": "seconds"}) == 8
    bench.keeper.answered(answer("would have evicted", "job"))
    await bench.seconds(10)
    new, old = bench.keeper.days()
    assert old["summary"]["seconds"] == 8
    assert new["summary"]["seconds"] == pytest.approx(11 + 9)
    assert new["summary"]["wouldEvictPods"] == 1


async def test_a_gap_is_not_taken_for_a_look(bench):
    await bench.seconds(1)
    await bench.clock.advance(3600)
    bench.keeper.tick()
    (day,) = bench.keeper.days()
    assert day["summary"]["seconds"] == scorekeeper.LONGEST_TICK


async def test_damage_is_named_and_the_day_begins_afresh(bench):
    await bench.seconds(5)
    bench.keeper.stop()
    (path,) = bench.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    bench.start()
    await bench.seconds(2)
    assert "begins afresh: cut short or changed" in bench.keeper.problem
    assert bench.keeper.days()[0]["summary"]["seconds"] == 1
    bench.keeper.stop()
    assert bench.keeper.problem is None


async def test_a_folder_that_cannot_be_written_is_named(bench):
    bench.folder.parent.joinpath("scorecard").write_text("in the way")
    await bench.seconds(2)
    bench.keeper.stop()
    assert "scorecard not written" in bench.keeper.problem
    assert bench.keeper.days()[0]["summary"]["seconds"] == 1


async def test_thirty_days_are_kept_whatever_the_clock_says(bench):
    for _ in range(40):
        bench.loop.picture = msgspec.structs.replace(
            bench.loop.picture, at=bench.loop.picture.at + DAY
        )
        bench.keeper.tick()
    bench.keeper.stop()
    assert len(list(bench.folder.iterdir())) == scorecard.KEEP_DAYS
    dates = [day["date"] for day in bench.keeper.days()]
    assert len(dates) == scorecard.KEEP_DAYS
    assert dates == sorted(dates, reverse=True)
    assert len(bench.keeper.days(3)) == 3
    # The clock was wrong and is set back: what is there already goes on.
    bench.loop.picture = msgspec.structs.replace(bench.loop.picture, at=bench.loop.picture.at - DAY)
    bench.keeper.tick()
    assert len(bench.keeper.days()) == scorecard.KEEP_DAYS


@pytest.mark.parametrize(
    ("query", "status"), [("", 200), ("?days=2", 200), ("?days=0", 400), ("?days=x", 400)]
)
async def test_the_page_serves_the_latest_days(bench, aiohttp_client, query, status):
    await bench.seconds(20)
    log = audit_log.AuditLog(bench.folder / "audit")
    made = http_pages.pages(health.Health(), bench.figures, bench.loop, log, bench.keeper)
    answered = await (await aiohttp_client(made)).get(f"{http_pages.SCORECARD_PATH}{query}")
    assert answered.status == status
    if status == 200:
        found = (await answered.json())["days"]
        assert [day["date"] for day in found] == ["2023-11-15", "2023-11-14"]
    log.close()


@pytest.mark.parametrize(
    "digits", ["000000001999999", "000000001" + "9" * 5000], ids=["some", "many"]
)
@pytest.mark.parametrize(
    "page", [f"{http_pages.SCORECARD_PATH}?days=", f"{http_pages.EVENTS_PATH}?size="]
)
async def test_a_number_of_any_length_is_refused(bench, aiohttp_client, page, digits):
    log = audit_log.AuditLog(bench.folder / "audit")
    made = http_pages.pages(health.Health(), bench.figures, bench.loop, log, bench.keeper)
    answered = await (await aiohttp_client(made)).get(f"{page}{digits}")
    assert answered.status == 400
    assert "is not a number of 1 to" in await answered.text()
    log.close()
