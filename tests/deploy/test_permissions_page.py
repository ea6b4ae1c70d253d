"""docs/permissions.md says what the manifests grant, no more and no less."""

import re

import pytest
import yaml

from tests.planes.install import chart, plain

PAGE = (chart.DEPLOY.parent / "docs" / "permissions.md").read_text()
SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(
    r"^\| (?P<verbs>[a-z, ]+) \| (?P<resources>[^|]+) \| ?(?P<only>[^|]*)\| (?P<why>.+) \|$"
)
OURS = "(in our namespace)", "(in the namespace of trial pods)"


def written():
    """Every grant of the page, as (role, namespaced, verb, resource, name)."""
    for role, text in SECTION.findall(PAGE):
        for line in text.splitlines():
            row = ROW.match(line)
            if row is None or row["verbs"] == "verbs":
                continue
            namespaced = row["why"].endswith(OURS)
            for verb in split(row["verbs"]):
                for resource in split(row["resources"]):
                    for name in split(row["only"]) or [""]:
                        yield role, namespaced, verb, resource, name


def split(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def granted(roles):
    """The same of roles."""
    for role in roles:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    plural, slash, sub = resource.partition("/")
                    shown = f"{plural}.{group}" if group else plural
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            where = role["kind"] == "Role"
                            yield (
                                role["metadata"]["name"],
                                where,
                                verb,
                                f"{shown}{slash}{sub}",
                                name,
                            )


def of_the_hook(path):
    """The roles of a hook are no plain manifests; Helm's words around them are no YAML."""
    text = (chart.CHART / "templates" / path).read_text()
    text = re.sub(r"\{\{- if \$purge \}\}.*?\{\{- end \}\}", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *\{\{-.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{\{.*?\}\}", "x", text)
    parts = [
        part for part in text.split("\n---\n") if re.search(r"^kind: (Cluster)?Role$", part, re.M)
    ]
    return [yaml.safe_load(re.sub(r"labels: x", "labels: {}", part)) for part in parts]


def of_the_device_daemon():
    """The roles of a component that people add where they want it."""
    path = plain.MANIFESTS / "components/device-daemon/device-daemon.yaml"
    return plain.of_kind(list(yaml.safe_load_all(path.read_text())), "Role", "ClusterRole")


def test_the_page_and_the_manifests_agree():
    roles = {
        (one["kind"], one["metadata"]["name"]): one
        for mode in chart.MODES
        for one in plain.of_kind(plain.documents(mode), "Role", "ClusterRole")
    }
    hooks = [*of_the_hook("uninstall.yaml"), *of_the_hook("tests/installation.yaml")]
    there = set(granted([*roles.values(), *hooks, *of_the_device_daemon()]))
    said = list(written())
    assert len(said) == len(set(said)), "a permission stands twice"
    assert set(said) == there


@pytest.mark.parametrize("line", [line for line in PAGE.splitlines() if line.startswith("| ")])
def test_every_row_has_a_reason(line):
    assert line.rstrip(" |").rpartition("|")[2].strip()


def test_the_page_tells_which_folders_of_a_node_are_open():
    workload = plain.named(plain.documents("beside"), "DaemonSet", "koord-agent")
    volumes = workload["spec"]["template"]["spec"]["volumes"]
    for path in [volume["hostPath"]["path"] for volume in volumes if "hostPath" in volume]:
        assert f"| `{path}`" in PAGE
    assert PAGE.count("| `/") == len([volume for volume in volumes if "hostPath" in volume])
