"""On a real API server, kinds say in conditions and events what became of them."""

import contextlib
import json

import pytest
import pytest_asyncio

from api import names, resources
from extender import app as extenders
from extender.settings import Settings as ExtenderSettings
from kube.client import access
from manager import app, settings
from process.runtime.clock import SystemClock
from tests.planes import definitions, raw

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
SPACE, NODE = "told", "told-n1"
PROFILE = resources.COLOCATION_PROFILES
QUOTAS = resources.ELASTIC_QUOTA_PROFILES
NETWORK = resources.CLUSTER_NETWORK_TOPOLOGIES
TOPOLOGY = resources.NODE_RESOURCE_TOPOLOGIES
EXPLANATION = resources.SCHEDULE_EXPLANATIONS
LAYERS = [
    {"topologyLayer": "BlockLayer", "labelKey": ["block"]},
    {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
]
ANYWHERE = {"port": 0, "linger_seconds": 0}


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


def path(resource, name=""):
    return resource.path(SPACE if resource.namespaced else "", name)


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """A namespace and one node; everything is gone again afterwards."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api)
        await api.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": SPACE}})
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE, "labels": {"a": "b"}}})
        try:
            yield api
        finally:
            for resource, name in (
                (PROFILE, "told"), (QUOTAS, "told"), (NETWORK, "default"), (TOPOLOGY, NODE),
                (EXPLANATION, "told"), (resources.ELASTIC_QUOTAS, "told-root"),
                (resources.NODES, NODE),
            ):  # fmt: skip
                await api.call("DELETE", path(resource, name))


@contextlib.asynccontextmanager
async def acting(plane):
    """The manager and the extender, which act on these kinds."""
    chosen = settings.Settings(
        config_namespace=SPACE,
        controllers=("profilestatus", "quotaprofile", "topologystatus", "nodetopology"),
        leader_election=settings.LeaderElectionSettings(enabled=False),
        health=settings.HealthSettings(host="127.0.0.1", port=0),
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    asked = ExtenderSettings(server=ANYWHERE, health=ANYWHERE)
    async with (
        app.running(chosen, access=who, clock=SystemClock()),
        extenders.running(asked, access=who, clock=SystemClock()),
    ):
        yield


async def create(api, resource, name, **body):
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    await api.post(path(resource), {**kind, "metadata": {"name": name}, **body})


async def says(api, resource, name, kind, reason):
    """Wait until a condition has a reason and an event tells it; return the object."""

    def stands(found):
        facts = (found or {}).get("status", {}).get("conditions") or ()
        if resource is TOPOLOGY and found:
            notes = found["metadata"].get("annotations") or {}
            facts = json.loads(notes.get(names.ANNOTATION_CONDITIONS, "[]"))
        return any((one["type"], one["reason"]) == (kind, reason) for one in facts)

    found = await api.wait_until(path(resource, name), stands, raw.PATIENCE)
    space = SPACE if resource.namespaced else "default"

    async def told():
        events = await api.get(resources.EVENTS.path(space))
        return any(
            (one["regarding"]["kind"], one["regarding"]["name"], one["reason"])
            == (resource.kind, name, reason)
            for one in events["items"]
        )

    await raw.eventually(told)
    return found


async def test_conditions_and_events_say_what_became_of_an_object(real_plane, cluster) -> None:
    api = cluster
    async with acting(real_plane):
        await create(api, PROFILE, "told", spec={"priorityClassName": "not-there"})
        found = await says(api, PROFILE, "told", "Ready", "PriorityClassMissing")
        (ready,) = [one for one in found["status"]["conditions"] if one["type"] == "Ready"]
        assert ready["observedGeneration"] == found["metadata"]["generation"] == 1
        spec = {"quotaName": "told-root", "nodeSelector": {"matchLabels": {"a": "b"}}}
        await create(api, QUOTAS, "told", spec=spec)
        found = await says(api, QUOTAS, "told", "Ready", "QuotaKept")
        assert found["metadata"]["generation"] == 1, "the status is a subresource"
        assert found["status"]["nodes"] == 1
        await create(api, NETWORK, "default", spec={"networkTopologySpec": LAYERS})
        await says(api, NETWORK, "default", "Accepted", "LayersAccepted")
        await create(api, TOPOLOGY, NODE, topologyPolicies=["None"], zones=[])
        await says(api, TOPOLOGY, NODE, "Accepted", "ZonesEmpty")
        await create(api, EXPLANATION, "told", spec={"questionObjectKey": f"{SPACE}/gone"})
        await says(api, EXPLANATION, "told", "Current", "PodUnknown")
