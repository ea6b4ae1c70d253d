"""The live switch of the agent, thrown while it holds back and evicts: the node is as before."""

import asyncio
import copy
import time

import pytest_asyncio
from aiohttp import web

from agent import app
from agent import settings as agent_settings
from api import names, resources
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator.kubelet import nodefs
from tests.planes import raw

GIB = 1 << 30
PATIENCE = 60.0
SLO = {
    "resourceUsedThresholdWithBE": {
        "enable": True,
        "cpuSuppressThresholdPercent": 65,
        "memoryEvictThresholdPercent": 70,
    }
}
# Cpu and memory of the pods: 100 % of 16 GiB, so that both batch pods have to leave.
LOADS = {"online": (2000, 6), "first": (3000, 5), "second": (2500, 5)}
OURS = ("cpuset.cpus", "cpu.cfs_quota_us", "cpu.shares")


class Stand:
    """A generated host, its kubelet, and an agent that may evict one pod in a minute."""

    def __init__(self, here, folder):
        self.here, self.api = here, here.api
        # TLS compares certificates with the real date.
        self.clock = clocks.ManualClock(float(int(time.time())))
        self.tree = nodefs.HostTree(folder / "host", 8, 16 * GIB)
        self.folder, self.pods = folder, []
        self.switches = here.path("configmaps", names.CONFIG_MAP_SWITCHES)

    async def prepare(self):
        self.node = await self.here.node("switched")
        kind = resources.NODE_SLOS
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": SLO}
        await self.api.post(kind.path(), body | {"metadata": {"name": self.node}})
        await self.api.post(
            self.here.path("configmaps"), {"metadata": {"name": names.CONFIG_MAP_SWITCHES}}
        )
        for name, (milli, gibibytes) in LOADS.items():
            label = "LS" if name == "online" else "BE"
            body = self.here.pod_body(
                name, requests={}, labels={"koordinator.sh/qosClass": label}, nodeName=self.node
            )
            pod = await self.api.post(self.here.path("pods"), body)
            uid = pod["metadata"]["uid"]
            self.tree.add_pod(uid, "BestEffort", [f"c-{name}"])
            self.tree.set_load(uid, milli, gibibytes * GIB)
            seen = copy.deepcopy(pod)
            container = seen["spec"]["containers"][0]["name"]
            seen["status"] = {
                "phase": "Running",
                "qosClass": "BestEffort",
                "containerStatuses": [{"name": container, "containerID": f"containerd://c-{name}"}],
            }
            self.pods.append(seen)
        self.tree.advance(0)
        self.before = self.ours()

    def settings(self, kubelet):
        return agent_settings.Settings.model_validate(
            {
                "node_name": self.node,
                "namespace": self.here.namespace,
                "host": {
                    "proc": self.tree.proc,
                    "sys": self.tree.sys,
                    "cgroup": self.tree.cgroup,
                    "state": self.folder / "state",
                },
                "kubelet": {"url": kubelet, "verify": "off"},
                # It is in no DaemonSet, where a real API server would say that nobody follows.
                "on_stop": "hand-over",
                "strategies": {"mode": "enforce"},
                "evictions": {"burst": 1, "per_minute": 1},
                "feature_gates": {"BEMemoryEvict": True},
                "health": {
                    "host": "127.0.0.1", "port": 0, "linger_seconds": 0, "drain_seconds": 0,
                },
            }
        )  # fmt: skip

    def running(self):
        return app.running(self.settings(self.kubelet), access=self.access, clock=self.clock)

    def ours(self):
        files = (path for path in self.tree.cgroup.rglob("*") if path.name in OURS)
        return {str(path): path.read_text().strip() for path in files}

    async def say(self, word):
        await self.api.patch(self.switches, {"data": {"agent": word}})

    async def left(self):
        """The batch pods that nobody has evicted."""
        found = (await self.api.get(self.here.path("pods")))["items"]
        there = {p["metadata"]["name"] for p in found if not p["metadata"].get("deletionTimestamp")}
        return there - {"online"}

    async def second(self):
        """Let one second pass."""
        self.tree.advance(1)
        await self.clock.advance(1)
        await asyncio.sleep(0.005)

    async def until(self, holds):
        """Let time pass until something is so."""
        end = time.monotonic() + PATIENCE
        while not await holds():
            assert time.monotonic() < end, "waited too long"
            await self.second()


@pytest_asyncio.fixture(loop_scope="session")
async def stand(plane, here, tmp_path):
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="admin") as kube:
        await apply.definitions(kube, clock)
    made = Stand(here, tmp_path)
    await made.prepare()

    async def listed(_request):
        return web.json_response({"items": made.pods})

    pages = web.Application()
    pages.router.add_get("/pods", listed)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.kubelet = f"http://127.0.0.1:{runner.addresses[0][1]}"
    made.access = access
    yield made
    await runner.cleanup()
    assert made.ours() == made.before
    await here.api.call("DELETE", resources.NODE_SLOS.path(name=made.node))


async def test_one_key_puts_the_node_back_and_ends_evictions_that_were_waiting(stand):
    async def one_left():
        return len(await stand.left()) == 1

    async def changed():
        return stand.ours() != stand.before

    async def back():
        return stand.ours() == stand.before

    async def none_left():
        return not await stand.left()

    async with stand.running() as agent:
        await stand.until(changed)
        await stand.until(one_left)
        (waiting,) = await stand.left()

        await stand.say("off")
        # Meanwhile no time passes, or the next eviction could be due before the agent hears of it.
        await raw.eventually(back, PATIENCE)
        # Long enough for the next eviction, had it not been called off.
        await stand.clock.advance(120)
        assert await stand.left() == {waiting}
        assert await back()
        why = "switched off by the live switch agent"
        assert {one.reason for one in agent.ticks.decisions.values()} == {why}

        await stand.say(None)
        await stand.until(changed)
        await stand.until(none_left)
        held = stand.ours()

    # An agent that stops hands over; the next one obeys what was said while none was there.
    assert stand.ours() == held != stand.before
    await stand.say("off")
    async with stand.running():
        await stand.until(back)
