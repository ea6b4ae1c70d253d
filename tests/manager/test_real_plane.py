"""The manager on a real API server: what only that one decides about field ownership and status."""

import contextlib
import json

import pytest
import pytest_asyncio

from agent.report import scorecard
from api import names, resources
from api.wire import durations
from kube.client import access
from manager import app, settings
from manager.reconcile import node_objects
from process.runtime.clock import SystemClock
from tests.planes import definitions, raw

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
HOME = "koordinator-system"
NODE = "manager-n1"
CONFIG = resources.CONFIG_MAPS.path(HOME, "config")
SLO = resources.NODE_SLOS.path(name=NODE)


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """Our kinds, a namespace of our own and one node, gone again afterwards."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api, "NodeMetric", "NodeSLO")
        await api.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": HOME}})
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE}})
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await api.patch(resources.NODES.path(name=NODE, subresource="status"), status)
        try:
            yield api
        finally:
            for path in (
                resources.NODES.path(name=NODE),
                SLO,
                resources.NODE_METRICS.path(name=NODE),
                resources.NODE_SLOS.path(name="production-node-slo"),
                CONFIG,
            ):
                await api.call("DELETE", path)


@contextlib.asynccontextmanager
async def managing(plane):
    chosen = settings.Settings(
        config_namespace=HOME,
        config_name="config",
        leader_election=settings.LeaderElectionSettings(namespace=HOME),
        health=settings.HealthSettings(host="127.0.0.1", port=0),
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    async with app.running(chosen, access=who, clock=SystemClock()) as running:
        yield running


async def configure(api, **sections):
    data = {key.replace("_", "-"): json.dumps(value) for key, value in sections.items()}
    await api.call("DELETE", CONFIG)
    await api.post(resources.CONFIG_MAPS.path(HOME), {"metadata": {"name": "config"}, "data": data})


def a_day():
    """What an agent did on one day."""
    day = scorecard.Day("2026-07-01")
    day.tick(scorecard.Second(60.0, over=True, bound=True, held_cores=2.0, enforced=True))
    about = scorecard.About("memory-evict", "default", "BE")
    day.evict(about, scorecard.EVICTED, "uid", online=False)
    return day


async def test_lent_capacity_reaches_the_node(real_plane, cluster) -> None:
    await configure(cluster, colocation_config={"enable": True})
    metric = resources.NODE_METRICS.path(name=NODE)
    usage = {"resources": {"cpu": "3", "memory": "1Gi"}}
    async with managing(real_plane):
        await cluster.wait_until(metric, lambda found: found is not None)
        status = {
            "updateTime": durations.moment(SystemClock().now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": usage},
            "scorecard": a_day().as_status(),
        }
        await cluster.patch(f"{metric}/status", {"status": status})
        # Every field of it is in the schema, so none is pruned.
        assert (await cluster.get(metric))["status"]["scorecard"] == a_day().as_status()
        node = await cluster.wait_until(
            resources.NODES.path(name=NODE),
            lambda found: names.BATCH_CPU in found["status"]["allocatable"],
        )
        assert node["status"]["allocatable"][names.BATCH_CPU] == "35400"
        assert node["status"]["capacity"][names.BATCH_CPU] == "35400"
        assert names.ANNOTATION_ORIGIN_ALLOCATABLE in node["metadata"]["annotations"]
        await configure(cluster, colocation_config={"enable": False})
        await cluster.wait_until(
            resources.NODES.path(name=NODE),
            lambda found: names.BATCH_CPU not in found["status"]["allocatable"],
        )


async def test_fields_of_people_stay_theirs(real_plane, cluster) -> None:
    classes = {"beClass": {"networkQOS": {"enable": True, "ingressLimit": "10%"}}}
    async with managing(real_plane):
        await cluster.wait_until(SLO, lambda found: found is not None)
        body = {
            "apiVersion": resources.NODE_SLOS.api_version,
            "kind": "NodeSLO",
            "metadata": {"name": NODE},
            "spec": {"cpuBurstStrategy": {"policy": "auto"}},
        }
        await cluster.patch(SLO, body, raw.APPLY_PATCH, fieldManager="kubectl", force="true")
        suppress = {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 50}}
        await cluster.patch(SLO, {"spec": suppress}, fieldManager="kubectl-edit")
        await configure(
            cluster,
            cpu_burst_config={"clusterStrategy": {"policy": "none", "cpuBurstPercent": 500}},
            resource_qos_config={"clusterStrategy": classes},
        )
        slo = await cluster.wait_until(
            SLO, lambda found: found["spec"]["cpuBurstStrategy"]["cpuBurstPercent"] == 500
        )
        assert slo["spec"]["cpuBurstStrategy"]["policy"] == "auto"
        assert slo["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 50
        network = slo["spec"]["resourceQOSStrategy"]["beClass"]["networkQOS"]
        assert (network["enable"], network["ingressLimit"]) == (True, "10%")
        await configure(cluster)
        slo = await cluster.wait_until(
            SLO, lambda found: not found["spec"].get("resourceQOSStrategy")
        )
        assert slo["spec"]["cpuBurstStrategy"]["policy"] == "auto"
        await cluster.delete(resources.NODES.path(name=NODE))
        await cluster.wait_until(SLO, lambda found: found is None)


async def test_object_of_no_node_is_told(real_plane, cluster) -> None:
    body = {
        "apiVersion": resources.NODE_SLOS.api_version,
        "kind": "NodeSLO",
        "metadata": {"name": "production-node-slo"},
        "spec": {},
    }
    await cluster.post(resources.NODE_SLOS.path(), body)
    async with managing(real_plane):
        slo = await cluster.wait_until(
            resources.NODE_SLOS.path(name="production-node-slo"),
            lambda found: (found or {}).get("status", {}).get("conditions"),
        )
        assert slo["status"]["conditions"][0]["reason"] == node_objects.NO_SUCH_NODE


async def test_second_run_writes_nothing(real_plane, cluster) -> None:
    async with managing(real_plane):
        slo = await cluster.wait_until(SLO, lambda found: found is not None)
    async with managing(real_plane) as again:
        await raw.eventually(lambda: reconciled(again))
        assert again.registry.value("koord_manager_writes_total", WRITES) is None
        present = await cluster.get(SLO)
        assert present["metadata"]["resourceVersion"] == slo["metadata"]["resourceVersion"]


WRITES = {"resource": "nodeslos", "write": "apply"}
UNCHANGED = {"controller": "nodeslo", "result": "unchanged"}


async def reconciled(running):
    return running.registry.value("koord_controller_reconciles_total", UNCHANGED)
