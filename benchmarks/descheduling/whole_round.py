"""What a round of the whole descheduler costs on a large cluster, and the memory it takes.

python -m benchmarks.descheduling.whole_round [--nodes 5000] [--pods 30] [--rounds 5]

Objects go through the readers of the process into its stores, as a list brings them. A round forks
the state of the scheduler, makes a picture, plans with LowNodeLoad and a limit of 20 pods, and
judges each move by its gain on the fork. A tenth of all nodes is overloaded; no pod is moved.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any, Final

import orjson

from api import names, resources
from api.wire import durations
from benchmarks import figures
from descheduler.framework.planning import pipeline, profiles, round_plan
from descheduler.gain.options import Options
from descheduler.informers import watched
from descheduler.placement import scheduler_state, settings
from descheduler.receipts import breaker, ledger
from descheduler.rounds import awaited, configured, judging, sight
from kube.client import access, client
from kube.informers import saved_objects
from process.runtime import clock as clocks
from process.runtime import collector

_GOAL_MS: Final = 1000
_GIB: Final = 1 << 30
_CPU: Final = 64_000
_WORKLOADS: Final = 5000
_CONFIGURATION: Final = """
deschedulingInterval: 60s
maxNoOfPodsToEvictTotal: 20
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 45, memory: 55}
      highThresholds: {cpu: 70, memory: 80}
      anomalyCondition: {consecutiveAbnormalities: 1, consecutiveNormalities: 1}
  - name: MigrationController
    args: {schedulerNames: [default-scheduler], maxMigratingPerNode: 0}
"""


class Cluster:
    """Objects as the API server has them."""

    def __init__(self, nodes: int, pods: int, now: float) -> None:
        self._nodes, self._pods, self._now = nodes, pods, now
        self._rng = random.Random(17)
        self._made = durations.moment(now - 86_400)

    def of(self, kind: resources.Resource) -> Iterator[dict[str, Any]]:
        """Yield all objects of a kind."""
        match kind.plural:
            case "nodes":
                return map(self._node, range(self._nodes))
            case "pods":
                return (self._pod(n, i) for n in range(self._nodes) for i in range(self._pods))
            case "nodemetrics":
                return map(self._metric, range(self._nodes))
            case "replicasets":
                return map(self._replica_set, range(_WORKLOADS))
            case "namespaces":
                return ({"metadata": {"name": f"team-{number}"}} for number in range(40))
        return iter(())

    def _node(self, number: int) -> dict[str, Any]:
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        name = f"node-{number:05}"
        return {
            "metadata": {"name": name, "uid": name, "labels": {names.LABEL_HOSTNAME: name}},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def _place(self, node: int, number: int) -> tuple[str, str, int]:
        app = (node * self._pods + number) * 7919 % _WORKLOADS
        return f"team-{app % 40}", f"app-{app}-{node:05}-{number:02}", app

    def _pod(self, node: int, number: int) -> dict[str, Any]:
        namespace, name, app = self._place(node, number)
        demands = {"cpu": f"{500 + app % 20 * 50}m", "memory": f"{1 + app % 6}Gi"}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
        state = {"running": {"startedAt": self._made}}
        return {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}",
                "creationTimestamp": self._made,
                "labels": {"app": f"app-{app}", "pod-template-hash": f"{app:x}"},
                "ownerReferences": [{**owner, "name": f"app-{app}", "uid": f"rs-{app}"}],
            },
            "spec": {
                "nodeName": f"node-{node:05}",
                "schedulerName": "default-scheduler",
                "priority": 9000,
                "containers": [{"name": "main", "image": "i", "resources": {"requests": demands}}],
            },
            "status": {
                "phase": "Running",
                "qosClass": "Burstable",
                "startTime": self._made,
                "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": self._made}
                    for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
                ],
                "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
            },
        }

    def _metric(self, node: int) -> dict[str, Any]:
        place = node / self._nodes
        share = 0.75 + place * 2 if place < 0.1 else 0.55 if place < 0.4 else 0.2
        weights = [self._rng.uniform(0.2, 1.8) for _ in range(self._pods)]
        unit = share / sum(weights)
        used = []
        for number, weight in enumerate(weights):
            namespace, name, _ = self._place(node, number)
            amounts = {
                "cpu": f"{int(_CPU * unit * weight)}m",
                "memory": str(int(256 * _GIB * unit * weight * 0.8)),
            }
            used.append({"namespace": namespace, "name": name, "podUsage": {"resources": amounts}})
        system = {"resources": {"cpu": "500m", "memory": "2Gi"}}
        usage = {"resources": {"cpu": f"{int(_CPU * share)}m", "memory": f"{int(200 * share)}Gi"}}
        return {
            "metadata": {"name": f"node-{node:05}", "uid": f"metric-{node}"},
            "status": {
                "updateTime": durations.moment(self._now - 20),
                "nodeMetric": {"nodeUsage": usage, "systemUsage": system},
                "podsMetric": used,
            },
        }

    @staticmethod
    def _replica_set(app: int) -> dict[str, Any]:
        metadata = {"name": f"app-{app}", "namespace": f"team-{app % 40}", "uid": f"rs-{app}"}
        return {"metadata": metadata, "spec": {"replicas": 30}, "status": {"replicas": 30}}


class Descheduler:
    """What a round needs of the process, without an API server."""

    def __init__(self, api: client.Client, clock: clocks.Clock) -> None:
        self.seen = watched.Watched(api, clock, names.NAMESPACE)
        pods = scheduler_state.Pods(self.seen.all_pods, self.seen.members.synced)
        self.placing = scheduler_state.SchedulerState(
            settings.PlacementSettings(), api, clock, names.NAMESPACE, pods
        )
        self.sight = sight.WatchedSight(self.seen, self.placing, awaited.Awaited(), clock)
        weighed = Options()
        books = ledger.Ledger(
            breaker.Options(), 300.0, lambda seen: judging.measured_load.Loads(
                weighed, seen, seen.nodes.values()
            ),
        )  # fmt: skip
        self.judge = judging.LedgerJudge(books, weighed, finds_targets=True)
        self.configure(_CONFIGURATION)

    def configure(self, document: str | dict[str, Any]) -> None:
        """Plan by another configuration from here on."""
        text = document if isinstance(document, str) else orjson.dumps(document).decode()
        self.chosen = configured.read(text)

    async def round(self) -> tuple[float, float, round_plan.RoundPlan]:
        """Run a round; return the seconds of looking and of planning, and what it decided."""
        started = time.process_time()
        seen, targets = await self.sight.look()
        looked = time.process_time()
        given = profiles.Given(seen, self.judge.objective(seen, {}), targets)
        plan = pipeline.plan_round(
            self.chosen.profiles, profiles.options(self.chosen.head, observe=True), given
        )
        return looked - started, time.process_time() - looked, plan


async def filled(api: client.Client, clock: clocks.Clock, cluster: Cluster) -> Descheduler:
    """Return a descheduler that has read a cluster, and say what that took."""
    process = Descheduler(api, clock)
    started = time.process_time()
    for members in (process.seen.members, process.placing.members):
        flaws = [*saved_objects.fill(members, lambda one: cluster.of(one.resource))]
        assert not flaws, flaws[:3]
    print(f"objects read in {time.process_time() - started:.1f} s")
    await process.placing.caught_up()
    first = await process.round()
    print(f"the first round {1000 * sum(first[:2]):.0f} ms")
    return process


async def measured(nodes: int, pods: int, rounds: int) -> None:
    """Fill the stores and run rounds."""
    clock = clocks.SystemClock()
    before = figures.resident()
    who = access.Access("http://127.0.0.1:9")
    async with client.Client(who, clock=clock, user_agent="benchmark") as api:
        process = await filled(api, clock, Cluster(nodes, pods, clock.now()))
        async with collector.running():
            found = [await process.round() for _ in range(rounds)]
    plan = found[-1][2]
    size = f"{nodes} nodes, {nodes * pods} pods, processor time"
    print(f"{plan.summary}; failures {len(plan.failures)}")
    figures.show(
        figures.plain(
            "descheduling.round", f"a whole round, {size}", "ms",
            [1000 * (look + decide) for look, decide, _ in found], f"<= {_GOAL_MS}",
        ),
        figures.plain(
            "descheduling.look", f"fork and picture of it, {size}", "ms",
            [1000 * look for look, _, _ in found],
        ),
        figures.plain(
            "descheduling.memory", f"{nodes} nodes, {nodes * pods} pods, resident", "MiB",
            [figures.resident() - before],
        ),
    )  # fmt: skip


def main() -> None:
    """Measure on one cluster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    asyncio.run(measured(given.nodes, given.pods, given.rounds))


if __name__ == "__main__":
    main()
