"""A generated host with its kubelet and an API server, for agents that are measured.

A file system in memory, whose counters move once a second; the agent is a process of its own and
logs in as every pod does: what reads a kubeconfig takes 35 MiB that no agent on a node has.
"""

import contextlib
import json
import random
import sys
import tempfile
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import yaml
from aiohttp import web

from api import names as koord_names
from api import resources
from api.kubernetes import crds
from process.runtime import clock as clocks
from simulator.apiserver import apiserver
from simulator.kubelet import kubelet, machines, nodefs

_NODE = "node-1"
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A file system in memory, as that of the kernel's files."""
_GIB = 1 << 30
_CPUS = 32
BIG_CPUS = 128
_BIG_BYTES = 512 << 30
_BIG = machines.Machine(machines.grid(2, 2, BIG_CPUS // 8, 2), turbo=True)
"""A server of two sockets with two NUMA nodes each, and two threads per core."""
_KINDS = {"NodeMetric", "NodeSLO", "NodeResourceTopology"}
_CLASSES = ("Burstable", "Burstable", "BestEffort", "Guaranteed")
_LABELS = {"Burstable": "LS", "BestEffort": "BE", "Guaranteed": "LSR"}
AGENT = """
import pathlib, sys
from cli import main
from kube.client import access, connect

_, folder, host, port, *words = sys.argv
PLACE = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

async def found(kubeconfig, context):
    return access.in_cluster(PLACE, pathlib.Path(folder))

connect.connect = found
raise SystemExit(main.main(["agent", *words]))
"""
"""An agent as its image starts it, but with its service account elsewhere than in `/var/run`."""
_MANIFEST = Path(__file__).parents[2] / "deploy" / "manifests" / "common" / "agent.yaml"
_SLO = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 65},
    "cpuBurstStrategy": {"policy": "auto"},
    "resourceQOSStrategy": {
        "lsClass": {"memoryQOS": {"enable": True, "minLimitPercent": 20}},
        "beClass": {"memoryQOS": {"enable": True, "throttlingPercent": 80}},
    },
}


def manifests() -> list[dict[str, Any]]:
    """Return the objects that make the agent of the chart."""
    return [one for one in yaml.safe_load_all(_MANIFEST.read_text(encoding="utf-8")) if one]


def chart_environment() -> dict[str, str]:
    """Return what the chart puts into the environment of the agent, the same on every node."""
    (daemons,) = (one for one in manifests() if one["kind"] == "DaemonSet")
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    named = {one["name"]: one.get("value") for one in container["env"]}
    return {name: text for name, text in named.items() if text and not name.startswith("KOORD_")}


def _pod(uid: str, kind: str) -> dict[str, Any]:
    amounts = {
        "Burstable": {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"cpu": "1"}},
        "BestEffort": {
            "requests": {
                "kubernetes.io/batch-cpu": "500",
                "kubernetes.io/batch-memory": "268435456",
            },
            "limits": {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "268435456"},
        },
        "Guaranteed": {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }[kind]
    names = (f"{uid}-a", f"{uid}-b")
    return {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "labels": {"koordinator.sh/qosClass": _LABELS[kind]},
        },
        "spec": {
            "nodeName": _NODE,
            "containers": [{"name": n, "resources": amounts} for n in names],
        },
        "status": {
            "phase": "Running",
            "qosClass": kind,
            "containerStatuses": [
                {"name": n, "containerID": f"containerd://{n}", "state": {"running": {}}}
                for n in names
            ],
        },
    }


class Host:
    """A generated host and what its kubelet says."""

    def __init__(
        self, folder: Path, pods: int, version: Literal[1, 2] = 2, *, big: bool = False
    ) -> None:
        """On a big one, pods whose cpus are theirs alone are bound to some, as schedulers do."""
        cpus, memory = (BIG_CPUS, _BIG_BYTES) if big else (_CPUS, 128 * _GIB)
        self.folder = folder
        self.tree = nodefs.HostTree(folder, cpus, memory, version)
        if big:
            self.tree.build(_BIG)
        self._free = list(range(cpus)) if big else []
        self.pods: list[dict[str, Any]] = []
        self._rng = random.Random(5)
        self._begun = 0
        self._busy: list[str] = []
        for _ in range(pods):
            self.begin()

    def begin(self) -> None:
        """Start one more pod."""
        pod = _pod(f"pod-{self._begun}", _CLASSES[self._begun % len(_CLASSES)])
        self._begun += 1
        if self._free and pod["status"]["qosClass"] == "Guaranteed":
            bound = json.dumps({"cpuset": str(self._free.pop(0))})
            pod["metadata"]["annotations"] = {koord_names.ANNOTATION_RESOURCE_STATUS: bound}
        names = [status["name"] for status in pod["spec"]["containers"]]
        self.tree.add_pod(pod["metadata"]["uid"], pod["status"]["qosClass"], names)
        self.pods.append(pod)

    def end(self) -> None:
        """End the oldest pod."""
        self.tree.remove_pod(self.pods.pop(0)["metadata"]["uid"])

    def second(self, *, idle: bool = False) -> None:
        """Let a second pass with a load that moves a little; `idle` pods rest after their turn."""
        for uid in self._busy if idle else ():
            if uid in self.tree.pods:
                self.tree.set_load(uid, 0, 64 << 20)
        self._busy = []
        for pod in self._rng.sample(self.pods, max(1, len(self.pods) // 10)):
            self._busy.append(pod["metadata"]["uid"])
            load = self._rng.randrange(20, 500)
            self.tree.set_load(pod["metadata"]["uid"], load, self._rng.randrange(64, 512) << 20)
        self.tree.advance(1.0)


@contextlib.asynccontextmanager
async def world(
    pods: int, program: str = AGENT, version: Literal[1, 2] = 2, *, big: bool = False
) -> AsyncIterator[tuple[Host, list[str]]]:
    """Serve a host, its kubelet and an API server; yields the words that start an agent."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        folder = Path(name)
        host = Host(folder / "host", pods, version, big=big)
        clock = clocks.SystemClock()

        async def listed(_request: web.Request) -> web.Response:
            return web.json_response({"items": host.pods})

        async def configured(_request: web.Request) -> web.Response:
            return web.json_response({"kubeletconfig": kubelet.CONFIGURATION})

        pages = web.Application()
        pages.router.add_get("/pods", listed)
        pages.router.add_get("/configz", configured)
        runner = web.AppRunner(pages)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        async with apiserver.running(clock=clock) as plane:
            _fill(plane, host.tree)
            (folder / "ca.crt").write_bytes(plane.ca)
            (folder / "token").write_text(plane.token, encoding="ascii")
            place = urllib.parse.urlsplit(plane.url)
            yield (
                host,
                [
                    "env", *(f"{name}={text}" for name, text in chart_environment().items()),
                    sys.executable, "-c", program, str(folder), str(place.hostname),
                    str(place.port), f"--node-name={_NODE}",
                    f"--host.proc={host.tree.proc}", f"--host.sys={host.tree.sys}",
                    f"--host.cgroup={host.tree.cgroup}", f"--host.state={folder / 'state'}",
                    f"--kubelet.url=http://127.0.0.1:{port}", "--health.host=127.0.0.1",
                    "--health.port=0",
                ],
            )  # fmt: skip
        await runner.cleanup()


def _fill(plane: apiserver.ApiServer, tree: nodefs.HostTree) -> None:
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] in _KINDS:
            plane.objects.create(resources.CRDS, definition)
    amounts = {"cpu": str(tree.cpus), "memory": str(tree.memory_bytes)}
    status = {"capacity": amounts, "allocatable": amounts}
    for resource, body in (
        (resources.NODES, {"status": status}),
        (resources.NODE_METRICS, {"spec": {}}),
        (resources.NODE_SLOS, {"spec": _SLO}),
    ):
        meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        plane.objects.create(resource, {**meta, "metadata": {"name": _NODE}, **body})
