"""Our kinds as people meet them: installed, explained, listed and upgraded with kubectl."""

import copy
import json
import pathlib

import pytest
import pytest_asyncio
import yaml

from api import names, resources
from api.kubernetes import crds
from tests.planes import plugin, raw

ROOT = pathlib.Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "crds"
MANIFESTS = ROOT / "tests" / "manifests"
PATIENCE = 60.0
SERVER_SIDE = ("apply", "--server-side", "--filename")
QUOTA_GROUPS = ("scheduling.sigs.k8s.io", "quota.koordinator.sh", "koordinator.sh")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(real_plane, tmp_path_factory):
    """Every definition, installed as people do it."""
    kubectl = plugin.kubectl_of(real_plane, tmp_path_factory.mktemp("installed"))
    await kubectl(*SERVER_SIDE, FOLDER)
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        for definition in crds.definitions():
            await established(api, definition)


@pytest.fixture
def ours(installed, kubectl):
    """kubectl, once every definition is installed and served."""
    return kubectl


async def established(api, definition):
    def ready(found):
        conditions = (found or {}).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    await api.wait_until(resources.CRDS.path(name=definition["metadata"]["name"]), ready, PATIENCE)
    group = definition["spec"]["group"]
    for version in definition["spec"]["versions"]:
        path = f"/apis/{group}/{version['name']}/{definition['spec']['names']['plural']}"

        async def served(path=path):
            return (await api.call("GET", path)).status == 200

        await raw.eventually(served, PATIENCE)


async def versions(api):
    names = {definition["metadata"]["name"] for definition in crds.definitions()}
    listed = (await api.get(resources.CRDS.path()))["items"]
    metas = [item["metadata"] for item in listed if item["metadata"]["name"] in names]
    return {meta["name"]: meta["resourceVersion"] for meta in metas}


@pytest.mark.parametrize("flag", ["--filename", "--kustomize"])
async def test_applying_again_changes_nothing(ours, api, flag):
    before = await versions(api)
    output = await ours("apply", "--server-side", flag, FOLDER)
    assert output.count("serverside-applied") == len(before) == len(crds.definitions())
    assert await versions(api) == before


@pytest.mark.parametrize(
    ("field", "group", "words"),
    [
        pytest.param("reservations.spec", "scheduling.koordinator.sh", ("ttl", "owners"), id="r"),
        pytest.param("nodeslos.spec", "slo.koordinator.sh", ("cpuBurstStrategy",), id="slo"),
        pytest.param("elasticquotas.spec", "quota.koordinator.sh", ("min", "max"), id="quota"),
    ],
)
async def test_fields_are_explained(ours, field, group, words):
    version = f"--api-version={group}/v1alpha1"

    async def explained():
        # What is served is documented a moment later.
        status, output, _ = await ours.call("explain", field, version)
        return output if status == 0 else ""

    output = await raw.eventually(explained, PATIENCE)
    assert f"GROUP:      {group}" in output
    lines = [line.split() for line in output.splitlines() if line.strip()]
    named = {line[0] for line in lines}
    assert set(words) <= named
    described = output.partition("DESCRIPTION:")[2].partition("FIELDS:")[0].strip()
    assert described not in ("", "<empty>")


async def test_a_wrong_field_is_named_to_people(ours):
    bad = {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeSLO",
        "metadata": {"name": "bad"},
        "spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 101}},
    }
    complaint = await ours.fails("apply", "--filename", "-", stdin=json.dumps(bad))
    assert 'The NodeSLO "bad" is invalid' in complaint
    assert "spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent" in complaint
    assert "should be less than or equal to 100" in complaint


COLUMNS = "NAME PHASE AGE NODE TTL EXPIRES CPU CPU USED MEMORY MEMORY USED REASON"


async def test_defaults_are_filled_in_and_columns_shown(ours, api):
    body = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "shown"},
        "spec": {
            "owners": [{"labelSelector": {"matchLabels": {"a": "b"}}}],
            "template": {"spec": {"containers": []}},
            "ttl": "10m",
        },
    }
    try:
        await ours("apply", "--filename", "-", stdin=json.dumps(body))
        found = json.loads(await ours("get", "reservation", "shown", "--output=json"))
        assert found["spec"]["allocateOnce"] is True
        header, row = (await ours("get", "reservations", "shown")).splitlines()
        assert header.split() == COLUMNS.split()
        assert row.split()[:2] == ["shown", "Pending"]
        assert "10m" in row
    finally:
        await api.call("DELETE", resources.RESERVATIONS.path(name="shown"))


async def test_every_kind_can_be_listed(ours, api):
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    for definition in crds.definitions():
        spec = definition["spec"]
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            table = (await api.call("GET", path, accept=accept)).body
            shown = [column["name"] for column in table["columnDefinitions"]]
            columns = [column["name"] for column in version.get("additionalPrinterColumns", ())]
            assert shown == ["Name", *(columns or ["Age"])]


async def test_three_kinds_of_quota_live_side_by_side(ours, here):
    amounts = {"min": {"cpu": "1"}, "max": {"cpu": "3"}}
    flags = ("--namespace", here.namespace)
    for group in QUOTA_GROUPS:
        body = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "team", "labels": {"from": group}},
            "spec": amounts,
        }
        await ours("apply", "--filename", "-", *flags, stdin=json.dumps(body))
    for group in QUOTA_GROUPS:
        full = f"elasticquotas.{group}"
        found = json.loads(await ours("get", full, "team", *flags, "--output=json"))
        assert found["apiVersion"] == f"{group}/v1alpha1"
        assert found["metadata"]["labels"] == {"from": group}
        assert found["spec"]["max"] == {"cpu": "3"}
    await ours("delete", f"elasticquotas.{QUOTA_GROUPS[0]}", "team", *flags)
    for group in QUOTA_GROUPS[1:]:
        await ours("get", f"elasticquotas.{group}", "team", *flags)


QUOTA_SHOWN = {
    "scheduling.sigs.k8s.io": ["3", "1", "9", "2Gi", "1Gi", "8Gi", '{"cpu":"5"}'],
    "quota.koordinator.sh": ["3", "5", "1", "9", "2Gi", "4Gi", "1Gi", "8Gi", "50"],
    "koordinator.sh": ["3", "5", "1", "9", "2Gi", "4Gi", "1Gi", "8Gi", "50"],
}


async def test_plain_kubectl_shows_what_quotas_use_and_may_use(ours, here):
    """The group that `kubectl get elasticquota -A` chooses, and the others by their full name."""
    flags = ("--namespace", here.namespace)
    for group, cells in QUOTA_SHOWN.items():
        short = group != QUOTA_SHOWN_BY_REFERENCE
        body = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": f"shown-{group.partition('.')[0]}"},
            "spec": {
                "min": {"cpu": "1", "memory": "1Gi"},
                "max": {"cpu": "9", "memory": "8Gi"},
                **({"priority": 50} if short else {}),
            },
            "status": {
                "used": {"cpu": "3", "memory": "2Gi"},
                **({"allocatedQuota": {"cpu": "5", "memory": "4Gi"}} if short else {}),
            },
        }
        if not short:
            body["metadata"]["annotations"] = {names.ANNOTATION_QUOTA_RUNTIME: '{"cpu":"5"}'}
        await ours("apply", "--filename", "-", *flags, stdin=json.dumps(body))
        rows = (await ours("get", f"elasticquotas.{group}", *flags)).splitlines()
        [row] = [row.split() for row in rows if row.startswith("shown-")]
        assert row[1:-1] == cells
    plain = await ours("get", "elasticquota", "--all-namespaces")
    assert "CPU MIN" in plain
    assert "shown-" in plain


QUOTA_SHOWN_BY_REFERENCE = "scheduling.sigs.k8s.io"


@pytest.mark.parametrize("group", QUOTA_GROUPS)
async def test_what_a_quota_guarantees_it_allows(ours, here, group):
    """The definition itself says so, also while no webhook answers."""
    body = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "wrong"},
        "spec": {"min": {"cpu": "1", "memory": "1Gi"}, "max": {"cpu": "1"}},
    }
    flags = ("--namespace", here.namespace, "--filename", "-")
    complaint = await ours.fails("apply", *flags, stdin=json.dumps(body))
    assert "every resource of min must stand in max" in complaint
    if group != QUOTA_SHOWN_BY_REFERENCE:
        body["spec"]["hard"] = {"memory": "2Gi"}
        await ours("apply", *flags, stdin=json.dumps(body))


UPGRADED = {
    "nodeslos": ("002-nodeslo-production-node-slo", "extensions"),
    "reservations": ("002-reservation-batch-job-reservation", "ttl"),
    "recommendations": ("002-recommendation-example-recommendation", "target"),
}


@pytest.mark.parametrize("plural", UPGRADED)
async def test_an_older_definition_is_upgraded_without_loss(kubectl, here, plural):
    """What an older definition stored is still there, and new fields can be used at once."""
    manifest, newer = UPGRADED[plural]
    definition, older = definitions(plural, f"{here.id}.{plural}.example.org", newer)
    sample = yaml.safe_load((MANIFESTS / f"{manifest}.yaml").read_text())
    sample["apiVersion"] = f"{definition['spec']['group']}/v1alpha1"
    sample["metadata"] = {"name": "kept"}
    name = f"{plural}.{definition['spec']['group']}"
    flags = ("--namespace", here.namespace) if namespaced(definition) else ()
    await kubectl(*SERVER_SIDE, "-", stdin=json.dumps(older))
    try:
        await established(here.api, older)
        await kubectl(*SERVER_SIDE, "-", *flags, stdin=json.dumps(without(sample, newer)))
        before = json.loads(await kubectl("get", name, "kept", *flags, "--output=json"))
        assert newer not in before["spec"]
        await kubectl(*SERVER_SIDE, "-", stdin=json.dumps(definition))

        async def upgraded():
            # The API server goes on with the older definition for a moment.
            await kubectl(*SERVER_SIDE, "-", *flags, stdin=json.dumps(probe(sample, newer)))
            found = json.loads(await kubectl("get", name, "kept", *flags, "--output=json"))
            return found if newer in found["spec"] else None

        after = await raw.eventually(upgraded, PATIENCE)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        kept = {key: value for key, value in before["spec"].items() if key != newer}
        assert kept.items() <= after["spec"].items()
    finally:
        await kubectl("delete", "customresourcedefinition", name, "--wait=false")


def definitions(plural, group, newer):
    """Our definition under another group, and an older one that lacks a field and all columns."""
    (ours,) = (d for d in crds.definitions() if d["spec"]["names"]["plural"] == plural)
    definition = copy.deepcopy(ours)
    definition["metadata"]["name"] = f"{plural}.{group}"
    definition["spec"]["group"] = group
    older = copy.deepcopy(definition)
    for version in older["spec"]["versions"]:
        version.pop("additionalPrinterColumns", None)
        version["schema"]["openAPIV3Schema"] = {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        key: {"x-kubernetes-preserve-unknown-fields": True}
                        for key in fields(definition)
                        if key != newer
                    },
                },
            },
        }
    return definition, older


def fields(definition):
    (version, *_) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def namespaced(definition):
    return definition["spec"]["scope"] == "Namespaced"


def without(sample, field):
    spec = {key: value for key, value in sample["spec"].items() if key != field}
    return {**sample, "spec": spec}


def probe(sample, newer):
    """The sample with a value for the newer field."""
    values = {"ttl": "24h", "extensions": {"x": {}}}
    return {
        **sample,
        "spec": {**sample["spec"], newer: sample["spec"].get(newer, values.get(newer))},
    }
