"""How long a tick of the node agent takes on a big node: 250 pods of two containers, 128 cpus.

python -m benchmarks.node.tick [--pods 250] [--seconds 240]

A generated host of two sockets and four NUMA nodes, whose counters move once a second and where
pods are bound to cpus; the agent as a process of its own with the settings of the chart, beside a
container runtime that asks it. It ticks once a second, so that nothing is warmer than on a node. A
tick is what the agent does in one go: it looks, decides, writes, and takes what follows from it.
"""

import argparse
import asyncio
import contextlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.node import agent, container_runtime, generated_host
from simulator.processes import children

TIMED = (
    """
import atexit, json, pathlib, sys, time
from agent.assembly import parts
from agent.loop import ticks

_TOOK, _FILE = [], pathlib.Path(sys.argv[1]) / "ticks.json"
_tick, _after = ticks.Ticks.tick, parts.Parts.after_tick

def timed(self):
    begin = time.perf_counter(), time.thread_time()
    made = _tick(self)
    _TOOK.append((begin, (time.perf_counter(), time.thread_time())))
    return made

def after(self):
    _after(self)
    begin, _ = _TOOK[-1]
    _TOOK[-1] = begin, (time.perf_counter(), time.thread_time())

ticks.Ticks.tick, parts.Parts.after_tick = timed, after
atexit.register(lambda: _FILE.write_text(json.dumps(
    [[last - first for first, last in zip(*one)] for one in _TOOK])))
"""
    + generated_host.AGENT
)
"""An agent that writes down how long each of its ticks took, and how much processor time."""
_GOAL_MS = 40.0
_BEGINNING = 10
"""Ticks in which pods become known and everything is written for the first time."""


async def measure(pods: int, seconds: int) -> list[tuple[float, float]]:
    """Return milliseconds and those of processor time of each tick after the first ones."""
    async with contextlib.AsyncExitStack() as stack:
        host, words = await stack.enter_async_context(generated_host.world(pods, TIMED, big=True))
        folder = host.folder.parent
        runtime, more = stack.enter_context(container_runtime.running(folder, host.pods))
        words += [*agent.words_of(agent.CHART, folder), *more]
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        child = await children.start("agent", words, logs)
        try:
            for _ in range(_BEGINNING + seconds):
                await asyncio.sleep(1)
                host.second()
            runtime.check()
        finally:
            await child.stop(20.0)
        took = json.loads((folder / "ticks.json").read_text(encoding="utf-8"))
    return [(1000 * wall, 1000 * spent) for wall, spent in took[_BEGINNING:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node.tick", description=__doc__)
    parser.add_argument("--pods", type=int, default=250)
    parser.add_argument("--seconds", type=int, default=240)
    chosen = parser.parse_args(arguments)
    took = asyncio.run(measure(chosen.pods, chosen.seconds))
    walls, spent = ([one[column] for one in took] for column in (0, 1))
    p50, p99 = (figures.percentile(walls, share) for share in (0.5, 0.99))
    print("longest:", ", ".join(f"{wall:.0f} ({cost:.0f})" for wall, cost in sorted(took)[-8:]))
    cost = figures.percentile(spent, 0.99)
    what = f"tick of an agent, {chosen.pods} pods of 2 containers, {generated_host.BIG_CPUS} cpus"
    figures.show(
        figures.plain("F7.tick.p50", f"{what}, p50 of {len(took)}", "ms", [p50]),
        figures.plain("F7.tick.p99", f"{what}, p99", "ms", [p99], f"goal {_GOAL_MS}"),
        figures.plain("F7.tick.cpu", f"{what}, p99 of its processor time", "ms", [cost]),
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
