"""The chart's own files agree with each other, without Helm."""

import copy
import json
import re
import tomllib

import jsonschema
import pytest
import yaml

from agent import settings as agent_settings
from descheduler import settings as descheduler_settings
from descheduler.rounds import configured
from tests.planes.install import chart, plain

ROOT = chart.DEPLOY.parent
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
TEMPLATES = sorted(path for path in (chart.CHART / "templates").rglob("*") if path.is_file())
REFERENCE = re.compile(r"\.Values\.([A-Za-z.]+)")


def with_image(**changes):
    values = copy.deepcopy(VALUES)
    values["image"]["repository"] = "registry.example.com/koord"
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = values
        for parent in parents:
            place = place[parent]
        place[last] = value
    return values


def problems(values):
    found = jsonschema.Draft7Validator(resolved()).iter_errors(values)
    return [".".join(map(str, error.path)) for error in found]


def resolved():
    """The schema; the older draft calls definitions otherwise."""
    return json.loads(json.dumps(SCHEMA).replace("$defs", "definitions"))


def test_the_chart_has_the_version_of_the_product():
    product = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    read = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert read["version"] == read["appVersion"] == product


def test_only_the_image_has_no_default():
    assert problems(VALUES) == ["image"]
    assert problems(with_image()) == []


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("webhok", {}, ""),
        ("quota__featureGates", {"MultiQuotaTrees": True}, "quota.featureGates"),
        ("quota__featureGates", {"MultiQuotaTree": "on"}, "quota.featureGates.MultiQuotaTree"),
        ("scheduler__mode", "aside", "scheduler.mode"),
        ("scheduler__schedulerName", "default-scheduler", "scheduler.schedulerName"),
        ("scheduler__schedulerNam", "x", "scheduler"),
        (
            "scheduler__config__pluginConfig",
            [{"name": "X"}],
            "scheduler.config.pluginConfig.0.name",
        ),
        ("scheduler__config__plugins", {"filtr": {}}, "scheduler.config.plugins"),
        ("manager__resources", {"request": {}}, "manager.resources"),
        ("manager__replicas", "two", "manager.replicas"),
        ("switches", {"extender": False}, "switches.extender"),
        ("webhook__registration__failurePolicy", "Maybe", "webhook.registration.failurePolicy"),
        ("webhook__registration__timeoutSeconds", 31, "webhook.registration.timeoutSeconds"),
        ("agent__maxUnavailable", "0%", "agent.maxUnavailable"),
        ("agent__profile", "everything", "agent.profile"),
        ("networkPolicy__apiServerBlocks", ["10.0.0.1"], "networkPolicy.apiServerBlocks.0"),
        ("image__digest", "sha256:1", "image.digest"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_where_they_stand(path, value, where):
    assert problems(with_image(**{path: value})) == [where]


def known(schema, values, path=""):
    """Yield where the schema and the default values do not name the same things."""
    properties = schema.get("properties")
    if properties is None or not isinstance(values, dict):
        return
    assert schema["additionalProperties"] is False, path
    for name in sorted(properties.keys() ^ values.keys()):
        yield f"{path}{name}"
    for name in properties.keys() & values.keys():
        yield from known(properties[name], values[name], f"{path}{name}.")


def test_every_value_is_in_the_schema_and_has_a_default():
    # `global` is for charts that include this one.
    assert sorted(known(SCHEMA, VALUES)) == ["global", "image.repository"]


def test_templates_read_values():
    reading = [path.name for path in TEMPLATES if REFERENCE.search(path.read_text())]
    assert len(reading) > len(TEMPLATES) / 2


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_read_only_values_that_exist(path):
    for reference in REFERENCE.findall(path.read_text()):
        place = with_image()
        for name in reference.split("."):
            if name and isinstance(place, dict):
                assert name in place, f".Values.{reference}"
                place = place[name]


def test_links_of_the_chart_stay_inside_the_product():
    links = [path for path in (chart.CHART / "files").iterdir() if path.is_symlink()]
    assert {path.name for path in links} == {"crds", "monitoring", "scheduler"}
    for path in links:
        assert path.resolve().parent == chart.DEPLOY


def test_by_default_batch_pods_are_limited_and_nobody_is_evicted():
    text = (chart.DEPLOY / "manifests" / "common" / "agent.yaml").read_text()
    found = {document["kind"]: document for document in yaml.safe_load_all(text)}
    settings = yaml.safe_load(found["ConfigMap"]["data"]["settings.yaml"])
    enforced = {"cpu-suppress", "batch-resources", "cpuset", "cpu-burst", "group-identity"}
    assert settings["strategies"] == {"modes": dict.fromkeys(enforced, "enforce")}
    assert "featureGates" not in settings
    granted = {name for rule in found["ClusterRole"]["rules"] for name in rule["resources"]}
    assert "pods/eviction" not in granted
    # Every word is one that the process takes.
    read = agent_settings.Settings.model_validate(settings | {"nodeName": "n"})
    assert read.mode == "enforce"


@pytest.mark.parametrize("mode", chart.MODES)
def test_by_default_the_descheduler_suggests_no_move_and_reads_every_word(mode):
    text = (chart.DEPLOY / "manifests" / mode / "descheduler.yaml").read_text()
    maps = {
        one["metadata"]["name"]: one["data"]
        for one in yaml.safe_load_all(text)
        if one["kind"] == "ConfigMap"
    }
    written = yaml.safe_load(maps["koord-descheduler"]["settings.yaml"])
    settings = descheduler_settings.Settings.model_validate(written)
    found = configured.read(maps["koord-descheduler-config"]["koord-descheduler-config"])
    assert settings.configuration.name == "koord-descheduler-config"
    assert not found.looks
    assert found.warnings == ()
    callers = {"beside": ("koord-scheduler",), "in-place": ("default-scheduler", "koord-scheduler")}
    assert found.migration.otherwise.scheduler_names == callers[mode]
    assert found.migration.otherwise.namespaces.exclude == ("kube-system", chart.NAMESPACE)
    assert found.head.leader_election.resource_namespace == chart.NAMESPACE


def test_policies_name_what_the_code_names():
    assert chart.POLICIES.read_text() == chart.policies(), "run `make manifests`"


def test_no_policy_is_rendered_for_an_api_server_that_does_not_know_policies():
    for path in TEMPLATES:
        text = path.read_text()
        if "kind: ValidatingAdmissionPolicy" in text:
            head = text[: text.index("apiVersion:")]
            assert 'include "koord.has-policies" .' in head, path.name


def test_work_that_may_be_stopped_stops_nobody():
    documents = plain.of_kind(plain.documents("beside"), "PriorityClass")
    found = {one["metadata"]["name"]: one["preemptionPolicy"] for one in documents}
    assert found == {
        "koord-prod": "PreemptLowerPriority",
        "koord-mid": "PreemptLowerPriority",
        "koord-batch": "Never",
        "koord-free": "Never",
    }
