"""Evictions on real groups: every pod of a scene as a process that uses what the pod uses.

The pods are created in an API server and run for real, and whom the agent evicts there is ended as
a kubelet ends it.
"""

import contextlib
import os
import re

from agent.apply.evictions import evictor
from agent.assembly import effects
from api import resources
from kube.client import access, client
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from simulator.apiserver import apiserver
from simulator.apiserver.storage import object_store
from tests.planes import raw
from tests.planes.host import kubepods, scenes

LIMITS = evictor.Limits(burst=5, per_minute=60, first_pause_seconds=20)


class Stage:
    """One scene on groups of its own, with an agent and what it does outside of its node."""

    def __init__(self, scene, plane, groups, node, outside):
        self.scene, self.plane, self.groups, self.node = scene, plane, groups, node
        self.outside = outside
        self.namespace = re.sub(r"\W|_", "-", scene.name)
        self.uids = {}
        plane.objects.create(resources.NAMESPACES, {"metadata": {"name": self.namespace}})

    async def play(self):
        """Create and start everything, and wait until it uses what it should."""
        use = self._hold if self.scene.resource == scenes.MEMORY else self.groups.burn
        for body in self.scene.given["pods"]:
            made = self._create(body)
            self.uids[made["metadata"]["uid"]] = made["metadata"]["name"]
            _, containers = self.node.add(made)
            amount = self.scene.used[made["metadata"]["name"]]
            if amount:
                use(containers[0], amount)
        self._guard()
        use(self.groups.system, self.scene.system)
        if self.scene.feature == "BECPUEvict":
            share = int(sum(self.scene.used.values()) * 100_000)
            self.groups.limit(self.groups.layout.qos_group("BestEffort"), share)
        if self.scene.resource == scenes.MEMORY:
            wanted = self.scene.system + sum(self.scene.used.values())

            async def held():
                return self.groups.memory() > wanted * 0.97

            await raw.eventually(held, 60)

    def _hold(self, group, size):
        return self.groups.hold(group, int(size))

    def _create(self, body):
        metadata = {**body["metadata"], "namespace": self.namespace}
        del metadata["uid"]
        spec = {**body["spec"], "nodeName": "node"}
        for kind in ("containers", "initContainers"):
            if kind in spec:
                spec[kind] = [{**one, "image": "i"} for one in spec[kind]]
        if metadata["name"] in self.scene.guarded:
            metadata["labels"] = {**metadata.get("labels", {}), "guarded": "yes"}
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        # Whatever it was in the recorded case: here it runs.
        status = {**body["status"], "phase": "Running", **ready}
        return self.plane.objects.create(
            resources.PODS, {**whole, "status": status}, self.namespace
        )

    def _guard(self):
        """Protect the pods whose eviction failed in the recorded case by a budget."""
        self.plane.objects.create(
            resources.POD_DISRUPTION_BUDGETS,
            {
                "metadata": {"name": "guard", "namespace": self.namespace},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"guarded": "yes"}}},
            },
            self.namespace,
        )

    def leaving(self):
        """Return the names of the pods that the API server ends."""
        return {
            pod["metadata"]["name"]
            for pod in self._pods()
            if pod["metadata"].get("deletionTimestamp")
        }

    def left(self):
        """Return the names of the pods that stay."""
        return {pod["metadata"]["name"] for pod in self._pods()} - self.leaving()

    def _pods(self):
        pods = self.plane.objects.list(resources.PODS).items
        return [pod for pod in pods if pod["metadata"]["namespace"] == self.namespace]

    async def end(self):
        """End what the API server ends, as a kubelet does."""
        for uid, name in list(self.uids.items()):
            if name in self.leaving() or name not in self.left():
                await self.node.remove(uid)
                del self.uids[uid]
                if name in self.leaving():
                    how = object_store.Deletion(grace=0)
                    self.plane.objects.delete(resources.PODS, name, self.namespace, how)

    def told(self, outcome):
        """Return the pods of the lines of the audit with an outcome, one for each line."""
        events = self.outside.log.page(2048).events
        return sorted(one["name"] for one in events if one["reason"] == outcome)


@contextlib.asynccontextmanager
async def staged(scenes, folder):
    """Set up scenes side by side, each with an agent of its own, before one API server."""
    clock = clocks.SystemClock()
    async with apiserver.running(clock=clock) as plane:
        entry = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with (
            client.Client(entry, clock=clock, user_agent="koord-agent") as kube,
            supervise.Supervisor("evictions") as supervisor,
            contextlib.AsyncExitStack() as stack,
        ):
            stages = []
            for number, scene in enumerate(scenes):
                groups = kubepods.Groups(f"koord-evict{number}-{os.getpid()}", nested=True)
                stack.push_async_callback(groups.remove)
                place = folder / str(number)
                gates = frozenset({scene.feature})
                setup = kubepods.Setup(gates=gates, capacity=scene.capacity)
                node = kubepods.Node(groups, place, setup)
                stack.callback(node.loop.stop)
                told = effects.Place("node", place / "state", LIMITS)
                outside = effects.Outward(kube, clock, told, metrics.Registry(), node.loop)
                outside.start(supervisor)
                stages.append(Stage(scene, plane, groups, node, outside))
            yield stages
