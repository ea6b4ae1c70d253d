"""`koord uninstall` on a whole installation: nothing of ours is left, nothing of others is gone."""

import contextlib

import pytest_asyncio

from agent import settings as agent_settings
from api import names, resources
from cli.commands import uninstall
from cli.dev import all_in_one, fleet
from cli.install import apply, removal
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator import link
from simulator.kubelet import kubelet
from tests.planes import raw, real
from tests.planes.install import plain

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
NODE = "lender"
MARK = "node.koordinator.sh/cpu-normalization-ratio"
HAND = "node.koordinator.sh/colocation-strategy"
FOREIGN = resources.Resource(
    resources.GROUP_SCHEDULING, "v1alpha1", "widgets", "Widget", namespaced=False
)


class Installed:
    """A control plane with everything installed, and our processes, which can be ended."""

    def __init__(self, api, kube, clock):
        self.api = api
        self.kube = kube
        self.clock = clock
        self.processes = contextlib.AsyncExitStack()

    async def uninstall(self, *, timeout=60.0, **options):
        chosen = removal.Options(**options)
        return await uninstall.Uninstaller(self.kube, self.clock, chosen, timeout).run()

    async def everything(self):
        """Every object of every kind that the API server serves, as keys."""
        found = {}
        for group in await self.groups():
            answer = await self.api.call("GET", group)
            # A group goes with its last definition, maybe after it was listed.
            assert answer.status in (200, 404), answer.message
            for resource in answer.body.get("resources", ()):
                if "list" not in resource["verbs"]:
                    continue
                for item in await self.listed(f"{group}/{resource['name']}"):
                    metadata = item["metadata"]
                    key = (resource["name"], metadata.get("namespace", ""), metadata["name"])
                    found[key] = item
        return found

    async def collected(self):
        """The same, once controllers have taken away what belonged to objects that are gone."""

        async def settled():
            found = await self.everything()
            ours = {key: item for key, item in found.items() if is_ours(item)}
            return None if any(belongs(*one) for one in ours.items()) else found

        return await raw.eventually(settled, PATIENCE)

    async def listed(self, path):
        """What is there, as soon as the API server has settled about a new or removed kind."""

        async def settled():
            answer = await self.api.call("GET", path)
            return answer if answer.status in (200, 404) else None

        return (await raw.eventually(settled, PATIENCE)).body.get("items", ())

    async def groups(self):
        listed = (await self.api.get("/apis"))["groups"]
        return ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in listed)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def it(control_plane_binaries, tmp_path_factory):
    """A control plane of its own, since definitions go."""
    folder = tmp_path_factory.mktemp("uninstall")
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plane = await enter(real.running(control_plane_binaries, folder / "plane"))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        api = await enter(raw.connected(plane.server, plane.ca, plane.token))
        kube = await enter(clients.Client(access, clock=clock, user_agent="uninstall-test"))
        it = Installed(api, kube, clock)
        await enter(it.processes)
        await apply.definitions(kube, clock)
        for document in plain.documents("beside"):
            await plain.apply(api, document)
        # The settings in it switch colocation on.
        await apply.everything(kube, apply.documents("foundation.yaml"))
        await strangers(api)
        await it.processes.enter_async_context(
            all_in_one.running(all_in_one.Options(folder), access=access, clock=clock)
        )
        await machine(stack, it, plane, access, folder)
        yield it


async def strangers(api):
    """What others made in this cluster, beside our things."""
    crd = {
        "metadata": {"name": FOREIGN.review_name()},
        "spec": {
            "group": FOREIGN.group,
            "scope": "Cluster",
            "names": {"plural": FOREIGN.plural, "kind": FOREIGN.kind},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    await api.post(resources.CRDS.path(), crd)
    await api.post(resources.CONFIG_MAPS.path(NAMESPACE), {"metadata": {"name": "foreign"}})
    profile = {
        "apiVersion": resources.COLOCATION_PROFILES.api_version,
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "kept"},
        "spec": {"qosClass": "BE", "selector": {"matchLabels": {"never": "matches"}}},
    }
    await api.post(resources.COLOCATION_PROFILES.path(), profile)


async def machine(stack, it, plane, access, folder):
    """A node that lends, with marks of ours, of a person and of nobody in particular."""
    report = agent_settings.ReportSettings(interval_seconds=2, aggregate_seconds=8)
    hosts = fleet.Fleet(fleet.Options(folder / "hosts", report=report), it.clock)
    hosts.admit(plane.token)
    client = await stack.enter_async_context(
        link.connected(plane.server, plane.ca, plane.token, clock=it.clock, agent="koord-kubelet")
    )
    options = kubelet.Options(tokens=frozenset({plane.token}))
    kubelets = await stack.enter_async_context(
        kubelet.running(client, options, hosts.hooks, it.clock)
    )
    await it.processes.enter_async_context(hosts.living())
    await hosts.add(kubelets, kubelet.Machine(NODE, cpu=16, memory_gib=64), access)
    path = resources.NODES.path(name=NODE)
    marks = {"metadata": {"annotations": {MARK: "1.2"}, "labels": {"node.koordinator.sh/x": "1"}}}
    await it.api.patch(path, marks, fieldManager="koord-manager")
    by_hand = {"metadata": {"annotations": {HAND: "{}"}}}
    await it.api.patch(path, by_hand, fieldManager="kubectl")
    await it.api.wait_until(
        path, lambda node: names.BATCH_CPU in node["status"]["allocatable"], PATIENCE
    )
    batch = {"requests": {names.BATCH_CPU: "1k"}, "limits": {names.BATCH_CPU: "1k"}}
    spec = {
        "nodeName": NODE,
        "priorityClassName": "koord-batch",
        "containers": [{"name": "c", "image": "x:1", "resources": batch}],
    }
    labels = {names.LABEL_QOS: "BE"}
    body = {"metadata": {"name": "borrower", "labels": labels}, "spec": spec}
    account = resources.SERVICE_ACCOUNTS.path("default", "default")
    await it.api.wait_until(account, lambda found: found is not None, PATIENCE)
    await it.api.post(resources.PODS.path("default"), body)


def belongs(key, item):
    """Whether an object is there for another one, such as the endpoints of a Service."""
    return key[0] == "endpoints" or bool(item["metadata"].get("ownerReferences"))


def is_ours(item):
    labels = item["metadata"].get("labels") or {}
    return labels.get(names.LABEL_PART_OF) == "koord"


async def test_a_dry_run_says_everything_and_does_nothing(it, capsys):
    before = set(await it.everything())
    options = removal.Options(purge=True)
    await uninstall.Uninstaller(it.kube, it.clock, options, 60.0).show()
    told = capsys.readouterr().out
    assert "would delete Deployment koordinator-system/koord-manager" in told
    assert f"would take {names.BATCH_CPU}, {names.BATCH_MEMORY}" in told
    assert "1 pod asks for batch or mid resources; it keeps running" in told
    assert f"definitions of another installation are kept: {FOREIGN.review_name()}" in told
    assert before <= set(await it.everything())


async def test_while_a_manager_works_nothing_is_cleaned(it, capsys):
    # It runs in no Deployment of ours, as one that somebody started by hand.
    assert not await it.uninstall(timeout=2.0)
    told = capsys.readouterr().out
    assert "which holds Lease koordinator-system/koordinator-manager would write again" in told
    node = await it.api.get(resources.NODES.path(name=NODE))
    assert names.BATCH_CPU in node["status"]["allocatable"]


async def test_afterwards_nothing_of_ours_is_left(it, capsys):
    await it.processes.aclose()
    assert await it.uninstall()
    assert "nothing of it is there any more" in capsys.readouterr().out
    left = await it.collected()
    # What people made, and what shows it, stays.
    kept = {key for key, item in left.items() if is_ours(item)}
    definitions = {key for key in kept if key[0] == "customresourcedefinitions"}
    assert kept - definitions == {
        ("namespaces", "", NAMESPACE),
        ("configmaps", NAMESPACE, "gpu-shared-resource-templates"),
        ("configmaps", NAMESPACE, "koord-scheduler-config"),
        ("configmaps", NAMESPACE, "koord-switches"),
        ("configmaps", NAMESPACE, "slo-controller-config"),
    }
    assert ("configmaps", NAMESPACE, "foreign") in left
    assert ("clustercolocationprofiles", "", "kept") in left
    gone = (
        ("nodemetrics", "", NODE),
        ("nodeslos", "", NODE),
        ("secrets", NAMESPACE, "koord-webhook-certificates"),
        ("leases", NAMESPACE, "koordinator-manager"),
        ("mutatingwebhookconfigurations", "", "koord-webhook"),
        ("validatingwebhookconfigurations", "", "koord-webhook"),
    )
    assert not set(gone) & set(left)
    node = left["nodes", "", NODE]
    for part in ("capacity", "allocatable"):
        assert not {names.BATCH_CPU, names.BATCH_MEMORY} & set(node["status"][part])
        assert "cpu" in node["status"][part]
    assert MARK not in node["metadata"]["annotations"]
    assert names.ANNOTATION_ORIGIN_ALLOCATABLE not in node["metadata"]["annotations"]
    assert "node.koordinator.sh/x" not in node["metadata"]["labels"]
    assert node["metadata"]["annotations"][HAND] == "{}"
    assert ("pods", "default", "borrower") in left


async def test_a_second_run_finds_nothing_to_do(it, capsys):
    before = set(await it.everything())
    assert await it.uninstall()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "nothing of it is there any more"
    assert not [line for line in lines if line.startswith(("delete", "take"))]
    assert {key for key in before if key[0] != "events"} <= set(await it.everything())


async def test_purge_takes_definitions_and_settings_and_nothing_of_others(it):
    assert await it.uninstall(purge=True)
    left = await it.collected()
    # Others have put things into the namespace.
    assert [key for key, item in left.items() if is_ours(item)] == [("namespaces", "", NAMESPACE)]
    definitions = {name for kind, _, name in left if kind == "customresourcedefinitions"}
    assert definitions == {FOREIGN.review_name()}
    maps = {name for kind, where, name in left if kind == "configmaps" and where == NAMESPACE}
    assert maps == {"foreign", "kube-root-ca.crt"}
