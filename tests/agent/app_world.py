"""An agent as a process on a generated host, with an API server of the simulator."""

import asyncio
import contextlib

import msgspec

from agent import app
from agent import settings as agent_settings
from api import resources
from api.koordinator.metrics import nodemetric
from kube.client import access
from tests import patience

GIB = 1 << 30
NODE = "node-1"


class World:
    """An API server, a kubelet and a host for one agent."""

    def __init__(self, plane, kubelet_url, pods, tree, clock, folder):
        self.plane, self.tree, self.clock, self.folder = plane, tree, clock, folder
        self.kubelet_url, self.pods = kubelet_url, pods
        self.kubelet_status = 200
        self.access = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))

    def add_pod(self, pod, milli, memory=GIB):
        raw = msgspec.to_builtins(pod)
        self.pods.append(raw)
        self.tree.add_pod(pod.metadata.uid, pod.status.qos_class, [f"c-{pod.metadata.uid}"])
        self.tree.set_load(pod.metadata.uid, milli, memory)

    def create(self, resource, body, name=NODE):
        meta = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
        }
        self.plane.objects.create(resource, {**meta, **body})

    def create_node(self):
        amounts = {"cpu": "8", "memory": "16Gi"}
        self.create(resources.NODES, {"status": {"capacity": amounts, "allocatable": amounts}})

    def change(self, resource, spec):
        def replace(found):
            found["spec"] = spec

        self.plane.objects.modify(resource, NODE, "", replace)

    def status(self, resource=resources.NODE_METRICS):
        return self.plane.objects.get(resource, NODE).get("status") or {}

    def read(self):
        raw = self.plane.objects.get(resources.NODE_METRICS, NODE)
        return nodemetric.read_node_metric(raw).status

    def settings(self, **changes):
        host = agent_settings.HostSettings(
            proc=self.tree.proc,
            sys=self.tree.sys,
            cgroup=self.tree.cgroup,
            state=self.folder / "state",
        )
        given = {
            "node_name": NODE,
            "host": host,
            "kubelet": agent_settings.KubeletSettings(url=self.kubelet_url),
            "nri": agent_settings.NriSettings(socket=self.folder / "nri.sock"),
            "health": {"host": "127.0.0.1", "port": 0, "linger_seconds": 0, "drain_seconds": 0},
        }
        return agent_settings.Settings(**{**given, **changes})

    @contextlib.asynccontextmanager
    async def agent(self, **changes):
        self.tree.advance(0)
        given = {"on_stop": "put-back", **changes}
        async with app.running(
            self.settings(**given), access=self.access, clock=self.clock
        ) as agent:
            await self.until(lambda: "caches" not in agent.health.failing())
            yield agent

    async def seconds(self, count):
        for _ in range(count):
            self.tree.advance(1)
            await self.clock.advance(1)
            await asyncio.sleep(0.002)

    async def until(self, condition):
        await patience.arrives(condition)

    async def until_ticking(self, condition, most=30):
        """Let time pass second by second until something is so."""
        for left in range(most, 0, -1):
            if condition():
                return
            await self.seconds(1)
            # A busy machine may take long to bring an event; the last seconds give it the time.
            await asyncio.sleep(0.005 if left > 5 else 0.5)
        assert condition(), f"not so after {most} seconds"
