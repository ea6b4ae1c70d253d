"""What the chart learns of a cluster while it is installed."""

import asyncio
import json

import pytest
import pytest_asyncio

from api import names, resources
from simulator.processes import credentials
from tests.e2e import binaries as builds
from tests.planes.install import chart, plain

SLICE = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"kubernetes.io/service-name": "kubernetes"},
    },
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["192.0.2.7"]}, {"addresses": ["192.0.2.8"]}],
    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
}
OTHER = {
    **SLICE,
    "metadata": {
        "name": "shop",
        "namespace": "default",
        "labels": {"kubernetes.io/service-name": "shop"},
    },
    "endpoints": [{"addresses": ["192.0.2.99"]}],
}
COLLECTION = resources.ENDPOINT_SLICES.path("default")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(loop_scope="session")
async def listed(api):
    for one in (SLICE, OTHER):
        await api.post(COLLECTION, one)
    yield
    for one in (SLICE, OTHER):
        await api.delete(f"{COLLECTION}/{one['metadata']['name']}")


@pytest.mark.parametrize(
    ("values", "blocks"),
    [
        (("discoverApiServers=true",), ["192.0.2.7/32", "192.0.2.8/32"]),
        (("discoverApiServers=true", "apiServerBlocks={10.0.0.1/32}"), ["10.0.0.1/32"]),
        ((), []),
    ],
    ids=["discovered", "named", "neither"],
)
async def test_the_webhook_is_open_to_the_addresses_of_the_api_servers(
    real_plane, listed, tmp_path, values, blocks
):
    if not builds.can_build():
        pytest.skip("needs Go to build Helm")
    login = tmp_path / "login.json"
    known = credentials.kubeconfig(real_plane.server, real_plane.ca, real_plane.token)
    login.write_text(json.dumps(known))
    login.chmod(0o600)
    given = [word for one in values for word in ("--set", f"networkPolicy.{one}")]
    words = (
        *("install", "koord", str(chart.CHART), "--dry-run=server", f"--kubeconfig={login}"),
        *("--namespace", names.NAMESPACE, "--set", "image.repository=registry.example.com/koord"),
        # Nothing is written, so it does not matter what other tests left under the same names.
        "--take-ownership",
        *("--set", "crds.install=false", "--set", "priorityClasses.create=false"),
    )
    text = await asyncio.to_thread(chart.helm, *words, *given)
    manifest, _, notes = text.partition("MANIFEST:")[2].partition("\nNOTES:")
    policies = plain.of_kind(chart.documents(manifest), "NetworkPolicy")
    (policy,) = (one for one in policies if one["metadata"]["name"] == "koord-webhook")
    reviews = policy["spec"]["ingress"][0]
    allowed = [one["ipBlock"]["cidr"] for one in reviews.get("from", []) if "ipBlock" in one]
    assert allowed == blocks
    assert ("WARNING: every pod" in notes) is (not blocks)
