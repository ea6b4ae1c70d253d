"""A real control plane that tests may break, and pairs of a scheduler and an extender on it."""

import asyncio
import contextlib
import json
import os

import pytest
import pytest_asyncio

from api import names
from api.kubernetes import scheduler_config
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator.processes import credentials
from tests.planes import invariants, raw, real, world
from tests.planes.processes import audit, gate, processes

PATIENCE = 60.0
# The whole of every fault instead of its smallest real form; for a machine of one's own.
FULL = bool(os.environ.get("KOORD_SOAK"))
MASTERS = ("system:masters",)
USERS = (
    *("extender-a", "extender-b", "manager-a", "manager-b", "webhook-a", "webhook-b"),
    *("descheduler-a", "descheduler-b"),
)
SHORT_LEASE = {"leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "500ms"}
LEASE = {} if FULL else SHORT_LEASE
LONG = pytest.mark.timeout(7200 if FULL else 120)
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
BATCH = {"koordinator.sh/priority-class": names.PRIORITY_CLASS_BATCH}
IDLE_SECONDS = 1
"""For how long an extender trusts its view after it was proven, or asked for."""
# As in an installation, but so that a test need not wait for what takes a minute there.
IMPATIENT = (
    f"--freshness.idle_seconds={IDLE_SECONDS}",
    "--freshness.stale_seconds=3",
    "--freshness.silence_seconds=20",
    "--bind.start_seconds=2",
    "--bind.write_seconds=2",
    "--bind.read_seconds=2",
    "--bind.promise_seconds=6",
    "--server.linger_seconds=0.5",
    "--health.linger_seconds=0",
)


class Pair:
    """A scheduler and the extender that it alone calls, with a gate before each one's server."""

    def __init__(self, stage, letter, uplink, front, *flags):
        self.letter = letter
        self.scheduler = f"scheduler-{letter}"
        self.user = f"extender-{letter}"
        self.uplink = uplink
        self.front = front
        self._stage = stage
        own = (f"--instance={self.user}", *IMPATIENT, *flags)
        self.extender = stage.process(self.user, "extender", *own, server=uplink.url)
        front.target = self.extender.url

    async def start(self):
        """Start the extender alone."""
        await self.extender.start()
        await self.extender.ready()

    async def schedule(self, url="", *, elected=False, **options):
        """Start or restart the scheduler with its extender at this address."""
        url = url or self.front.url
        config = scheduler_config.render(
            scheduler_config.Options(url, leader_elect=elected, **options)
        )
        if elected:
            config["leaderElection"].update(LEASE)
        await self._stage.plane.binaries.start_scheduler(config, name=self.scheduler)

    async def kill(self):
        """Both die at the same moment, and what they had not sent is never sent."""
        self.uplink.hang_up()
        ends = (self._stage.plane.binaries.kill(self.scheduler), self.extender.kill())
        await asyncio.gather(*ends)

    def pause(self):
        self._stage.plane.binaries.pause(self.scheduler)
        self.extender.pause()

    def resume(self):
        self._stage.plane.binaries.resume(self.scheduler)
        self.extender.resume()

    async def pictures(self, nodes):
        """How the extender counts these nodes."""
        found = [await self.extender.page(f"/debug/picture?node={name}") for name in nodes]
        return [json.loads(text) for status, text in found if status == 200]


class Stage(world.World):
    """One test's corner of the plane, and the processes that it starts there."""

    def __init__(self, plane, api, folder):
        super().__init__(plane, api)
        self._folder = folder
        self._stack = contextlib.AsyncExitStack()
        self._since = audit.mark(plane.binaries.audit_log)

    def process(self, name, module, *flags, server="", serves=True):
        """A process of the product that is killed with the test."""
        token = self.plane.binaries.tokens[name]
        server = server or self.plane.server
        made = processes.Process(
            self._folder, name, module, server, self.plane.ca, token, *flags, serves=serves
        )
        self._stack.push_async_callback(made.kill)
        return made

    async def own_pod(self, name):
        """The pod of a process that runs outside of the cluster; no scheduler looks at it."""
        body = self.pod_body(name, schedulerName="none")
        body["metadata"]["namespace"] = names.NAMESPACE
        answer = await self.api.call("POST", f"/api/v1/namespaces/{names.NAMESPACE}/pods", body)
        assert answer.status in (201, 409), answer.message

    async def pair(self, letter, *flags):
        """A running extender with these flags, and a scheduler that is not running yet."""
        await self.own_pod(f"extender-{letter}")
        uplink = await self._stack.enter_async_context(
            gate.opened(self.plane.server, self.plane.ca)
        )
        front = await self._stack.enter_async_context(gate.opened())
        made = Pair(self, letter, uplink, front, *flags)
        self._stack.push_async_callback(self.plane.binaries.stop_scheduler, made.scheduler)
        await made.start()
        return made

    async def lending(self, *suffixes, cores=4, pods=110):
        """Create nodes that lend so many cores to batch pods."""
        more = {names.BATCH_CPU: str(cores * 1000), names.BATCH_MEMORY: f"{4 * cores}Gi"}
        return [await self.node(s, more=more, pods=str(pods)) for s in suffixes]

    def job(self, name, cores=1, **more):
        """The body of a batch pod as admission would have left it."""
        requests = {names.BATCH_CPU: str(int(cores * 1000)), names.BATCH_MEMORY: "1Gi"}
        return self.pod_body(name, requests=requests, labels=BATCH, **more)

    async def create(self, *jobs, cores=1, **more):
        for name in jobs:
            await self.api.post(self.path("pods"), self.job(name, cores, **more))

    async def all_bound(self, *jobs, timeout=PATIENCE):
        """Wait until these pods have a node; returns the nodes."""
        pods = [await self.bound(name, timeout) for name in jobs]
        return [pod["spec"]["nodeName"] for pod in pods]

    async def placed(self, count):
        """Wait until so many pods have been bound since the test began."""

        async def enough():
            return len([c for c in self.calls() if c.subresource == "binding"]) >= count

        await raw.eventually(enough, PATIENCE)

    async def bind(self, name, node):
        """Bind a pod as another scheduler would."""
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await self.api.post(self.path("pods", name, "binding"), body)

    async def remove_node(self, name):
        await self.api.delete(f"/api/v1/nodes/{name}")
        self.nodes.remove(name)

    async def empty(self):
        """Delete every pod of the test, and begin to count calls anew."""
        path = self.path("pods")
        await self.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})

        async def none():
            return not (await self.api.get(path, limit="1"))["items"]

        await raw.eventually(none, PATIENCE)
        self._since = audit.mark(self.plane.binaries.audit_log)

    def calls(self):
        """What the API server was asked since this test began."""
        return audit.read(self.plane.binaries.audit_log, self._since)

    async def bindings(self, user):
        """The pods of this test that a user was allowed to bind.

        A pod has its node, and watches tell of that, a moment before the log has the answer.
        """

        def bound():
            return [
                call
                for call in self.calls()
                if (call.namespace, call.subresource, call.code) == (self.namespace, "binding", 201)
            ]

        async def written():
            pods = (await self.api.get(self.path("pods")))["items"]
            placed = {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}
            return placed <= {call.name for call in bound()}

        await raw.eventually(written, PATIENCE)
        return [call.name for call in bound() if call.user == user]

    async def problems(self, *extenders):
        """What does not hold now, by the API server's objects, its log and the extenders' pages."""
        nodes = (await self.api.get("/api/v1/nodes", labelSelector=f"world={self.id}"))["items"]
        pods = (await self.api.get("/api/v1/pods"))["items"]
        mine = [pod for pod in pods if pod["metadata"]["namespace"] == self.namespace]
        found = [f"I1 {text}" for text in invariants.overcommitted(nodes, pods)]
        found += [f"I2 {text}" for text in invariants.misplaced(mine)]
        found += [f"I2 {text}" for text in invariants.doubled(self.calls())]
        found += [f"I4 {name} waits without a reason" for name in invariants.lost(mine)]
        for pair in extenders:
            pictures = await pair.pictures(self.nodes)
            if len(pictures) != len(self.nodes):
                found.append(f"I3 {pair.user} knows {len(pictures)} of {len(self.nodes)} nodes")
            for picture in pictures:
                found += [f"I3 {pair.user}: {text}" for text in invariants.drifted(picture, pods)]
            if failing := await pair.extender.failing():
                found.append(f"I6 {pair.user} is not ready: {failing}")
        return found

    async def sound(self, *extenders, timeout=PATIENCE):
        """Wait until nothing is wrong any more; fail with what still is."""
        found = []

        async def nothing():
            found[:] = await self.problems(*extenders)
            return not found

        try:
            await raw.eventually(nothing, timeout)
        except TimeoutError:
            raise AssertionError("\n".join(found)) from None

    async def close(self):
        await self._stack.aclose()
        await self.empty()
        await super().close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def breakable(control_plane_binaries, tmp_path_factory):
    """A real control plane of its own for the tests that break it."""
    users = tuple(credentials.User(name, MASTERS) for name in USERS)
    workdir = tmp_path_factory.mktemp("breakable") / "state"
    clock = clocks.SystemClock()
    async with real.running(control_plane_binaries, workdir, users=users) as plane:
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        async with clients.Client(access, clock=clock, user_agent="user") as kube:
            await apply.definitions(kube, clock)
            await apply.everything(kube, apply.documents("foundation.yaml"))
        yield plane


@contextlib.asynccontextmanager
async def opened(plane, folder):
    """A corner of a plane, removed in the end with every process that was started there."""
    async with raw.connected(plane.server, plane.ca, plane.token) as api:
        stage = Stage(plane, api, folder)
        await stage.open()
        try:
            yield stage
        finally:
            await stage.close()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(breakable, tmp_path):
    """A corner of the breakable plane for one test."""
    async with opened(breakable, tmp_path) as found:
        yield found
