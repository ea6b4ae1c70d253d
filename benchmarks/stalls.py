"""How long the extender's event loop stands still at the size of a large cluster under change.

python -m benchmarks.stalls [--nodes 5000] [--pods 150000] [--seconds 600]

Pods change a hundred times a second, every node reports once a minute, a scheduler asks fifty
times a second, and in the middle every watch of pods expires, so that all of them are listed
again. A probe looks every 5 ms how late it comes back and how much this thread has worked
meanwhile: the first holds what other programs on the machine take away, the second does not.
"""

import argparse
import asyncio
import contextlib
import json
import random
import time
from collections.abc import Sequence

import uvloop

from api import durations
from benchmarks import extender as sizes
from benchmarks import feed, figures
from extender import app
from kube import access
from process import clock, supervise

_PROBE = 0.005
_CALLS = 0.02


class Probe:
    """Lateness and work between two looks, in milliseconds, since the last reset."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.worked: list[float] = []

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


async def _ask(made: app.App, arguments: argparse.Namespace) -> None:
    """Ask as a scheduler does, for ever."""
    rng, turn = random.Random(3), 0
    everyone = [feed.node_name(number) for number in range(arguments.nodes)]
    while True:
        await asyncio.sleep(_CALLS)
        turn += 1
        names = json.dumps(rng.sample(everyone, min(500, arguments.nodes)))
        pod = feed.pod_text(arguments.pods + turn % arguments.pending, "", moment="")
        body = f'{{"Pod":{pod},"Nodes":null,"NodeNames":{names}}}'.encode()
        # Making the question is no work of the extender.
        await asyncio.sleep(0)
        made.answers.filter(body, time.time())
        made.answers.prioritize(body, time.time())


def _show(name: str, what: str, values: Sequence[float], goal: str) -> None:
    top = max(values)
    p9999 = figures.percentile(values, 0.9999)
    print(f"{what}: p99 {figures.percentile(values, 0.99):.1f}, p99.99 {p9999:.1f}, max {top:.1f}")
    figures.show(
        figures.plain(name, f"{what}, longest of {len(values)} looks", "ms", [top], goal),
        figures.plain(f"{name}.p9999", f"{what}, p99.99", "ms", [p9999], goal),
    )


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods")
    moment, probe = durations.moment(time.time()), Probe()
    reports = str(arguments.nodes // 60)
    churn = ("--pod-events=100", f"--reports={reports}")
    async with contextlib.AsyncExitStack() as stack:
        supervisor = await stack.enter_async_context(supervise.Supervisor("probe"))
        supervisor.start("look", probe.run)
        url = await stack.enter_async_context(
            feed.running(arguments.nodes, arguments.pods, arguments.pending, moment, *churn)
        )
        entry = access.Access(server=url)
        made = await stack.enter_async_context(
            app.running(sizes.SETTINGS, access=entry, clock=clock.SystemClock())
        )
        while not made.health.ready:  # noqa: ASYNC110 - nothing announces readiness
            await asyncio.sleep(0.05)
        _show("F11.load", "event loop late while everything is listed, ms", probe.late, "")
        _show("F11.load.work", "work in one go while everything is listed, ms", probe.worked, "")
        supervisor.spawn("ask", _ask(made, arguments))
        await asyncio.sleep(2)
        probe.reset()
        await asyncio.sleep(arguments.seconds / 2)
        await feed.expire(url)
        await asyncio.sleep(arguments.seconds / 2)
        _show("F11.stall", "event loop late, ms", probe.late, "goal 20")
        _show("F11.work", "work of the event loop in one go, ms", probe.worked, "goal 20")
        pods = len(made.books.cluster.placements())
        print(f"{pods} pods placed at the end, resident {figures.resident():.0f} MiB")


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
