"""Latency of every verb as kube-scheduler sees it: us against a minimal extender in Go.

python -m benchmarks.scheduling.latency [--nodes 5000] [--pods 150000] [--blocks 5] [--calls 200]

The caller is kube-scheduler's own client code, compiled from its source. Our process has loaded a
generated cluster of full size; the extender in Go knows nothing and decides nothing. Blocks of
calls alternate between the two.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import uvloop

from api.wire import durations
from benchmarks import figures
from benchmarks.plane import extenders, feed, golang

SIZES = (100, 420, 500, 812, 5000)
_WARM = 20
_PENDING = 6000
FLAGS = (
    "--plugins.loadAware.nodeMetricExpirationSeconds=36000",
    "--freshness.idleSeconds=3600",
    "--freshness.proofSeconds=5",
    "--server.maxBodyBytes=8388608",
    "--log.level=warning",
)
"""Settings for generated clusters, whose load reports never change."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Bench:
    folder: Path
    ours: extenders.Extender
    minimal: extenders.Extender


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """Both extenders on the same verb with as many names, block by block."""

    verb: str
    names: int
    ours: list[list[float]]
    minimal: list[list[float]]
    work: float
    """Processor microseconds of our process per call."""
    other_work: float

    def show(self) -> None:
        """Print the row and its figures."""
        cells = []
        for share, label in ((0.5, "p50"), (0.99, "p99")):
            ours = [figures.percentile(block, share) for block in self.ours]
            other = [figures.percentile(block, share) for block in self.minimal]
            row = "F3" if self.verb == "filter" else f"F3.{self.verb}"
            size = "" if self.verb == "bind" else f".{self.names}"
            figure = figures.paired(
                f"{row}{size}.{label}",
                f"{self.verb} with {self.names} names as the scheduler sees it, {label}",
                "us", ours, other, "minimal extender in Go; goal 0.85",
            )  # fmt: skip
            figures.show(figure)
            cells += [f"{figures.spread(ours, 0):>20}", f"{figures.spread(other, 0):>20}"]
        print(
            f"# {self.verb:<11}{self.names:>6}{''.join(cells)}"
            f"  processor us per call {self.work:.0f} / {self.other_work:.0f}",
            flush=True,
        )


@contextlib.asynccontextmanager
async def _running(arguments: argparse.Namespace) -> AsyncIterator[_Bench]:
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="koord-bench-")))
        moment = durations.moment(time.time())
        url = await stack.enter_async_context(
            feed.running(arguments.nodes, arguments.pods, _PENDING, moment)
        )
        kubeconfig = feed.write_kubeconfig(folder / "kubeconfig", url)
        names = [feed.node_name(number) for number in range(arguments.nodes)]
        (folder / "nodes").write_text("\n".join(names))
        (folder / "free").write_text(
            "\n".join(name for at, name in enumerate(names) if 0 < at % 20 < 10)
        )
        waiting = range(arguments.pods, arguments.pods + _PENDING)
        pods = (feed.pod_text(number, "", moment="") for number in waiting)
        (folder / "pods").write_text("\n".join(pods))
        yield _Bench(
            folder,
            await stack.enter_async_context(extenders.ours(folder, kubeconfig, *FLAGS)),
            await stack.enter_async_context(extenders.minimal(folder, kubeconfig)),
        )


async def _measure(
    bench: _Bench, verb: str, names: int, first: int, arguments: argparse.Namespace
) -> _Row:
    targets = (bench.ours, bench.minimal)
    before = [figures.cpu_seconds(target.pid) for target in targets]
    process = await asyncio.create_subprocess_exec(
        str(golang.program("goclient")),
        f"--nodes={bench.folder / ('free' if verb == 'bind' else 'nodes')}",
        f"--pods={bench.folder / 'pods'}",
        f"--verb={verb}", f"--names={names}", f"--first={first}", f"--warm={_WARM}",
        f"--calls={arguments.calls}", f"--blocks={arguments.blocks}",
        *(target.url for target in targets),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"{verb} with {names} names failed")
    after = [figures.cpu_seconds(target.pid) for target in targets]
    calls = arguments.calls * arguments.blocks
    work = [(end - start) * 1e6 / calls for start, end in zip(before, after, strict=True)]
    taken = json.loads(output)
    return _Row(verb, names, taken[0], taken[1], work[0], work[1])


async def _main(arguments: argparse.Namespace) -> None:
    print(f"# {figures.machine()}")
    print(
        f"# {arguments.nodes} nodes, {arguments.pods} pods, {arguments.blocks} blocks of "
        f"{arguments.calls} calls; microseconds: ours p50, minimal p50, ours p99, minimal p99"
    )
    sizes = [size for size in SIZES if size <= arguments.nodes]
    plan = [(verb, size) for verb in ("filter", "prioritize") for size in sizes]
    plan += [("preempt", 100), ("bind", 1)]
    chosen = arguments.verbs.split(",")
    first = 0
    async with _running(arguments) as bench:
        for verb, names in plan:
            if verb in chosen:
                row = await _measure(bench, verb, names, first, arguments)
                row.show()
            if verb == "bind":
                first += 2 * arguments.calls * arguments.blocks


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--verbs", default="filter,prioritize,preempt,bind")
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
