"""What a node agent costs: processor time and memory with 100 pods of two containers.

python -m benchmarks.agent [--pods 100] [--seconds 60] [--rounds 3]

A generated host on a file system in memory, whose counters move once a second; an API server and a
kubelet in this process; the agent as a process of its own with default intervals, once with
everything that is on by default, once with every strategy deciding and writing. It logs in as every
pod does: what reads a kubeconfig takes 35 MiB that no agent on a node has.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from agent import gates
from api import crds, resources
from benchmarks import figures
from process import clock as clocks
from simulator import apiserver, children, nodefs

_NODE = "node-1"
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A file system in memory, as that of the kernel's files."""
_GIB = 1 << 30
_CPUS = 32
_GOALS = {"cpu": 2.0, "memory": 80.0}
_TICKS = os.sysconf("SC_CLK_TCK")
_CLASSES = ("Burstable", "Burstable", "BestEffort", "Guaranteed")
_LABELS = {"Burstable": "LS", "BestEffort": "BE", "Guaranteed": "LSR"}
_VARIANTS: Mapping[str, Sequence[str]] = {
    "default": (),
    "everything": (
        "--strategies.mode=enforce",
        *(f"--feature-gates.{gate.name}=true" for gate in gates.GATES),
    ),
}
_AGENT = """
import os, pathlib, sys
os.environ.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull)
from agent import app, settings
from kube import access
from process import entry

_, folder, host, port, *words = sys.argv
PLACE = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

async def connect(kubeconfig, context):
    return access.in_cluster(PLACE, pathlib.Path(folder))

entry.main("agent", settings.Settings, app.running, words, connect=connect)
"""
"""An agent as the chart starts it, but with its service account elsewhere than in `/var/run`."""
_SLO = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 65},
    "cpuBurstStrategy": {"policy": "auto"},
    "resourceQOSStrategy": {
        "lsClass": {"memoryQOS": {"enable": True, "minLimitPercent": 20}},
        "beClass": {"memoryQOS": {"enable": True, "throttlingPercent": 80}},
    },
}


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

    def __init__(self, folder: Path, pods: int) -> None:
        self.tree = nodefs.HostTree(folder, _CPUS, 128 * _GIB)
        self.pods = [_pod(f"pod-{n}", _CLASSES[n % len(_CLASSES)]) for n in range(pods)]
        self._rng = random.Random(5)
        for pod in self.pods:
            names = [status["name"] for status in pod["spec"]["containers"]]
            self.tree.add_pod(pod["metadata"]["uid"], pod["status"]["qosClass"], names)

    def second(self) -> None:
        """Let a second pass with a load that moves a little."""
        for pod in self._rng.sample(self.pods, max(1, len(self.pods) // 10)):
            load = self._rng.randrange(20, 500)
            self.tree.set_load(pod["metadata"]["uid"], load, self._rng.randrange(64, 512) << 20)
        self.tree.advance(1.0)


def _used(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@contextlib.asynccontextmanager
async def _world(pods: int) -> AsyncIterator[tuple[Host, list[str]]]:
    """Serve a host, its kubelet and an API server; yields the words that start an agent."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        folder = Path(name)
        host = Host(folder / "host", pods)
        clock = clocks.SystemClock()

        async def listed(_request: web.Request) -> web.Response:
            return web.json_response({"items": host.pods})

        pages = web.Application()
        pages.router.add_get("/pods", listed)
        runner = web.AppRunner(pages)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        async with apiserver.running(clock=clock) as plane:
            _fill(plane)
            (folder / "ca.crt").write_bytes(plane.ca)
            (folder / "token").write_text(plane.token, encoding="ascii")
            place = urllib.parse.urlsplit(plane.url)
            yield (
                host,
                [
                    sys.executable, "-c", _AGENT, str(folder), str(place.hostname),
                    str(place.port), f"--node-name={_NODE}",
                    f"--host.proc={host.tree.proc}", f"--host.sys={host.tree.sys}",
                    f"--host.cgroup={host.tree.cgroup}", f"--host.state={folder / 'state'}",
                    f"--kubelet.url=http://127.0.0.1:{port}", "--health.host=127.0.0.1",
                    "--health.port=0",
                ],
            )  # fmt: skip
        await runner.cleanup()


def _fill(plane: apiserver.ApiServer) -> None:
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
            plane.objects.create(resources.CRDS, definition)
    amounts = {"cpu": str(_CPUS), "memory": "128Gi"}
    status = {"capacity": amounts, "allocatable": amounts}
    for resource, body in (
        (resources.NODES, {"status": status}),
        (resources.NODE_METRICS, {"spec": {}}),
        (resources.NODE_SLOS, {"spec": _SLO}),
    ):
        meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        plane.objects.create(resource, {**meta, "metadata": {"name": _NODE}, **body})


async def _measure(variant: str, pods: int, seconds: int) -> tuple[float, float, float]:
    """Return the share of a core in percent, MiB at the end and MiB at the beginning."""
    async with _world(pods) as (host, words):
        with tempfile.TemporaryDirectory() as logs:
            child = await children.start("agent", [*words, *_VARIANTS[variant]], Path(logs))
            try:
                for _ in range(10):
                    await asyncio.sleep(1)
                    host.second()
                begin, first = _used(child.pid), _resident(child.pid)
                for _ in range(seconds):
                    await asyncio.sleep(1)
                    host.second()
                spent, last = _used(child.pid) - begin, _resident(child.pid)
            finally:
                await child.stop(20.0)
    return 100 * spent / seconds, last, first


async def run(arguments: argparse.Namespace) -> list[figures.Figure]:
    """Measure every variant in every round."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in _VARIANTS}
    for round_ in range(arguments.rounds):
        for variant, taken in found.items():
            taken.append(await _measure(variant, arguments.pods, arguments.seconds))
            share, memory, first = taken[-1]
            print(
                f"round {round_ + 1} {variant}: {share:.2f} % of a core, {memory:.1f} MiB "
                f"({first:.1f} after ten seconds)"
            )
    what = f"with {arguments.pods} pods of 2 containers"
    made = []
    for variant, taken in found.items():
        made += [
            figures.plain(
                f"F9.{variant}.cpu", f"processor time of the agent {what}", "% of a core",
                [one[0] for one in taken], f"goal {_GOALS['cpu']}",
            ),
            figures.plain(
                f"F9.{variant}.memory", f"resident memory of the agent {what}", "MiB",
                [one[1] for one in taken], f"limit {_GOALS['memory']}",
            ),
        ]  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent", description=__doc__)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    figures.show(*asyncio.run(run(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
