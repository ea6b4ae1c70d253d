"""Latency and memory of the extender at the size of a large cluster.

python -m benchmarks.extender [--nodes 5000] [--pods 150000] [--rounds 5] [--calls 200]

The state is loaded from a generated API server through the real reflector and projections. Then
(a) filter, prioritize and bind over HTTP, in rounds that alternate with an aiohttp handler that
does nothing, and (b) the server's own share of a filter call, and the memory of the process.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import uvloop
from aiohttp import web

from api import durations
from benchmarks import feed
from extender import app, settings, verbs
from kube import access
from process import clock

_WARM = 20


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def memory() -> float:
    """Return the resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


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


def _bindings(arguments: argparse.Namespace, first: int, calls: int) -> list[bytes]:
    bodies = []
    for number in range(first, first + calls):
        namespace, name = feed.pod_key(number)
        # Batch-wise over nodes that are not busy: every tenth is.
        node = feed.node_name((number * 10 + 1) % arguments.nodes)
        bodies.append(
            json.dumps(
                {
                    "PodName": name,
                    "PodNamespace": namespace,
                    "PodUID": feed.pod_uid(number),
                    "Node": node,
                }
            ).encode()
        )
    return bodies


async def _call(url: str, bodies: Sequence[bytes], folder: Path, warm: int) -> list[float]:
    path = folder / "bodies"
    path.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.caller", url, str(path), str(warm),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"caller failed on {url}")
    taken: list[float] = json.loads(output)
    return taken


@contextlib.asynccontextmanager
async def _generated(arguments: argparse.Namespace) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.feed",
        f"--nodes={arguments.nodes}", f"--pods={arguments.pods}",
        f"--pending={arguments.pending}", f"--moment={durations.moment(time.time())}",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stdin
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 3)
        if process.returncode is None:
            process.kill()


@contextlib.asynccontextmanager
async def _nothing() -> AsyncIterator[str]:
    """Serve a handler that reads the body and answers a constant."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b'{"Error":""}', headers={"Content-Type": "application/json"})

    server = web.Application(client_max_size=8 << 20)
    server.router.add_post("/nothing", answer)
    runner = web.AppRunner(server, keepalive_timeout=3600, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/nothing"
    finally:
        await runner.cleanup()


async def _over_http(arguments: argparse.Namespace, made: app.App, idle: str, folder: Path) -> None:
    print("\n(a) over HTTP on one kept connection, microseconds; medians of rounds, spread in []")
    print(f"{'verb':<12}{'names':>7}{'p50':>18}{'p99':>18}{'no-op p50':>20}{'ratio p50':>18}")
    first = arguments.pods
    for verb, count in (
        ("filter", 500), ("filter", arguments.nodes),
        ("prioritize", 500), ("prioritize", arguments.nodes), ("bind", 1),
    ):  # fmt: skip
        rows: list[tuple[float, float, float]] = []
        for turn in range(arguments.rounds):
            if verb == "bind":
                calls = min(arguments.calls, arguments.pending // arguments.rounds)
                bodies = _bindings(arguments, first, calls)
                first += calls
            else:
                bodies = _questions(arguments, count, arguments.calls, turn)
            ours = await _call(f"{made.url}/{verb}", bodies, folder, _WARM)
            theirs = await _call(idle, bodies, folder, _WARM)
            rows.append((percentile(ours, 0.5), percentile(ours, 0.99), percentile(theirs, 0.5)))
        ratios = [ours / theirs for ours, _, theirs in rows]
        cells = [_spread([row[column] for row in rows], 0) for column in range(3)]
        print(
            f"{verb:<12}{count:>7}{cells[0]:>18}{cells[1]:>18}{cells[2]:>20}"
            f"{_spread(ratios, 2):>18}"
        )


def _spread(values: Sequence[float], digits: int) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


def _in_process(arguments: argparse.Namespace, answers: verbs.Verbs) -> None:
    print("\n(b) the server's own share of a call, bytes to bytes, milliseconds")
    print(f"{'verb':<12}{'names':>7}{'p50':>18}{'p99':>18}{'cpu p50':>18}{'cpu p99':>18}")
    for verb, function in (("filter", answers.filter), ("prioritize", answers.prioritize)):
        for count in (100, 420, 500, 812, arguments.nodes):
            rows = []
            for turn in range(arguments.rounds):
                taken, worked = [], []
                for body in _questions(
                    arguments, min(count, arguments.nodes), arguments.calls, turn
                ):
                    started, idle = time.perf_counter(), time.thread_time()
                    function(body, time.time())
                    # What others on this machine take away is in the first, not in the second.
                    taken.append((time.perf_counter() - started) * 1e3)
                    worked.append((time.thread_time() - idle) * 1e3)
                rows.append(
                    tuple(percentile(v, share) for v in (taken, worked) for share in (0.5, 0.99))
                )
            cells = "".join(f"{_spread([r[c] for r in rows], 2):>18}" for c in range(4))
            print(f"{verb:<12}{count:>7}{cells}")


async def _main(arguments: argparse.Namespace) -> None:
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, {arguments.nodes} nodes, {arguments.pods} pods, "
        f"{arguments.rounds} rounds of {arguments.calls} calls"
    )
    before = memory()
    quiet = {"port": 0, "linger_seconds": 0, "drain_seconds": 0, "max_body_bytes": 8 << 20}
    chosen = settings.Settings(
        server=settings.VerbServer.model_validate(quiet),
        health=settings.HealthServer.model_validate(quiet),
        freshness=settings.FreshnessSettings(idle_seconds=3600, proof_seconds=5),
        plugins=settings.PluginSettings(
            load_aware=settings.LoadAwareSettings(node_metric_expiration_seconds=3600)
        ),
    )
    async with (
        _generated(arguments) as url,
        _nothing() as idle,
        contextlib.AsyncExitStack() as stack,
    ):
        started = time.perf_counter()
        made = await stack.enter_async_context(
            app.running(chosen, access=access.Access(server=url), clock=clock.SystemClock())
        )
        while not made.health.ready:  # noqa: ASYNC110 - nothing announces readiness
            await asyncio.sleep(0.05)
        taken = time.perf_counter() - started
        pods = len(made.books.cluster.placements())
        print(
            f"\n(c) loaded {pods} placed pods in {taken:.1f} s, {pods / taken:.0f} pods/s; "
            f"resident {before:.0f} MiB before, {memory():.0f} MiB after"
        )
        with tempfile.TemporaryDirectory() as folder:
            await _over_http(arguments, made, idle, Path(folder))
        _in_process(arguments, made.answers)
        print(f"\nresident at the end {memory():.0f} MiB")


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
