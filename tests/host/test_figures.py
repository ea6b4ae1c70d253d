"""What a NodeMetric says of this machine agrees with the kernel over the same window."""

import asyncio
import os
from pathlib import Path

import pytest

from agent.model import collect_policy
from agent.observe import observation
from agent.report import node_metric
from api.kubernetes import core
from api.wire import quantity
from process.runtime import clock as clocks

SECONDS = 10


def kernel_ticks():
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return sum(int(words[column]) for column in (1, 2, 3, 6, 7))


def kernel_memory():
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return (int(lines["MemTotal"].split()[0]) - int(lines["MemAvailable"].split()[0])) * 1024


async def burn(seconds):
    """Keep one core busy, in a process of its own, so that there is something to measure."""
    return await asyncio.create_subprocess_exec(
        "timeout", str(seconds), "sh", "-c", "while :; do :; done"
    )


async def test_a_node_metric_agrees_with_the_kernel():
    clock = clocks.SystemClock()
    observer = observation.Observer(observation.Roots(), 1.0)
    known = observation.Known(node=core.Node(), pods=())
    load = await burn(SECONDS + 2)
    try:
        memory = []

        def look():
            # Others use this machine as well: a reading on each side of ours.
            before = kernel_memory()
            seen = observer.observe(known, observation.Moment(clock.now(), clock.monotonic()))
            memory.extend((before, kernel_memory()))
            return seen

        look()
        ticks, begin = kernel_ticks(), clock.monotonic()
        for number in range(SECONDS):
            await clock.sleep(max(0.0, begin + number + 1 - clock.monotonic()))
            picture = look()
        elapsed = clock.monotonic() - begin
        cores = (kernel_ticks() - ticks) / os.sysconf("SC_CLK_TCK") / elapsed
    finally:
        await load.wait()
        observer.close()
    policy = collect_policy.Policy(aggregate_seconds=elapsed + 30)
    reporting = node_metric.Reporting(observer.samples, picture, policy, clock.monotonic())
    used = node_metric.status(reporting)["nodeMetric"]["nodeUsage"]["resources"]
    assert quantity.milli(used["cpu"]) / 1000 == pytest.approx(cores, rel=0.02)
    expected = sum(memory) / len(memory)
    assert quantity.whole(used["memory"]) == pytest.approx(expected, rel=0.02)
    assert cores > 0.5
