"""Recommendations on a real API server: what stands in a status goes on after a restart."""

import contextlib

import pytest
import pytest_asyncio

from api import resources
from api.wire import durations, quantity
from kube.client import access
from manager import app, settings
from manager.recommendation import learned as recommended
from process.runtime.clock import SystemClock
from tests.planes import definitions, raw
from tests.planes.install import policed

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
SPACE, NODE = "advised", "advised-n1"
METRIC = resources.NODE_METRICS.path(name=NODE)
ADVICE = resources.RECOMMENDATIONS.path(SPACE, "advice")
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """A pod on a node without an agent, and somebody who asks what it should request."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api)
        await policed.namespace(api, SPACE)
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE}})
        containers = [{"name": "app", "image": "i"}, {"name": "side", "image": "i"}]
        pod = {"metadata": {"name": "p", "labels": {"app": "advised"}}}
        pod["spec"] = {"nodeName": NODE, "containers": containers}
        await api.post(resources.PODS.path(SPACE), pod)
        await api.post(resources.NODE_METRICS.path(), _object(resources.NODE_METRICS, NODE, {}))
        target = {"type": "podSelector", "podSelector": {"matchLabels": {"app": "advised"}}}
        body = _object(resources.RECOMMENDATIONS, "advice", {"target": target})
        await api.post(resources.RECOMMENDATIONS.path(SPACE), body)
        try:
            yield api
        finally:
            at_once = {"gracePeriodSeconds": 0}
            await api.call("DELETE", resources.PODS.path(SPACE, "p"), at_once)
            for path in (ADVICE, METRIC, resources.NODES.path(name=NODE)):
                await api.call("DELETE", path)


def _object(resource, name, spec):
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": {"name": name}, "spec": spec}


@contextlib.asynccontextmanager
async def managing(plane):
    chosen = settings.Settings(
        config_namespace=SPACE,
        controllers=("recommendation",),
        recommendation=settings.RecommendationSettings(period_seconds=0.5),
        leader_election=settings.LeaderElectionSettings(enabled=False),
        health=settings.HealthSettings(host="127.0.0.1", port=0),
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    async with app.running(chosen, access=who, clock=SystemClock()) as running:
        yield running


async def report(api, minute, cpu):
    used = {"app": (cpu, "1Gi"), "side": ("100m", "64Mi")}
    containers = [
        {"name": name, "usage": {"cpu": cores, "memory": size}}
        for name, (cores, size) in used.items()
    ]
    pods = [{"podRef": {"namespace": SPACE, "name": "p"}, "containers": containers}]
    moment = durations.moment(SystemClock().now() - 3600 + 60 * minute)
    await api.patch(f"{METRIC}/status", {"status": {"updateTime": moment, "podMetrics": pods}})


def counted(found):
    text = (found.get("status") or {}).get("checkpoint")
    return recommended.unpacked(text)["containers"]["app"][2] if text else 0


async def test_what_was_learned_outlives_the_manager(real_plane, cluster):
    async with managing(real_plane):
        await cluster.wait_until(ADVICE, lambda found: "conditions" in found.get("status", {}))
        await report(cluster, 1, "2")
        found = await cluster.wait_until(ADVICE, lambda found: counted(found) == 1, PATIENCE)
    conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert conditions["NoObjectsMatched"] == "False"
    assert conditions["LowConfidence"] == "True"
    await report(cluster, 2, "2")
    async with managing(real_plane):
        await cluster.wait_until(ADVICE, lambda found: counted(found) == 2, PATIENCE)
        await report(cluster, 3, "2")
        found = await cluster.wait_until(ADVICE, lambda found: counted(found) == 3, PATIENCE)
    answers = {
        one["containerName"]: quantity.amounts(one["resources"])
        for one in found["status"]["podStatus"]["containerStatuses"]
    }
    assert answers["app"]["cpu"] == pytest.approx(2000, rel=0.06)
    assert answers["app"]["memory"] == pytest.approx(1 << 30, rel=0.06)
    assert answers["side"]["cpu"] == pytest.approx(100, rel=0.08)
    assert durations.timestamp(found["status"]["updateTime"]) > SystemClock().now() - 120
