"""What planning one gang as a whole costs, and how long it keeps the event loop from other work.

python -m benchmarks.gang_planning [--nodes 5000] [--pods 20] [--members 512] [--gangs 1000]

An extender without an API server holds a cluster with load reports under the plug-ins that are on
by default. A gang is planned on a fork and its places are kept, as the controller does, in steps
between which the loop is free; another gang is too large for the cluster. Then many small gangs are
planned one after another, some of which are bound meanwhile. Processor time.
"""

import argparse
import collections
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from api import names
from api.kubernetes import core
from benchmarks import figures
from domain.usage import load
from extender import parts, plugin_selection, registry, settings
from extender.framework import pipeline
from extender.gangs import holding, in_force
from extender.gangs.planning import changed_nodes, planner, planning_fork
from extender.informers.nodes import node_metrics
from extender.state import cluster_state, ledger, records

_NOW = 1_782_907_200.0
_MOMENT = "2026-07-01T12:00:00Z"
_GANG = "default/g"
_SMALL = 8
"""Members of a small gang."""
_IN_FLIGHT = 32
"""Small gangs that have a plan and are not bound yet."""


class Extender:
    """The state of an extender, fed directly."""

    def __init__(self) -> None:
        built = registry.build(plugin_selection.select(settings.PluginSettings()))
        plugins = built.plugins.values()
        self.line = registry.assemble(built)
        self.reader = node_metrics.Reader(registry.universe(plugins))
        self.cluster = cluster_state.ClusterState(registry.state_trackers(plugins), parts.COUNTED)
        self.books = ledger.Ledger(self.cluster)
        self.projector = records.Projector(None, (), registry.inputs(registry.every(built)))

    def fill(self, nodes: int, pods: int) -> None:
        """Let watches tell of a cluster."""
        for number in range(nodes):
            self.books.node(None, self.projector.node(msgspec.convert(_node(number), core.Node)))
            self.books.report(f"n{number}", self._report(number))
            for place in range(pods):
                self.pod(f"p{number}-{place}", "1", node=f"n{number}")
        self.cluster.refresh()
        self.cluster.view()

    def _report(self, number: int) -> load.Report | None:
        raw = {
            "metadata": {"name": f"n{number}"},
            "status": {
                "updateTime": _MOMENT,
                "nodeMetric": {
                    "nodeUsage": {"resources": {"cpu": str(2 + number % 9), "memory": "20Gi"}}
                },
            },
        }
        return self.reader.named(msgspec.convert(raw, node_metrics.NodeMetric)).report

    def pod(self, name: str, cpu: str, *, node: str = "", gang: str = "g") -> records.PodRecord:
        """Let the watch show a pod."""
        raw = _pod(name, cpu, node)
        if not node:
            raw["metadata"]["annotations"] = {names.ANNOTATION_GANG_NAME: gang}
        found = self.projector.pod(msgspec.convert(raw, core.Pod))
        assert found is not None
        self.books.pod(None, found, _NOW)
        return found


def _pod(name: str, cpu: str, node: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "2Gi"}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def _node(number: int) -> dict[str, Any]:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    metadata = {"name": f"n{number}", "uid": f"n{number}"}
    return {"metadata": metadata, "status": {"allocatable": allocatable}}


def _steps(
    on: Extender,
    members: Sequence[planner.Member],
    plugins: pipeline.Pipeline,
    fork: planning_fork.PlanningFork,
) -> Any:
    """Plan a gang and keep its places, in the steps of the controller; return what was found."""
    with changed_nodes.following(on.cluster) as since:
        yield from fork.catch_up(_NOW)
        options = planner.Options({_GANG: len(members)})
        made = fork.planner(plugins, members, options, _NOW)
        yield from made.steps()
        if isinstance(made.result, planner.Plan):
            kept = holding.Holding(on.books, lambda: plugins)
            for why in kept.place(made.result.placements, _NOW + 60.0, since, _NOW):
                assert not why, why
                yield
    return made.result


def _timed(work: Iterator[None], *, collecting: bool = True) -> tuple[float, float, Any]:
    """Return processor milliseconds in all and of the longest step, and what was found."""
    if collecting:
        gc.collect()
    whole = longest = 0.0
    while True:
        started = time.thread_time()
        try:
            next(work)
        except StopIteration as end:
            taken = time.thread_time() - started
            return (whole + taken) * 1e3, max(longest, taken) * 1e3, end.value
        taken = time.thread_time() - started
        whole, longest = whole + taken, max(longest, taken)


def _measured(
    on: Extender, members: Sequence[planner.Member], wanted: type, rounds: int
) -> tuple[list[float], list[float]]:
    """Plan the same gang several times; nothing of it is kept in between."""
    whole, longest = [], []
    for _ in range(rounds):
        judging = pipeline.without(on.line, in_force.PLUGIN)
        fork = planning_fork.PlanningFork(on.cluster, frozenset({in_force.PLUGIN}))
        taken, step, found = _timed(_steps(on, members, judging, fork))
        fork.close()
        assert isinstance(found, wanted), found
        whole.append(taken)
        longest.append(step)
        for member in members:
            on.books.withdraw(member.pod.uid)
        on.cluster.view()
    return whole, longest


def _many(on: Extender, gangs: int) -> tuple[list[float], list[float]]:
    """Plan many small gangs one after another, as they are bound meanwhile; each one is timed."""
    several = [
        [
            planner.Member(on.pod(f"m{gang}-{number}", "2", gang=f"m{gang}"), _GANG)
            for number in range(_SMALL)
        ]
        for gang in range(gangs)
    ]
    judging, fork = (
        pipeline.without(on.line, in_force.PLUGIN),
        planning_fork.PlanningFork(on.cluster, frozenset({in_force.PLUGIN})),
    )
    on.cluster.view()
    whole: list[float] = []
    longest: list[float] = []
    placed: collections.deque[planner.Plan] = collections.deque()
    for members in several:
        taken, step, found = _timed(_steps(on, members, judging, fork), collecting=False)
        assert isinstance(found, planner.Plan), found
        whole.append(taken)
        longest.append(step)
        placed.append(found)
        if len(placed) > _IN_FLIGHT:
            for one in placed.popleft().placements:
                on.books.assume(one.pod, one.node, _NOW, 0.0, one.granted)
            on.cluster.view()
    fork.close()
    return whole, longest


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--members", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--gangs", type=int, default=1000, help="small gangs; on a fifth as many nodes"
    )
    chosen = parser.parse_args(argv)
    print(f"# {figures.machine()}")
    on = Extender()
    on.fill(chosen.nodes, chosen.pods)
    gc.freeze()
    show: Callable[..., None] = lambda *found: figures.show(figures.plain(*found))  # noqa: E731
    size = f"{chosen.members} members on {chosen.nodes} nodes"
    fits = [planner.Member(on.pod(f"g-{number}", "8"), _GANG) for number in range(chosen.members)]
    whole, longest = _measured(on, fits, planner.Plan, chosen.rounds)
    show("gangs.plan", f"planning {size} and keeping their places", "ms", whole, "<= 300")
    show("gangs.plan.step", f"longest step of planning {size}", "ms", longest, "<= 20")
    large = [planner.Member(on.pod(f"l-{number}", "60"), _GANG) for number in range(chosen.members)]
    whole, longest = _measured(on, large, planner.Refused, chosen.rounds)
    show("gangs.refuse", f"finding out that {size} do not fit", "ms", whole, "<= 300")
    show("gangs.refuse.step", f"longest step of finding out for {size}", "ms", longest, "<= 20")
    other = Extender()
    other.fill(chosen.nodes // 5, chosen.pods)
    gc.freeze()
    whole, longest = _many(other, chosen.gangs)
    size = f"{chosen.gangs} gangs of {_SMALL} on {chosen.nodes // 5} nodes"
    mean = [sum(whole) / len(whole)]
    show("gangs.many", f"planning one of {size}", "ms", mean, "<= 1.5")
    show("gangs.many.step", f"longest step of planning {size}", "ms", [max(longest)], "<= 20")


if __name__ == "__main__":
    main()
