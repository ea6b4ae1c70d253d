"""What a round with each plug-in costs that looks at all pods of a large cluster.

python -m benchmarks.descheduling.rule_rounds [--nodes 5000] [--pods 30] [--rounds 5] [--kept]
    [NAME ...]

The cluster is that of `whole_round`, with three zones. Every workload wants its pods even over
zones and nodes, and never two on one node; a fifth of them breaks it, or none with `--kept`, so
that a round looks at everything and moves nothing. A round forks the state of the scheduler, makes
a picture, plans with that plug-in alone and a limit of 20 pods, and asks the fork for a target of
each.
"""

import argparse
import asyncio
from typing import Any, Final

from benchmarks import figures
from benchmarks.descheduling import whole_round
from kube.client import access, client
from process.runtime import clock as clocks
from process.runtime import collector

_GOAL_MS: Final = 1000
_ZONES: Final = 3
_REPLICAS: Final = 30
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_ARGUMENTS: Final = {
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule"]},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "ScaleDownBinPack": {"strategy": "EvictDirectly", "maxPodsToEvict": 20},
}
_DESCHEDULES: Final = ("RemovePodsViolatingInterPodAntiAffinity",)


class Cluster(whole_round.Cluster):
    """Workloads that ask for an even spread and for nodes of their own."""

    def __init__(self, nodes: int, pods: int, now: float, *, kept: bool) -> None:
        super().__init__(nodes, pods, now)
        self._is_kept = kept

    def _node(self, number: int) -> dict[str, Any]:
        body = super()._node(number)
        body["metadata"]["labels"][_ZONE] = f"zone-{number % _ZONES}"
        return body

    def _place(self, node: int, number: int) -> tuple[str, str, int]:
        app = super()._place(node, number)[2]
        if self._is_kept:
            # Each pod of a workload is on another node, in the next zone.
            app = node // _REPLICAS * self._pods + number
        elif app % 5 == 0:
            # Two neighbours share a node.
            app = super()._place(node, number - number % 2)[2]
        return f"team-{app % 40}", f"app-{app}-{node:05}-{number:02}", app

    def _pod(self, node: int, number: int) -> dict[str, Any]:
        body = super()._pod(node, number)
        alike = {"matchLabels": {"app": body["metadata"]["labels"]["app"]}}
        body["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": alike,
            }
            for key in (_ZONE, _HOST)
        ]
        apart = {"labelSelector": alike, "topologyKey": _HOST}
        body["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        }
        return body


def _document(name: str) -> dict[str, Any]:
    point = "deschedule" if name in _DESCHEDULES else "balance"
    filters = {"schedulerNames": ["default-scheduler"], "maxMigratingPerNode": 0}
    return {
        "deschedulingInterval": "60s",
        "maxNoOfPodsToEvictTotal": 20,
        "profiles": [
            {
                "name": "rule",
                "plugins": {point: {"enabled": [{"name": name}]}},
                "pluginConfig": [
                    {"name": name, "args": _ARGUMENTS[name]},
                    {"name": "MigrationController", "args": filters},
                ],
            }
        ],
    }


async def measured(
    nodes: int, pods: int, rounds: int, plugins: list[str], *, kept: bool = False
) -> None:
    """Fill the stores once, and run rounds with each plug-in."""
    suffix = ".kept" if kept else ""
    clock = clocks.SystemClock()
    who = access.Access("http://127.0.0.1:9")
    async with client.Client(who, clock=clock, user_agent="benchmark") as api:
        process = await whole_round.filled(api, clock, Cluster(nodes, pods, clock.now(), kept=kept))
        for name in plugins:
            process.configure(_document(name))
            async with collector.running():
                found = [await process.round() for _ in range(rounds)]
            plan = found[-1][2]
            print(f"{name}: {plan.summary}; failures {len(plan.failures)}")
            size = f"{nodes} nodes, {nodes * pods} pods, {len(plan.moves)} moves, processor time"
            figures.show(
                figures.plain(
                    f"descheduling.round.{name}{suffix}", f"a whole round, {size}", "ms",
                    [1000 * (look + decide) for look, decide, _ in found], f"<= {_GOAL_MS}",
                ),
                figures.plain(
                    f"descheduling.plan.{name}{suffix}", f"what of it is planning, {size}", "ms",
                    [1000 * decide for _, decide, _ in found],
                ),
            )  # fmt: skip


def main() -> None:
    """Measure on one cluster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("plugins", nargs="*", metavar="NAME", default=list(_ARGUMENTS))
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kept", action="store_true", help="no workload breaks a rule")
    given = parser.parse_args()
    if unknown := set(given.plugins) - set(_ARGUMENTS):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(_ARGUMENTS)}")
    asyncio.run(measured(given.nodes, given.pods, given.rounds, given.plugins, kept=given.kept))


if __name__ == "__main__":
    main()
