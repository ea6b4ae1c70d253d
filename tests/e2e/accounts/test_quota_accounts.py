"""What the manager may write on pods for elastic quota: gates, its condition, a nominated node."""

import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes.install import policed

USERS = "quota-users"
PODS = resources.PODS.path(USERS)
FOLLOWS = "manager.settings.featureGates.ColocationProfileController=true"
OTHER = "example.com/wait"
CONDITION = {"type": names.CONDITION_QUOTA, "status": "False", "reason": "x", "message": "x"}


pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(
    scope="module", loop_scope="session", params=[(), (FOLLOWS,)], ids=["default", "follows"]
)
async def standing(request, real_plane):
    """What the chart says about accounts and policies, and whether pods follow profiles."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, "beside", *request.param) as it,
    ):
        await policed.namespace(api, USERS)
        await policed.account(api, policed.NAMESPACE, "koord-manager")
        yield it, bool(request.param)


@pytest.fixture
def installed(standing):
    return standing[0]


@pytest.fixture
def follows(standing):
    return standing[1]


@pytest_asyncio.fixture(loop_scope="session")
async def path(installed):
    """A pod behind two gates."""
    body = {
        "metadata": {"name": "waits", "labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGates": [{"name": names.GATE_QUOTA}, {"name": OTHER}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    await installed.api.must("POST", PODS, body)
    yield f"{PODS}/waits"
    await installed.api.call("DELETE", f"{PODS}/waits", query={"gracePeriodSeconds": "0"})


def gate(name):
    return {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}


async def test_the_manager_opens_its_gate_and_says_what_a_pod_waits_for(installed, path):
    user = await installed.user("koord-manager")
    told = {"status": {"conditions": [CONDITION], "nominatedNodeName": "n1"}}
    found = await user.must("PATCH", f"{path}/status", told, kind=raw.STRATEGIC_PATCH)
    found = await user.must("PATCH", path, gate(names.GATE_QUOTA), kind=raw.STRATEGIC_PATCH)
    assert found["spec"]["schedulingGates"] == [{"name": OTHER}]
    taken = {"status": {"conditions": [{**CONDITION, "status": "True"}], "nominatedNodeName": None}}
    found = await user.must("PATCH", f"{path}/status", taken, kind=raw.STRATEGIC_PATCH)
    assert "nominatedNodeName" not in found["status"]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        pytest.param("", gate(OTHER), id="gate-of-others"),
        pytest.param("/status", {"status": {"phase": "Failed"}}, id="phase"),
        pytest.param(
            "/status",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            id="condition-of-others",
        ),
    ],
)
async def test_the_manager_writes_nothing_else_of_a_pod(installed, path, part, change):
    user = await installed.user("koord-manager")
    answer = await user.call("PATCH", f"{path}{part}", change, kind=raw.STRATEGIC_PATCH)
    assert answer.status == 422, answer.message
    assert "the manager may" in answer.message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"metadata": {"labels": {"a": "c"}}}, id="label"),
        pytest.param({"metadata": {"annotations": {"a": "c"}}}, id="annotation"),
        pytest.param({"spec": {"nodeSelector": {"a": "b"}}}, id="node-selector"),
    ],
)
async def test_labels_and_specs_only_where_pods_follow_profiles(installed, path, follows, change):
    user = await installed.user("koord-manager")
    answer = await user.call("PATCH", path, change, kind=raw.STRATEGIC_PATCH)
    assert (answer.status < 300) is follows, answer.message
