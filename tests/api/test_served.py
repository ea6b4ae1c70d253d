"""The definitions are accepted by an API server, which then keeps and refuses what it should."""

from typing import Any

import pytest
import pytest_asyncio

from api import resources
from api.kubernetes import crds
from tests import builders
from tests.planes import raw as raw_api

pytestmark = pytest.mark.asyncio(loop_scope="session")

BY_KIND = {(item.api_version, item.kind): item for item in resources.CUSTOM}
OWNERS = [{"labelSelector": {"matchLabels": {"a": "b"}}}]
STATUS = {"kind": "application/merge-patch+json"}


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def installed(plane):
    """A control plane with every definition."""
    async with raw_api.connected(plane.server, plane.ca, plane.token) as api:
        for document in crds.definitions():
            name = document["metadata"]["name"]
            if (await api.call("GET", resources.CRDS.path(name=name))).status == 404:
                await api.post(resources.CRDS.path(), document)
        for document in crds.definitions():
            await established(api, document["metadata"]["name"])


@pytest_asyncio.fixture(loop_scope="session")
async def served(installed, api):
    """The API server with every definition installed."""
    return api


async def established(api, name):
    path = resources.CRDS.path()
    async with api.watch(path, fieldSelector=f"metadata.name={name}") as watch:
        await watch.until(
            lambda event: any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in event["object"].get("status", {}).get("conditions") or ()
            )
        )


@pytest_asyncio.fixture(loop_scope="session")
async def namespaces(served, manifests):
    """The namespaces of the documented manifests."""
    for name, raw in manifests.items():
        if name.startswith("support-"):
            await served.call("POST", resources.NAMESPACES.path(), raw)


@pytest.fixture
def rules(request):
    """Skip on a control plane that stores rules and late defaults without applying them."""
    if request.config.getoption("--plane") != "real":
        pytest.skip("needs an API server that evaluates CEL and applies defaults on reading")


def contains(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict):
        return all(key in found and contains(wanted[key], found[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(contains, wanted, found))
    return bool(wanted == found)


async def stored(api, raw):
    """Create an object, write its status where that is separate, read it back, and remove it."""
    resource = BY_KIND[raw["apiVersion"], raw["kind"]]
    namespace, name = raw["metadata"].get("namespace", "default"), raw["metadata"]["name"]
    path = resource.path(namespace, name)
    await api.call("DELETE", path)
    await api.post(resource.path(namespace), raw, fieldValidation="Strict")
    if "status" in raw:
        answer = await api.call("PATCH", f"{path}/status", {"status": raw["status"]}, **STATUS)
        assert answer.status in {200, 404}, answer.message
    found = await api.get(path)
    await api.delete(path)
    return found


async def test_documented_manifests_are_kept_without_loss(served, namespaces, manifests):
    checked = []
    for name, raw in manifests.items():
        if (raw["apiVersion"], raw["kind"]) in BY_KIND:
            found = await stored(served, raw)
            assert contains(raw["spec"], found["spec"]), name
            assert contains(raw.get("status", {}), found.get("status", {})), name
            checked.append(name)
    assert len(checked) == 19


async def test_unknown_fields_survive(served):
    raw = builders.a_reservation("unknown-fields", owners=OWNERS, newer={"deep": [1]})
    raw["spec"]["template"]["spec"]["unheard"] = {"of": True}
    found = await stored(served, raw)
    assert found["spec"]["newer"] == {"deep": [1]}
    assert found["spec"]["template"]["spec"]["unheard"] == {"of": True}


async def test_a_new_reservation_is_pending(rules, served):
    found = await stored(served, builders.a_reservation("fresh", owners=OWNERS))
    assert found["status"] == {"phase": "Pending"}
    assert found["spec"]["allocateOnce"] is True
    assert "ttl" not in found["spec"]


async def test_only_an_end_is_accepted_and_both_ends_are_not(rules, served):
    ends = {"expires": "2130-01-01T00:00:00Z"}
    found = await stored(served, builders.a_reservation("expires", owners=OWNERS, **ends))
    assert "ttl" not in found["spec"]
    raw = builders.a_reservation("both", owners=OWNERS, ttl="10m", **ends)
    answer = await served.call("POST", resources.RESERVATIONS.path(), raw)
    assert answer.status == 422
    assert "give either ttl or expires, not both" in answer.message


def slo(**spec):
    return builders.an_object(resources.NODE_SLOS, "bad", spec=spec)


def reservation(**changes):
    return builders.a_reservation("bad", **{"owners": OWNERS, **changes})


def some(resource, namespace="", **spec):
    return builders.an_object(resource, "bad", namespace, spec=spec)


IN_NOTHING = {"matchExpressions": [{"key": "a", "operator": "In"}]}
RULED_OUT = [
    (reservation(owners=[{"labelSelector": IN_NOTHING}]), "In and NotIn need at least one value"),
    (reservation(allocationPolicy="Aligned"), "no such field, write allocatePolicy"),
    (builders.a_profile("bad", selector=IN_NOTHING), "In and NotIn need at least one value"),
    (
        some(resources.RECOMMENDATIONS, "default", target={"type": "workload"}),
        "workload: required when type is workload",
    ),
]
REFUSED = [
    (reservation(template=None), "spec.template"),
    (reservation(owners=[]), "spec.owners"),
    (reservation(owners=[{}]), "spec.owners[0]"),
    (reservation(ttl="ten minutes"), "spec.ttl"),
    (reservation(allocatePolicy="Other"), 'supported values: "Aligned", "Restricted"'),
    (slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 101}), "less than or equal"),
    (slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": -1}), "greater than or equal"),
    (slo(cpuBurstStrategy={"policy": "x"}), "spec.cpuBurstStrategy.policy"),
    (slo(cpuBurstStrategy={"cpuBurstPercent": 10001}), "spec.cpuBurstStrategy.cpuBurstPercent"),
    (slo(systemStrategy={"totalNetworkBandwidth": "-1"}), "totalNetworkBandwidth"),
    (slo(resourceQOSStrategy={"lsClass": {"memoryQOS": {"wmarkMinAdj": 51}}}), "wmarkMinAdj"),
    (builders.a_profile("bad", qosClass="XX"), "spec.qosClass"),
    (builders.a_profile("bad", probability="often"), "spec.probability"),
    (some(resources.RECOMMENDATIONS, "default"), "spec.target"),
    (some(resources.ELASTIC_QUOTA_PROFILES, "default", quotaName="q"), "spec.nodeSelector"),
    (
        some(
            resources.ELASTIC_QUOTA_PROFILES,
            "default",
            quotaName="q",
            nodeSelector={},
            resourceRatio="1.5",
        ),
        "spec.resourceRatio",
    ),
    (
        some(resources.NODE_METRICS, metricCollectPolicy={"aggregateDurationSeconds": -1}),
        "aggregate",
    ),
    (some(resources.POD_MIGRATION_JOBS), "spec.podRef"),
    (builders.a_quota("bad", minimum={"cpu": "x"}), "spec.min.cpu"),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED, ids=[message for _, message in REFUSED])
async def test_bad_objects_are_refused_with_the_field(served, raw, message):
    resource = BY_KIND[raw["apiVersion"], raw["kind"]]
    answer = await served.call("POST", resource.path(raw["metadata"].get("namespace", "")), raw)
    assert answer.status == 422
    assert message in answer.message


@pytest.mark.parametrize(("raw", "message"), RULED_OUT)
async def test_bad_combinations_are_refused_with_the_field(rules, served, raw, message):
    resource = BY_KIND[raw["apiVersion"], raw["kind"]]
    answer = await served.call("POST", resource.path(raw["metadata"].get("namespace", "")), raw)
    assert answer.status == 422
    assert message in answer.message


async def test_node_topologies_of_both_versions_are_one(served):
    zone = {"name": "node-0", "type": "Node", "resources": []}
    body = {
        "zones": [zone],
        "topologyPolicies": ["None"],
        "attributes": [{"name": "a", "value": "b"}],
    }
    kind = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
    path = "/apis/topology.node.k8s.io/{}/noderesourcetopologies"
    await served.call("DELETE", path.format("v1alpha2") + "/both")
    await served.post(path.format("v1alpha2"), {**kind, "metadata": {"name": "both"}, **body})
    found = await served.get(path.format("v1alpha1") + "/both")
    assert found["apiVersion"] == "topology.node.k8s.io/v1alpha1"
    assert found["attributes"] == body["attributes"]
