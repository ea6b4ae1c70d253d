"""Below Kubernetes 1.30 there are no admission policies: the webhook stands in for one of them.

Run on whatever release is under test, without the policies of the chart.
"""

import pytest
import pytest_asyncio

from api import names, resources
from api.koordinator.metadata import protected_metadata
from tests.planes import raw
from tests.planes.admission import admitting
from tests.planes.install import policed

USERS = "older-test"
# It is there, lest the controllers collect its pods.
NODE = "older-node"
PODS = resources.PODS.path(USERS)
SCHEDULER = f"system:serviceaccount:{USERS}:scheduler"
KEYS = tuple(
    key
    for key in (
        *protected_metadata.NEVER_CREATED,
        *protected_metadata.RECORDS,
        *protected_metadata.REQUESTS,
    )
    if key != names.ANNOTATION_RESERVE_POD
)


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(real_plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("older")
    flags = (
        '--feature_gates={"ProtectedPodFields": true}',
        f'--protection.accounts=["{SCHEDULER}"]',
    )
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        admitting.standing(real_plane, api, folder, *flags) as standing,
    ):
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE}})
        await policed.namespace(api, USERS)
        standing.tenant = await policed.tenant(api, USERS, "tenant", parts=True)
        standing.scheduler = await policed.tenant(api, USERS, "scheduler", parts=True)
        for name, spec in (("bound", {"nodeName": NODE}), ("waiting", {})):
            body = {"metadata": {"name": name}}
            body["spec"] = {"containers": [{"name": "c", "image": "i"}], **spec}
            body["spec"]["terminationGracePeriodSeconds"] = 0
            await api.call("POST", PODS, body)
        try:
            yield standing
        finally:
            await api.delete(resources.NODES.path(name=NODE))
            await api.delete(resources.NAMESPACES.path(name=USERS))


async def tried(user, route, key):
    metadata = {"annotations": {key: "{}"}}
    if route.endswith(("binding", "bindings")):
        metadata["name"] = "waiting"
        body = {"metadata": metadata, "target": {"kind": "Node", "name": NODE}}
        return await user.call("POST", route, body, query={"dryRun": "All"})
    body = {"metadata": metadata}
    return await user.call("PATCH", route, body, kind=raw.MERGE_PATCH, query={"dryRun": "All"})


ROUTES = {
    "pod": f"{PODS}/bound",
    "status": f"{PODS}/bound/status",
    "binding": f"{PODS}/waiting/binding",
    "bindings": f"/api/v1/namespaces/{USERS}/bindings",
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
async def test_the_webhook_refuses_what_the_policy_would(stand, route):
    await stand.works()
    for key in KEYS:
        answer = await tried(stand.tenant, route, key)
        assert answer.status == 403, (key, answer.message)
        assert "only schedulers and admission may write" in answer.message
        assert (await tried(stand.scheduler, route, key)).status in (200, 201), key


async def test_the_status_of_a_pod_is_asked_about_only_where_its_marks_change(stand):
    await stand.works()
    before = await stand.webhook.figure("koord_webhook_reviews_total")
    path = ROUTES["status"]
    for phase in ("Running", "Pending"):
        await stand.tenant.patch(path, {"status": {"phase": phase}})
    assert await stand.webhook.figure("koord_webhook_reviews_total") == before
    await tried(stand.tenant, path, names.PLACEMENT)
    assert await stand.webhook.figure("koord_webhook_reviews_total") == before + 1
