"""Latency of every verb as kube-scheduler sees it: us against a minimal extender in Go.

python -m benchmarks.scheduling.calls.latency [--nodes 5000] [--pods 150000] [--blocks 5]
    [--calls 200]

The caller is kube-scheduler's own client code, compiled from its source. Our process has loaded a
generated cluster of full size; the extender in Go knows nothing and decides nothing. Blocks of
calls alternate between the two.
"""

import argparse
import contextlib
from collections.abc import Sequence

import uvloop

from benchmarks import figures
from benchmarks.plane import extenders
from benchmarks.scheduling.calls import client_calls

SIZES = (100, 420, 500, 812, 5000)


def _show(verb: str, names: int, ours: client_calls.Taken, minimal: client_calls.Taken) -> None:
    """Print one row and its figures."""
    cells = []
    for share, label in ((0.5, "p50"), (0.99, "p99")):
        row = "F3" if verb == "filter" else f"F3.{verb}"
        size = "" if verb == "bind" else f".{names}"
        taken, other = ours.percentiles(share), minimal.percentiles(share)
        figures.show(
            figures.paired(
                f"{row}{size}.{label}",
                f"{verb} with {names} names as the scheduler sees it, {label}",
                "us", taken, other, "minimal extender in Go; goal 0.85",
            )
        )  # fmt: skip
        cells += [f"{figures.spread(taken, 0):>20}", f"{figures.spread(other, 0):>20}"]
    print(
        f"# {verb:<11}{names:>6}{''.join(cells)}"
        f"  processor us per call {ours.work:.0f} / {minimal.work:.0f}",
        flush=True,
    )


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
    async with contextlib.AsyncExitStack() as stack:
        made = await stack.enter_async_context(
            client_calls.generated(arguments.nodes, arguments.pods)
        )
        folder, kubeconfig = made.folder, made.kubeconfig
        targets = [
            await stack.enter_async_context(
                extenders.ours(folder, kubeconfig, *client_calls.FLAGS)
            ),
            await stack.enter_async_context(extenders.minimal(folder, kubeconfig)),
        ]
        often = client_calls.Plan(arguments.blocks, arguments.calls)
        for verb, names in plan:
            if verb in chosen:
                _show(verb, names, *await made.measure(verb, names, targets, often))


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
