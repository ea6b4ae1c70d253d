"""How long the extender's event loop stands still at the size of a large cluster under change.

python -m benchmarks.scheduling.calls.stalls [--nodes 5000] [--pods 150000] [--seconds 600]

Pods change a hundred times a second, every node reports once a minute, a scheduler asks fifty
times a second, and in the middle every watch of pods expires, so that all of them are listed
again. A probe looks every 5 ms how late it comes back and how much this thread has worked
meanwhile: the first holds what other programs on the machine take away, the second does not. The
garbage collector runs as it does in the process itself and is timed by the work it does. At the end
it looks at everything once, which it begins by itself only when memory has grown much.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import uvloop

from api.wire import durations
from benchmarks import figures
from benchmarks.plane import feed
from benchmarks.scheduling.calls import verbs as sizes
from extender import app
from kube.client import access
from process.runtime import clock, collector, supervise

_PROBE = 0.005
_CALLS = 0.02
_QUESTIONS = 200
_OLDEST = 2
"""The oldest generation; a collection of it is a full one."""
_SEVERAL = b'","'
"""Stands between names, so it is missing where filter has left one."""


class Probe:
    """Lateness and work between two looks, in milliseconds, since the last reset."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.worked: list[float] = []
        self.collected: list[float] = []
        self.full: list[float] = []
        """Collections of every generation; what is frozen is in none."""
        self._started = 0.0

    def collecting(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        """Take in the begin or the end of a collection."""
        now = time.thread_time()
        if phase == "start":
            self._started = now
            return
        taken = (now - self._started) * 1e3
        self.collected.append(taken)
        if info["generation"] == _OLDEST:
            self.full.append(taken)

    async def run(self) -> None:
        """Look for ever."""
        loop = asyncio.get_running_loop()
        while True:
            due, before = loop.time() + _PROBE, time.thread_time()
            await asyncio.sleep(_PROBE)
            self.late.append(max(0.0, loop.time() - due) * 1e3)
            self.worked.append((time.thread_time() - before) * 1e3)

    def reset(self) -> None:
        """Forget what was seen."""
        self.late.clear()
        self.worked.clear()
        self.collected.clear()
        self.full.clear()


def _questions(arguments: argparse.Namespace) -> list[bytes]:
    """Return calls that are made beforehand, since making them is no work of the extender."""
    rng = random.Random(3)
    everyone = [feed.node_name(number) for number in range(arguments.nodes)]
    made = []
    for number in range(_QUESTIONS):
        names = json.dumps(rng.sample(everyone, min(500, arguments.nodes)))
        pod = feed.pod_text(arguments.pods + number % arguments.pending, "", moment="")
        made.append(f'{{"Pod":{pod},"Nodes":null,"NodeNames":{names}}}'.encode())
    return made


async def _ask(made: app.App, bodies: Sequence[bytes]) -> None:
    """Ask as a scheduler does, for ever."""
    for body in itertools.cycle(bodies):
        await asyncio.sleep(_CALLS)
        answer = made.answers.filter(body, time.time())
        if _SEVERAL in answer:
            made.answers.prioritize(body, time.time())


def _show(name: str, what: str, values: Sequence[float], goal: str) -> None:
    top = max(values)
    p9999 = figures.percentile(values, 0.9999)
    print(f"{what}: p99 {figures.percentile(values, 0.99):.1f}, p99.99 {p9999:.1f}, max {top:.1f}")
    figures.show(
        figures.plain(name, f"{what}, longest of {len(values)} looks", "ms", [top], goal),
        figures.plain(f"{name}.p9999", f"{what}, p99.99", "ms", [p9999], goal),
    )


def _phase(name: str, when: str, probe: Probe, goal: str) -> None:
    """Show what one phase was like."""
    _show(name, f"event loop late {when}, ms", probe.late, goal)
    _show(f"{name}.work", f"work of the event loop in one go {when}, ms", probe.worked, goal)
    _show(f"{name}.gc", f"processor time of one garbage collection {when}, ms", probe.collected, "")
    print(f"all {len(probe.collected)} collections took {sum(probe.collected):.0f} ms")


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods")
    moment, probe = durations.moment(time.time()), Probe()
    bodies = _questions(arguments)
    reports = str(arguments.nodes // 60)
    churn = ("--pod-events=100", f"--reports={reports}")
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="koord-bench-")))
        kept = await stack.enter_async_context(collector.running())
        gc.callbacks.append(probe.collecting)
        stack.callback(gc.callbacks.remove, probe.collecting)
        supervisor = await stack.enter_async_context(supervise.Supervisor("probe"))
        supervisor.start("look", probe.run)
        url = await stack.enter_async_context(
            feed.running(arguments.nodes, arguments.pods, arguments.pending, moment, *churn)
        )
        entry = access.Access(server=url)
        made = await stack.enter_async_context(
            app.running(sizes.quiet(folder), access=entry, clock=clock.SystemClock())
        )
        while not made.health.ready:  # noqa: ASYNC110 - nothing announces readiness
            await asyncio.sleep(0.05)
        _phase("F11.load", "while everything is listed", probe, "")
        supervisor.spawn("ask", _ask(made, bodies))
        await asyncio.sleep(2)
        probe.reset()
        await asyncio.sleep(arguments.seconds / 2)
        await feed.expire(url)
        await asyncio.sleep(arguments.seconds / 2)
        full = kept.full
        _phase(
            "F11.stall",
            f"under churn, a relist, {len(probe.full)} full collections",
            probe,
            "goal 20",
        )
        what = "processor time of a full collection under churn, the longest"
        figures.show(
            figures.plain("F11.full", what, "ms", [max(probe.full, default=0.0)], "goal 20")
        )
        begun = time.thread_time()
        kept.look_at_everything()
        taken = (time.thread_time() - begun) * 1e3
        what = "processor time of a look at everything, begun when memory has doubled"
        figures.show(figures.plain("F11.everything", what, "ms", [taken]))
        pods = len(made.books.cluster.placements())
        print(
            f"{pods} pods placed at the end, resident {figures.resident():.0f} MiB; newcomers "
            f"frozen {kept.frozen} times, everything looked at {full} times before"
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=600)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
