"""The status of quotas on a real API server: three groups, an illustrated status, a conflict."""

import contextlib

import pytest
import pytest_asyncio

from api import names, resources
from kube.client import access
from manager import app, settings
from process.runtime.clock import SystemClock
from tests import builders
from tests.planes import definitions, raw
from tests.planes.install import policed

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
HOME, TEAM, NODE = "koordinator-system", "team-a", "quota-status-n1"
PLAIN, SHORT = resources.ELASTIC_QUOTAS, resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP
SHORTEST = resources.ELASTIC_QUOTAS_OF_SHORT_GROUP
PATIENCE = 30.0
ILLUSTRATED = {
    "allocatedQuota": {"cpu": "150", "memory": "120Gi", "pods": "100"},
    "used": {"cpu": "120", "memory": "100Gi", "pods": "80"},
    "podAllocatedQuota": {"cpu": "120", "memory": "100Gi", "pods": "80"},
}


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """A node of 500 cores, a team and our kinds; gone again afterwards."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api)
        for space in (HOME, TEAM):
            await policed.namespace(api, space)
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE}})
        amounts = {"cpu": "500", "memory": "500Gi", "pods": "500"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await api.patch(resources.NODES.path(name=NODE, subresource="status"), status)
        try:
            yield api
        finally:
            at_once = {"gracePeriodSeconds": 0}
            await api.call("DELETE", resources.PODS.path(TEAM, "p"), at_once)
            reserved = (PLAIN.path(HOME, name) for name in names.RESERVED_QUOTAS)
            quotas = (one.path(TEAM, name) for one, name in QUOTAS)
            for path in (*quotas, *reserved, resources.NODES.path(name=NODE)):
                await api.call("DELETE", path)


QUOTAS = ((SHORT, "team-a-quota"), (SHORTEST, "other"), (PLAIN, "plain"), (PLAIN, "other"))


async def apply(api, resource, name, spec, status=None, annotations=None):
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
        **({"status": status} if status else {}),
    }
    await api.post(resource.path(TEAM), body)


@contextlib.asynccontextmanager
async def managing(plane):
    chosen = settings.Settings(
        controllers=("quotastatus", "quotadefaults"),
        config_namespace=HOME,
        leader_election=settings.LeaderElectionSettings(namespace=HOME, name="quota-status"),
        health=settings.HealthSettings(host="127.0.0.1", port=0),
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    async with app.running(chosen, access=who, clock=SystemClock()) as running:
        yield running


def used(quota):
    return ((quota or {}).get("status") or {}).get("used")


async def test_computed_figures_take_the_place_of_an_illustrated_status(
    real_plane, cluster
) -> None:
    spec = {
        "hard": {"cpu": "100", "memory": "100Gi", "pods": "100"},
        "min": {"cpu": "50", "memory": "50Gi", "pods": "50"},
        "max": {"cpu": "200", "memory": "150Gi", "pods": "150"},
        "priority": 50,
    }
    await apply(cluster, SHORT, "team-a-quota", spec, ILLUSTRATED)
    plain = {"min": {"cpu": "1"}, "max": {"cpu": "9"}}
    await apply(cluster, PLAIN, "plain", plain)
    await apply(cluster, PLAIN, "other", plain)
    await apply(cluster, SHORTEST, "other", plain)
    pod = builders.a_pod("p", TEAM, cpu="60", memory="1Gi", node=NODE)
    # Two short quotas stand in this namespace, made within one second.
    pod["metadata"] = {"name": "p", "labels": {names.LABEL_QUOTA_NAME: "team-a-quota"}}
    pod.pop("status")
    await cluster.post(resources.PODS.path(TEAM), pod)
    path = SHORT.path(TEAM, "team-a-quota")
    async with managing(real_plane):
        figures = {"cpu": "60", "memory": "1Gi", "pods": "1"}
        found = await cluster.wait_until(path, lambda one: used(one) == figures, PATIENCE)
        assert found["status"]["podAllocatedQuota"] == figures
        assert found["status"]["allocatedQuota"]["cpu"] == "60"
        assert found["spec"] == spec, "what its author wrote is as it was"
        assert {one["status"] for one in found["status"]["conditions"]} == {"True"}
        other = await cluster.wait_until(
            PLAIN.path(TEAM, "plain"), lambda one: used(one) is not None, PATIENCE
        )
        notes = other["metadata"]["annotations"]
        assert notes[names.ANNOTATION_QUOTA_RUNTIME] == '{"cpu":"0"}'
        assert notes[names.ANNOTATION_QUOTA_GUARANTEED] == '{"cpu":"1"}'
        reserved = PLAIN.path(HOME, names.ROOT_QUOTA)
        root = await cluster.wait_until(reserved, lambda one: used(one) is not None, PATIENCE)
        assert used(root)["cpu"] == "60"
        both = [
            await cluster.wait_until(one.path(TEAM, "other"), _judged, PATIENCE)
            for one in (SHORTEST, PLAIN)
        ]
        states = [{one["reason"] for one in each["status"]["conditions"]} for each in both]
        assert {"NameConflict"} in states
        version = found["metadata"]["resourceVersion"]
        await cluster.call("DELETE", resources.PODS.path(TEAM, "p"), {"gracePeriodSeconds": 0})
        nothing = {"cpu": "0", "memory": "0", "pods": "0"}
        found = await cluster.wait_until(path, lambda one: used(one) == nothing, PATIENCE)
        assert found["metadata"]["resourceVersion"] != version
    async with managing(real_plane) as again:
        # A second leader finds everything as it is to be.
        await raw.eventually(lambda: _settled(again), 30)
        same = await cluster.get(path)
        assert same["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


def _judged(quota):
    return bool(((quota or {}).get("status") or {}).get("conditions"))


async def _settled(running):
    counted = running.registry.value(
        "koord_controller_reconciles_total", {"controller": "quotastatus", "result": "unchanged"}
    )
    return (counted or 0) >= len(QUOTAS)
