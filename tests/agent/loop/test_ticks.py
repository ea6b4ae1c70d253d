"""The loop as a whole, on a generated host."""

import logging

import pytest

from agent.apply import journal
from agent.decide import planner
from agent.decide.strategies import cpu_suppress
from agent.loop import ticks
from agent.model import state
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

GIB = 1 << 30


class Running:
    """A loop whose every tick is a second of the host."""

    def __init__(self, host, folder, mode="enforce", **habits):
        self.host = host
        self.clock = clocks.ManualClock()
        self.registry = metrics.Registry()
        self.folder = folder
        self.modes = {ticks.SUPPRESS: planner.Mode.ENFORCE}
        self.loop = self.start(mode, **habits)

    def start(self, mode, **habits):
        self.loop = ticks.Ticks(
            self.host.observer,
            lambda: self.host.known,
            self.clock,
            ticks.Figures(self.registry),
            ticks.Habits(self.folder, writing=mode == "enforce", modes=self.modes, **habits),
        )
        return self.loop

    async def seconds(self, count):
        for _ in range(count):
            self.host.tree.advance(1)
            await self.clock.advance(1)
            self.loop.tick()
        return self.loop.picture


@pytest.fixture(params=["cpuset", "cfsQuota"])
def policy(request):
    return request.param


@pytest.fixture
def loaded(host, tmp_path):
    host.add("online", "Burstable", 2000)
    host.add("batch", "BestEffort", 6000)
    return Running(host, tmp_path / "state")


def suppress(percent=65, policy="cpuset", enable=True):
    return state.Thresholds(enable, percent, None, policy)


async def test_usage_returns_to_the_threshold(loaded, policy):
    """Eight cores at 65 %: 5.2, of which online takes 2."""
    host = loaded.host
    host.know(thresholds=suppress(policy=policy))
    before = await loaded.seconds(2)
    assert before.usage.cpu == pytest.approx(8.0, abs=0.02)
    assert loaded.registry.value("koord_agent_node_cores") == 8.0
    after = await loaded.seconds(5)
    # A cpuset is whole cores, so it may go over by less than one.
    limit = 5.2 if policy == "cfsQuota" else 6.0
    assert after.usage.cpu <= limit + 0.02
    host.tree.set_load("online", 4000, GIB)
    later = await loaded.seconds(5)
    assert later.usage.cpu <= (6.0 if policy == "cpuset" else 5.2) + 0.02
    assert loaded.registry.value("koord_agent_best_effort_allowed_cores") == pytest.approx(
        1.2, abs=0.02
    )


async def test_best_effort_grows_back_when_there_is_room(loaded, policy):
    host = loaded.host
    host.know(thresholds=suppress(policy=policy))
    host.tree.set_load("online", 5000, GIB)
    tight = await loaded.seconds(5)
    host.tree.set_load("online", 500, GIB)
    wide = await loaded.seconds(10)
    used = [p.pods[1].usage.cpu for p in (tight, wide)]
    assert used[0] < 2.1
    assert used[1] > 4.0


async def test_switching_off_lets_go(loaded, policy):
    host = loaded.host
    before = host.batch_file("cpuset.cpus").read_text().strip()
    host.know(thresholds=suppress(policy=policy))
    await loaded.seconds(4)
    assert loaded.registry.value("koord_agent_journal_entries") > 0
    host.know(thresholds=suppress(policy=policy, enable=False))
    picture = await loaded.seconds(3)
    assert picture.usage.cpu == pytest.approx(8.0, abs=0.02)
    assert host.batch_file("cpuset.cpus").read_text().strip() == before
    assert picture.best_effort.quota_us == -1
    assert loaded.registry.value("koord_agent_journal_entries") == 0
    assert journal_on_disk(loaded) == ()


def journal_on_disk(running):
    kept = journal.Journal(running.folder, "00000000-0000-4000-8000-000000000001")
    kept.load()
    return kept.entries


@pytest.mark.parametrize("how", ["the NodeSLO is gone", "it is switched off", "uninstalled"])
async def test_without_a_wish_the_node_is_put_back(loaded, how):
    host = loaded.host
    host.know(thresholds=suppress())
    await loaded.seconds(4)
    assert len(journal_on_disk(loaded)) == 3
    if how == "uninstalled":
        loaded.loop.put_back("uninstalled")
        loaded.loop.stop()
    else:
        if how == "the NodeSLO is gone":
            host.know(thresholds=None)
        else:
            loaded.modes[ticks.SUPPRESS] = planner.Mode.OFF
        # What was put back is forgotten on disk by the next tick at the latest.
        await loaded.seconds(2)
    assert journal_on_disk(loaded) == ()
    expected = "" if host.tree.version == 2 else "0-7"
    assert host.batch_file("cpuset.cpus").read_text().strip() == expected


async def test_an_agent_that_only_observes_puts_back_what_an_earlier_one_set(loaded):
    loaded.host.know(thresholds=suppress())
    await loaded.seconds(4)
    loaded.host.know(thresholds=None)
    loaded.start("observe")
    await loaded.seconds(1)
    assert journal_on_disk(loaded) == ()
    outcomes = [record.outcome for record in loaded.loop.audit.records()]
    assert outcomes == ["put back"]


async def test_observing_changes_no_byte(host, tmp_path, caplog):
    host.add("online", "Burstable", 2000)
    host.add("batch", "BestEffort", 6000)
    host.know(thresholds=suppress())
    running = Running(host, tmp_path / "state", "observe")
    limits = {p: b for p, b in host.snapshot().items() if "cpuset" in p or "quota" in p}
    with caplog.at_level(logging.INFO, "agent"):
        await running.seconds(6)
    now = host.snapshot()
    assert {p: now[p] for p in limits if not p.endswith("effective")} == {
        p: b for p, b in limits.items() if not p.endswith("effective")
    }
    assert not (tmp_path / "state").exists()
    records = running.loop.audit.records()
    assert {record.outcome for record in records} == {"would have written"}
    assert len([m for m in caplog.messages if m.startswith("would have written")]) == len(records)
    assert len(records) < 6
    assert running.registry.value(
        "koord_agent_edits_total", {"role": "cpuset", "outcome": "would-have-written"}
    )


async def test_a_lost_quarrel_is_named(loaded):
    loaded.host.know(thresholds=suppress())
    await loaded.seconds(4)
    assert loaded.loop.enforcer.yielded() is None
    for _ in range(4):
        loaded.host.batch_file("cpuset.cpus").write_text("0-6\n")
        await loaded.seconds(1)
    assert "'0-6'" in loaded.loop.enforcer.yielded()
    assert loaded.loop.enforcer.yielded().startswith("cpuset of kubepods.slice/")


async def test_a_journal_that_cannot_be_read_stops_all_writing(loaded):
    loaded.folder.mkdir()
    (loaded.folder / "journal.jsonl").write_text("{")
    loaded.host.know(thresholds=suppress())
    before = loaded.host.batch_file("cpuset.cpus").read_bytes()
    await loaded.seconds(3)
    assert "cannot be read" in loaded.loop.problem
    assert loaded.host.batch_file("cpuset.cpus").read_bytes() == before
    (loaded.folder / "journal.jsonl").unlink()
    await loaded.seconds(1)
    assert loaded.loop.problem is None


async def test_a_bad_tick_is_logged_and_the_next_one_runs(loaded):
    from_host = loaded.host.known
    broken = [True, False]

    def known():
        if broken.pop(0):
            raise RuntimeError("planted")
        return from_host

    loaded.loop._known = known
    good = []
    async with supervise.Supervisor() as supervisor:
        supervisor.start("tick", lambda: loaded.loop.run(1.0, lambda: good.append(1)))
        await loaded.clock.settle()
        assert "planted" in loaded.loop.problem
        assert not good
        await loaded.clock.advance(1)
    assert good == [1]
    assert loaded.loop.problem is None
    assert loaded.registry.value("koord_agent_tick_failures_total") == 1


async def test_ticks_keep_an_even_distance(loaded):
    moments = []
    async with supervise.Supervisor() as supervisor:
        supervisor.start(
            "tick",
            lambda: loaded.loop.run(2.5, lambda: moments.append(loaded.clock.monotonic())),
        )
        for _ in range(8):
            await loaded.clock.advance(1)
    assert moments == [0, 2.5, 5.0, 7.5]


def test_a_picture_cannot_be_changed(loaded):
    picture = loaded.host.step()
    with pytest.raises(AttributeError):
        picture.at = 5
    decided = cpu_suppress.decide(picture)
    with pytest.raises(AttributeError):
        decided.allowed_milli = 5
