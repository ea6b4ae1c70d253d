"""An API server, extenders that preempt for their own plug-in, and the hands of a scheduler."""

import asyncio
import contextlib

import aiohttp

from extender import app, registry, settings
from process.runtime import clock as clocks
from tests import patience
from tests.extender.preemption.evicting_server import EvictingServer
from tests.extender.sample_plugin import allocation, plugin

START = 1782907510.0
KNOWN = registry.PLUGINS | {"Slots": lambda _: plugin.SlotsPlugin(cap=6)}
CONDITION = {"type": "PodScheduled", "status": "True"}


class World:
    """An API server, extenders, and the hands of a scheduler and of a kubelet."""

    def __init__(self, server, session, time, make):
        self.server, self.session, self.time, self.make = server, session, time, make
        self.extenders, self.access = [], None

    def slots_node(self, name, count=16):
        self.server.put("nodes", self.make.node(name, **{allocation.RESOURCE: str(count)}))

    def pod(self, name, *, priority=0, numbers="", node="", at="12:00:00", slots=2, **more):
        """A pod of the team whose quota is full; with numbers of slots where it has a node."""
        notes = {allocation.NUMBERS: numbers} if numbers else {}
        requests = {allocation.RESOURCE: str(slots)}
        raw = self.make.pod(name, node=node, requests=requests, annotations=notes)
        raw["metadata"]["labels"] |= {allocation.TEAM: "red"} | more.pop("labels", {})
        raw["spec"] |= {"priority": priority, **more}
        if node:
            since = {"lastTransitionTime": f"2026-07-01T{at}Z"}
            raw["status"]["conditions"] = [CONDITION | since]
        self.server.put("pods", raw)
        return raw

    def fill(self):
        """Three pods of low priority use all that the quota may."""
        for number in range(3):
            numbers = f"{2 * number},{2 * number + 1}"
            self.pod(
                f"low-{number}", priority=10, numbers=numbers, node="n1", at=f"12:00:0{number}"
            )

    @contextlib.asynccontextmanager
    async def extender(self, **chosen):
        anywhere = {"port": 0, "linger_seconds": 0, "drain_seconds": 0.05, "announce_seconds": 0}
        made = settings.Settings(
            server=anywhere, health=anywhere, plugins={"enabled": ("Slots",), "weights": {}},
            preemption=chosen.pop("preemption", {}), **chosen,
        )  # fmt: skip
        async with app.running(made, access=self.access, clock=self.time, plugins=KNOWN) as one:
            self.extenders.append(one)
            await self.until(lambda: one.health.ready)
            yield one
            self.extenders.remove(one)

    async def until(self, condition, step=0.1):
        await patience.until(condition, lambda: self.time.advance(step))

    async def call(self, one, verb, body):
        async with self.session.post(f"{one.url}/{verb}", json=body) as answer:
            return await answer.json(content_type=None)

    async def filter(self, one, name="high", nodes=("n1", "n2")):
        pod = self.server.objects["pods"][f"default/{name}"]
        await self.until(lambda: one.feeds.pods.get(f"default/{name}"))
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
        return await self.call(one, "filter", body)

    async def attempt(self, one, name="high"):
        """What a scheduler does with a pod: whether it was bound."""
        answer = await self.filter(one, name)
        assert "NodeNames" in answer, answer
        if not answer["NodeNames"]:
            return False
        body = {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}"}
        said = await self.call(one, "bind", body | {"Node": answer["NodeNames"][0]})
        return said["Error"] == ""

    async def placed(self, one, name="high"):
        """Attempt whenever the pod was changed, as a scheduler would, until it is bound.

        Every extender has seen the binding then.
        """
        seen = -1
        async with asyncio.timeout(patience.SECONDS):
            while True:
                self.server.leave()
                if len(self.server.nudged) > seen:
                    seen = len(self.server.nudged)
                    if await self.attempt(one, name):
                        break
                await self.time.advance(0.25)
                await asyncio.sleep(0.001)
        for each in self.extenders:
            await self.until(lambda each=each: each.feeds.pods.get(f"default/{name}").node)

    def high(self):
        return self.server.objects["pods"]["default/high"]

    def said(self, name, reason):
        return [
            event["note"]
            for event in self.server.events
            if (event["regarding"]["name"], event["reason"]) == (name, reason)
        ]


@contextlib.asynccontextmanager
async def opened(make):
    """A world with a full quota and a pod of high priority that waits."""
    time = clocks.ManualClock(now=START)
    server = EvictingServer(time)
    async with server.serving() as access, aiohttp.ClientSession() as session:
        made = World(server, session, time, make)
        made.access = access
        made.slots_node("n1")
        made.slots_node("n2")
        made.fill()
        made.pod("high", priority=100)
        yield made
