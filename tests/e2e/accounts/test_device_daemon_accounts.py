"""What the device daemon may write, by its own account on a real API server."""

import json

import pytest
import pytest_asyncio

from agent.device_daemon import node_labels, output
from api import names, resources
from kube.client import access, client
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.install import policed
from tests.planes.processes import accounts

ACCOUNT = "koord-device-daemon"
NODE, OTHER = "with-devices", "another"
COUNT = names.LABEL_DEVICE_COUNTS["npu"]
LABELS = {names.LABEL_GPU_VENDOR: "huawei", names.LABEL_GPU_MODEL: "Ascend-910B3", COUNT: "8"}
ANNOTATION = json.dumps({"npu": [{"bus": "0000:3b:00.0"}]})

pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(real_plane):
    """Accounts and policies of the chart, two Nodes, and a pod of the daemon on one of them."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    values = ("deviceDaemon.enabled=true",)
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, "beside", *values) as it,
    ):
        for name in (NODE, OTHER):
            body = {"metadata": {"name": name, "labels": {"zone": "a"}}}
            await api.call("POST", resources.NODES.path(), body)
        pods = resources.PODS.path(policed.NAMESPACE)
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "nodeName": NODE,
            "serviceAccountName": ACCOUNT,
            "terminationGracePeriodSeconds": 0,
        }
        await api.call("POST", pods, {"metadata": {"name": "devices"}, "spec": spec})
        yield it
        await api.call("DELETE", f"{pods}/devices", query={"gracePeriodSeconds": "0"})
        for name in (NODE, OTHER):
            await api.call("DELETE", resources.NODES.path(name=name))


async def test_it_labels_its_node_and_takes_its_labels_away(installed, real_plane):
    token = await accounts.token(installed.api, policed.NAMESPACE, ACCOUNT, pod="devices")
    found = access.Access(real_plane.server, real_plane.ca, access.StaticToken(token))
    clock = clocks.SystemClock()
    path = resources.NODES.path(name=NODE)
    async with client.Client(found, clock=clock, user_agent=node_labels.MANAGER) as kube:
        daemon = node_labels.NodeLabels(kube, NODE)
        await daemon.write(LABELS, ANNOTATION)
        assert daemon.problem is None
        metadata = (await installed.api.get(path))["metadata"]
        assert metadata["labels"].items() >= {**LABELS, "zone": "a"}.items()
        assert metadata["annotations"][names.ANNOTATION_DEVICES] == ANNOTATION
        change = {"metadata": {"labels": {names.LABEL_GPU_MODEL: "another"}}}
        query = {"fieldManager": "koord-manager"}
        await installed.api.call("PATCH", path, change, kind=raw.MERGE_PATCH, query=query)
        await daemon.write(LABELS, ANNOTATION)
        assert daemon.problem is None
        metadata = (await installed.api.get(path))["metadata"]
        assert metadata["labels"][names.LABEL_GPU_MODEL] == "another"
        await daemon.write({}, "")
        assert daemon.problem is None
    metadata = (await installed.api.get(path))["metadata"]
    assert set(metadata["labels"]) & set(output.LABELS) == {names.LABEL_GPU_MODEL}
    assert metadata["labels"]["zone"] == "a"
    assert names.ANNOTATION_DEVICES not in metadata.get("annotations", {})


REFUSED = {
    "another label": (NODE, {"metadata": {"labels": {"zone": "b"}}}),
    "a label gone": (NODE, {"metadata": {"labels": {"zone": None}}}),
    "another annotation": (
        NODE,
        {"metadata": {"annotations": {names.ANNOTATION_STRATEGIES: "{}"}}},
    ),
    "spec": (NODE, {"spec": {"unschedulable": True}}),
    "finalizer": (NODE, {"metadata": {"finalizers": ["example.com/stay"]}}),
    "another node": (OTHER, {"metadata": {"labels": {COUNT: "8"}}}),
}


@pytest.mark.parametrize(("name", "change"), REFUSED.values(), ids=REFUSED)
async def test_it_writes_nothing_else(installed, name, change):
    user = await installed.user(ACCOUNT, pod="devices")
    path = resources.NODES.path(name=name)
    answer = await user.call("PATCH", path, change, kind=raw.MERGE_PATCH)
    assert answer.status == 422, answer.message
    assert "device daemon" in answer.message


async def test_a_node_that_is_not_there_is_not_made(installed):
    user = await installed.user(ACCOUNT, pod="devices")
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gone", "labels": {COUNT: "1"}},
    }
    query = {"fieldManager": ACCOUNT}
    path = resources.NODES.path(name="gone")
    answer = await user.call("PATCH", path, body, kind=raw.APPLY_PATCH, query=query)
    assert answer.status == 403
    answer = await user.call("GET", resources.NODES.path(name=NODE))
    assert answer.status == 403
