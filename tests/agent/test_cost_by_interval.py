"""Longer intervals and shorter retention cost less processor time and less memory."""

import time

import pytest

from agent.host import files
from tests.agent import test_app

world = test_app.world
MINUTE = 60


class Cost:
    """What minutes of looking at four pods take."""

    def __init__(self, host, monkeypatch, pod_seconds=300.0):
        for number in range(4):
            host.add(f"p{number}", "Burstable", 100)
        self._host, self._read = host, 0
        host.observer.figures.pod_keep_seconds = pod_seconds
        monkeypatch.setattr(files.os, "pread", self._count(files.os.pread))

    def _count(self, pread):
        def counted(descriptor, size, offset):
            self._read += 1
            return pread(descriptor, size, offset)

        return counted

    def minutes(self, tick_seconds, count=1):
        """Return files that were read, and seconds of processor time, of so many minutes."""
        self._host.step(tick_seconds)
        before, taken = self._read, 0.0
        for _ in range(round(count * MINUTE / tick_seconds)):
            self._host.tree.advance(tick_seconds)
            self._host.at += tick_seconds
            began = time.thread_time()
            self._host.look()
            taken += time.thread_time() - began
        return self._read - before, taken

    @property
    def samples(self):
        return self._host.observer.samples.samples


def test_a_longer_tick_reads_fewer_files_takes_less_time_and_keeps_less(host, monkeypatch):
    cost = Cost(host, monkeypatch)
    reads, seconds = cost.minutes(1)
    kept = cost.samples
    fewer, faster = cost.minutes(10)
    assert fewer < reads / 5
    # A tenth of the ticks; a machine that is busy meanwhile makes none of them five times as dear.
    assert faster < seconds / 2
    # The pods have ten times as few samples, once those of the shorter tick have left.
    cost.minutes(10, count=5)
    assert cost.samples < kept


def test_a_shorter_retention_keeps_fewer_samples(host, monkeypatch):
    cost = Cost(host, monkeypatch, pod_seconds=100.0)
    cost.minutes(2, count=2)
    kept = cost.samples
    host.observer.figures.pod_keep_seconds = 20.0
    cost.minutes(2)
    assert cost.samples < kept / 2


@pytest.mark.parametrize(
    ("tick", "window", "least", "most"),
    [(1.0, 60, 300, 420), (5.0, 60, 40, 100), (1.0, 10, 150, 280)],
)
async def test_the_settings_take_effect(world, new_pod, tick, window, least, most):
    world.add_pod(new_pod("online", "Burstable"), 100)
    world.create(test_app.resources.NODE_METRICS, {"spec": {}})
    report = {"aggregate_seconds": window}
    async with world.agent(mode="observe", tick_seconds=tick, report=report) as agent:
        value = agent.registry.value
        await world.until_ticking(lambda: value("koord_agent_history_samples", {}))
        begin = value("koord_agent_tick_seconds_count", {})
        await world.seconds(40)
        ticks = value("koord_agent_tick_seconds_count", {}) - begin
        assert 40 / tick - 2 <= ticks <= 40 / tick + 2
        assert least < value("koord_agent_history_samples", {}) < most
