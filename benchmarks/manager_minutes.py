"""Whether one replica of the manager keeps up: its processor time per minute, and its queues.

python -m benchmarks.manager_minutes [--nodes 1000] [--pods 30000] [--minutes 3] [--changes 5]

The manager runs as a process of its own, with all its controllers, against a simulated API server
in this process. Every node reports its load once a minute and its use wanders; `--changes` pods a
second end, and others take their place. There are quotas, Reservations and profiles. The first
minute, in which everything is written for the first time, is shown apart.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import aiohttp

from api import names, resources
from api.kubernetes import crds
from api.wire import durations
from benchmarks import figures
from benchmarks.plane import managers
from kube.client import access, client
from process.runtime import clock as clocks
from simulator.apiserver import apiserver
from simulator.processes import credentials
from tests import builders

Raw = dict[str, Any]

_QUEUE: Final = re.compile(r'^koord_controller_queue_keys\{controller="([^"]+)"\} ([0-9.]+)', re.M)
_WRITES: Final = re.compile(r"^koord_manager_writes_total\{[^}]*\} ([0-9.]+)", re.M)
_QUOTAS: Final = 50
_RESERVATIONS: Final = 50
_PROFILES: Final = 10
_BANDS: Final = ("koord-prod", "koord-prod", "koord-batch")
_GOAL_PERCENT: Final = 10


class Cluster:
    """A cluster in the store of an API server, and what its nodes and workloads do."""

    def __init__(self, plane: apiserver.ApiServer, nodes: int, pods: int, clock: clocks.Clock):
        self.objects = plane.objects
        self._clock = clock
        self._rng = random.Random(221)
        self.nodes = [f"node-{number:04}" for number in range(nodes)]
        self._usage = dict.fromkeys(self.nodes, 8_000)
        self._pods = 0
        self._alive: list[str] = []
        for name in self.nodes:
            self.objects.create(resources.NODES, builders.a_node(name, cpu="64", memory="256Gi"))
        for _ in range(pods):
            self.pod_comes()
        self._settle()

    def _settle(self) -> None:
        """Create what people create."""
        for number in range(_QUOTAS):
            spec = {"min": {"cpu": "10"}, "max": {"cpu": "1000"}}
            self._make(resources.ELASTIC_QUOTAS, f"team-{number}", "default", spec=spec)
        template = {"spec": builders.a_pod(cpu="1")["spec"]}
        for number in range(_RESERVATIONS):
            owners = [{"labelSelector": {"matchLabels": {"job": f"j{number}"}}}]
            spec = {"template": template, "owners": owners, "ttl": "24h"}
            self._make(resources.RESERVATIONS, f"r{number}", spec=spec)
        for number in range(_PROFILES):
            spec = {"selector": {"matchLabels": {"app": f"a{number}"}}, "qosClass": "BE"}
            self._make(resources.COLOCATION_PROFILES, f"p{number}", spec=spec)
        self._make(
            resources.CONFIG_MAPS, names.CONFIG_MAP_SLO, names.NAMESPACE,
            data={"colocation-config": '{"enable": true}'},
        )  # fmt: skip

    def _make(
        self, resource: resources.Resource, name: str, namespace: str = "", **body: Any
    ) -> None:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.objects.create(resource, {**head, "metadata": {"name": name}, **body}, namespace)

    def pod_comes(self) -> None:
        """Let one more pod run on some node."""
        self._pods += 1
        name, node = f"pod-{self._pods}", self._rng.choice(self.nodes)
        labels = {
            names.LABEL_PRIORITY_CLASS: self._rng.choice(_BANDS),
            names.LABEL_QUOTA_NAME: f"team-{self._pods % _QUOTAS}",
        }
        pod = builders.a_pod(name, cpu="500m", node=node, labels=labels, phase="Running")
        self.objects.create(resources.PODS, pod, "default")
        self._alive.append(name)

    def pod_goes(self) -> None:
        """Let some pod end."""
        at = self._rng.randrange(len(self._alive))
        self._alive[at], self._alive[-1] = self._alive[-1], self._alive[at]
        name = self._alive.pop()
        self.objects.modify(resources.PODS, name, "default", _succeeded)

    def report(self, node: str) -> bool:
        """Write the load of a node as its agent does; False while it has no NodeMetric."""
        if self.objects.find(resources.NODE_METRICS, node) is None:
            return False
        self._usage[node] = max(1_000, self._usage[node] + self._rng.randint(-1_500, 1_500))
        cpu = f"{self._usage[node]}m"
        usage = {"resources": {"cpu": cpu, "memory": "32Gi"}}
        system = {"resources": {"cpu": "500m", "memory": "2Gi"}}
        status = {
            "updateTime": durations.moment(self._clock.now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": system},
            "podsMetric": [],
        }
        self.objects.modify(resources.NODE_METRICS, node, "", _with_status(status))
        return True


def _succeeded(pod: Raw) -> None:
    pod["status"]["phase"] = "Succeeded"


def _with_status(status: Raw) -> Callable[[Raw], None]:
    def change(found: Raw) -> None:
        found["status"] = {**found.get("status", {}), **status}

    return change


async def _minute(cluster: Cluster, changes: float) -> None:
    """Let a minute pass in which every node reports once."""
    loop = asyncio.get_running_loop()
    began, pods = loop.time(), 0
    for second in range(60):
        for node in cluster.nodes[second::60]:
            cluster.report(node)
        while pods < changes * (second + 1):
            cluster.pod_goes()
            cluster.pod_comes()
            pods += 1
        await asyncio.sleep(max(0.0, began + second + 1 - loop.time()))


async def _scraped(url: str) -> tuple[dict[str, int], int]:
    """Return how many keys wait by controller, and how much was written so far."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        text = await answer.text()
    depths = {name: int(float(keys)) for name, keys in _QUEUE.findall(text)}
    return depths, int(sum(map(float, _WRITES.findall(text))))


async def measured(arguments: argparse.Namespace, folder: Path) -> None:
    """Run a manager beside a cluster and show what it takes."""
    clock = clocks.SystemClock()
    async with apiserver.running(clock=clock) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            for definition in crds.definitions():
                await admin.create(resources.CRDS, definition)
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
        cluster = Cluster(plane, arguments.nodes, arguments.pods, clock)
        login = folder / "login.json"
        login.write_text(json.dumps(credentials.kubeconfig(plane.url, plane.ca, plane.token)))
        async with managers.ours(folder, login, ["*"]) as manager:
            shares, depths, written = [], [], []
            for minute in range(arguments.minutes + 1):
                before = figures.cpu_seconds(manager.pid)
                _, wrote = await _scraped(manager.metrics_url)
                await _minute(cluster, arguments.changes)
                share = (figures.cpu_seconds(manager.pid) - before) / 60 * 100
                waiting, now = await _scraped(manager.metrics_url)
                print(f"minute {minute}: {share:.1f} % of a core, {now - wrote} writes, {waiting}")
                if minute:
                    shares.append(share)
                    depths.append(float(sum(waiting.values())))
                    written.append(float(now - wrote))
    what = f"the manager, {arguments.nodes} nodes, {arguments.pods} pods, a report a minute"
    figures.show(
        figures.plain("F8.minute", what, "% of a core", shares, f"<= {_GOAL_PERCENT}"),
        figures.plain("F8.queue", what, "keys that wait at the end of a minute", depths, "0"),
        figures.plain("F8.writes", what, "writes a minute", written),
    )
    print(f"median {statistics.median(shares):.1f} % of a core")


def main() -> None:
    """Measure for some minutes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--changes", type=float, default=5.0, help="pods a second that change")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measured(parser.parse_args(), Path(folder)))


if __name__ == "__main__":
    main()
