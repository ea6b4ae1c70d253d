"""A generated API server: pages of thousands of nodes, pods and load reports, and their watches.

Run in a process of its own so that its memory and time are not counted; prints its URL.
"""

import argparse
import asyncio
import contextlib
import functools
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import uvloop
from aiohttp import web

from api.wire import durations
from process.runtime import supervise

_START = 1000
_BOOKMARK_SECONDS = 30
_TICK = 0.02
_LEAVING = 0.3
"""The share of changes that are deletions."""
_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",'
    b'"message":"too old resource version"}}\n'
)
KILOBYTES = {2: (900, 2), 7: (5200, 2), 60: (5200, 430)}
"""By the size of a pod: the length of one annotation and the number of environment variables."""
_CONTAINER = (
    '"image":"registry.example.com/team/app:v1",'
    '"volumeMounts":[{"name":"token","mountPath":"/var/run/secrets"}]'
)
_SPEC = (
    '"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready",'
    '"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]'
)
_STATUS = (
    '"qosClass":"Burstable","podIP":"10.0.0.1","startTime":"2026-07-01T00:00:00Z",'
    '"containerStatuses":[{"name":"main","ready":true,"restartCount":0,'
    '"state":{"running":{"startedAt":"2026-07-01T00:00:00Z"}}}]'
)


@functools.cache
def _environment(count: int) -> str:
    value = "value-of-a-setting-that-is-about-as-long-as-those-of-real-services"
    return json.dumps([{"name": f"SETTING_{at:03d}", "value": value} for at in range(count)])


def pod_text(number: int, node: str, *, moment: str, kilobytes: int = 7) -> str:
    """Return one pod of 2, 7 or 60 KB, as API servers send them."""
    padding, variables = KILOBYTES[kilobytes]
    shape = random.Random(number % 2000)
    cpu, memory = shape.randrange(50, 1500), shape.randrange(64, 4096)
    band = ("koord-prod", "koord-prod", "koord-batch")[number % 3]
    names = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
    requests = (
        {names[0]: str(cpu), names[1]: f"{memory}Mi"}
        if band == "koord-batch"
        else {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    )
    resources = json.dumps({"requests": requests, "limits": requests})
    condition = (
        '{"type":"PodScheduled","status":"True","lastTransitionTime":"' + moment + '"}'
        if node
        else ""
    )
    metadata = {
        "name": f"workload-{number:07d}",
        "namespace": f"team-{number % 50:02d}",
        "uid": pod_uid(number),
        "resourceVersion": str(_START + number),
        "creationTimestamp": "2026-07-01T00:00:00Z",
        "labels": {"koordinator.sh/priority-class": band, "app": f"app-{number % 500}"},
    }
    phase = "Running" if node else "Pending"
    return (
        f'{{"metadata":{json.dumps(metadata)[:-1]},"annotations":{{"example.com/padding":'
        f'"{"x" * padding}"}}}},"spec":{{"nodeName":"{node}","containers":[{{"name":"main",'
        f'"resources":{resources},"env":{_environment(variables)},{_CONTAINER}}}],{_SPEC}}},'
        f'"status":{{"phase":"{phase}","conditions":[{condition}],{_STATUS}}}}}'
    )


def pod_uid(number: int) -> str:
    """Return the uid of a pod."""
    return f"00000000-0000-4000-8000-{number:012d}"


def pod_key(number: int) -> tuple[str, str]:
    """Return namespace and name of a pod."""
    return f"team-{number % 50:02d}", f"workload-{number:07d}"


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"worker-{number:05d}.pool-a"


class Feed:
    """Answers lists, watches, reads and bindings from arithmetic instead of storage."""

    def __init__(self, nodes: int, pods: int, pending: int, moment: str) -> None:
        self.nodes, self.pods, self.pending, self.moment = nodes, pods, pending, moment
        self.version = _START + pods + pending + 10
        self.watchers: list[tuple[str, asyncio.Queue[bytes]]] = []
        self.gone: set[int] = set()
        self.expired: set[str] = set()

    def node_of(self, number: int) -> str:
        """Return where a pod runs; empty if it waits."""
        return node_name(number % self.nodes) if number < self.pods else ""

    def pod(self, number: int, version: int = 0, node: str = "") -> str:
        """Return one pod, at its first version unless one is given."""
        text = pod_text(number, node or self.node_of(number), moment=self.moment)
        return text.replace(f'"{_START + number}"', f'"{version}"', 1) if version else text

    def node(self, number: int) -> str:
        """Return one node."""
        return json.dumps(
            {
                "metadata": {
                    "name": node_name(number),
                    "uid": f"node-{number}",
                    "resourceVersion": "5",
                    "labels": {f"example.com/label-{i}": f"value-{number % 7}" for i in range(12)},
                },
                "status": {
                    "allocatable": {
                        "cpu": "64",
                        "memory": "256Gi",
                        "pods": "110",
                        "kubernetes.io/batch-cpu": "30000",
                        "kubernetes.io/batch-memory": "120Gi",
                    }
                },
            }
        )

    def report(self, number: int) -> str:
        """Return the load report of one node with all its pods."""
        pods = [
            {
                "namespace": pod_key(pod)[0],
                "name": pod_key(pod)[1],
                "priority": "koord-prod",
                "podUsage": {"resources": {"cpu": f"{pod % 700}m", "memory": f"{pod % 900}Mi"}},
            }
            for pod in range(number, self.pods, self.nodes)
        ]
        # Every tenth node is too busy for anything.
        busy = 10 + number % 20 if number % 10 else 63
        return json.dumps(
            {
                "metadata": {
                    "name": node_name(number),
                    "uid": f"report-{number}",
                    "resourceVersion": "7",
                },
                "status": {
                    "updateTime": self.moment,
                    "nodeMetric": {
                        "nodeUsage": {"resources": {"cpu": str(busy), "memory": "90Gi"}}
                    },
                    "podsMetric": pods,
                },
            }
        )

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Answer a list, a watch or a read."""
        kind = request.path.rsplit("/", 1)[-1]
        if request.query.get("sendInitialEvents"):
            return web.json_response({"code": 422}, status=422)
        if kind.startswith("workload-"):
            return web.Response(text=self.pod(int(kind.removeprefix("workload-"))))
        if request.query.get("watch"):
            return await self._watch(request, kind)
        count, make = {
            "pods": (self.pods + self.pending, self.pod),
            "nodes": (self.nodes, self.node),
            "nodemetrics": (self.nodes, self.report),
        }.get(kind, (0, self.node))
        start = int(request.query.get("continue", "0"))
        end = min(count, start + int(request.query.get("limit", "500")))
        more = str(end) if end < count else ""
        left = set(range(start, end)) - (self.gone if kind == "pods" else set())
        items = ",".join(map(make, sorted(left)))
        head = f'{{"metadata":{{"resourceVersion":"{self.version}","continue":"{more}"}},"items":['
        return web.Response(text=f"{head}{items}]}}", content_type="application/json")

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.watchers.append((kind, queue))
        try:
            return await self._told(response, kind, queue)
        except aiohttp.ClientConnectionResetError:
            # The client of the watch is gone.
            return response
        finally:
            self.watchers.remove((kind, queue))

    async def _told(
        self, response: web.StreamResponse, kind: str, queue: asyncio.Queue[bytes]
    ) -> web.StreamResponse:
        if kind in self.expired:
            self.expired.discard(kind)
            await response.write(_EXPIRED)
            return response
        line = (
            f'{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{self.version}"}}}}}}'
        )
        while True:
            try:
                text = await asyncio.wait_for(queue.get(), _BOOKMARK_SECONDS)
                if not text:
                    return response
                await response.write(text)
            except TimeoutError:
                await response.write(f"{line}\n".encode())

    def next(self) -> int:
        """Return the version of the next change."""
        self.version += 1
        return self.version

    def tell(self, kind: str, change: str, text: str) -> None:
        """Tell everybody who watches."""
        line = f'{{"type":"{change}","object":{text}}}\n'.encode()
        for watched, queue in self.watchers:
            if watched == kind:
                queue.put_nowait(line)

    async def churn(self, pods_per_second: int, reports_per_second: int) -> None:
        """Let pods come, go and change, and nodes report, at even distances for ever."""
        rng, turn = random.Random(7), 0
        while True:
            await asyncio.sleep(_TICK)
            turn += 1
            for _ in range(_due(pods_per_second, turn)):
                self._change(rng.randrange(self.pods), rng.random())
            for _ in range(_due(reports_per_second, turn)):
                text = self.report(rng.randrange(self.nodes))
                text = text.replace('"resourceVersion": "7"', f'"resourceVersion": "{self.next()}"')
                text = text.replace(self.moment, durations.moment(time.time()), 1)
                self.tell("nodemetrics", "MODIFIED", text)

    def _change(self, number: int, chance: float) -> None:
        if number in self.gone:
            self.gone.discard(number)
            self.tell("pods", "ADDED", self.pod(number, self.next()))
        elif chance < _LEAVING:
            self.gone.add(number)
            self.tell("pods", "DELETED", self.pod(number, self.next()))
        else:
            self.tell("pods", "MODIFIED", self.pod(number, self.next()))

    async def expire(self, _request: web.Request) -> web.Response:
        """End every watch of pods and refuse to resume it, as after a compaction."""
        self.expired.add("pods")
        for kind, queue in self.watchers:
            if kind == "pods":
                queue.put_nowait(b"")
        return web.Response(text="expired")

    async def bind(self, request: web.Request) -> web.Response:
        """Accept a binding and echo it on the watch."""
        body = await request.json()
        number = int(body["metadata"]["name"].removeprefix("workload-"))
        self.tell("pods", "MODIFIED", self.pod(number, self.next(), body["target"]["name"]))
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)


@contextlib.asynccontextmanager
async def running(
    nodes: int, pods: int, pending: int, moment: str, *options: str
) -> AsyncIterator[str]:
    """Run a generated API server in a process of its own; yields its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.plane.feed", f"--nodes={nodes}", f"--pods={pods}",
        f"--pending={pending}", f"--moment={moment}", *options,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stdin
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 3)
        if process.returncode is None:
            process.kill()


async def expire(url: str) -> None:
    """Let every watch of pods expire."""
    async with aiohttp.ClientSession() as session, session.post(f"{url}/expire") as answer:
        answer.raise_for_status()


def write_kubeconfig(path: Path, url: str) -> Path:
    """Write down how to reach a generated API server."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "feed", "cluster": {"server": url}}],
        "users": [{"name": "feed", "user": {}}],
        "contexts": [{"name": "feed", "context": {"cluster": "feed", "user": "feed"}}],
        "current-context": "feed",
    }
    path.write_text(json.dumps(document))
    return path


async def _main(arguments: argparse.Namespace) -> None:
    feed = Feed(arguments.nodes, arguments.pods, arguments.pending, arguments.moment)
    app = web.Application()
    app.router.add_get("/{path:.*}", feed.get)
    app.router.add_post("/expire", feed.expire)
    app.router.add_post("/{path:.*}", feed.bind)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    async with supervise.Supervisor("feed") as supervisor:
        if arguments.pod_events or arguments.reports:
            churning = feed.churn(arguments.pod_events, arguments.reports)
            supervisor.spawn("churn", churning)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


def _due(per_second: int, turn: int) -> int:
    """Return how many of so many a second are due in one tick."""
    return int(per_second * _TICK * turn) - int(per_second * _TICK * (turn - 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("nodes", "pods", "pending"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--moment", required=True)
    parser.add_argument("--pod-events", type=int, default=0, help="changes of pods per second")
    parser.add_argument("--reports", type=int, default=0, help="load reports per second")
    uvloop.run(_main(parser.parse_args()))
