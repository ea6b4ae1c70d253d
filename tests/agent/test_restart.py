"""The agent as a process that is killed, upgraded, restarted in an outage, and uninstalled."""

import asyncio
import contextlib
import time
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from agent import app
from api import resources
from api.kubernetes import crds
from process.runtime import supervise
from process.runtime.clock import ManualClock
from simulator import faults
from simulator.apiserver import apiserver
from simulator.kubelet import nodefs
from tests.agent import test_app

GIB = 1 << 30
LIMITS = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 65},
    "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}}},
}
SWITCHES = {"metadata": {"name": "koord-switches", "namespace": "koordinator-system"}}
ENFORCING = {"mode": "enforce"}


class KilledError(RuntimeError):
    """Ends an agent as a crash does."""


class World(test_app.World):
    """An API server that may be away, a kubelet that then knows nobody, and one batch pod."""

    trouble: faults.Faults

    @contextlib.asynccontextmanager
    async def running(self, **changes):
        given = {"on_stop": "hand-over", "strategies": ENFORCING, **changes}
        async with app.running(
            self.settings(**given), access=self.access, clock=self.clock
        ) as agent:
            yield agent

    async def killed(self, agent_context):
        """Run an agent until it holds limits, and kill it."""
        with contextlib.suppress(KilledError):
            async with agent_context as agent:
                await self.until_ticking(lambda: self.limit() == str(GIB))
                await self.until_ticking(lambda: self.cpus())
                await self.until_ticking(lambda: agent.health.ready)
                await self.seconds(15)
                raise KilledError

    def outage(self):
        """Nobody answers: the API server is away, so the kubelet can ask it about nobody either."""
        self.trouble.add(faults.Rule(faults.Refuse(503)))
        self.kubelet_status = 401

    def over(self):
        self.trouble.clear()
        self.kubelet_status = 200

    @property
    def top(self):
        return self.tree.cgroup / "kubepods.slice/kubepods-besteffort.slice"

    def limit(self):
        (file,) = self.top.glob("*podbatch.slice/*.scope/memory.max")
        return file.read_text().strip()

    def cpus(self):
        return (self.top / "cpuset.cpus").read_text().strip()

    async def watched(self, count):
        """Let time pass; return every limit and cpuset that was seen."""
        seen = set()
        for _ in range(count):
            await self.seconds(1)
            seen.add((self.limit(), bool(self.cpus())))
        return seen


def batch(new_pod):
    raw = msgspec.to_builtins(new_pod("batch", "BestEffort"))
    asked = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": str(GIB)}
    raw["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    return msgspec.convert(raw, type(new_pod("x")))


@pytest.fixture
async def world(tmp_path: Path, new_pod):
    clock = ManualClock(float(int(time.time())))
    tree = nodefs.HostTree(tmp_path / "host", 8, 16 * GIB, 2)
    trouble, pods, holder = faults.Faults(clock), [], {}

    async def list_pods(_request):
        return web.json_response({"items": pods or None}, status=holder["world"].kubelet_status)

    pages = web.Application()
    pages.router.add_get("/nodes/node-1/pods", list_pods)
    runner = web.AppRunner(pages)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with apiserver.running(clock=clock, options=apiserver.Options(faults=trouble)) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
                plane.objects.create(resources.CRDS, definition)
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/nodes/node-1"
        world = holder["world"] = World(plane, url, pods, tree, clock, tmp_path)
        world.trouble = trouble
        world.create_node()
        world.create(resources.NODE_METRICS, {"spec": {}})
        world.create(resources.NODE_SLOS, {"spec": LIMITS})
        world.add_pod(new_pod("online", "Burstable"), 2000)
        world.add_pod(batch(new_pod), 6000)
        yield world
    await runner.cleanup()


async def test_killed_and_restarted_in_an_outage_it_goes_on_by_what_was_last_known(world):
    await world.killed(world.running())
    assert world.limit() == str(GIB)
    world.outage()
    async with world.running() as agent:
        await world.until_ticking(lambda: agent.ticks.picture is not None)
        assert await world.watched(20) == {(str(GIB), True)}
        # It restores what others change, and goes on to suppress.
        (file,) = world.top.glob("*podbatch.slice/*.scope/memory.max")
        file.write_text("max\n")
        await world.until_ticking(lambda: world.limit() == str(GIB), 45)
        world.tree.set_load("online", 4500, GIB)
        await world.until_ticking(lambda: world.cpus() == "0-1" or len(world.cpus()) == 3)
        assert not agent.health.ready
        ages = agent.registry.value("koord_agent_last_known_age_seconds", {"kind": "nodeslo"})
        assert ages is not None
        world.over()
        await world.until_ticking(lambda: agent.health.ready, 120)
        assert world.limit() == str(GIB)


async def test_without_anything_kept_limits_stand_in_an_outage(world):
    await world.killed(world.running())
    for file in (world.folder / "state" / "last-known").iterdir():
        file.unlink()
    world.outage()
    held = world.cpus()
    async with world.running() as agent:
        await world.until_ticking(lambda: agent.ticks.picture is not None)
        assert await world.watched(40) == {(str(GIB), True)}
        assert world.cpus() == held
        world.over()
        await world.until_ticking(lambda: agent.health.ready, 120)
        assert world.limit() == str(GIB)


async def test_a_node_slo_that_was_deleted_meanwhile_is_not_enforced_again(world):
    await world.killed(world.running())
    world.plane.objects.delete(resources.NODE_SLOS, test_app.NODE)
    async with world.running():
        await world.until_ticking(lambda: world.limit() == "max")
        assert not world.cpus()
    assert not (world.folder / "state" / "last-known" / "nodeslo").exists()


@pytest.mark.parametrize("say", ["off", "observe"])
async def test_a_switch_that_was_thrown_holds_over_a_restart_in_an_outage(world, say):
    meta = {"apiVersion": "v1", "kind": "ConfigMap"}
    switch = {**meta, **SWITCHES, "data": {"agent": say}}
    async with world.running():
        await world.until_ticking(lambda: world.limit() == str(GIB))
        world.plane.objects.create(resources.CONFIG_MAPS, switch)
        await world.until_ticking(lambda: world.limit() == "max")
        await world.seconds(2)
    world.outage()
    async with world.running() as agent:
        await world.until_ticking(lambda: agent.ticks.picture is not None)
        assert await world.watched(20) == {("max", False)}


async def test_a_kill_is_told_with_the_time_that_nobody_was_here(world):
    await world.killed(world.running())
    await world.seconds(90)
    async with world.running() as agent:
        gap = agent.registry.value("koord_agent_unattended_seconds")
        assert 88 <= gap <= 92
        await world.until_ticking(lambda: world.plane.objects.list(resources.CORE_EVENTS).items)
        (event,) = world.plane.objects.list(resources.CORE_EVENTS).items
        assert (event["reason"], event["type"]) == ("Unattended", "Warning")
        assert "nothing restored what others wrote" in (event.get("note") or event["message"])
        await world.seconds(15)
    async with world.running() as agent:
        # It was stopped in order: that is told by the metric alone.
        assert agent.registry.value("koord_agent_unattended_seconds") < 5
        await world.seconds(5)
    assert len(world.plane.objects.list(resources.CORE_EVENTS).items) == 1


ENDS = {
    "no DaemonSet": (faults.Refuse(404), "max"),
    "permissions taken away": (faults.Refuse(403), "max"),
    "account deleted": (faults.Refuse(401), "max"),
    "API server away": (faults.Refuse(503), str(GIB)),
    "too busy": (faults.Refuse(429), str(GIB)),
    "permissions not read yet": (faults.Refuse(403), str(GIB), 2),
    "account not read yet": (faults.Refuse(401), str(GIB), 2),
    # Without a fault: the embedded control plane serves no DaemonSets.
    "nobody can say": (None, str(GIB)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_stop_puts_back_only_where_no_agent_follows(world, end):
    trouble, limit, *times = end
    async with contextlib.AsyncExitStack() as stack:
        agent = await stack.enter_async_context(world.running(on_stop="ask"))
        await world.until_ticking(lambda: agent.health.ready)
        await world.until_ticking(lambda: world.limit() == str(GIB))
        if trouble is not None:
            rule = faults.Rule(trouble, resource="daemonsets.apps", times=(*times, None)[0])
            world.trouble.add(rule)
        ended = stack.pop_all().aclose()
    async with supervise.Supervisor("end") as supervisor:
        ending = supervisor.spawn("end", ended)
        while not ending.done():
            # It asks a few times before it takes a refusal for an uninstallation.
            await world.clock.advance(1.0)
            await asyncio.sleep(0.001)
        ending.result()
    assert world.limit() == limit
    assert (world.folder / "state" / "last-known" / "nodeslo").exists() == (limit != "max")


async def test_a_crash_never_puts_back(world):
    world.trouble.add(faults.Rule(faults.Refuse(404), resource="daemonsets.apps"))
    await world.killed(world.running(on_stop="ask"))
    assert world.limit() == str(GIB)
    await world.killed(world.running(on_stop="put-back"))
    assert world.limit() == str(GIB)


async def test_an_upgrade_opens_no_limit(world):
    """Ten agents after one another, each with other settings; not one look sees an open limit."""
    seen = set()
    for number in range(10):
        async with world.running(tick_seconds=1.0 + number % 3, on_stop="ask") as agent:
            await world.until_ticking(lambda: world.limit() == str(GIB))
            seen |= await world.watched(6)
            assert agent.ticks.problem is None
        seen.add((world.limit(), True))
    assert {limit for limit, _ in seen} == {str(GIB)}
