"""What the admission policies cost a real API server: no warning, and no limit for big objects."""

import contextlib

import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import definitions, raw
from tests.planes.install import policed

USERS = "policy-costs"
NODE = "policy-costs"
PODS, NODES = resources.PODS.path(USERS), resources.NODES.path(name=NODE)
DEVICE = resources.DEVICES.path(name=NODE)
METRIC = resources.NODE_METRICS.path(name=NODE)
DRY = {"dryRun": "All"}
DEVICES = ("agent.devices.enabled=true", "deviceDaemon.enabled=true")
MODES = {
    "beside": DEVICES,
    "in-place": (
        *DEVICES,
        "manager.settings.featureGates.ColocationProfileController=true",
        "webhook.settings.registration.url=https://10.0.0.1:9876/",
    ),
}
# All annotations of an object together have 256 KiB; labels have no limit of their own.
MARKS = {f"example.com/mark-{number:05}": f"value-{number:05}" for number in range(5000)}
IMAGES = [{"names": [f"registry.example.com/image-{n}:v1"], "sizeBytes": n} for n in range(1000)]
AMOUNTS = {f"example.com/resource-{number}": "1" for number in range(500)}
LENT = {names.BATCH_CPU: "1000"}
WIDE = [{"type": "gpu", "minor": n, "id": f"GPU-{n}", "health": True} for n in range(500)]
USED = [{"name": f"pod-{n}", "namespace": USERS, "podUsage": {}} for n in range(1000)]
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=MODES)
async def installed(request, real_plane):
    """The accounts and policies of the chart, and every kind that they name."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api)
        async with policed.standing(api, request.param, *MODES[request.param]) as it:
            yield it


async def test_the_api_server_warns_of_no_expression(installed):
    found = policed.documents(f"scheduler.mode={installed.mode}", *MODES[installed.mode])
    warnings = {}
    for document in found:
        if document["kind"] != policed.POLICIES[0]:
            continue
        path = policed.path_of(document)
        await installed.api.wait_until(path, checked, policed.PATIENCE)
        status = (await installed.api.get(path))["status"]
        for one in status["typeChecking"].get("expressionWarnings", ()):
            warnings[document["metadata"]["name"], one["fieldRef"]] = one["warning"]
    assert warnings == {}


def checked(policy):
    status = (policy or {}).get("status", {})
    return "typeChecking" in status and status.get("observedGeneration", 0) > 0


@contextlib.asynccontextmanager
async def big(api):
    """A Pod and a Node as large as they can be, with an agent, while they are needed."""
    await policed.namespace(api, USERS)
    metadata = {"name": NODE, "annotations": MARKS, "labels": MARKS}
    await api.post(resources.NODES.path(), {"metadata": metadata})
    status = {"images": IMAGES, "capacity": AMOUNTS, "allocatable": AMOUNTS}
    await api.patch(f"{NODES}/status", {"status": status})
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
    there = {"nodeName": NODE, "serviceAccountName": "koord-agent"}
    agents = resources.PODS.path(policed.NAMESPACE)
    await api.post(agents, {"metadata": {"name": NODE}, "spec": spec | there})
    try:
        yield {"metadata": metadata, "spec": spec}
    finally:
        for path in (f"{PODS}/{NODE}", f"{agents}/{NODE}", DEVICE, METRIC):
            await api.call("DELETE", path, query={"gracePeriodSeconds": "0"})
        await api.call("DELETE", NODES)


async def test_objects_of_any_size_stay_below_the_limits_of_a_policy(installed):
    scheduler = "koord-scheduler" if installed.mode == "beside" else "koord-extender"
    async with big(installed.api) as pod:
        tenant = await policed.tenant(installed.api, USERS, "tenant")
        await tenant.post(PODS, pod)
        extender = await installed.user(scheduler)
        await extender.patch(f"{PODS}/{NODE}", noted(names.ANNOTATION_NUDGE), **DRY)
        manager = await installed.user("koord-manager")
        wait = {"type": "koord.sh/QuotaAvailable", "status": "True"}
        waits = {"status": {"conditions": [wait]}}
        await manager.patch(f"{PODS}/{NODE}/status", waits, kind=raw.STRATEGIC_PATCH, **DRY)
        lent = {"status": {"capacity": LENT, "allocatable": LENT}}
        await manager.patch(f"{NODES}/status", lent | noted(names.ANNOTATION_DEVICES_OFFERED))
        agent = await installed.user("koord-agent", pod=NODE)
        await agent.patch(NODES, noted(names.ANNOTATION_STRATEGIES), **DRY)
        refused = await agent.call(
            "PATCH", NODES, noted("example.com/other"), kind=raw.MERGE_PATCH, query=DRY
        )
        assert refused.status == 422
        assert "the agent may write the annotation" in refused.message


async def test_devices_and_metrics_of_any_size_stay_below_them_too(installed):
    async with big(installed.api):
        agent = await installed.user("koord-agent", pod=NODE)
        made = await agent.post(resources.DEVICES.path(), stub(resources.DEVICES, devices=WIDE))
        made["spec"]["devices"][0]["health"] = False
        await agent.put(DEVICE, made)
        manager = await installed.user("koord-manager")
        await manager.patch(DEVICE, {"status": {"deviceAllocations": []}})
        await installed.api.post(resources.NODE_METRICS.path(), stub(resources.NODE_METRICS))
        await agent.patch(f"{METRIC}/status", {"status": {"podsMetric": USED}})


def stub(kind, **spec):
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": NODE}}
    return {**head, "spec": spec}


def noted(key):
    return {"metadata": {"annotations": {key: "true"}}}
