"""Pods per second of a real kube-scheduler: alone, with us, with a minimal extender in Go.

python -m benchmarks.scheduling.throughput [--nodes 1000] [--pods 1500] [--rounds 5] [--qps 5000]
    [--layout apart|shared]

Rounds interleave them, each on the same control plane: pods first, scheduler last and only
when everything else has come to rest, the first and the last tenth not counted. With us means
every verb and every plug-in, our process beside the scheduler and the configuration that we ship
but for the scheduler's own rate limit.
"""

import argparse
import contextlib
import statistics
from collections.abc import AsyncIterator, Sequence

import uvloop

from api import scheduler_config
from benchmarks import figures
from benchmarks.plane import layouts, rig

STOCK, OURS, MINIMAL = "stock", "ours", "minimal"
BUSY = "busy"
"""With us, while a third of the nodes report so much load that we refuse them."""
_KOORDINATOR = 45.6
_DEFAULT_QPS = 50


@contextlib.asynccontextmanager
async def _extender(made: rig.Rig, variant: str) -> AsyncIterator[rig.Extender | None]:
    folder = made.workdir / variant
    folder.mkdir(exist_ok=True)
    kubeconfig = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
    if variant in (OURS, BUSY):
        async with rig.ours(folder, kubeconfig) as extender:
            yield extender
    elif variant == MINIMAL:
        async with rig.minimal(folder, kubeconfig) as extender:
            yield extender
    else:
        yield None


async def _round(made: rig.Rig, variant: str, arguments: argparse.Namespace) -> rig.Run:
    await made.refresh_reports(busy=variant == BUSY)
    await made.create_pods(arguments.pods)
    async with _extender(made, variant) as extender:
        config = scheduler_config.render(
            scheduler_config.Options(
                extender_url=extender.url if extender else "",
                queries_per_second=arguments.qps,
            )
        )
        pids = {"extender": extender.pid} if extender else {}
        await made.settle()
        run = await made.drained(arguments.pods, pids, lambda: made.start_scheduler(config))
        await made.plane.stop_scheduler()
    if variant == BUSY and (wrong := await made.pods_on_busy_nodes()):
        raise RuntimeError(f"{wrong} pods are on nodes that report too much load")
    await made.delete_pods()
    return run


def _table(runs: dict[str, list[rig.Run]]) -> None:
    stock = [run.pods_per_second for run in runs.get(STOCK, ())]
    print(f"\n{'':<9}{'pods/s':>22}{'ratio to stock':>22}  processor ms per pod")
    for variant, found in runs.items():
        rates = [run.pods_per_second for run in found]
        ratios = [rate / base for rate, base in zip(rates, stock, strict=True)] if stock else []
        used = {
            name: statistics.median(run.milliseconds[name] for run in found)
            for name in found[0].milliseconds
        }
        cells = ", ".join(f"{name} {value:.2f}" for name, value in used.items())
        print(
            f"{variant:<9}{figures.spread(rates, 0):>22}"
            f"{figures.spread(ratios) if ratios else '':>22}  {cells}"
        )


def _show(runs: dict[str, list[rig.Run]], arguments: argparse.Namespace) -> None:
    rates = {name: [run.pods_per_second for run in found] for name, found in runs.items()}
    is_default = arguments.qps == _DEFAULT_QPS
    row = "F2" if is_default else "F1"
    size = "" if arguments.nodes == 1000 else f".{arguments.nodes}"
    if arguments.layout is layouts.Layout.SHARED:
        size += ".shared"
    name = f"{row}{size}"
    limit = f"scheduler QPS {arguments.qps}, {arguments.nodes} nodes, cores {arguments.layout}"
    ours = rates[OURS]
    if STOCK in rates:
        figures.show(
            figures.paired(
                name, f"pods/s with the extender, {limit}", "pods/s", ours, rates[STOCK],
                f"stock scheduler alone; goal {2.2 if is_default else 0.75}",
            )
        )  # fmt: skip
    if is_default:
        figures.show(
            figures.paired(
                f"{name}.koordinator", f"pods/s with the extender, {limit}", "pods/s", ours,
                [_KOORDINATOR] * len(ours), "Koordinator's published baseline, 100 nodes; goal 3",
            )
        )  # fmt: skip
    if MINIMAL in rates:
        figures.show(
            figures.paired(
                f"{name}.go", f"pods/s with the extender, {limit}", "pods/s", ours,
                rates[MINIMAL], "minimal extender in Go with the same verbs; goal 1.0",
            )
        )  # fmt: skip
    if BUSY in rates:
        shared = arguments.layout is layouts.Layout.SHARED
        figures.show(
            figures.paired(
                f"{row}{size.removesuffix('.shared')}.busy{'' if shared else '.apart'}",
                f"pods/s with a third of the nodes refused for load, {limit}", "pods/s",
                rates[BUSY], ours, "the same without refusals; goal 0.9",
            )
        )  # fmt: skip
    if not is_default:
        _show_work(f"F5{size}", runs, limit)


def _show_work(name: str, runs: dict[str, list[rig.Run]], limit: str) -> None:
    """Show the processor time per scheduled pod: of the extender, and of the scheduler."""
    unit = "ms/pod"
    work = [run.milliseconds["extender"] for run in runs[OURS]]
    what = f"processor time of the extender per scheduled pod, {limit}"
    figures.show(figures.plain(name, what, unit, work, "goal 1.5"))
    if MINIMAL in runs:
        other = [run.milliseconds["extender"] for run in runs[MINIMAL]]
        figures.show(figures.paired(f"{name}.go", what, unit, work, other, "minimal extender"))
    if STOCK in runs:
        what = f"processor time of kube-scheduler per scheduled pod, {limit}"
        work = [run.milliseconds["kube-scheduler"] for run in runs[OURS]]
        other = [run.milliseconds["kube-scheduler"] for run in runs[STOCK]]
        figures.show(
            figures.paired(f"{name}.scheduler", what, unit, work, other, "stock scheduler alone")
        )


async def _main(arguments: argparse.Namespace) -> None:
    print(
        f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods per run, "
        f"cores {arguments.layout}"
    )
    order = arguments.variants.split(",")
    runs: dict[str, list[rig.Run]] = {variant: [] for variant in order}
    async with rig.running(arguments.nodes, layout=arguments.layout) as made:
        for turn in range(arguments.rounds):
            for variant in order[turn % len(order) :] + order[: turn % len(order)]:
                run = await _round(made, variant, arguments)
                runs[variant].append(run)
                print(f"round {turn} {variant}: {run.pods_per_second:.0f} pods/s", flush=True)
    _table(runs)
    _show(runs, arguments)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=layouts.Layout, default=layouts.Layout.APART
    )
    parser.add_argument("--variants", default=f"{STOCK},{OURS},{MINIMAL}")
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
