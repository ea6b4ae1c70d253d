"""Packs GPUs on a smaller cluster with the real kube-scheduler, beside the replay of the same pods.

python -m benchmarks.openb.real_scheduler [--workloads=default,gpushare100,cpu250] [--nodes=300]
    [--seeds=1]

The replay has no scheduler: it asks the plug-in itself. Here an unmodified kube-scheduler calls the
extender for every pod, in the order in which the replay places them: all pods wait from the
beginning, behind a scheduling gate, and the gates are opened one after the other. The nodes have
the proportions of the trace.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import uvloop

from api import names, resources
from api.kubernetes import scheduler_config
from benchmarks import figures
from benchmarks.openb import replay, scoreboard, trace
from benchmarks.plane import extenders, feed, gpus, layouts, rig

WORKLOADS: Final = ("default", "gpushare100", "cpu250")
CLOSE: Final = 0.5
"""Points by which the two may differ."""
_ARGUMENTS: Final = resources.CONFIG_MAPS.path(names.NAMESPACE)
_LOOK_SECONDS: Final = 2.0
_PATIENCE: Final = 540.0
_GATES: Final = [{"name": "example.com/arrives"}]
_OPEN: Final = {"spec": {"schedulingGates": None}}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_NO_SCORES: Final = {"score": {"disabled": [{"name": "*"}]}}
"""As in the experiment, nothing but the plug-in prefers one node to another."""


def configuration(url: str) -> dict[str, Any]:
    """Return the configuration of a kube-scheduler in which only the extender scores nodes."""
    options = scheduler_config.Options(
        extender_url=url, queries_per_second=5000, percentage_of_nodes_to_score=100
    )
    found = scheduler_config.render(options)
    found["profiles"] = [{"schedulerName": "default-scheduler", "plugins": _NO_SCORES}]
    return found


def machines(shapes: Sequence[trace.NodeShape]) -> rig.Nodes:
    """Return the nodes as objects; each reports that nothing of it is used."""
    each = [shape for shape in shapes for _ in range(shape.count)]

    def offers(number: int) -> Mapping[str, str]:
        shape = each[number]
        found = {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi", "pods": "500"}
        return found | gpus.offered(shape.gpus)

    return rig.Nodes(len(each), offers, lambda _: {}, lambda _: {"cpu": "0", "memory": "0"})


def pods(arrivals: replay.Arrivals, kinds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the pods, each behind a scheduling gate."""
    for number, kind in enumerate(kinds):
        made = replay.manifest(arrivals.shapes[kind])
        made["metadata"]["name"] = _name(number)
        made["spec"]["schedulingGates"] = _GATES
        yield made


def _name(number: int) -> str:
    return f"pod-{number:05}"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the pods of one workload."""

    allocated: int
    """Thousandths of GPUs that pods with a node ask for."""
    placed: int
    recorded: int
    """Thousandths of GPUs that annotations of these pods say they were given."""


def outcome(items: Sequence[Mapping[str, Any]]) -> Outcome:
    """Count pods with a node, by what they ask for and by what was allocated to them."""
    bound = [pod for pod in items if pod["spec"].get("nodeName")]
    asked = [
        int(pod["spec"]["containers"][0]["resources"]["requests"].get(names.GPU, 0))
        for pod in bound
    ]
    given = [
        int(one["resources"][names.GPU_CORE])
        for pod in bound
        for one in json.loads(
            pod["metadata"].get("annotations", {}).get(names.ANNOTATION_DEVICE_ALLOCATED, "{}")
        ).get("gpu", ())
    ]
    return Outcome(10 * sum(asked), len(bound), 10 * sum(given))


def is_decided(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has a node, or the scheduler has found none."""
    conditions = pod.get("status", {}).get("conditions", ())
    refused = any(
        (one["type"], one.get("reason")) == ("PodScheduled", "Unschedulable") for one in conditions
    )
    return bool(pod["spec"].get("nodeName")) or refused


async def _schedule(made: rig.Rig, count: int) -> Outcome:
    """Let a kube-scheduler with our extender try every pod once."""
    folder = made.workdir / "ours"
    folder.mkdir(exist_ok=True)
    login = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
    flags = (f'--plugins.enabled=["{replay.PLUGIN}"]', f'--plugins.weights={{"{replay.PLUGIN}":1}}')
    running = extenders.ours(folder, login, *flags, configuration=configuration)
    async with running as extender, asyncio.timeout(_PATIENCE):
        await made.settle()
        await made.start_scheduler(configuration(extender.url))
        started = time.monotonic()
        for number in range(count):
            await made.call("PATCH", f"{rig.PODS}/{_name(number)}", _OPEN, headers=_MERGE)
        while True:
            items = json.loads(await made.call("GET", rig.PODS))["items"]
            done = sum(map(is_decided, items))
            scoreboard.progress(done, count, started, "pods")
            if done == count:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        await made.plane.stop_scheduler()
        print(f"filter with several nodes, by why none was chosen: {await extender.decided()}")
    return outcome(items)


async def _run(
    made: rig.Rig, given: replay.Cluster, workload: str, seed: int
) -> tuple[float, float]:
    """Return the percentage of GPUs that is allocated, and what the replay allocates."""
    arrivals = replay.Arrivals(workload, seed)
    kinds = arrivals.until(given.capacity)
    await made.create(rig.PODS, pods(arrivals, kinds))
    found = await _schedule(made, len(kinds))
    await made.delete_pods()
    if found.allocated != found.recorded:
        raise RuntimeError(f"pods ask for {found.allocated} and were given {found.recorded}")
    share = 100 * found.allocated / given.capacity
    expected = replay.run_expected(given, workload, seed)
    print(
        f"{workload}, seed {seed}: {len(kinds)} pods arrived, {found.placed} placed, "
        f"{share:.2f} % allocated; the replay placed {expected.placed}, {expected.allocated:.2f} %,"
        f" load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return share, expected.allocated


def _figure(workload: str, pairs: Sequence[tuple[float, float]]) -> figures.Figure:
    return figures.plain(
        f"openb.real.{workload}",
        f"GPUs allocated by kube-scheduler less those of the replay, workload {workload}",
        "points",
        [share - expected for share, expected in pairs],
        f"goal within {CLOSE} points",
    )


async def _main(arguments: argparse.Namespace) -> None:
    shapes = trace.nodes(arguments.nodes)
    given = replay.cluster(arguments.nodes)
    print(f"{figures.machine()}\n{arguments.nodes} nodes, {given.capacity // 1000} GPUs")
    async with rig.running(machines(shapes), layout=layouts.Layout.SHARED) as made:
        each = [shape for shape in shapes for _ in range(shape.count)]
        await made.create(
            gpus.DEVICES,
            (
                gpus.device(feed.node_name(number), shape.gpus, shape.model)
                for number, shape in enumerate(each)
                if shape.gpus
            ),
        )
        await made.create("/api/v1/namespaces", [{"metadata": {"name": names.NAMESPACE}}])
        await made.create(_ARGUMENTS, [_arguments()])
        found = {
            workload: [
                await _run(made, given, workload, scoreboard.FIRST_SEED + turn)
                for turn in range(arguments.seeds)
            ]
            for workload in arguments.workloads.split(",")
        }
    for workload, pairs in found.items():
        figures.show(_figure(workload, pairs))


def _arguments() -> dict[str, Any]:
    """Return the ConfigMap with the arguments of the plug-in, as Koordinator's users write it."""
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": replay.PLUGIN, "args": replay.ARGUMENTS}],
    }
    written = {
        "apiVersion": scheduler_config.API_VERSION,
        "kind": scheduler_config.KIND,
        "profiles": [profile],
    }
    data = {names.CONFIG_MAP_SCHEDULER: json.dumps(written)}
    return {"metadata": {"name": names.CONFIG_MAP_SCHEDULER}, "data": data}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.workloads.split(",")) - set(trace.names())):
        parser.error(f"--workloads: {unknown[0]} does not exist; there are {trace.names()}")
    uvloop.run(_main(arguments))


if __name__ == "__main__":
    main()
