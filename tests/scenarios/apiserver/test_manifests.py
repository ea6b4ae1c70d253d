"""Every manifest that users bring along is accepted, and comes back as it was written."""

import pathlib

import pytest
import pytest_asyncio

from tests.planes import definitions, raw
from tests.planes.install import manifests

ROOT = pathlib.Path(__file__).parent.parent.parent.parent
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANIFESTS = sorted((ROOT / "tests" / "manifests").glob("*.yaml"))
CRDS = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))


def documents(path):
    return [doc for doc in manifests.read(path.read_text()) if doc]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(plane):
    """A client for the whole module, with every definition installed."""
    async with raw.connected(plane.server, plane.ca, plane.token) as client:
        crds = [crd for path in CRDS for crd in documents(path)]
        answers = [await client.call("POST", DEFINITIONS, crd) for crd in crds]
        # On a shared control plane other tests may have brought some of them.
        assert {answer.status for answer in answers} <= {201, 409}, answers
        mine = [crd for crd, answer in zip(crds, answers, strict=True) if answer.status == 201]
        try:
            for crd in crds:
                await definitions.served(client, crd)
            yield client
        finally:
            for crd in mine:
                await definitions.removed(client, crd["metadata"]["name"])


CLASSES = {
    doc["metadata"]["name"]: doc
    for path in MANIFESTS
    for doc in documents(path)
    if doc["kind"] == "PriorityClass"
}
"""The classes that are brought along, with the values that they have there."""


class Installer:
    """Creates what a manifest says, where it says, and removes it afterwards."""

    def __init__(self, client):
        self._client = client
        self._made = []

    async def resources(self, doc):
        version = doc["apiVersion"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return prefix, (await self._client.get(prefix))["resources"]

    async def has_status(self, doc):
        _, resources = await self.resources(doc)
        return any(r["kind"] == doc["kind"] and r["name"].endswith("/status") for r in resources)

    async def path_of(self, doc):
        prefix, resources = await self.resources(doc)
        found = next(r for r in resources if r["kind"] == doc["kind"] and "/" not in r["name"])
        if not found["namespaced"]:
            return f"{prefix}/{found['name']}"
        namespace = doc["metadata"].get("namespace", "default")
        await self.namespace(namespace)
        return f"{prefix}/namespaces/{namespace}/{found['name']}"

    async def namespace(self, name):
        path = f"/api/v1/namespaces/{name}"
        if (await self._client.call("GET", path)).status == 404:
            await self._client.post("/api/v1/namespaces", {"metadata": {"name": name}})
        # Pods need it, and the controllers may take their time.
        account = {"metadata": {"name": "default"}}
        await self._client.call("POST", f"{path}/serviceaccounts", account)

    async def priority(self, doc):
        """The class that a pod names has to exist first."""
        name = doc.get("spec", {}).get("priorityClassName", "")
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        if name and (await self._client.call("GET", f"{path}/{name}")).status == 404:
            made = CLASSES.get(name) or {"metadata": {"name": name}, "value": 1000}
            await self._client.post(path, made)
            self._made.append(f"{path}/{name}")

    async def install(self, doc):
        collection = await self.path_of(doc)
        await self.priority(doc)
        path = f"{collection}/{doc['metadata']['name']}"
        if doc["kind"] == "Namespace":
            await self.namespace(doc["metadata"]["name"])
            return await self._client.patch(path, doc)
        query = {"fieldValidation": "Strict"} if doc["kind"] in ("Pod", "Deployment") else {}
        await raw.eventually(lambda: self.create(collection, doc, query))
        self._made.append(path)
        if "status" in doc and await self.has_status(doc):
            await self._client.patch(f"{path}/status", {"status": doc["status"]})
        return await self._client.get(path)

    async def create(self, collection, doc, query):
        """Whether the object exists now; admission hears of new priority classes a bit later."""
        answer = await self._client.call("POST", collection, doc, query=query)
        assert answer.status == 201 or "no PriorityClass with name" in answer.message, (
            answer.message
        )
        return answer.status == 201

    async def remove(self):
        for path in reversed(self._made):
            await self._client.call("DELETE", path, query={"gracePeriodSeconds": "0"})
            await self._client.wait_until(path, lambda found: found is None)


@pytest_asyncio.fixture(loop_scope="session")
async def installer(admin):
    made = Installer(admin)
    yield made
    await made.remove()


def lost(written, found, path=""):
    """Yield what was written and did not come back."""
    if isinstance(written, dict) and isinstance(found, dict):
        for key, value in written.items():
            if key in found:
                yield from lost(value, found[key], f"{path}.{key}")
            elif value:
                # Built-in kinds leave out what is false or empty.
                yield f"{path}.{key} is missing"
    elif isinstance(written, list) and isinstance(found, list) and len(written) == len(found):
        for index, (left, right) in enumerate(zip(written, found, strict=True)):
            yield from lost(left, right, f"{path}[{index}]")
    elif written != found:
        yield f"{path} was {written!r} and is {found!r}"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
async def test_a_manifest_comes_back_as_it_was_written(installer, path):
    for doc in documents(path):
        found = await installer.install(doc)
        assert list(lost(doc, found)) == []


def test_there_are_manifests_and_definitions():
    assert MANIFESTS
    assert CRDS


# As people and other programs know them: written out, not taken from our own list.
SCOPES = {
    ("slo.koordinator.sh", "v1alpha1", "NodeSLO"): False,
    ("slo.koordinator.sh", "v1alpha1", "NodeMetric"): False,
    ("scheduling.koordinator.sh", "v1alpha1", "Reservation"): False,
    ("scheduling.koordinator.sh", "v1alpha1", "Device"): False,
    ("scheduling.koordinator.sh", "v1alpha1", "PodMigrationJob"): False,
    ("scheduling.sigs.k8s.io", "v1alpha1", "ElasticQuota"): True,
    ("quota.koordinator.sh", "v1alpha1", "ElasticQuota"): True,
    ("koordinator.sh", "v1alpha1", "ElasticQuota"): True,
}


@pytest.mark.parametrize(
    ("known", "namespaced"), SCOPES.items(), ids=[f"{group}-{kind}" for group, _, kind in SCOPES]
)
async def test_discovery_says_which_kinds_are_of_the_cluster(admin, known, namespaced):
    group, version, kind = known
    found = (await admin.get(f"/apis/{group}/{version}"))["resources"]
    # A subresource such as the status has a slash in its name.
    (one,) = [r for r in found if r["kind"] == kind and "/" not in r["name"]]
    assert one["namespaced"] is namespaced
    # Inside a namespace a kind of the cluster is not served, and one of namespaces is.
    answer = await admin.call("GET", f"/apis/{group}/{version}/namespaces/default/{one['name']}")
    assert answer.status == (200 if namespaced else 404)


async def test_the_high_priority_pod_has_the_value_of_its_own_class(admin):
    """As it is written: 100000, far above the bands, and no requests."""
    installer = Installer(admin)
    (pod,) = documents(ROOT / "tests" / "manifests" / "003-pod-high-priority-pod.yaml")
    try:
        made = await installer.install(pod)
        assert made["spec"]["priority"] == 100_000
        assert made["status"]["qosClass"] == "BestEffort"
    finally:
        await installer.remove()
