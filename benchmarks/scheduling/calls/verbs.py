"""The server's own share of a call, memory and loading time at the size of a large cluster.

python -m benchmarks.scheduling.calls.verbs [--nodes 5000] [--pods 150000] [--rounds 5]
    [--calls 200]

The state is loaded from a generated API server through the real reflector and projections; then
filter and prioritize are called in this very process, bytes in and bytes out, and garbage is
collected as the extender does it. The first calls of a round do not count: making the pods they
ask for has left none of the extender's data in the processor's caches.
"""

import argparse
import asyncio
import contextlib
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from api.wire import durations
from benchmarks import figures
from benchmarks.plane import extenders, feed
from extender import app, settings
from extender.verbs import verbs
from kube.client import access
from process.runtime import clock, collector

_QUIET = {"port": 0, "linger_seconds": 0, "drain_seconds": 0, "max_body_bytes": 8 << 20}
_WARM = 5
"""Calls of a round that do not count."""
SIZES = (100, 420, 500, 812, 5000)


def quiet(folder: Path) -> settings.Settings:
    """Return settings for generated clusters, which report less often than real ones."""
    url = "http://127.0.0.1:9211"
    return settings.Settings(
        server=settings.VerbServer.model_validate(_QUIET),
        health=settings.HealthServer.model_validate(_QUIET),
        freshness=settings.FreshnessSettings(idle_seconds=3600, proof_seconds=5),
        plugins=settings.PluginSettings(
            load_aware=settings.LoadAwareSettings(node_metric_expiration_seconds=3600)
        ),
        scheduler=settings.SchedulerSettings.model_validate(extenders.caller(folder, url)),
    )


def _question(number: int, names: Sequence[str]) -> bytes:
    pod = feed.pod_text(number, "", moment="")
    return f'{{"Pod":{pod},"Nodes":null,"NodeNames":{json.dumps(names)}}}'.encode()


def _questions(arguments: argparse.Namespace, count: int, calls: int, seed: int) -> list[bytes]:
    """Return calls with different pods and names in a different order each."""
    rng = random.Random(seed)
    everyone = [feed.node_name(number) for number in range(arguments.nodes)]
    return [
        _question(arguments.pods + rng.randrange(arguments.pending), rng.sample(everyone, count))
        for _ in range(calls)
    ]


def _in_process(arguments: argparse.Namespace, answers: verbs.Verbs) -> None:
    print("\nthe server's own share of a call, bytes to bytes, milliseconds")
    print(f"{'verb':<12}{'names':>7}{'p50':>18}{'p99':>18}{'cpu p50':>18}{'cpu p99':>18}")
    for verb, function in (("filter", answers.filter), ("prioritize", answers.prioritize)):
        for count in sorted({min(size, arguments.nodes) for size in SIZES}):
            rows = []
            for turn in range(arguments.rounds):
                taken, worked = [], []
                bodies = _questions(arguments, count, arguments.calls + _WARM, turn)
                for body in bodies[:_WARM]:
                    function(body, time.time())
                for body in bodies[_WARM:]:
                    started, idle = time.perf_counter(), time.thread_time()
                    function(body, time.time())
                    # What others on this machine take away is in the first, not in the second.
                    taken.append((time.perf_counter() - started) * 1e3)
                    worked.append((time.thread_time() - idle) * 1e3)
                rows.append(
                    tuple(
                        figures.percentile(v, share)
                        for v in (taken, worked)
                        for share in (0.5, 0.99)
                    )
                )
            cells = "".join(f"{figures.spread([r[c] for r in rows], 2):>18}" for c in range(4))
            print(f"{verb:<12}{count:>7}{cells}")
            _show(verb, count, rows)


def _show(verb: str, count: int, rows: Sequence[Sequence[float]]) -> None:
    row = "F4" if verb == "filter" else f"F4.{verb}"
    goal = {500: "goal 0.6", 5000: "goal 2"}.get(count, "") if verb == "filter" else ""
    for column, label, basis in ((0, "p50", ""), (1, "p99", ""), (3, "p99.cpu", " of cpu")):
        what = f"server side of a {verb} call, {count} names, {label.partition('.')[0]}{basis}"
        taken = [entry[column] for entry in rows]
        figures.show(figures.plain(f"{row}.{count}.{label}", what, "ms", taken, goal))


async def _main(arguments: argparse.Namespace) -> None:
    print(
        f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods, "
        f"{arguments.rounds} rounds of {arguments.calls} calls"
    )
    before, moment = figures.resident(), durations.moment(time.time())
    async with (
        feed.running(arguments.nodes, arguments.pods, arguments.pending, moment) as url,
        contextlib.AsyncExitStack() as stack,
    ):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="koord-bench-")))
        await stack.enter_async_context(collector.running())
        started = time.perf_counter()
        made = await stack.enter_async_context(
            app.running(quiet(folder), access=access.Access(server=url), clock=clock.SystemClock())
        )
        while not made.health.ready:  # noqa: ASYNC110 - nothing announces readiness
            await asyncio.sleep(0.05)
        taken = time.perf_counter() - started
        pods = len(made.books.cluster.placements())
        size = f"{arguments.nodes} nodes and {arguments.pods} pods"
        figures.show(
            figures.plain("F10.load", f"from start to ready with {size}", "s", [taken]),
            figures.plain(
                "F10.rss", f"resident memory with {size}", "MiB", [figures.resident()], "goal 400"
            ),
        )
        print(
            f"\nloaded {pods} placed pods in {taken:.1f} s, {pods / taken:.0f} pods/s; "
            f"resident {before:.0f} MiB before, {figures.resident():.0f} MiB after"
        )
        _in_process(arguments, made.answers)
        print(f"\nresident at the end {figures.resident():.0f} MiB")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
