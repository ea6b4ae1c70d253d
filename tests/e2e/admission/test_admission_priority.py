"""The example that says who may use which priority, and classes that never preempt."""

import pytest
import pytest_asyncio
import yaml

from api import resources
from tests.planes.install import chart, plain, policed

EXAMPLE = chart.DEPLOY / "examples" / "priority-classes.yaml"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(loop_scope="session")
async def example(api):
    """The example, with the classes of the chart and a namespace of either sort."""
    classes = plain.of_kind(plain.documents("beside"), "PriorityClass")
    for one in classes:
        await api.call("POST", CLASSES, one)
    await policed.namespace(api, "online", **{"koord.sh/online": "true"})
    await policed.namespace(api, "others")
    policies = plain.of_kind([*yaml.safe_load_all(EXAMPLE.read_text())], *policed.POLICIES)
    async with policed.applied(api, policies):
        yield {name: await policed.tenant(api, name, "editor") for name in ("online", "others")}
    for name in ("online", "others"):
        await api.delete(resources.NAMESPACES.path(name=name))
    for one in classes:
        await api.call("DELETE", f"{CLASSES}/{one['metadata']['name']}")


async def test_only_namespaces_of_online_services_have_pods_that_preempt(example):
    statuses = {}
    for where, user in example.items():
        for name in ("koord-prod", "koord-mid", "koord-batch", "koord-free", ""):
            spec = {"containers": [{"name": "c", "image": "i"}]}
            spec |= {"priorityClassName": name} if name else {}
            path = resources.PODS.path(where)
            body = {"metadata": {"name": "p"}, "spec": spec}
            answer = await user.call("POST", path, body, query={"dryRun": "All"})
            statuses[where, name] = answer.status
            if answer.status == 201:
                free = "Never" if name in ("koord-batch", "koord-free") else "PreemptLowerPriority"
                assert answer.body["spec"]["preemptionPolicy"] == free
    refused = {key for key, status in statuses.items() if status == 403}
    assert refused == {("others", "koord-prod"), ("others", "koord-mid")}
    assert set(statuses.values()) == {201, 403}
