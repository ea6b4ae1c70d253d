"""How fast pods are scheduled that share GPUs, beside the same pods without devices.

python -m benchmarks.scheduling.shared_gpus [--nodes 1000] [--pods 1500] [--rounds 5] [--no-stock]

Every node has eight GPUs, and every pod asks for half of one. Both queues are scheduled by the same
kube-scheduler with our extender, and without it, where such a pod asks for some extended resource:
what it loses then no extender can give back. Processor time is shown for each program.
"""

import argparse
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import uvloop

from api import names
from benchmarks import figures
from benchmarks.plane import feed, gpus, layouts, rig
from benchmarks.scheduling import variants

GPUS: Final = 8
SHARE: Final = "50"
PLAIN, SHARED = "plain", "shared"
_GOAL: Final = "goal 0.85"
_COSTS: Final = {
    "devices.shared.cost": "extender",
    "devices.shared.scheduler": "kube-scheduler",
    "devices.shared.apiserver": "kube-apiserver",
}
"""Figures of processor time, by program."""
_Runs = dict[tuple[str, str], list[rig.Run]]
"""By kind of pods and variant."""


def machines(count: int) -> rig.Nodes:
    """Return nodes of one size with GPUs."""
    plain = rig.even(count)
    return dataclasses.replace(
        plain, offers=lambda number: {**plain.offers(number), **gpus.offered(GPUS)}
    )


def pods(first: int, count: int, kind: str) -> Iterator[dict[str, Any]]:
    """Yield pods that wait, of 7 KB each."""
    for number in range(first, first + count):
        made = rig.waiting_pod(number, 7)
        if kind == SHARED:
            resources = made["spec"]["containers"][0]["resources"]
            for side in ("requests", "limits"):
                resources[side] = {**resources.get(side, {}), names.GPU: SHARE}
        yield made


async def _round(
    made: rig.Rig, number: int, queue: tuple[str, str], arguments: argparse.Namespace
) -> rig.Run:
    """Schedule one queue: pods of one kind, by one variant."""
    kind, variant = queue
    await made.refresh_reports()
    await made.create(rig.PODS, pods((number + 1) * 100_000, arguments.pods, kind))
    run = await variants.scheduled(made, variants.VARIANTS[variant], arguments.pods, arguments.qps)
    given = await _given(made)
    if given != (arguments.pods if queue == (SHARED, variants.OURS) else 0):
        raise RuntimeError(f"{given} of {arguments.pods} pods were given a GPU")
    await made.delete_pods()
    spent = ", ".join(f"{name} {work:.2f}" for name, work in run.milliseconds.items())
    memory = f"extender {run.resident:.0f} MiB, " if run.resident else ""
    print(
        f"queue {number}, {kind}, {variant}: {run.pods_per_second:.0f} pods/s, "
        f"ms per pod: {spent}; {memory}load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return run


async def _given(made: rig.Rig) -> int:
    """Count the pods on which a GPU is recorded."""
    items = json.loads(await made.call("GET", rig.PODS))["items"]
    return sum(names.ANNOTATION_DEVICE_ALLOCATED in one["metadata"]["annotations"] for one in items)


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} nodes of {GPUS} GPUs, {arguments.pods} pods")
    ways = (variants.OURS, variants.STOCK) if arguments.stock else (variants.OURS,)
    queues = [(kind, way) for way in ways for kind in (PLAIN, SHARED)]
    runs: _Runs = {queue: [] for queue in queues}
    async with rig.running(machines(arguments.nodes), layout=layouts.Layout.SHARED) as made:
        await made.create(
            gpus.DEVICES,
            (gpus.device(feed.node_name(number), GPUS, "H") for number in range(arguments.nodes)),
        )
        for turn in range(arguments.rounds):
            for queue in queues if turn % 2 else queues[::-1]:
                number = sum(map(len, runs.values()))
                runs[queue].append(await _round(made, number, queue, arguments))
    _show(runs)


def _show(runs: _Runs) -> None:
    plain, shared = runs[PLAIN, variants.OURS], runs[SHARED, variants.OURS]
    figures.show(
        figures.paired(
            "devices.shared", "pods scheduled per second that ask for half a GPU", "1/s",
            [run.pods_per_second for run in shared], [run.pods_per_second for run in plain],
            f"the same pods without; {_GOAL}",
        ),
        *(
            figures.paired(
                figure, f"processor time of {program} per pod with half a GPU", "ms",
                [run.milliseconds[program] for run in shared],
                [run.milliseconds[program] for run in plain], "the same pods without",
            )
            for figure, program in _COSTS.items()
        ),
        figures.plain(
            "devices.shared.rss", "resident memory of the extender afterwards", "MiB",
            [run.resident for run in shared],
        ),
    )  # fmt: skip
    if (SHARED, variants.STOCK) in runs:
        _show_stock(runs[PLAIN, variants.STOCK], runs[SHARED, variants.STOCK])


def _show_stock(plain: Sequence[rig.Run], shared: Sequence[rig.Run]) -> None:
    figures.show(
        figures.paired(
            "devices.shared.stock", "the same by kube-scheduler alone", "1/s",
            [run.pods_per_second for run in shared], [run.pods_per_second for run in plain],
            "the same pods without",
        ),
        figures.paired(
            "devices.shared.stock.scheduler",
            "processor time of kube-scheduler alone per pod with half a GPU", "ms",
            [run.milliseconds["kube-scheduler"] for run in shared],
            [run.milliseconds["kube-scheduler"] for run in plain],
            "the same pods without",
        ),
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument(
        "--no-stock", dest="stock", action="store_false", help="leave kube-scheduler alone out"
    )
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
