"""What the manager may write on PodGroups: their status, of which the CRD makes no subresource."""

import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import definitions, raw
from tests.planes.install import policed

USERS = "gang-users"
KIND = resources.POD_GROUPS
PATH = KIND.path(USERS, "group")

pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(real_plane):
    """What the chart says about accounts and policies, and a PodGroup."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, "beside") as it,
    ):
        await definitions.serve(api, "PodGroup")
        await policed.namespace(api, USERS)
        await policed.account(api, policed.NAMESPACE, "koord-manager")
        body = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": "group"}}
        await api.post(KIND.path(USERS), body | {"spec": {"minMember": 2}})
        yield it
        await api.call("DELETE", PATH)


async def test_the_manager_writes_the_status_of_a_pod_group(installed):
    user = await installed.user("koord-manager")
    condition = {"type": "Quorum", "status": "True", "reason": "MinimumMet", "message": ""}
    status = {"phase": "Running", "running": 2, "conditions": [condition]}
    found = await user.patch(PATH, {"status": status})
    assert found["status"]["phase"] == "Running"
    assert found["status"]["conditions"] == [condition]
    assert found["spec"] == {"minMember": 2}


FORGED = {
    "its minimum": {"spec": {"minMember": 1}},
    "a label": {"metadata": {"labels": {"example.com/a": "x"}}},
    "the annotation of repair": {"metadata": {"annotations": {names.ANNOTATION_GANG_REPAIR: "x"}}},
    "an owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
        }
    },
    "a finalizer": {"metadata": {"finalizers": ["example.com/stays"]}},
    "another part": {"extra": {"a": 1}},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_it_writes_nothing_else_of_a_pod_group(installed, change):
    user = await installed.user("koord-manager")
    answer = await user.call("PATCH", PATH, change, kind=raw.MERGE_PATCH)
    assert answer.status == 422, answer.message
    assert "the manager may" in answer.message


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        pytest.param("DELETE", PATH, None, id="delete"),
        pytest.param("POST", KIND.path(USERS), {"metadata": {"name": "more"}}, id="create"),
        pytest.param(
            "PATCH", resources.NATIVE_POD_GROUPS[0].path(USERS, "x"), {"spec": {}}, id="native"
        ),
    ],
)
async def test_pod_groups_are_made_and_removed_by_others(installed, verb, path, body):
    user = await installed.user("koord-manager")
    kind = raw.MERGE_PATCH if verb == "PATCH" else "application/json"
    answer = await user.call(verb, path, body, kind=kind)
    assert answer.status == 403, answer.message
