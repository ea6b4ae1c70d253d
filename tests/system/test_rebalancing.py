"""One path from slo-controller-config to an eviction: what is configured is measured, and moves."""

import json

import aiohttp
import pytest

from api import names, resources
from api.wire import durations
from cli.dev import pod_load
from descheduler import app as deschedulers
from descheduler import settings
from tests.system import world as worlds

CONFIGURATION = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 5s
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      nodeMetricExpirationSeconds: 30
      lowThresholds: {cpu: 40}
      highThresholds: {cpu: 60}
      anomalyCondition: {consecutiveAbnormalities: 2, consecutiveNormalities: 1}
  - name: MigrationController
    args:
      schedulerNames: [default-scheduler]
      objectLimiters: {workload: {duration: 10s, burst: 4}}
"""
REPLICAS = 4
USE = pod_load.Use(3000, 1 << 30)


async def descheduling(world, mode="enforce"):
    """Start a descheduler beside the other processes, in a cluster with one scheduler."""
    callers = {names.ANNOTATION_SCHEDULERS: "default-scheduler"}
    metadata = {"name": names.CONFIG_MAP_SCHEDULER, "annotations": callers}
    async with world.flowing():
        await world.api.post(
            resources.CONFIG_MAPS.path(names.NAMESPACE), {"metadata": metadata, "data": {}}
        )
    file = world.folder / "descheduler.yaml"
    file.write_text(CONFIGURATION)
    chosen = settings.Settings.model_validate(
        {"configuration": file, "mode": mode, "health": worlds.local()}
    )

    def running(access):
        return deschedulers.running(chosen, access=access, clock=world.clock)

    process = worlds.Process(world, "descheduler", running)
    world.processes["descheduler"] = process
    await process.start()
    return process


def replicas(world):
    return [pod for pod in world.pods() if pod["metadata"].get("labels", {}).get("app") == "web"]


def placed(world, node):
    """The pods of the workload that run on a node."""
    return [
        pod
        for pod in replicas(world)
        if pod["spec"].get("nodeName") == node and pod["status"].get("phase") == "Running"
    ]


@pytest.fixture
async def crowded(world):
    """All pods of a workload on the only node; then comes another one."""
    await world.add_node("a")
    demands = {"requests": {"cpu": "2", "memory": "1Gi"}}
    container = {"name": "main", "image": "registry.example/main:1", "resources": demands}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {**pod, "priorityClassName": "koord-prod"}}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    async with world.flowing():
        await world.api.post("/apis/apps/v1/namespaces/default/deployments", body | {"spec": spec})
    await world.until(lambda: len(placed(world, "a")) == REPLICAS, "all run on the only node")
    for pod in replicas(world):
        world.hosts.fix(pod["metadata"]["uid"], USE)
    await world.add_node("b")
    return world


def interval(world, node):
    """How often the agent of a node is to report."""
    spec = world.found(resources.NODE_METRICS, node)["spec"]
    return spec["metricCollectPolicy"]["reportIntervalSeconds"]


def reported_at(world, node):
    status = world.found(resources.NODE_METRICS, node)["status"]
    return durations.timestamp(status["updateTime"])


async def fetched(process, path):
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{process.app.health_url}{path}") as answer,
    ):
        return await answer.text()


async def test_from_the_configuration_of_the_cluster_to_an_eviction(crowded):
    world = crowded
    await world.colocation(metricReportIntervalSeconds=3600)
    await world.until(lambda: interval(world, "a") == interval(world, "b") == 3600, "both follow")
    await world.pass_time(40)
    descheduler = await descheduling(world)
    rounds = descheduler.app.rounds
    await world.until(lambda: rounds.last.plan, "a round has run")
    await world.pass_time(20)
    assert rounds.last.plan.moves == (), "reports that are old move nothing"
    since = reported_at(world, "a")

    # The administrator changes one ConfigMap: NodeSLOs, NodeMetrics and agents follow.
    text = json.dumps({"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60}})
    path = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{names.CONFIG_MAP_SLO}"
    async with world.flowing():
        await world.api.patch(path, {"data": {"resource-threshold-config": text}})
    await world.colocation(metricReportIntervalSeconds=5)

    def strategy(node):
        found = world.found(resources.NODE_SLOS, node) or {"spec": {}}
        return found["spec"].get("resourceUsedThresholdWithBE", {})

    await world.until(
        lambda: strategy("a").get("cpuSuppressThresholdPercent") == 60, "the NodeSLO follows"
    )
    await world.until(lambda: reported_at(world, "a") > since, "the agent reports again")
    await world.until(lambda: world.used("a") >= 12_000, "the report shows the load")

    # Four pods use 12 of 16 cores; one less leaves 57 %.
    jobs = await world.until(
        lambda: world.plane.objects.list(resources.POD_MIGRATION_JOBS).items, "a job is created"
    )
    assert jobs[0]["metadata"]["annotations"][names.ANNOTATION_EVICT_TRIGGER] == "LowNodeLoad"
    assert jobs[0]["metadata"]["annotations"][names.ANNOTATION_MIGRATION_TARGET] == "b"
    await world.until(lambda: len(placed(world, "b")) == 1, "the pod runs on the other node", 180)
    (moved,) = placed(world, "b")
    world.hosts.fix(moved["metadata"]["uid"], USE)
    await world.until(lambda: world.used("a") < 9_600, "the node is below its threshold")

    def done():
        found = world.plane.objects.list(resources.POD_MIGRATION_JOBS).items
        return found and all(one["status"].get("phase") == "Succeeded" for one in found)

    await world.until(done, "the job has succeeded")
    await world.pass_time(60)
    assert len(placed(world, "a")) == REPLICAS - 1, "nothing moves once no node is hot"
    reservations = world.plane.objects.list(resources.RESERVATIONS).items
    assert [one["status"]["phase"] for one in reservations] == ["Succeeded"]


async def test_what_scrapers_see_of_descheduling(crowded):
    """Rounds, moves, evictions and jobs stand in the metrics of the process that did them."""
    world = crowded
    descheduler = await descheduling(world)
    await world.until(lambda: placed(world, "b"), "a pod has moved", 180)
    registry = descheduler.app.registry

    def evicted():
        labels = {"result": "success", "strategy": "LowNodeLoad"}
        labels |= {"namespace": "default", "node": "a"}
        return registry.value("koord_descheduler_pods_evicted_total", labels)

    await world.until(evicted, "the eviction is counted")
    told = await fetched(descheduler, "/metrics")
    moves = 'koord_descheduler_moves_total{plugin="LowNodeLoad",profile="even",result="created"}'
    for name in (
        moves,
        'koord_descheduler_rounds_total{result="planned"}',
        "koord_descheduler_round_seconds_bucket",
        'koord_descheduler_load_spread_ratio{when="before"}',
        "koord_migration_jobs",
        "koord_descheduler_last_round_timestamp_seconds",
    ):
        assert name in told, name
    page = json.loads(await fetched(descheduler, "/debug/rounds/last"))
    assert page["result"] == "planned"
