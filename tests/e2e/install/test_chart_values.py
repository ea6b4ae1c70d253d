"""Values that people rarely set: nothing, other ports, and where pods may run."""

import json

import pytest
import yaml

from tests.e2e.install.chart_texts import IMAGE, helm, of_kind, rendered
from tests.planes.install import chart, plain

__all__ = ["helm"]

EVERYTHING = ("deviceDaemon.enabled=true", "manager.console.enabled=true")


def emptied(values, path=""):
    """Each value whose default is an empty list or map."""
    for name, value in values.items():
        if value in ([], {}):
            yield f"{path}{name}"
        elif isinstance(value, dict):
            yield from emptied(value, f"{path}{name}.")


def test_a_list_or_map_that_is_left_blank_is_an_empty_one():
    # `settings:` with every line below it commented out takes the default away.
    paths = [*emptied(yaml.safe_load((chart.CHART / "values.yaml").read_text()))]
    assert {"manager.settings", "scheduler.config.pluginConfig"} < set(paths)
    blank = rendered(*EVERYTHING, *(f"{path}=null" for path in paths))
    assert blank == rendered(*EVERYTHING)


def test_a_blank_log_and_no_excluded_namespaces_are_left_to_the_processes():
    documents = rendered("log=null", "webhook.registration.excludedNamespaces=null")
    (settings,) = (
        yaml.safe_load(one["data"]["settings.yaml"])
        for one in of_kind(documents, "ConfigMap")
        if one["metadata"]["name"] == "koord-webhook"
    )
    assert settings["log"] == {}
    assert settings["registration"]["excludedNamespaces"] == []


@pytest.mark.parametrize(
    ("setting", "container", "port"),
    [
        ("agent.settings.health.port", "agent", "metrics"),
        ("descheduler.settings.health.port", "descheduler", "metrics"),
        ("deviceDaemon.settings.health.port", "device-daemon", "metrics"),
        ("extender.settings.health.port", "extender", "metrics"),
        ("manager.settings.health.port", "manager", "metrics"),
        ("manager.settings.console.server.port", "manager", "console"),
        ("webhook.settings.health.port", "webhook", "metrics"),
        ("webhook.settings.server.port", "webhook", "https"),
    ],
)
def test_probes_and_services_follow_a_process_to_another_port(setting, container, port):
    ports = []
    for values in ((), (f"{setting}=12345",)):
        found = plain.containers(rendered(*EVERYTHING, *values))
        ports.append(
            {
                (one["name"], each["name"]): each["containerPort"]
                for _, _, one in found
                for each in one["ports"]
            }
        )
    before, after = ports
    assert after == {**before, (container, port): 12345}
    assert before[container, port] != 12345


SELECTOR = {"pool": "koord"}
TOLERATIONS = [{"key": "dedicated", "operator": "Equal", "value": "koord"}]
NODES = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}
PLACED = {
    "nodeSelector": SELECTOR,
    "tolerations": TOLERATIONS,
    "affinity": NODES,
    "priorityClassName": "koord-own",
}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "koord"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
COMPONENTS = {
    "scheduler": "koord-scheduler",
    "webhook": "koord-webhook",
    "manager": "koord-manager",
    "descheduler": "koord-descheduler",
    "agent": "koord-agent",
    "deviceDaemon": "koord-device-daemon",
}


def set_to(component, values):
    return tuple(f"{component}.{name}={json.dumps(value)}" for name, value in values.items())


def pods_of(*literal):
    """The pod of each workload and of each hook, by its name."""
    words = ("crds.install=false", *EVERYTHING)
    documents = chart.documents(chart.template(IMAGE, *words, literal=literal))
    found = of_kind(documents, *plain.WORKLOADS, "Job")
    pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in found}
    return pods | {one["metadata"]["name"]: one["spec"] for one in of_kind(documents, "Pod")}


@pytest.mark.parametrize("component", COMPONENTS)
def test_components_run_on_the_nodes_that_the_values_choose(component):
    before, after = pods_of(), pods_of(*set_to(component, PLACED))
    pod, changed = before[COMPONENTS[component]], after[COMPONENTS[component]]
    # Maps of values are merged key by key, lists are replaced.
    assert changed["nodeSelector"] == {**pod["nodeSelector"], **SELECTOR}
    assert changed["tolerations"] == TOLERATIONS
    assert changed["priorityClassName"] == PLACED["priorityClassName"]
    assert changed["affinity"] == NODES
    hooks = {"koord-uninstall", "koord-test"} if component == "manager" else set()
    same = {name for name in before if before[name] == after[name]}
    assert same == before.keys() - {COMPONENTS[component]} - hooks


@pytest.mark.parametrize(
    ("hook", "name"), [("uninstall", "koord-uninstall"), ("tests", "koord-test")]
)
def test_hooks_run_where_the_manager_may_unless_the_values_choose(hook, name):
    by_default = pods_of()[name]
    assert by_default["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert not {"tolerations", "affinity"} & by_default.keys()

    manager = set_to("manager", {**PLACED, "affinity": {**NODES, **APART}})
    followed = pods_of(*manager)[name]
    assert followed["nodeSelector"] == {"kubernetes.io/os": "linux", **SELECTOR}
    assert followed["tolerations"] == TOLERATIONS
    # Managers run on all nodes while the hook starts: what keeps pods apart would keep it off.
    assert followed["affinity"] == NODES

    own = {
        "nodeSelector": {"pool": "tools"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAffinity": {}},
    }
    chosen = pods_of(*manager, *set_to(hook, own))[name]
    assert {part: chosen[part] for part in own} == own


def test_a_quota_of_critical_pods_needs_no_agent():
    found = of_kind(
        rendered("agent.enabled=false", "agent.criticalPodsQuota=true"), "ResourceQuota"
    )
    assert [one["metadata"]["name"] for one in found] == ["koord-critical-pods"]
