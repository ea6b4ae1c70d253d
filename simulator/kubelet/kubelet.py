"""Simulated kubelets: they register nodes, run what is bound to them and say what runs.

They talk to any API server over HTTP, so they also serve a control plane out of binaries.
"""

import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final

import orjson
from aiohttp import web

from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import link
from simulator.apiserver.storage import lifecycle
from simulator.kubelet import pod_states

LEASE_SECONDS = 10.0
PODS_PATH = "/api/v1/pods"
LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
RETRY_SECONDS = 1.0

Machine = pod_states.Machine
Hook = Callable[[str, link.Object], None]

_logger = logging.getLogger(__name__)


def _nothing(_node: str, _pod: link.Object) -> None:
    """Do nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hooks:
    """Who wants to know, at once and on the spot, what starts and stops on a node.

    A pod is reported to have started before its status says so, and to have stopped before it is
    gone.
    """

    on_pod_started: Hook = _nothing
    on_pod_stopped: Hook = _nothing


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Where the kubelets serve their pods, and to whom."""

    host: str = "127.0.0.1"
    port: int = 0
    tokens: frozenset[str] = frozenset()
    """Bearer tokens that are let in."""


CONFIGURATION: Final = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "cpuManagerPolicy": "none",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}
"""What every kubelet says of its settings: the defaults, as far as they are asked for."""


class Kubelets:
    """All simulated kubelets of a cluster, with one watch and one server among them."""

    def __init__(self, client: link.Link, options: Options, hooks: Hooks, clock: clocks.Clock):
        self._client = client
        self._options = options
        self._hooks = hooks
        self._clock = clock
        self._machines: dict[str, Machine] = {}
        self._since: dict[str, str] = {}
        self._pods: dict[str, link.Object] = {}
        self._started: dict[str, link.Object] = {}
        self._busy: set[str] = set()
        self._supervisor: supervise.Supervisor | None = None
        self.port = 0

    @property
    def machines(self) -> Iterable[Machine]:
        """The simulated nodes."""
        return self._machines.values()

    def url(self, node: str) -> str:
        """Where the pods of a node are served."""
        return f"http://{self._options.host}:{self.port}/nodes/{node}/pods"

    def pods_of(self, node: str) -> list[link.Object]:
        """What runs on a node now."""
        return [
            self._pods.get(uid, pod)
            for uid, pod in self._started.items()
            if pod["spec"]["nodeName"] == node
        ]

    async def add(self, machine: Machine) -> None:
        """Register a node, or take over one of that name."""
        self._machines[machine.name] = machine
        self._since.setdefault(machine.name, self._now())
        with _unless(409):
            await self._client.call("POST", "/api/v1/nodes", pod_states.node(machine))
        status = pod_states.node_status(machine, self._now(), self.port, self._since[machine.name])
        await self._client.call(
            "PATCH",
            f"/api/v1/nodes/{machine.name}/status",
            {"status": status},
            kind=link.STRATEGIC_PATCH,
        )
        await self._renew(machine.name)
        self._look()

    async def remove(self, name: str) -> None:
        """Take a node away with everything on it."""
        del self._machines[name]
        for uid, pod in list(self._started.items()):
            if pod["spec"]["nodeName"] == name:
                self._stop(uid)
        with _unless(404):
            await self._client.call("DELETE", f"/api/v1/nodes/{name}")

    def silence(self, name: str) -> None:
        """Let a node die without a word: no heartbeat, nothing starts or stops any more."""
        self._machines.pop(name, None)

    # Watching

    async def watch(self) -> None:
        """Follow the pods of all nodes, for ever."""
        await self._client.follow(PODS_PATH, self._replace, self._show)

    def _replace(self, items: list[link.Object]) -> None:
        self._pods = {item["metadata"]["uid"]: item for item in items}
        for uid in [uid for uid in self._started if uid not in self._pods]:
            self._stop(uid)
        self._look()

    def _show(self, kind: str, pod: link.Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._stop(uid)
        else:
            self._pods[uid] = pod
            self._consider(uid, pod)

    def _look(self) -> None:
        for uid, pod in list(self._pods.items()):
            self._consider(uid, pod)

    def _consider(self, uid: str, pod: link.Object) -> None:
        """Give a pod that needs something a task of its own."""
        if uid in self._busy or pod["spec"].get("nodeName") not in self._machines:
            return
        if self._next(uid, pod) is not None and self._supervisor is not None:
            self._busy.add(uid)
            self._supervisor.spawn(f"pod {uid}", self._care(uid))

    def _next(self, uid: str, pod: link.Object) -> str | None:
        """What a pod needs next."""
        phase = (pod.get("status") or {}).get("phase")
        if "deletionTimestamp" in pod["metadata"]:
            return "end"
        if phase in ("Succeeded", "Failed"):
            return "stop" if uid in self._started else None
        if uid not in self._started or phase != "Running":
            return "start"
        return None

    async def _care(self, uid: str) -> None:
        try:
            while (pod := self._pods.get(uid)) is not None:
                if pod["spec"]["nodeName"] not in self._machines:
                    return
                need = self._next(uid, pod)
                if need is None:
                    return
                try:
                    await self._give(uid, pod, need)
                except link.LinkError as error:
                    _logger.info("pod will be looked at again pod=%s reason=%s", uid, error)
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._busy.discard(uid)

    async def _give(self, uid: str, pod: link.Object, need: str) -> None:
        if need == "start":
            await self._start(uid, pod)
            return
        self._stop(uid)
        if need == "end":
            meta = pod["metadata"]
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            with _unless(404, 409):
                await self._client.call("DELETE", _path(meta["namespace"], meta["name"]), body)
            self._pods.pop(uid, None)

    async def _start(self, uid: str, pod: link.Object) -> None:
        if uid not in self._started:
            self._started[uid] = pod
            self._hooks.on_pod_started(pod["spec"]["nodeName"], pod)
        if (pod.get("status") or {}).get("phase") != "Running":
            await self._report(uid, pod, pod_states.running(pod, self._now()))
        seconds = pod_states.run_seconds(pod)
        if seconds is not None and self._supervisor is not None:
            self._supervisor.spawn(f"work {uid}", self._work(uid, seconds))

    async def _work(self, uid: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        while (pod := self._pods.get(uid)) is not None and uid in self._started:
            if "deletionTimestamp" in pod["metadata"]:
                return
            try:
                await self._report(uid, pod, pod_states.finished(pod, self._now()))
            except link.LinkError as error:
                _logger.info("pod will be ended again pod=%s reason=%s", uid, error)
                await self._clock.sleep(RETRY_SECONDS)
            else:
                self._stop(uid)
                return

    async def _report(self, uid: str, pod: link.Object, status: link.Object) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": uid}, "status": status}
        path = f"{_path(meta['namespace'], meta['name'])}/status"
        try:
            reported = await self._client.call("PATCH", path, body, kind=link.STRATEGIC_PATCH)
        except link.LinkError as error:
            if error.code not in (404, 409):
                raise
            # Another pod has its name by now; the watch will tell.
            self._pods.pop(uid, None)
        else:
            self._remember(uid, reported)

    def _remember(self, uid: str, reported: link.Object) -> None:
        """Keep the answer to a report, unless the watch has told of something newer meanwhile."""
        known = self._pods.get(uid)
        if known is not None and _version(known) < _version(reported):
            self._pods[uid] = reported

    def _stop(self, uid: str) -> None:
        pod = self._started.pop(uid, None)
        if pod is not None:
            self._hooks.on_pod_stopped(pod["spec"]["nodeName"], pod)

    # Heartbeats

    async def beat(self) -> None:
        """Renew the leases of all nodes, for ever."""
        while True:
            await self._clock.sleep(LEASE_SECONDS)
            for name in list(self._machines):
                try:
                    await self._renew(name)
                except link.LinkError as error:
                    _logger.info("heartbeat failed node=%s reason=%s", name, error)

    async def _renew(self, name: str) -> None:
        body = pod_states.lease(name, lifecycle.micro_timestamp(self._clock.now()))
        try:
            await self._client.call("PATCH", f"{LEASES_PATH}/{name}", body, kind=link.MERGE_PATCH)
        except link.LinkError as error:
            if error.code != 404:
                raise
            await self._client.call("POST", LEASES_PATH, body)

    def _now(self) -> str:
        return lifecycle.timestamp(self._clock.now())

    # Serving

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve the pods of every node."""
        app = web.Application()
        app.router.add_get("/nodes/{node}/pods", self._answer)
        app.router.add_get("/nodes/{node}/configz", self._configuration)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=3600, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._options.host, self._options.port)
            await site.start()
            self.port = runner.addresses[0][1]
            yield
        finally:
            await runner.cleanup()

    def _asked(self, request: web.Request) -> str:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self._options.tokens:
            raise web.HTTPUnauthorized(text="Unauthorized")
        node = request.match_info["node"]
        if node not in self._machines:
            raise web.HTTPNotFound(text=f"no kubelet of node {node} runs here")
        return node

    async def _configuration(self, request: web.Request) -> web.Response:
        self._asked(request)
        return web.json_response({"kubeletconfig": CONFIGURATION})

    async def _answer(self, request: web.Request) -> web.Response:
        node = self._asked(request)
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.pods_of(node)}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    def supervised(self, supervisor: supervise.Supervisor) -> None:
        """Start the eternal tasks."""
        self._supervisor = supervisor
        supervisor.start("pods", self.watch)
        supervisor.start("leases", self.beat)


@contextlib.asynccontextmanager
async def running(
    client: link.Link, options: Options, hooks: Hooks, clock: clocks.Clock
) -> AsyncIterator[Kubelets]:
    """Run kubelets; nodes are added afterwards."""
    kubelets = Kubelets(client, options, hooks, clock)
    async with kubelets.serving(), supervise.Supervisor("kubelets") as supervisor:
        kubelets.supervised(supervisor)
        yield kubelets


def _version(pod: link.Object) -> int:
    return int(pod["metadata"]["resourceVersion"])


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


@contextlib.contextmanager
def _unless(*codes: int) -> Iterator[None]:
    """Go on where the API server answers with one of these codes."""
    try:
        yield
    except link.LinkError as error:
        if error.code not in codes:
            raise
