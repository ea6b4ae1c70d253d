"""Pods per second of real schedulers: kube-scheduler alone, with us, with others, koord-scheduler.

python -m benchmarks.scheduling.throughput [--nodes 1000[,5000]] [--kilobytes 7[,2,60]]
    [--pods 1500] [--rounds 5] [--qps 5000] [--layout apart|shared] [--variants stock,ours,minimal]

Rounds interleave all of them, each on the same control plane: pods first, scheduler last and only
when everything else has come to rest, the first and the last tenth not counted. With us means
every verb and every plug-in, our process beside the scheduler and the configuration that we ship
but for the scheduler's own rate limit. Several numbers of nodes are several control planes, of
which only one works at a time.
"""

import argparse
import contextlib
import os
from collections.abc import Sequence

import uvloop

from benchmarks import figures
from benchmarks.plane import feed, layouts, rig
from benchmarks.scheduling import comparisons, variants
from benchmarks.scheduling.comparisons import Case


def _cases(arguments: argparse.Namespace, names: Sequence[str]) -> list[Case]:
    return [
        Case(nodes, kilobytes, name)
        for nodes in arguments.nodes
        for kilobytes in arguments.kilobytes
        for name in names
    ]


async def _main(arguments: argparse.Namespace) -> None:
    print(
        f"{figures.machine()}\n{arguments.pods} pods per run, cores {arguments.layout}, "
        f"scheduler QPS {arguments.qps}"
    )
    names = arguments.variants
    runs: comparisons.Runs = {}
    async with contextlib.AsyncExitStack() as stack:
        planes: dict[int, rig.Rig] = {}
        for nodes in arguments.nodes:
            made = await stack.enter_async_context(
                rig.running(rig.even(nodes), layout=arguments.layout)
            )
            names = await variants.prepare(made, names)
            planes[nodes] = made
        cases = _cases(arguments, names)
        for turn in range(arguments.rounds):
            first = turn % len(cases)
            for case in cases[first:] + cases[:first]:
                load = variants.Load(arguments.pods, case.kilobytes, arguments.qps)
                variant = variants.VARIANTS[case.variant]
                run = await variants.drained(planes[case.nodes], variant, load)
                runs.setdefault(case, []).append(run)
                print(
                    f"round {turn} {case.label}: {run.pods_per_second:.0f} pods/s, "
                    f"load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    comparisons.table({case: runs[case] for case in cases})
    comparisons.show(runs, arguments.layout, arguments.qps)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _sizes(text: str) -> list[int]:
    sizes = _numbers(text)
    if unknown := set(sizes) - set(feed.KILOBYTES):
        raise argparse.ArgumentTypeError(f"no pods of {unknown} KB; there are {[*feed.KILOBYTES]}")
    return sizes


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=_numbers, default=[1000])
    parser.add_argument("--kilobytes", type=_sizes, default=[7])
    parser.add_argument("--pods", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=layouts.Layout, default=layouts.Layout.APART
    )
    defaults = [variants.STOCK, variants.OURS, variants.MINIMAL]
    parser.add_argument("--variants", type=variants.names, default=defaults)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
