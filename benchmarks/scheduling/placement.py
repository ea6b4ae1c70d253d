"""How evenly pods lie on uneven nodes: with us, and with kube-scheduler alone.

python -m benchmarks.scheduling.placement [--nodes 300] [--pods 2000] [--replicas 60] [--rounds 3]
    [--variants stock,ours]

A fourth of the nodes is half full to begin with. Services of many sizes, batch work and Deployments
wait before the scheduler starts. Every round draws other pods, the same for each variant.
"""

import argparse
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence

import uvloop

from benchmarks import figures
from benchmarks.plane import layouts, rig
from benchmarks.scheduling import uneven, variants

_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{rig.NAMESPACE}/deployments"
_REPLICASETS = f"/apis/apps/v1/namespaces/{rig.NAMESPACE}/replicasets"
_MEASURES = {
    "cpu_deviation": ("cpu.deviation", "standard deviation of requested cpu over nodes", "%"),
    "cpu_hottest": ("cpu.hottest", "requested cpu of the hottest node", "%"),
    "memory_deviation": ("memory.deviation", "standard deviation of requested memory", "%"),
    "memory_hottest": ("memory.hottest", "requested memory of the hottest node", "%"),
    "replicas_on_node": ("replicas.node", "most replicas of a Deployment on a node", "pods"),
    "replicas_between_zones": (
        "replicas.zones",
        "replicas of a Deployment in the fullest less those in the emptiest zone",
        "pods",
    ),
}


async def _round(
    made: rig.Rig, name: str, seed: int, arguments: argparse.Namespace
) -> uneven.Quality:
    """Place everything once and judge where it lies."""
    await made.refresh_reports()
    await made.create(rig.PODS, uneven.residents(arguments.nodes))
    await made.create(_DEPLOYMENTS, uneven.applications(arguments.replicas))
    replicas = uneven.APPLICATIONS * arguments.replicas
    mixed = arguments.pods - replicas
    await made.create(rig.PODS, uneven.pods(mixed, seed))
    waiting = arguments.pods
    await rig.until(lambda: _are_there(made, waiting))
    run = await variants.scheduled(made, variants.VARIANTS[name], waiting, arguments.qps)
    placed = json.loads(await made.call("GET", rig.PODS))["items"]
    found = uneven.quality(placed, arguments.nodes)
    await _clear(made)
    print(
        f"round {seed} {name}: {run.pods_per_second:.0f} pods/s, load {os.getloadavg()[0]:.1f}, "
        + ", ".join(f"{key} {value:.1f}" for key, value in dataclasses.asdict(found).items()),
        flush=True,
    )
    return found


async def _are_there(made: rig.Rig, waiting: int) -> bool:
    items = json.loads(await made.call("GET", rig.PODS, params={"fieldSelector": "spec.nodeName="}))
    return len(items["items"]) == waiting


async def _clear(made: rig.Rig) -> None:
    """Remove the Deployments first, so that nothing makes new pods."""
    background = {"propagationPolicy": "Background"}
    for path in (_DEPLOYMENTS, _REPLICASETS):
        await made.call("DELETE", path, background)
    await made.delete_pods()


def _show(found: Mapping[str, Sequence[uneven.Quality]]) -> None:
    print(f"\n{'':<48}" + "".join(f"{name:>22}" for name in found))
    for field, (row, what, unit) in _MEASURES.items():
        values = {name: [getattr(one, field) for one in runs] for name, runs in found.items()}
        cells = "".join(f"{figures.spread(each, 1):>22}" for each in values.values())
        print(f"{what[:47]:<48}{cells}")
        stock = values.pop(variants.STOCK)
        for name, each in values.items():
            figure = f"placement.{row}" if name == variants.OURS else f"placement.{name}.{row}"
            figures.show(compared(figure, what, unit, each, stock))


def compared(
    name: str, what: str, unit: str, values: Sequence[float], stock: Sequence[float]
) -> figures.Figure:
    """Return shares as ratios, and counts, which may be none, as differences."""
    if unit == "%":
        against = "kube-scheduler alone; goal at most 1"
        return figures.paired(name, what, unit, values, stock, against)
    more = [value - other for value, other in zip(values, stock, strict=True)]
    what = f"{what}, more than with kube-scheduler alone"
    return figures.plain(f"{name}.more", what, unit, more, "goal at most 0")


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} uneven nodes, {arguments.pods} pods")
    found: dict[str, list[uneven.Quality]] = {name: [] for name in arguments.variants}
    nodes = uneven.nodes(arguments.nodes)
    async with rig.running(nodes, layout=layouts.Layout.SHARED) as made:
        for turn in range(arguments.rounds):
            first = turn % len(arguments.variants)
            for name in arguments.variants[first:] + arguments.variants[:first]:
                found[name].append(await _round(made, name, turn, arguments))
    _show(found)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=60, help="of each Deployment")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--qps", type=int, default=5000)
    defaults = [variants.STOCK, variants.OURS]
    parser.add_argument("--variants", type=variants.names, default=defaults)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
