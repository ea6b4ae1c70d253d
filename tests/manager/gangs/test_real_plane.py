"""Gangs on a real API server: the status beside the spec of a PodGroup, and real evictions."""

import contextlib

import pytest
import pytest_asyncio

from api import names, resources
from kube.client import access
from manager import app, settings
from manager.gangs import gang_events, restart_plan
from tests.manager.gangs import ganged
from tests.planes import definitions, raw
from tests.planes.gangs import ganging

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
HOME = "koordinator-system"
USERS = "gang-life"
PODS, GROUP = resources.PODS.path(USERS), resources.POD_GROUPS.path(USERS, "g")
BUDGET = resources.POD_DISRUPTION_BUDGETS.path(USERS, "budget")
COUNT = 3


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """A PodGroup and its pods, which a kubelet that nobody runs would run."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api, "PodGroup", "NodeMetric", "NodeSLO")
        for namespace in (HOME, USERS):
            await api.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": namespace}})
        account = resources.SERVICE_ACCOUNTS.path(USERS, "default")
        await api.call(
            "POST", resources.SERVICE_ACCOUNTS.path(USERS), {"metadata": {"name": "default"}}
        )
        await api.wait_until(account, lambda found: found is not None)
        body = ganged.raw_group(namespace=USERS, least=COUNT, notes={"repair": "restart"})
        body["metadata"] = {"name": "g", "annotations": body["metadata"]["annotations"]}
        body.pop("status")
        await api.post(resources.POD_GROUPS.path(USERS), body)
        for number in range(COUNT):
            await member(api, f"g-{number}")
        try:
            yield api
        finally:
            for number in range(COUNT):
                await gone(api, f"g-{number}")
            for path in (BUDGET, GROUP):
                await api.call("DELETE", path)


async def member(api, name):
    metadata = {"name": name, "labels": {names.LABEL_POD_GROUP: "g", "kept": "yes"}}
    spec = {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}
    await api.post(PODS, {"metadata": metadata, "spec": spec})
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [ready]}
    await api.patch(f"{PODS}/{name}/status", {"status": status})


async def gone(api, name):
    await api.call("DELETE", f"{PODS}/{name}", query={"gracePeriodSeconds": "0"})


@contextlib.asynccontextmanager
async def managing(plane):
    chosen = settings.Settings(
        config_namespace=HOME,
        controllers=("podgroup",),
        leader_election=settings.LeaderElectionSettings(enabled=False),
        health=settings.HealthSettings(host="127.0.0.1", port=0),
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    async with app.running(chosen, access=who, clock=ganging.LaterClock()) as running:
        yield running


def quorum(found):
    marks = (found or {}).get("status", {}).get("conditions", ())
    return next((one["status"] for one in marks if one["type"] == "Quorum"), None)


async def leaving(api):
    listed = (await api.get(PODS))["items"]
    return [p["metadata"]["name"] for p in listed if p["metadata"].get("deletionTimestamp")]


async def reasons(api):
    events = (await api.get(resources.EVENTS.path(USERS)))["items"]
    return {event["reason"] for event in events if event["regarding"]["name"] == "g"}


async def test_a_gang_is_restarted_within_its_disruption_budget(real_plane, cluster) -> None:
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"kept": "yes"}}}
    kind = resources.POD_DISRUPTION_BUDGETS
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "budget"}}
    await cluster.post(kind.path(USERS), body | {"spec": spec})
    await cluster.wait_until(BUDGET, lambda found: (found or {}).get("status"))
    async with managing(real_plane):
        await cluster.wait_until(GROUP, lambda found: quorum(found) == "True")
        found = await cluster.wait_until(GROUP, lambda it: it["status"]["phase"] == "Running")
        assert found["spec"] == {"minMember": COUNT}
        await gone(cluster, "g-1")
        await cluster.wait_until(GROUP, lambda found: quorum(found) == "False")

        async def delayed():
            return gang_events.RESTART_DELAYED in await reasons(cluster)

        await raw.eventually(delayed)
        assert await leaving(cluster) == []
        await cluster.delete(BUDGET)

        async def evicted():
            return await leaving(cluster) == ["g-0", "g-2"]

        await raw.eventually(evicted, restart_plan.LOOK_AGAIN_SECONDS + 30)
        found = await cluster.get(GROUP)
        kinds = [one["type"] for one in found["status"]["conditions"]]
        assert "Restarted" in kinds
