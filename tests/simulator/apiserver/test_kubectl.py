"""An unmodified kubectl at the prompt of the embedded control plane."""

import asyncio
import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from api.kubernetes import crds

KUBECTL = shutil.which("kubectl")
MANIFESTS = Path(__file__).parents[2] / "manifests"

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {
        "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


class Kubectl:
    """Runs kubectl against one server, with a home of its own."""

    def __init__(self, home):
        self._home = home

    @contextlib.asynccontextmanager
    async def started(self, *words, stdin=None):
        environment = {
            "HOME": str(self._home),
            "KUBECONFIG": str(self._home / "config"),
            "PATH": os.environ["PATH"],
        }
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *words,
            env=environment,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def fails(self, *words, stdin=None):
        """Return what it complains about."""
        body = None if stdin is None else json.dumps(stdin).encode()
        async with self.started(*words, stdin=body) as process:
            _, errors = await process.communicate(body)
        assert process.returncode != 0, words
        return errors.decode()

    async def __call__(self, *words, stdin=None):
        body = None if stdin is None else json.dumps(stdin).encode()
        async with self.started(*words, stdin=body) as process:
            output, errors = await process.communicate(body)
        assert process.returncode == 0, f"kubectl {words}: {errors.decode()}"
        return output.decode()


@pytest.fixture
def kubectl(server, tmp_path):
    (tmp_path / "ca.pem").write_bytes(server.ca)
    cluster = {"server": server.url, "certificate-authority": str(tmp_path / "ca.pem")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dev", "cluster": cluster}],
        "users": [{"name": "dev", "user": {"token": server.token}}],
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}],
        "current-context": "dev",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    return Kubectl(tmp_path)


@pytest.fixture
async def defined(api):
    """The custom resources of the product."""
    for manifest in crds.definitions():
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await api.must("POST", path, manifest)


async def test_version_and_resources(kubectl):
    assert "Server Version: v1.32.0+koord-simulator" in await kubectl("version")
    listed = await kubectl("api-resources", "--no-headers")
    names = [line.split()[0] for line in listed.splitlines()]
    assert {"pods", "nodes", "leases", "poddisruptionbudgets"} <= set(names)
    assert names.count("events") == 2


@pytest.mark.parametrize(
    ("words", "kind", "field", "expected"),
    [
        (("namespace", "team"), "namespace/team", "status.phase", "Active"),
        (("configmap", "x", "--from-literal=a=b"), "cm/x", "data.a", "b"),
        (("secret", "generic", "x", "--from-literal=a=b"), "secret/x", "data.a", "Yg=="),
        (("serviceaccount", "x"), "sa/x", "metadata.name", "x"),
        (
            ("deployment", "x", "--image=i:1", "--replicas=2", "--port=80"),
            "deployment/x",
            "spec.template.spec.containers[0].ports[0].containerPort",
            "80",
        ),
        (("job", "x", "--image=i:1", "--", "sleep", "1"), "job/x", "spec.backoffLimit", "6"),
        (
            ("pdb", "x", "--selector=a=b", "--min-available=50%"),
            "pdb/x",
            "spec.minAvailable",
            "50%",
        ),
        (("priorityclass", "x", "--value=5"), "pc/x", "value", "5"),
        (
            ("service", "clusterip", "x", "--tcp=80:8080"),
            "svc/x",
            "spec.ports[0].targetPort",
            "8080",
        ),
        (("role", "x", "--verb=get", "--resource=pods"), "role/x", "rules[0].verbs[0]", "get"),
        (
            ("clusterrolebinding", "x", "--clusterrole=view", "--user=me"),
            "clusterrolebinding/x",
            "subjects[0].name",
            "me",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
async def test_create_from_words(kubectl, words, kind, field, expected):
    await kubectl("create", *words)
    assert await kubectl("get", kind, "-o", f"jsonpath={{.{field}}}") == expected


async def test_create_and_get_in_every_form(kubectl):
    assert await kubectl("create", "-f", "-", stdin=NODE) == "node/n1 created\n"
    plain = (await kubectl("get", "nodes")).splitlines()
    assert plain[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert plain[1].split()[:3] == ["n1", "Ready", "<none>"]
    assert "INTERNAL-IP" in await kubectl("get", "nodes", "-o", "wide")
    assert yaml.safe_load(await kubectl("get", "node", "n1", "-o", "yaml"))["kind"] == "Node"
    listed = json.loads(await kubectl("get", "nodes", "-o", "json"))
    assert listed["items"][0]["status"]["capacity"]["cpu"] == "8"
    assert await kubectl("get", "no", "-o", "name") == "node/n1\n"


async def test_apply_changes_what_differs(kubectl):
    await kubectl("create", "deployment", "other", "--image=i:1")
    container = {"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container, {"name": "side", "image": "s:1"}]},
            },
        },
    }
    assert "created" in await kubectl("apply", "-f", "-", stdin=body)
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=body)
    template = body["spec"]["template"]["spec"]
    template["containers"] = [{**container, "env": [{"name": "B", "value": "2"}]}]
    assert "configured" in await kubectl("apply", "-f", "-", stdin=body)
    found = json.loads(await kubectl("get", "deployment", "web", "-o", "json"))
    (left,) = found["spec"]["template"]["spec"]["containers"]
    assert left["env"] == [{"name": "B", "value": "2"}]


async def test_apply_on_the_server(kubectl, defined):
    path = str(MANIFESTS / "000-nodeslo-node-001.yaml")
    assert "serverside-applied" in await kubectl("apply", "--server-side", "-f", path)
    patch = '{"spec":{"resourceThresholdStrategy":{"enable":false}}}'
    await kubectl("patch", "nodeslo", "node-001", "--type=merge", "-p", patch)
    assert "conflict" in await kubectl.fails("apply", "--server-side", "-f", path)
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    shown = await kubectl("get", "nodeslo", "node-001", "-o", "yaml", "--show-managed-fields")
    managers = {entry["manager"] for entry in yaml.safe_load(shown)["metadata"]["managedFields"]}
    assert managers == {"kubectl"}


async def test_every_documented_manifest_is_accepted(kubectl, defined):
    before = [*MANIFESTS.glob("support-*.yaml"), *MANIFESTS.glob("*priorityclass*.yaml")]
    await kubectl("apply", *(f"--filename={file}" for file in before))
    rest = sorted(set(MANIFESTS.glob("*.yaml")) - set(before))
    applied = await kubectl("apply", *(f"--filename={file}" for file in rest))
    assert len(applied.splitlines()) == len(rest)
    assert len((await kubectl("get", "nodeslos", "-o", "name")).split()) == 3


async def test_patch_label_and_annotate(kubectl):
    await kubectl("create", "configmap", "x", "--from-literal=a=b")
    await kubectl("label", "configmap", "x", "tier=web")
    await kubectl("annotate", "configmap", "x", "koord.sh/why=because")
    await kubectl("patch", "configmap", "x", "-p", '{"data":{"c":"d"}}')
    operation = '[{"op":"remove","path":"/data/a"}]'
    await kubectl("patch", "configmap", "x", "--type=json", "-p", operation)
    found = json.loads(await kubectl("get", "cm", "-l", "tier=web", "-o", "json"))["items"]
    assert found[0]["data"] == {"c": "d"}
    assert found[0]["metadata"]["annotations"]["koord.sh/why"] == "because"


async def test_cordon_taint_and_describe_a_node(kubectl):
    await kubectl("create", "-f", "-", stdin=NODE)
    await kubectl("cordon", "n1")
    await kubectl("taint", "node", "n1", "a=b:NoSchedule")
    described = await kubectl("describe", "node", "n1")
    assert "Taints:             a=b:NoSchedule" in described
    assert "Unschedulable:      true" in described
    await kubectl("taint", "node", "n1", "a-")
    assert "drained" in await kubectl("drain", "n1")


async def test_describe_a_pod_with_its_events(kubectl, api):
    await kubectl("run", "p", "--image=busybox")
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    about["uid"] = (await api.must("GET", "/api/v1/namespaces/default/pods/p"))["metadata"]["uid"]
    body = {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available: lent out.",
        "type": "Warning",
    }
    await api.must("POST", "/api/v1/namespaces/default/events", body)
    assert "0/1 nodes are available: lent out." in await kubectl("describe", "pod", "p")
    assert "pod/p" in await kubectl("get", "events")


@pytest.mark.parametrize("kind", ["namespace/default", "sa/default", "pc/system-node-critical"])
async def test_describe_what_is_there(kubectl, kind):
    assert "Name:" in await kubectl("describe", kind)


async def test_watching_shows_changes_as_rows(kubectl):
    await kubectl("create", "configmap", "a")
    async with kubectl.started("get", "configmaps", "-w", "--no-headers") as process:
        first = await process.stdout.readline()
        await kubectl("create", "configmap", "b", "--from-literal=x=y")
        second = await process.stdout.readline()
        await kubectl("delete", "configmap", "b")
        third = await process.stdout.readline()
    assert [line.split()[:2] for line in (first, second, third)] == [
        [b"a", b"0"],
        [b"b", b"1"],
        [b"b", b"1"],
    ]


async def test_delete_waits_until_it_is_gone(kubectl):
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "x", "-n", "team")
    assert await kubectl("delete", "namespace", "team") == 'namespace "team" deleted\n'
    assert "not found" in await kubectl.fails("get", "namespace", "team")
    await kubectl("run", "p", "--image=busybox")
    await kubectl("delete", "pods", "--all")
    assert await kubectl("get", "pods", "-o", "name") == ""


BOXES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boxes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "boxes", "kind": "Box", "shortNames": ["bx"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}},
                            }
                        },
                    }
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


async def test_a_new_kind_is_usable_at_once(kubectl):
    await kubectl("apply", "-f", "-", stdin=BOXES)
    await kubectl("wait", "--for=condition=Established", "crd/boxes.example.com")
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Box",
        "metadata": {"name": "x"},
        "spec": {"size": 3, "typo": 1},
    }
    errors = await kubectl.fails("apply", "-f", "-", stdin=body)
    assert 'strict decoding error: unknown field "spec.typo"' in errors
    await kubectl("apply", "--validate=false", "-f", "-", stdin=body)
    rows = [line.split() for line in (await kubectl("get", "bx")).splitlines()]
    assert rows[0] == ["NAME", "SIZE", "AGE"]
    assert rows[1][:2] == ["x", "3"]
    await kubectl("delete", "crd", "boxes.example.com")
    assert "could not find the requested resource" in await kubectl.fails("get", "bx")


async def test_explain_describes_custom_resources(kubectl, defined):
    explained = await kubectl("explain", "nodeslo.spec")
    assert "resourceThresholdStrategy" in explained


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("logs", "p"), "pods/log"),
        (("exec", "p", "--", "ls"), "pods/exec"),
        (("auth", "can-i", "get", "pods"), "selfsubjectaccessreviews"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
async def test_what_is_missing_is_said(kubectl, words, missing):
    await kubectl("run", "p", "--image=busybox")
    errors = await kubectl.fails(*words)
    assert "the embedded control plane does not implement" in errors
    assert missing in errors
