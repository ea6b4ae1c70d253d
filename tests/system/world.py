"""The whole system on the embedded control plane in virtual time; each process can be killed."""

import asyncio
import contextlib
import json

from agent import app as agents
from agent import settings as agent_settings
from api import names, resources
from api.kubernetes import scheduler_config
from api.wire import quantity
from cli.dev import fleet
from cli.install import apply
from extender import app as extenders
from extender import settings as extender_settings
from kube.client import access as accesses
from kube.client import client as clients
from manager import app as managers
from manager import settings as manager_settings
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import cluster
from simulator.kubelet import kubelet
from tests.planes import definitions, raw
from tests.planes.processes import gate
from webhook import app as webhooks
from webhook import settings as webhook_settings

STEP_SECONDS = 0.25
TURNS = 40
COLOCATION = {
    "enable": True,
    "metricAggregateDurationSeconds": 10,
    "metricReportIntervalSeconds": 5,
    "cpuReclaimThresholdPercent": 80,
    "memoryReclaimThresholdPercent": 80,
    "cpuCalculatePolicy": "usage",
    "degradeTimeMinutes": 5,
    "updateTimeThresholdSeconds": 30,
    "resourceDiffThreshold": 0.05,
}
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "batch"},
    "spec": {
        "selector": {"matchLabels": {"koordinator.sh/enable-colocation": "true"}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "koordinatorPriority": 1000,
    },
}


def local():
    """A listener that ends with its process, without waiting for anybody."""
    at_once = ("announce_seconds", "linger_seconds", "drain_seconds")
    return {"host": "127.0.0.1", "port": 0, **dict.fromkeys(at_once, 0.0)}


class Process:
    """One process of the system with a way to the API server of its own."""

    def __init__(self, world, name, running, front=None):
        self._world = world
        self._running = running
        self._task = None
        self.name = name
        self.front = front
        self.app = None
        self.uplink = None

    @property
    def alive(self):
        return self._task is not None

    async def start(self):
        started = asyncio.get_running_loop().create_future()
        self._task = self._world.supervisor.spawn(self.name, self._live(started))
        async with self._world.flowing():
            await asyncio.wait([started, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            self._task.result()

    async def _live(self, started):
        plane = self._world.plane
        async with gate.opened(plane.server, plane.ca) as self.uplink:
            access = accesses.Access(self.uplink.url, tokens=accesses.StaticToken(plane.token))
            async with self._running(access) as self.app:
                if self.front is not None:
                    self.front.target = self.app.url
                started.set_result(None)
                await self.app.stopped()

    def vanish(self):
        """Die at this very instant, as far as anybody else can tell."""
        if self.uplink is not None:
            self.uplink.cut()
        if self.front is not None:
            self.front.target = "http://127.0.0.1:9"
            self.front.reset()
            for connection in self.front.runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        self._task.cancel()

    async def kill(self):
        if self.alive:
            self.vanish()
            await asyncio.wait([self._task])
            self._task = None

    async def restart(self):
        await self.kill()
        await self.start()

    def complaints(self):
        """What its readiness fails for; empty when it is ready."""
        return self.app.health.failing()


class Hosts(fleet.Fleet):
    """Nodes whose agents are processes that can be killed."""

    def __init__(self, world, options):
        super().__init__(options, world.clock)
        self._world = world

    async def _agent(self, kubelets, name, host, access):
        chosen = agent_settings.Settings.model_validate(
            {
                "node_name": name,
                "mode": "observe",
                "host": host,
                "kubelet": {
                    "url": kubelets.url(name).removesuffix("/pods"),
                    "token_file": self._token_file,
                    "verify": "off",
                    "interval_seconds": 2.0,
                },
                "health": local(),
            }
        )
        process = Process(
            self._world,
            f"agent-{name}",
            lambda way: agents.running(chosen, access=way, clock=self._clock),
        )
        self._world.processes[process.name] = process
        await process.start()


class World:
    """A running system and the hands of whoever uses it."""

    def __init__(self, folder, clock, supervisor):
        self.folder = folder
        self.clock = clock
        self.supervisor = supervisor
        self.processes = {}
        self.plane = self.api = self.kube = self.front = None
        self.hosts = Hosts(self, fleet.Options(folder / "hosts"))
        self._flow = asyncio.Event()
        self._users = 0

    # -- time ------------------------------------------------------------------------------

    async def flow(self):
        """Let virtual time pass while somebody wants it to, for ever."""
        while True:
            await self._flow.wait()
            await self.clock.advance(STEP_SECONDS)

    @contextlib.asynccontextmanager
    async def flowing(self):
        """Let virtual time pass during the block."""
        self._users += 1
        self._flow.set()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._flow.clear()

    async def until(self, predicate, what, seconds=90.0):
        """Let time pass until a predicate is true; returns what it returned."""
        end = self.clock.monotonic() + seconds
        async with self.flowing():
            # It looks in every round of the loop; time need not wait for it to stop looking.
            with self.clock.polling():
                return await self._met(predicate, what, end)

    async def _met(self, predicate, what, end):
        while not (found := predicate()):
            assert self.clock.monotonic() < end, f"not in time: {what}"
            await asyncio.sleep(0)
        return found

    async def pass_time(self, seconds):
        end = self.clock.monotonic() + seconds
        await self.until(lambda: self.clock.monotonic() >= end, "time passes", seconds + 10)

    # -- what there is ---------------------------------------------------------------------

    @property
    def extender(self):
        return self.processes["extender"].app

    def found(self, resource, name, namespace=""):
        return self.plane.objects.find(resource, name, namespace)

    def pod(self, name):
        return self.found(resources.PODS, name, "default")

    def pods(self):
        return self.plane.objects.list(resources.PODS).items

    def node_of(self, name):
        pod = self.pod(name)
        return pod["spec"].get("nodeName", "") if pod else ""

    def lent(self, node):
        """Milli-cores that the node's status lends."""
        found = self.found(resources.NODES, node)
        return quantity.whole(found["status"]["allocatable"].get(names.BATCH_CPU, -1))

    def used(self, node):
        """Milli-cores that the node's report says are used; None without a report."""
        found = self.found(resources.NODE_METRICS, node)
        usage = (found or {}).get("status", {}).get("nodeMetric", {}).get("nodeUsage", {})
        text = usage.get("resources", {}).get("cpu")
        if text is None:
            return None
        return int(text[:-1]) if text.endswith("m") else int(text) * 1000

    def refusal(self, name):
        """The message of a false PodScheduled condition, empty without one."""
        pod = self.pod(name)
        for condition in (pod or {}).get("status", {}).get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition["message"]
        return ""

    def events(self, name, reason):
        return [
            event
            for event in self.plane.objects.list(resources.CORE_EVENTS).items
            if event["involvedObject"]["name"] == name and event["reason"] == reason
        ]

    # -- what a user does ------------------------------------------------------------------

    async def create(self, name, *, cpu, memory="1Gi", node="", batch=False, bound=""):
        """Create a pod through the API, as any user does; `bound` puts it onto a node at once."""
        marks = {"koordinator.sh/enable-colocation": "true"} if batch else {}
        spec = {} if batch else {"priorityClassName": "koord-prod"}
        if node:
            spec["nodeSelector"] = {names.LABEL_HOSTNAME: node}
        if bound:
            spec["nodeName"] = bound
        demands = {"cpu": str(cpu), "memory": memory}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": marks},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/main:1",
                        "resources": {"requests": demands, "limits": demands},
                    }
                ],
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }
        async with self.flowing():
            return await self.api.post("/api/v1/namespaces/default/pods", body)

    async def remove(self, name):
        async with self.flowing():
            await self.api.delete(f"/api/v1/namespaces/default/pods/{name}", gracePeriodSeconds="0")
        await self.until(lambda: self.pod(name) is None, f"{name} is gone")

    async def bound(self, name, seconds=90.0):
        """Wait for a pod to have a node; returns the node."""
        return await self.until(lambda: self.node_of(name), f"{name} is bound", seconds)

    async def colocation(self, **changes):
        """Write the colocation strategy of the cluster."""
        text = json.dumps(COLOCATION | changes)
        path = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{names.CONFIG_MAP_SLO}"
        async with self.flowing():
            await self.api.patch(path, {"data": {"colocation-config": text}})

    async def add_node(self, name, cpu=16, memory_gib=64):
        machine = kubelet.Machine(name, cpu=cpu, memory_gib=memory_gib)
        access = accesses.Access(self.plane.server)
        async with self.flowing():
            await self.hosts.add(self.plane.kubelets, machine, access)
        await self.until(lambda: self.lent(name) >= 0, f"{name} lends")

    async def settled(self):
        """Wait until every process is ready, whoever leads."""
        await self.until(
            lambda: (
                not any(p.complaints() or p.app.health.warnings() for p in self.processes.values())
            ),
            "every process is ready and has nothing to warn of",
        )

    # -- processes -------------------------------------------------------------------------

    async def assemble(self):
        """Start the control plane's clients and the three central processes."""
        kube = self.kube
        async with self.flowing():
            await definitions.store(self.plane, kube)
            await apply.everything(kube, apply.documents("foundation.yaml"))
            await apply.one(kube, PROFILE)
        await self.colocation()
        await self._add("webhook", self._webhook)
        await self._add("manager", self._manager)
        await self._add("extender", self._extender, self.front)
        await self.settled()
        await self.start_scheduler()

    async def start_scheduler(self):
        """Let a scheduler that calls the extender begin."""
        await self.plane.start_scheduler(
            scheduler_config.Options(
                extender_url=self.front.url,
                max_backoff_seconds=1,
                scheduler_names=("default-scheduler", "koord-scheduler"),
            )
        )

    async def _add(self, name, running, front=None):
        self.processes[name] = Process(self, name, running, front)
        await self.processes[name].start()

    def _webhook(self, access):
        chosen = webhook_settings.Settings.model_validate(
            {
                "server": local(),
                "health": local(),
                "certificates": {"names": ("127.0.0.1",), "folder": self.folder / "webhook"},
                "registration": {"url": "self"},
            }
        )
        return webhooks.running(chosen, access=access, clock=self.clock)

    def _manager(self, access):
        chosen = manager_settings.Settings.model_validate({"health": local()})
        return managers.running(chosen, access=access, clock=self.clock)

    def _extender(self, access):
        return extenders.running(self.extender_settings(), access=access, clock=self.clock)

    @staticmethod
    def extender_settings():
        # It runs in no pod that it could write on, and each of its lives begins with a list.
        alone = {"idle_seconds": 86_400.0}
        chosen = {"server": local(), "health": local(), "freshness": alone}
        return extender_settings.Settings.model_validate(chosen)

    async def stop(self):
        for process in reversed(self.processes.values()):
            await process.kill()


@contextlib.asynccontextmanager
async def opened(folder, kind=World):
    """A running system without nodes; time stands still unless somebody waits."""
    clock = clocks.ManualClock(clocks.SystemClock().now(), turns=TURNS)
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        supervisor = await enter(supervise.Supervisor("world"))
        world = kind(folder, clock, supervisor)
        supervisor.start("time", world.flow)
        options = cluster.Options(hooks=world.hosts.hooks, encrypted=False)
        async with world.flowing():
            world.plane = await enter(cluster.running(options, clock=clock))
        plane = world.plane
        world.hosts.admit(plane.token)
        world.front = await enter(gate.opened())
        world.api = await enter(raw.connected(plane.server, plane.ca, plane.token))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        world.kube = await enter(
            clients.Client(access, clock=clocks.SystemClock(), user_agent="user")
        )
        stack.push_async_callback(world.stop)
        await world.assemble()
        await enter(world.hosts.living())
        yield world
