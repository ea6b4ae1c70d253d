"""An agent whose API server is away for an hour, and one that is restarted; in virtual time."""

import asyncio
import contextlib
import json
import time

import msgspec
import pytest
from aiohttp import web

from agent import app
from agent import settings as agent_settings
from api import resources
from api.koordinator.metrics import nodemetric
from api.kubernetes import crds
from kube.client import access
from process.runtime.clock import ManualClock
from simulator import faults
from simulator.apiserver import apiserver
from simulator.kubelet import nodefs
from tests import patience

GIB = 1 << 30
NODE = "node-1"
TICK = 60.0
# An hour of looks and reports; a busy machine must not cut it short.
pytestmark = pytest.mark.timeout(90)


class World:
    """An API server that may be away, a kubelet and a host, for agents that come and go."""

    def __init__(self, plane, trouble, tree, clock, folder):
        self.plane, self.trouble, self.tree = plane, trouble, tree
        self.clock, self.folder, self.kubelet_url = clock, folder, ""
        self.reports = []

    def create(self, resource, body):
        meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.plane.objects.create(resource, {**meta, "metadata": {"name": NODE}, **body})

    def status(self):
        raw = self.plane.objects.get(resources.NODE_METRICS, NODE)
        return nodemetric.read_node_metric(raw).status

    @contextlib.asynccontextmanager
    async def agent(self):
        host = agent_settings.HostSettings(
            proc=self.tree.proc,
            sys=self.tree.sys,
            cgroup=self.tree.cgroup,
            state=self.folder / "state",
        )
        settings = agent_settings.Settings(
            node_name=NODE,
            mode="observe",
            host=host,
            tick_seconds=TICK,
            kubelet=agent_settings.KubeletSettings(url=self.kubelet_url, interval_seconds=TICK),
            prediction=agent_settings.PredictionSettings(cold_start_seconds=0),
            health={"host": "127.0.0.1", "port": 0, "linger_seconds": 0, "drain_seconds": 0},
        )
        reached = access.Access(self.plane.url, self.plane.ca, access.StaticToken(self.plane.token))
        self.tree.advance(0)
        async with app.running(settings, access=reached, clock=self.clock) as agent:
            await patience.arrives(lambda: "caches" not in agent.health.failing())
            yield agent

    async def pass_time(self, seconds):
        """Let time pass tick by tick, noting when reports arrive."""
        for _ in range(int(seconds / TICK)):
            self.tree.advance(TICK)
            await self.clock.advance(TICK)
            await asyncio.sleep(0.001)
            at = self.status().update_time
            if at is not None and (not self.reports or at != self.reports[-1]):
                self.reports.append(at)

    async def until(self, condition, seconds=3600):
        """Let time pass, and after each tick those who answer come to an end, until it is so."""
        for _ in range(int(seconds / TICK)):
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                if condition():
                    return
                await asyncio.sleep(0.005)
            await self.pass_time(TICK)
        raise AssertionError("never became true")


@pytest.fixture
async def world(tmp_path, new_pod):
    clock = ManualClock(float(int(time.time())))
    tree = nodefs.HostTree(tmp_path / "host", 8, 16 * GIB)
    pods = []
    for uid, quality in (("online", "Burstable"), ("batch", "BestEffort")):
        pods.append(msgspec.to_builtins(new_pod(uid, quality)))
        tree.add_pod(uid, quality, [f"c-{uid}"])
        tree.set_load(uid, 500, GIB // 4)

    async def list_pods(_request):
        return web.json_response({"items": pods})

    pages = web.Application()
    pages.router.add_get("/pods", list_pods)
    runner = web.AppRunner(pages)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    trouble = faults.Faults(clock)
    async with apiserver.running(clock=clock, options=apiserver.Options(faults=trouble)) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
                plane.objects.create(resources.CRDS, definition)
        world = World(plane, trouble, tree, clock, tmp_path)
        world.kubelet_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        amounts = {"cpu": "8", "memory": "16Gi"}
        world.create(resources.NODES, {"status": {"capacity": amounts, "allocatable": amounts}})
        policy = {"reportIntervalSeconds": 180}
        world.create(resources.NODE_METRICS, {"spec": {"metricCollectPolicy": policy}})
        yield world
    await runner.cleanup()


def windows(status):
    """The windows of which enough is known, in seconds."""
    found = status.node_metric.aggregated_node_usages
    return {one.duration for one in found if one.usage["p95"].resources}


async def test_reports_resume_with_all_history_after_an_hour_without_api_server(world):
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        await world.pass_time(990)
        assert windows(world.status()) == {300, 600, 1800}
        world.trouble.add(faults.Rule(faults.Refuse(503)))
        before = world.status().update_time
        world.tree.set_load("online", 2500, GIB)
        await world.pass_time(3600)
        assert world.status().update_time == before
        assert agent.ticks.problem is None
        world.trouble.clear()
        back = world.clock.now()
        await world.until(lambda: world.status().update_time > before, seconds=600)
        status = world.status()
        # What was measured while nobody could be told is in the figures of the last half hour.
        assert windows(status) == {300, 600, 1800}
        (longest,) = [
            one for one in status.node_metric.aggregated_node_usages if one.duration == 1800
        ]
        assert longest.usage["avg"].resources["cpu"] == "3"
        assert status.update_time <= back + 180
        world.reports.clear()
        await world.pass_time(1080)
    assert 5 <= len(world.reports) <= 7


async def test_a_restart_keeps_what_was_sampled_and_learned(world):
    def peak():
        text = world.status().prod_peak_metric.resource.resources["cpu"]
        return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)

    world.tree.set_load("online", 2500, GIB // 4)
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        await world.pass_time(990)
        assert peak() >= 2.5
    world.plane.objects.modify(
        resources.NODE_METRICS, NODE, "", lambda found: found.update(status={})
    )
    # What is used from now on is less than a core, which alone would forecast no more than that.
    world.tree.set_load("online", 500, GIB // 4)
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        assert windows(world.status()) == {300, 600, 1800}
        # The next report is due within one and a half intervals, at this node's own moment.
        first = world.status().update_time
        await world.until(lambda: world.status().update_time > first, seconds=330)
        assert peak() >= 2.5
        assert world.status().prod_reclaimable_metric.resource.resources["cpu"]


async def test_a_clock_that_jumps_changes_neither_reports_nor_what_is_known(world):
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        await world.pass_time(990)
        peak = world.status().prod_peak_metric.resource.resources
        for jump in (3600, -7200):
            world.clock.jump(jump)
            world.reports.clear()
            await world.pass_time(540)
            # The nearest moment may have just passed, or the next one may be just ahead.
            assert 2 <= len(world.reports) <= 4
            assert abs(world.reports[-1] - world.clock.now()) <= 240
            assert windows(world.status()) == {300, 600, 1800}
            assert world.status().prod_peak_metric.resource.resources.keys() == peak.keys()
            assert agent.ticks.problem is None
            assert "memory" not in agent.health.warnings()
    # What was kept while the clock was wrong is there again when it is right.
    world.clock.jump(3600)
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        assert windows(world.status()) == {300, 600, 1800}
        assert "memory" not in agent.health.warnings()


async def test_damaged_files_are_named_and_do_no_harm(world):
    async with world.agent() as agent:
        await world.until(lambda: agent.health.ready)
        await world.pass_time(300)
    state = world.folder / "state"
    models = sorted(path.name for path in (state / "peaks").iterdir())
    assert {"online", "batch", "__node__"} <= set(models)
    assert json.loads((state / "peaks" / "online").read_text())["UID"] == "online"
    (state / "samples").write_bytes((state / "samples").read_bytes()[:-7])
    (state / "peaks" / "online").write_bytes(b"\x00")
    async with world.agent() as agent:
        assert "begins afresh" in agent.health.warnings()["memory"]
        await world.until(lambda: agent.health.ready)
        await world.pass_time(300)
        assert "memory" not in agent.health.warnings()
        assert 1800 not in windows(world.status())
