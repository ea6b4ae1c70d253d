"""The page that says what the agent needs says what its manifests grant."""

import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "node.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("| what | value |")[2].partition("\n\n")[0].splitlines()[2:]
]
MANIFEST = ROOT / "deploy" / "manifests" / "common" / "agent.yaml"
OBJECTS = {
    document["kind"]: document
    for document in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    if document
}


@pytest.fixture
def spec():
    return OBJECTS["DaemonSet"]["spec"]["template"]["spec"]


def values(what):
    return [row[1] for row in ROWS if row[0] == what]


def words(text):
    return set(re.findall(r"`([^`]+)`", text))


def test_host_paths(spec):
    (container,) = spec["containers"]
    how = {m["name"]: "" if m.get("readOnly") else " and write" for m in container["volumeMounts"]}
    granted = {
        f"`{volume['hostPath']['path']}`, read{how[volume['name']]}"
        for volume in spec["volumes"]
        if "hostPath" in volume
    }
    assert granted == set(values("host path"))


def test_user_and_capabilities(spec):
    (container,) = spec["containers"]
    context = container["securityContext"]
    assert values("user") == [f"`{context['runAsUser']}`"]
    assert values("capabilities") == ["none"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert not context.get("privileged")
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_nothing_of_the_host_is_shared(spec):
    assert not {name for name in spec if name.startswith("host")}


def test_permissions():
    granted = set()
    for rule in (*OBJECTS["ClusterRole"]["rules"], *OBJECTS["Role"]["rules"]):
        granted |= {(verb, name) for verb in rule["verbs"] for name in rule["resources"]}
    verbs = {"get", "list", "watch", "create", "patch", "update"}
    told = set()
    for value in (*values("API server"), *values("kubelet")):
        named = words(value)
        told |= {(verb, name) for verb in named & verbs for name in named - verbs}
    assert told == granted
