"""Files of the host that cannot be written: the others are, each is named once, tried seldom."""

import errno
import os

import pytest

from agent.decide import planner, spec_enforcement
from agent.host import files
from agent.loop import ticks
from agent.model import state, strategy_settings
from domain import conditions
from process.runtime import clock as clocks
from process.runtime import metrics
from tests.agent import spec_verdicts

LONG = bool(os.environ.get("KOORD_SOAK"))
ERRORS = (
    [errno.EROFS, errno.EACCES, errno.EINVAL, errno.EBUSY, errno.EIO] if LONG else [errno.EROFS]
)


_SAID = "enforced: cpu-suppress"
ALL = spec_enforcement.Verdict(
    conditions.Condition("Enforced", True, "AllEnforced", _SAID), applied=True
)


class Bench:
    """A loop on a host some of whose files refuse to be written."""

    def __init__(self, host, folder, monkeypatch):
        self.host, self.clock = host, clocks.ManualClock()
        self.refused, self.tried, self.error, self.news = "", [], errno.EROFS, []
        self.loop = ticks.Ticks(
            host.observer,
            lambda: host.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder,
                writing=True,
                gates=frozenset({"BECPUSuppress", "BatchResource"}),
                modes={ticks.SUPPRESS: planner.Mode.ENFORCE},
                default=planner.Mode.ENFORCE,
            ),
        )
        self.loop.audit.sink = self.news.extend
        real = files.write

        def write(path, text):
            if self.refused and self.refused in path:
                self.tried.append((self.clock.monotonic(), path))
                raise OSError(self.error, os.strerror(self.error), path)
            real(path, text)

        monkeypatch.setattr(files, "write", write)

    def seconds(self, count):
        for _ in range(count):
            self.host.tree.advance(1)
            self.clock._move(self.clock.monotonic() + 1)
            self.loop.tick()

    def failures(self):
        return [record for record in self.news if record.outcome == "failed"]


@pytest.fixture
def bench(host, tmp_path, monkeypatch):
    host.add("online", "Burstable", 3000)
    for uid in ("batch-a", "batch-b"):
        host.add(uid, "BestEffort", 3000)
    if host.tree.version == 1 and not LONG:
        pytest.skip("one version is enough where time is short")
    wanted = state.Thresholds(True, 65, None, "cpuset")
    host.know(thresholds=wanted, enforced=strategy_settings.Strategies())
    return Bench(host, tmp_path / "state", monkeypatch)


def cpus(bench, below=""):
    return bench.host.batch_file("cpuset.cpus", below).read_text().strip()


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_one_file_that_refuses_is_named_once_and_tried_seldom(bench, error):
    groups = [group.path for group in bench.host.step().best_effort.groups]
    one = next(group for group in groups if "batch-b" in group.rpartition("/")[2])
    bench.refused, bench.error = f"{one}/cpuset.cpus", error
    before = cpus(bench)
    bench.seconds(90)
    assert bench.loop.problem is None
    assert cpus(bench) != before
    said = [record for record in bench.failures() if one in record.groups]
    assert 1 <= len(said) <= 2
    assert errno.errorcode[error] in said[0].reason
    assert 1 <= len(bench.tried) <= 9
    bench.refused = ""
    bench.seconds(60)
    bench.loop.put_back("uninstall")
    bench.loop.stop()
    assert cpus(bench) == before


def test_a_host_that_takes_nothing_is_named_once_and_goes_on_when_it_does(bench):
    before = cpus(bench)
    bench.refused = "/cgroup"
    bench.seconds(40)
    assert bench.loop.problem is None
    assert (cpus(bench), spec_verdicts.of(bench.loop).applied) == (before, False)
    assert "failed: cpu-suppress (cpu" in spec_verdicts.of(bench.loop).condition.message
    # All groups of one value together, and once.
    said = [(record.role, record.value) for record in bench.failures()]
    assert len(said) == len(set(said)) <= 4
    assert len(bench.tried) <= 7 * len({path for _, path in bench.tried})
    bench.refused = ""
    bench.seconds(60)
    assert cpus(bench) != before
    assert spec_verdicts.of(bench.loop) == ALL
    bench.loop.put_back("uninstall")
    bench.loop.stop()
    assert cpus(bench) == before


def test_what_another_strategy_cannot_write_does_not_hide_that_suppression_holds(bench):
    bench.refused = "cpu.weight" if bench.host.tree.version == 2 else "cpu.shares"
    bench.seconds(5)
    assert {record.role for record in bench.failures()} == {"cpu-shares"}
    assert spec_verdicts.of(bench.loop) == ALL
