"""What a round with each plug-in costs that looks at all pods of a large cluster.

python -m benchmarks.descheduling.rule_rounds [--nodes 5000] [--pods 30] [--rounds 5]
    [--kept | --uneven] [NAME ...]

The cluster is that of `whole_round`, with three zones. Every workload wants its pods even over
zones and nodes, and never two on one node; a fifth of them breaks it, or none with `--kept`, so
that a round looks at everything and moves nothing. With `--uneven` it is that of `uneven_cluster`,
for the plug-ins that look at requests, taints, ages and states. A round forks the state of the
scheduler, makes a picture, plans with that plug-in alone and a limit of 20 pods, and asks the fork
for a target of each.
"""

import argparse
import asyncio
from typing import Any, Final

from benchmarks import figures
from benchmarks.descheduling import uneven_cluster, whole_round
from kube.client import access, client
from process.runtime import clock as clocks
from process.runtime import collector

_GOAL_MS: Final = 1000
_ZONES: Final = 3
_REPLICAS: Final = 30
_AHEAD_SECONDS: Final = 900
_ZONE: Final = uneven_cluster.ZONE
_HOST: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PACK: Final = {"strategy": "EvictDirectly", "maxPodsToEvict": 20}
_GROUPS: Final = [
    {"name": zone, "nodeSelector": {"matchLabels": {_ZONE: zone}}} for zone in ("zone-0", "zone-1")
]
_RULES: Final = {
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule"]},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "ScaleDownBinPack": _PACK,
}
_UNEVEN: Final = {
    "HighNodeUtilization": {"thresholds": {"cpu": 20, "memory": 20}},
    "LowNodeUtilization": {"thresholds": {"cpu": 50}, "targetThresholds": {"cpu": 60}},
    "FragmentationAware": {},
    "CustomPriority": {"evictionOrder": _GROUPS},
    "CustomPriority.DrainNode": {"evictionOrder": _GROUPS, "mode": "DrainNode"},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 3600},
    "RemoveFailedPods": {},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 10},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [_REQUIRED]},
    "RemovePodsViolatingNodeTaints": {},
    "ScaleDownBinPack": _PACK,
    "ScaleDownBinPack.CalculateOnly": {},
    "ScaleDownBinPack.EmptyNodes": {"strategy": "EmptyNodes"},
}
_DESCHEDULES: Final = frozenset(
    {
        *("PodLifeTime", "RemoveFailedPods", "RemovePodsHavingTooManyRestarts"),
        *("RemovePodsViolatingNodeAffinity", "RemovePodsViolatingNodeTaints"),
        "RemovePodsViolatingInterPodAntiAffinity",
    }
)


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


def _document(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    plugin = name.partition(".")[0]
    point = "deschedule" if plugin in _DESCHEDULES else "balance"
    filters = {
        "schedulerNames": ["default-scheduler"],
        "maxMigratingPerNode": 0,
        "evictFailedBarePods": True,
    }
    return {
        "deschedulingInterval": "60s",
        "maxNoOfPodsToEvictTotal": 20,
        "profiles": [
            {
                "name": "rule",
                "plugins": {point: {"enabled": [{"name": plugin}]}},
                "pluginConfig": [
                    {"name": plugin, "args": arguments},
                    {"name": "MigrationController", "args": filters},
                ],
            }
        ],
    }


async def measured(
    given: argparse.Namespace, plugins: dict[str, dict[str, Any]], suffix: str
) -> None:
    """Fill the stores once, and run rounds with each plug-in."""
    nodes, pods, rounds = given.nodes, given.pods, given.rounds
    clock = clocks.SystemClock()
    who = access.Access("http://127.0.0.1:9")
    # Reports are still current when the last plug-in has its turn.
    now = clock.now() + _AHEAD_SECONDS
    cluster = (
        uneven_cluster.Cluster(nodes, pods, now)
        if given.uneven
        else Cluster(nodes, pods, now, kept=given.kept)
    )
    async with client.Client(who, clock=clock, user_agent="benchmark") as api:
        process = await whole_round.filled(api, clock, cluster)
        for name, arguments in plugins.items():
            process.configure(_document(name, arguments))
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
    parser.add_argument("plugins", nargs="*", metavar="NAME")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    parser.add_argument("--rounds", type=int, default=5)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--kept", action="store_true", help="no workload breaks a rule")
    kind.add_argument("--uneven", action="store_true", help="requests, taints, ages and states")
    given = parser.parse_args()
    known: dict[str, dict[str, Any]] = {**(_UNEVEN if given.uneven else _RULES)}
    if unknown := set(given.plugins) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    chosen = {name: known[name] for name in given.plugins or known}
    suffix = ".kept" if given.kept else ".uneven" if given.uneven else ""
    asyncio.run(measured(given, chosen, suffix))


if __name__ == "__main__":
    main()
