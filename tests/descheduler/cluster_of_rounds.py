"""A cluster without a process: rounds are planned on it, and what they decide happens at once."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from descheduler import registry
from descheduler.configuration import document
from descheduler.framework import protocols
from descheduler.framework.planning import pipeline, profiles, round_plan
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from descheduler.model import nodeinfo, objects, picture, podinfo
from tests.descheduler import builders

Puts = Callable[["Cluster", podinfo.Pod, str], str]
"""Where a pod lands that leaves a node, given the target that was found for it."""


def on_its_target(cluster: "Cluster", pod: podinfo.Pod, target: str) -> str:
    """Let a pod land where it was reserved for; without a target where most is free."""
    return target or cluster.emptiest(pod)


def back_where_it_was(cluster: "Cluster", pod: podinfo.Pod, target: str) -> str:
    """Let a pod land on the node that it left, as a scheduler may that knows of no target."""
    del cluster, target
    return pod.node


def where_most_is_free(cluster: "Cluster", pod: podinfo.Pod, target: str) -> str:
    """Let a pod land on the emptiest node, as `LeastAllocated` prefers."""
    del target
    return cluster.emptiest(pod)


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
    """One move."""

    minute: float
    pod: str
    """Name of the pod that began the line of successors."""
    source: str
    target: str
    plugin: str


class Emptiest:
    """Targets by requests of cpu, the node with most of it free first; implements `Targets`."""

    def __init__(self, seen: picture.Picture) -> None:
        self._free = {
            name: node.allocatable["cpu"]
            for name, node in seen.nodes.items()
            if node.is_schedulable
        }
        self._at = {pod.uid: pod.node for pod in seen.pods.values()}
        for pod in seen.pods.values():
            self._add(pod.node, -pod.requests["cpu"])
        self._done: list[tuple[podinfo.Pod, str, str]] = []

    def _add(self, node: str, amount: int) -> None:
        if node in self._free:
            self._free[node] += amount

    def target(
        self, pod: podinfo.Pod, among: Collection[str] | None, without: Collection[str]
    ) -> protocols.Target | protocols.NoTarget:
        """Return the node with most cpu free of those that may be."""
        names = [
            name
            for name, free in self._free.items()
            if (among is None or name in among)
            and name not in without
            and name != self._at[pod.uid]
            and free >= pod.requests["cpu"]
        ]
        if not names:
            return protocols.NoTarget("0 nodes are available")
        return protocols.Target(max(names, key=lambda name: (self._free[name], name)))

    def move(self, pod: podinfo.Pod, node: str) -> None:
        """Let the pod be on that node from here on."""
        source = self._at[pod.uid]
        self._done.append((pod, source, node))
        self._add(source, pod.requests["cpu"])
        self._add(node, -pod.requests["cpu"])
        self._at[pod.uid] = node

    def remove(self, pod: podinfo.Pod) -> None:
        """Let the pod be gone from here on."""
        self.move(pod, "")

    def mark(self) -> int:
        """Return a mark to which moves can be taken back."""
        return len(self._done)

    def undo(self, mark: int) -> None:
        """Take all moves back that were made since a mark."""
        for pod, source, node in reversed(self._done[mark:]):
            self._add(node, pod.requests["cpu"])
            self._add(source, -pod.requests["cpu"])
            self._at[pod.uid] = source
        del self._done[mark:]


class Cluster:
    """Nodes and pods; what pods use is what they request, unless it is said."""

    def __init__(
        self,
        configuration: str,
        nodes: Collection[nodeinfo.Node],
        pods: Collection[podinfo.Pod],
        *,
        uses: Mapping[str, str] | None = None,
        puts: Puts = on_its_target,
    ) -> None:
        reading = document.read(configuration)
        assert reading.configuration is not None, reading.faults
        self.warnings = reading.warnings
        self._profiles = [registry.made(one) for one in reading.configuration.profiles]
        self._options = profiles.options(reading.configuration.head)
        self._cool_down = reading.configuration.head.cool_down
        self.nodes = {one.name: one for one in nodes}
        self.pods = {one.name: one for one in pods}
        """By the name of the first of its line."""
        self._uses, self._puts = dict(uses or {}), puts
        self.rolling_out: set[str] = set()
        """Controllers."""
        self.budgets: list[objects.Budget] = []
        self.gangs: dict[str, objects.Gang] = {}
        self.now = builders.NOW
        self._memory = round_plan.NO_MEMORY
        self.moves: list[Moved] = []
        self.plans: list[round_plan.RoundPlan] = []

    def picture(self) -> picture.Picture:
        """Return the cluster as it is."""
        usages = [
            builders.usage(
                name,
                {},
                {
                    one.name: self._used(line, one)
                    for line, one in self.pods.items()
                    if one.node == name
                },
                updated_at=self.now,
            )
            for name in self.nodes
        ]
        seen = builders.picture_of(
            *(self.nodes.values(), self.pods.values(), usages),
            now=self.now,
            budgets=self.budgets,
            gangs=self.gangs,
        )
        workloads = {
            uid: msgspec.structs.replace(one, is_rolling_out=uid in self.rolling_out)
            for uid, one in seen.workloads.items()
        }
        return dataclasses.replace(seen, workloads=workloads)

    def _used(self, line: str, pod: podinfo.Pod) -> Mapping[str, Any]:
        return {"cpu": self._uses.get(line, f"{pod.requests['cpu']}m")}

    def emptiest(self, pod: podinfo.Pod) -> str:
        """Return the node with most cpu free for a pod that has left its own."""
        seen = self.picture()
        fork = Emptiest(seen)
        fork.remove(seen.pods[pod.uid])
        found = fork.target(pod, None, ())
        assert isinstance(found, protocols.Target)
        return found.node

    def round(self, seconds: float = 60.0) -> round_plan.RoundPlan:
        """Plan a round, let its moves happen, and let time pass."""
        seen = self.picture()
        options = Options(exchange_seconds=self._cool_down, resources={"cpu": 1})
        loads = measured_load.Loads(options, seen, seen.nodes.values())
        judge = gain_per_eviction.GainPerEviction(options, seen, loads, self._memory.moves)
        given = profiles.Given(seen, judge, Emptiest(seen), self._memory)
        plan = pipeline.plan_round(self._profiles, self._options, given)
        assert plan.failures == ()
        self._memory = plan.memory
        self.plans.append(plan)
        for cordon in () if plan.dry_run else plan.cordons:
            node = self.nodes[cordon.node]
            self.nodes[cordon.node] = msgspec.structs.replace(node, is_schedulable=False)
        for move in plan.moves:
            if not move.dry_run:
                self._carry_out(move)
        self.now += seconds
        return plan

    def _carry_out(self, move: round_plan.Move) -> None:
        pod = move.suggestion.pod
        line = next(name for name, one in self.pods.items() if one.uid == pod.uid)
        found = move.worth.target.node if move.worth.target is not None else ""
        target = self._puts(self, pod, found)
        minute = (self.now - builders.NOW) / 60
        self.moves.append(Moved(minute, line, pod.node, target, move.suggestion.plugin))
        number = sum(one.pod == line for one in self.moves)
        self.pods[line] = msgspec.structs.replace(
            pod,
            key=f"{pod.namespace}/{line}-{number}",
            uid=f"uid-{line}-{number}",
            node=target,
            created=self.now,
            started=self.now,
        )

    def rounds(self, count: int, seconds: float = 60.0) -> None:
        """Run several rounds."""
        for _ in range(count):
            self.round(seconds)

    def requested(self) -> Mapping[str, int]:
        """Return what is requested of cpu by node."""
        found = dict.fromkeys(self.nodes, 0)
        for pod in self.pods.values():
            found[pod.node] += pod.requests["cpu"]
        return found

    def kept(self) -> set[str]:
        """Return why pods had to stay in the last round."""
        return {one.reason for one in self.plans[-1].kept}

    def refused(self) -> set[str]:
        """Return why suggestions of the last round became no moves."""
        return {one.reason for one in self.plans[-1].refused}

    def notes(self) -> list[str]:
        """Return what plug-ins said in the last round."""
        return [one.text for one in self.plans[-1].notes]
