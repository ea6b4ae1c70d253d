"""The agent as a process: real HTTP, a generated host, virtual time."""

import itertools
import time
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from agent.assembly import feature_gates
from agent.report import http_pages
from api import resources
from api.kubernetes import crds
from api.wire import quantity
from simulator.apiserver import apiserver
from simulator.kubelet import nodefs
from tests import loopback
from tests.agent.app_world import GIB, NODE, World

# Suppression of cpu does as the agent does; nothing else decides.
ALONE = {"mode": "off"}
THRESHOLDS = {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 65}}


@pytest.fixture
async def world(tmp_path: Path):
    # TLS compares certificates with the real date.
    clock = loopback.LoopbackClock(float(int(time.time())))
    tree = nodefs.HostTree(tmp_path / "host", 8, 16 * GIB)
    pods, holder = [], {}

    async def list_pods(_request):
        return web.json_response({"items": pods or None}, status=holder["world"].kubelet_status)

    http_pages = web.Application()
    http_pages.router.add_get("/nodes/node-1/pods", list_pods)
    runner = web.AppRunner(http_pages)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with apiserver.running(clock=clock) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
                plane.objects.create(resources.CRDS, definition)
        url = f"http://127.0.0.1:{port}/nodes/node-1"
        world = holder["world"] = World(plane, url, pods, tree, clock, tmp_path)
        world.create_node()
        yield world
    await runner.cleanup()


async def get(url):
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_a_node_metric_is_filled(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 1500, 2 * GIB)
    world.add_pod(new_pod("batch", "BestEffort"), 1000, GIB)
    world.tree.set_load(nodefs.SYSTEM, 500, GIB)
    world.create(resources.NODE_METRICS, {"spec": {}})
    async with world.agent(mode="observe") as agent:
        assert not agent.health.ready
        await world.until_ticking(lambda: world.status())
        await world.until(lambda: agent.health.ready)
        assert (await get(f"{agent.health_url}/readyz"))[0] == 200
        await world.seconds(60)
        await world.until(lambda: world.read().update_time is not None)
    status = world.read()
    used = status.node_metric.node_usage.resources
    assert quantity.milli(used["cpu"]) == pytest.approx(3000, abs=15)
    assert used["memory"] == "4Gi"
    system = status.node_metric.system_usage.resources
    assert quantity.milli(system["cpu"]) == pytest.approx(500, abs=15)
    assert system["memory"] == "1Gi"
    pods = {pod.name: pod for pod in status.pods_metric}
    assert pods["name-online"].pod_usage.resources == {"cpu": "1500m", "memory": "2Gi"}
    assert (pods["name-online"].qos, pods["name-online"].priority) == ("LS", "koord-prod")
    assert (pods["name-batch"].qos, pods["name-batch"].priority) == ("BE", "koord-batch")
    durations = [entry.duration for entry in status.node_metric.aggregated_node_usages]
    assert durations == [300, 600, 1800]
    assert not status.node_metric.aggregated_node_usages[0].usage["p95"].resources
    assert status.prod_reclaimable_metric.resource.resources == {}
    # What the agent did today goes along: it has only observed.
    assert status.scorecard.date == world.status()["updateTime"][:10]
    assert status.scorecard.seconds >= status.scorecard.enforced_seconds == 0


async def test_the_short_figures_add_up(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 1500, 2 * GIB)
    world.add_pod(new_pod("batch", "BestEffort"), 1000, GIB)
    world.create(resources.NODE_METRICS, {"spec": {}})
    async with world.agent(mode="observe"):
        await world.until_ticking(lambda: world.status().get("podMetrics"))
    raw = world.status()
    assert raw["nodeMetric"]["request"] == {"cpu": "3", "memory": "1Gi"}
    assert raw["nodeMetric"]["limit"]["cpu"] == "2"
    assert raw["beMetric"] == {
        "usage": {"cpu": "1", "memory": "1Gi"},
        "request": {"cpu": "2", "memory": "0"},
        "limit": {"cpu": "0", "memory": "0"},
    }
    assert raw["lsMetric"]["request"] == {"cpu": "1", "memory": "1Gi"}
    assert raw["lsMetric"]["usage"]["memory"] == "2Gi"
    containers = {pod["podRef"]["name"]: pod["containers"] for pod in raw["podMetrics"]}
    assert containers["name-online"] == [
        {
            "name": "app",
            "usage": {"cpu": "1500m", "memory": "2Gi"},
            "request": {"cpu": "1", "memory": "1Gi"},
            "limit": {"cpu": "2"},
        }
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"metricCollectPolicy": {"aggregateDurationSeconds": 60, "reportIntervalSeconds": 15}},
        {"collectionIntervalSeconds": 15, "nodeName": NODE},
    ],
    ids=["policy", "shorthand"],
)
async def test_the_interval_is_obeyed_and_followed(world, spec):
    world.create(resources.NODE_METRICS, {"spec": spec})
    async with world.agent(mode="observe"):
        moments = []

        def note():
            moment = world.status().get("updateTime")
            if moment and moment not in moments:
                moments.append(moment)
            return len(moments)

        await world.until_ticking(lambda: note() == 4, most=80)
        seconds = [_seconds(moment) for moment in moments]
        # Only the first one is sent at once; then the node has its own moment.
        assert [b - a for a, b in itertools.pairwise(seconds[1:])] == [15, 15]
        world.change(resources.NODE_METRICS, {"collectionIntervalSeconds": 40})
        await world.clock.settle()
        await world.until_ticking(lambda: note() == 6, most=120)
        assert _seconds(moments[5]) - _seconds(moments[4]) == 40


def _seconds(moment):
    hours, minutes, seconds = moment[11:19].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


async def test_it_waits_for_the_node_metric_and_says_so(world):
    async with world.agent(mode="observe") as agent:
        await world.seconds(5)
        assert "no NodeMetric node-1 yet" in agent.health.failing()["report"]
        world.create(resources.NODE_METRICS, {"spec": {}})
        await world.until_ticking(lambda: agent.health.ready)


async def test_a_node_slo_is_enforced_followed_and_answered(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 2000)
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    root = world.tree.cgroup / "kubepods.slice/kubepods-besteffort.slice"
    async with world.agent() as agent:
        await world.until_ticking(lambda: (root / "cpuset.cpus").read_text().strip())
        await world.until_ticking(lambda: world.status(resources.NODE_SLOS))
        first = world.status(resources.NODE_SLOS)["nodeMetric"]["updateTime"]
        await world.seconds(5)
        assert world.status(resources.NODE_SLOS)["nodeMetric"]["updateTime"] == first
        off = {"resourceThresholdStrategy": {"enable": False}}
        world.change(resources.NODE_SLOS, off)
        await world.until_ticking(lambda: not (root / "cpuset.cpus").read_text().strip(), 10)
        await world.until_ticking(
            lambda: world.status(resources.NODE_SLOS)["nodeMetric"]["updateTime"] != first
        )
        world.change(resources.NODE_SLOS, THRESHOLDS)
        await world.until_ticking(lambda: (root / "cpuset.cpus").read_text().strip())
        assert agent.health.ready
    assert not (root / "cpuset.cpus").read_text().strip()


async def test_observing_only_tells(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 2000)
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    async with world.agent(mode="observe", strategies=ALONE) as agent:
        await world.until_ticking(lambda: len(agent.ticks.audit))
        status, text = await get(f"{agent.url}{http_pages.AUDIT_PATH}")
        assert status == 200
        records = msgspec.json.decode(text)["records"]
        assert records[0]["outcome"] == "would have written"
        assert "best effort may use" in records[0]["reason"]
        strategies = msgspec.json.decode(text)["strategies"]
        assert strategies["cpu-suppress"]["mode"] == "observe"
        assert strategies["cpu-suppress"]["wants"] > 0
        assert strategies["cpu-burst"]["mode"] == "off"
        assert "would-have-written" in (await get(f"{agent.url}/metrics"))[1]
        await world.seconds(3)
        assert not world.status(resources.NODE_SLOS)
    assert not (world.folder / "state" / "journal.jsonl").exists()


async def test_the_gate_switches_suppression_off(world, new_pod):
    world.add_pod(new_pod("batch", "BestEffort"), 8000)
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    async with world.agent(
        feature_gates={feature_gates.BE_CPU_SUPPRESS: False}, strategies=ALONE
    ) as agent:
        await world.seconds(4)
        assert len(agent.ticks.audit) == 0
        assert "BECPUSuppress is off" in agent.ticks.decided.reason


async def test_the_last_list_of_pods_is_kept(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 1000)
    world.create(resources.NODE_METRICS, {"spec": {"collectionIntervalSeconds": 5}})
    async with world.agent(mode="observe") as agent:
        await world.until_ticking(lambda: agent.health.ready)
        world.kubelet_status = 500
        await world.seconds(15)
        await world.until_ticking(lambda: "answered 500" in agent.health.warnings().get("pods", ""))
        assert agent.health.ready
        assert len(agent.ticks.picture.pods) == 1
        world.kubelet_status = 200
        world.pods.clear()
        await world.until_ticking(lambda: "not believed" in agent.health.warnings().get("pods", ""))
        assert len(agent.ticks.picture.pods) == 1
        await world.until_ticking(lambda: not agent.ticks.picture.pods, 40)


async def test_a_failed_report_is_sent_again(world):
    world.create(resources.NODE_METRICS, {"spec": {}})
    async with world.agent(mode="observe") as agent:
        world.plane.objects.delete(resources.NODE_METRICS, NODE)
        await world.seconds(3)
        assert not agent.health.ready
        world.create(resources.NODE_METRICS, {"spec": {}})
        await world.until_ticking(lambda: agent.health.ready, 40)


async def test_objects_of_other_names_have_no_effect(world):
    world.create(resources.NODE_METRICS, {"spec": {}}, name="production")
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS}, name="production")
    async with world.agent() as agent:
        await world.seconds(4)
        assert "no NodeSLO" in agent.ticks.decided.reason
        assert "no NodeMetric" in agent.health.failing()["report"]


async def test_what_was_done_can_be_read_page_by_page(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 2000)
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    async with world.agent(strategies=ALONE) as agent:
        await world.until_ticking(lambda: len(agent.ticks.audit) > 1)
        where = f"{agent.url}{http_pages.EVENTS_PATH}"
        status, text = await get(f"{where}?size=1")
        first = msgspec.json.decode(text)
        assert status == 200
        assert len(first["Events"]) == 1
        assert first["NextPageToken"]
        event = first["Events"][0]
        assert event["reason"] == "written"
        assert event["property"] in ("cpuset", "cpu-quota")
        assert {"createdAt", "from", "to", "groups", "message"} <= event.keys()
        _, text = await get(f"{where}?size=1&pageToken={first['NextPageToken']}")
        assert msgspec.json.decode(text)["Events"] != first["Events"]
        assert (await get(f"{where}?size=0"))[0] == 400
        assert (await get(f"{where}?size=x"))[0] == 400
        assert (await get(f"{where}?pageToken=9.9"))[0] == 409


async def test_one_who_keeps_writing_is_named_and_wins(world, new_pod):
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    file = world.tree.cgroup / "kubepods.slice/kubepods-besteffort.slice/cpuset.cpus"
    async with world.agent() as agent:
        await world.until_ticking(lambda: file.read_text().strip())
        lost = agent.registry
        metric = "koord_agent_foreign_writers_total"

        def quarrel():
            if lost.value(metric, {"role": "cpuset"}):
                return True
            file.write_text("0-6\n")
            return False

        await world.until_ticking(quarrel, 150)
        await world.until_ticking(lambda: world.plane.objects.list(resources.CORE_EVENTS).items)
        (event,) = world.plane.objects.list(resources.CORE_EVENTS).items
        assert (event["reason"], event["type"]) == ("ForeignWriter", "Warning")
        assert "another program keeps writing '0-6'" in (event.get("note") or event["message"])
        assert "'0-6'" in agent.health.warnings()["given up"]
    assert file.read_text() == "0-6\n"


async def test_two_agents_never_write_to_one_node(world, new_pod):
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    async with world.agent() as first:
        await world.until_ticking(lambda: first.ticks.standing.writing)
        async with world.agent() as second:
            await world.until_ticking(lambda: "in use by an agent" in (second.ticks.problem or ""))
            assert not second.health.ready


async def test_notes_that_cannot_be_kept_are_named(world, new_pod):
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": THRESHOLDS})
    (world.folder / "state").write_text("a file where the folder belongs")
    async with world.agent() as agent:
        await world.seconds(5)
        status, text = await get(f"{agent.url}/readyz")
        assert status == 503
        assert "journal" in text
        assert "File exists" in text
