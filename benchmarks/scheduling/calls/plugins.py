"""Latency of every verb by the plug-ins that are enabled: none, each alone, all of them.

python -m benchmarks.scheduling.calls.plugins [--nodes 1000] [--pods 30000] [--names 420]
    [--blocks 5] [--calls 200]

One extender for each set of plug-ins runs on the same generated cluster; blocks of calls through
kube-scheduler's own client code alternate between them.
"""

import argparse
import contextlib
from collections.abc import Mapping, Sequence

import uvloop

from benchmarks import figures
from benchmarks.plane import extenders
from benchmarks.scheduling.calls import client_calls
from extender import settings

_VERBS = ("filter", "prioritize", "preempt", "bind")
ALL, NONE = "all", "none"


def sets(enabled: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sets of plug-ins to compare, the whole one first."""
    alone = {name: (name,) for name in enabled if len(enabled) > 1}
    return {ALL: tuple(enabled), **alone, NONE: ()}


def _show(verb: str, names: int, taken: Mapping[str, client_calls.Taken]) -> None:
    """Print a row for each set, and figures relative to all plug-ins."""
    for name, found in taken.items():
        p50, p99 = found.percentiles(0.5), found.percentiles(0.99)
        print(
            f"# {verb:<11}{name:<22}{figures.spread(p50, 0):>20}{figures.spread(p99, 0):>22}"
            f"{found.work:>10.0f}",
            flush=True,
        )
        if name != ALL:
            what = f"{verb} with {names} names as the scheduler sees it, plug-ins: {name}, p50"
            figures.show(
                figures.paired(
                    f"plugins.{verb}.{name}", what, "us", p50, taken[ALL].percentiles(0.5),
                    "all plug-ins",
                )
            )  # fmt: skip


async def _main(arguments: argparse.Namespace) -> None:
    print(f"# {figures.machine()}")
    print(
        f"# {arguments.nodes} nodes, {arguments.pods} pods, {arguments.names} names, "
        f"{arguments.blocks} blocks of {arguments.calls} calls; p50 and p99 in microseconds, "
        "processor microseconds per call"
    )
    chosen = sets(settings.PluginSettings().enabled)
    async with contextlib.AsyncExitStack() as stack:
        made = await stack.enter_async_context(
            client_calls.generated(arguments.nodes, arguments.pods)
        )
        targets = []
        for name, plugins in chosen.items():
            folder = made.folder / name
            folder.mkdir()
            flags = (*client_calls.FLAGS, f"--plugins.enabled={','.join(plugins)}")
            targets.append(
                await stack.enter_async_context(extenders.ours(folder, made.kubeconfig, *flags))
            )
        often = client_calls.Plan(arguments.blocks, arguments.calls)
        for verb in _VERBS:
            names = 1 if verb == "bind" else arguments.names
            found = await made.measure(verb, names, targets, often)
            _show(verb, names, dict(zip(chosen, found, strict=True)))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--names", type=int, default=420)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
