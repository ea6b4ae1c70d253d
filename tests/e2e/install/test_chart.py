"""The chart through Helm itself, and against what an API server accepts."""

import base64
import json

import pytest
import yaml

from api import names
from cli.doctor.checkup import facts, permissions
from domain.scheduler_settings import documents as scheduler_documents
from domain.scheduler_settings.plugin_sets import Enabled
from tests.e2e import binaries as builds
from tests.e2e.install.chart_texts import (
    ALL,
    BUNDLE,
    COMBINATIONS,
    FOREIGN,
    IMAGE,
    MONITORED,
    TOGETHER,
    helm,
    of_kind,
    rendered,
)
from tests.planes.install import chart, grants, plain
from webhook import settings as webhook_settings
from webhook.registration import configurations

__all__ = ["helm"]


def test_every_combination_is_looked_at():
    assert {name for some in TOGETHER for name in some} == COMBINATIONS.keys()


def test_lint_has_nothing_to_say():
    for values in ALL:
        words = [word for one in (IMAGE, *values) for word in ("--set", one)]
        version = ("--kube-version", chart.KUBERNETES)
        said = chart.helm("lint", "--strict", str(chart.CHART), *version, *words)
        assert "0 chart(s) failed" in said
        assert "[WARNING]" not in said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((), "missing property 'repository'"),
        ((IMAGE, "scheduler.mode=aside"), "must be one of 'beside', 'in-place', 'none'"),
        ((IMAGE, "webhok.replicas=1"), "'webhok' not allowed"),
        ((IMAGE, "webhook.registration.by=chart"), "webhook.registration.certManager=true, or"),
    ],
    ids=["no-image", "no-such-mode", "misspelt", "no-certificate"],
)
def test_what_cannot_be_installed_is_refused_with_the_reason(values, said):
    with pytest.raises(chart.HelmError, match=said):
        chart.template(*values)


@pytest.mark.parametrize("mode", chart.MODES)
async def test_plain_manifests_are_what_helm_installs(mode, kubectl):
    text = await kubectl("kustomize", str(plain.MANIFESTS / mode))
    listed = {chart.key(one): one for one in chart.documents(text)}
    values = ("crds.install=true", "crds.keep=false", f"scheduler.mode={mode}")
    installed = chart.documents(chart.template(*chart.PLAIN, *values))
    assert listed == {chart.key(one): one for one in installed}


def test_committed_manifests_are_rendered_from_the_chart():
    for path, text in chart.files().items():
        assert (plain.MANIFESTS / path).read_text() == text, "run `make manifests`"


def test_definitions_are_those_of_the_product_and_stay():
    found = of_kind(rendered("crds.install=true"), "CustomResourceDefinition")
    for document in found:
        marks = document["metadata"]["annotations"]
        assert marks.pop("helm.sh/resource-policy") == "keep"
        if not marks:
            del document["metadata"]["annotations"]
    files = (plain.DEPLOY / "crds").glob("*.yaml")
    wanted = [yaml.safe_load(path.read_text()) for path in files]
    assert sorted(found, key=chart.key) == sorted(wanted, key=chart.key)
    assert not of_kind(rendered(), "CustomResourceDefinition")


def test_registration_by_the_chart_is_the_one_the_webhook_would_write():
    options = webhook_settings.RegistrationSettings(
        timeout_seconds=5, excluded_namespaces=("mine", "kube-system")
    )
    values = ("timeoutSeconds=5", "excludedNamespaces={mine,kube-system}")
    asked = [f"webhook.registration.{one}" for one in values]
    documents = rendered(*FOREIGN, *asked, namespace="elsewhere")
    found = of_kind(documents, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    assert len(found) == 2
    for document in found:
        made = configurations.document(
            document["kind"], options, "elsewhere", base64.b64decode(BUNDLE)
        )
        assert document["webhooks"] == made["webhooks"]
    grants = [r for role in of_kind(documents, "ClusterRole") for r in role["rules"]]
    writers = [
        rule
        for rule in grants
        if "mutatingwebhookconfigurations" in rule["resources"] and "patch" in rule["verbs"]
    ]
    assert writers == [], "nobody but the owner writes the registration"


def test_a_package_is_whole(tmp_path):
    chart.helm("package", str(chart.CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("koord-*.tgz")
    words = ("--kube-version", chart.KUBERNETES, "--set", IMAGE, "--set", MONITORED[-1])
    assert chart.helm("template", "x", str(package), *words) == chart.helm(
        "template", "x", str(chart.CHART), *words
    )


def test_settings_follow_the_namespace_of_the_release():
    documents = [*rendered(namespace="elsewhere")]
    assert documents
    for document in documents:
        assert names.NAMESPACE not in yaml.safe_dump(document)


PODS = {
    "agent": "koord-agent",
    "descheduler": "koord-descheduler",
    "deviceDaemon": "koord-device-daemon",
    "extender": "koord-scheduler",
    "manager": "koord-manager",
    "webhook": "koord-webhook",
}


def test_a_change_of_settings_replaces_the_pods():
    def marks(*values):
        found = of_kind(rendered("deviceDaemon.enabled=true", *values), *plain.WORKLOADS)
        return {
            one["metadata"]["name"]: one["spec"]["template"]["metadata"]["annotations"]
            for one in found
        }

    before = marks()
    for values, changed in (
        (("manager.settings.workers=4",), {"koord-manager"}),
        (
            ("agent.settings.mode=observe", "extender.settings.observe=true"),
            {"koord-agent", "koord-scheduler"},
        ),
        (
            ("scheduler.queriesPerSecond=100", "webhook.settings.mode=observe"),
            {"koord-scheduler", "koord-webhook"},
        ),
        (("switches.extender=observe", "clusterSettings.colocation.enable=true"), set()),
        (("log.level=debug",), set(before)),
        *(((f"{part}.settings.log.level=debug",), {name}) for part, name in PODS.items()),
    ):
        after = marks(*values)
        assert {name for name in before if before[name] != after[name]} == changed, values


def test_arguments_of_plugins_reach_the_configmap_and_roll_no_pod():
    config = [{"name": "LoadAwareScheduling", "args": {"usageThresholds": {"cpu": 60}}}]
    sets = {"score": {"enabled": [{"name": "LoadAwareScheduling", "weight": 7}]}}
    told = (
        f"scheduler.config.pluginConfig={json.dumps(config)}",
        f"scheduler.config.plugins={json.dumps(sets)}",
    )
    before = chart.documents(chart.template(IMAGE))
    after = chart.documents(chart.template(IMAGE, literal=told))
    changed = [b for a, b in zip(before, after, strict=True) if a != b]
    assert [document["metadata"]["name"] for document in changed] == [names.CONFIG_MAP_SCHEDULER]
    reading = scheduler_documents.read(changed[0]["data"])
    assert reading.settings is not None
    (arguments,) = reading.settings.arguments.values()
    assert arguments.wire() == {"usageThresholds": {"cpu": 60}}
    assert reading.settings.plugins["score"].enabled == (Enabled("LoadAwareScheduling", 7),)
    owned = chart.documents(chart.template(IMAGE, "scheduler.config.create=false"))
    assert len(owned) == len(before) - 1


def test_the_scheduler_has_the_version_of_the_cluster():
    (found,) = (
        container["image"]
        for _, _, container in plain.containers(rendered(version="v1.34.4-gke.100"))
        if container["name"] == "kube-scheduler"
    )
    assert found == "registry.k8s.io/kube-scheduler:v1.34.4"


def test_monitoring_comes_as_it_was_written():
    documents = rendered(*MONITORED, "deviceDaemon.enabled=true")
    (rule,) = of_kind(documents, "PrometheusRule")
    written = yaml.safe_load((plain.DEPLOY / "monitoring" / "rules.yaml").read_text())
    assert rule["spec"] == written
    boards = {
        name: text
        for one in of_kind(documents, "ConfigMap")
        if one["metadata"]["name"].startswith("koord-dashboard-")
        for name, text in one["data"].items()
    }
    folder = plain.DEPLOY / "monitoring" / "dashboards"
    assert boards.keys() == {path.name for path in folder.glob("*.json")}
    (monitor,) = of_kind(documents, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = of_kind(documents, "Service")
    selected = [one for one in services if plain.selects(wanted, one["metadata"]["labels"])]
    assert {one["metadata"]["name"] for one in selected} == {
        f"koord-{part}-metrics"
        for part in ("agent", "descheduler", "device-daemon", "manager", "scheduler", "webhook")
    }
    pods = [one["spec"]["template"] for one in of_kind(documents, *plain.WORKLOADS)]
    for one in selected:
        (pod,) = (
            p for p in pods if plain.selects(one["spec"]["selector"], p["metadata"]["labels"])
        )
        ports = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports
    without = of_kind(rendered(*MONITORED), "Service")
    assert "koord-device-daemon-metrics" not in {one["metadata"]["name"] for one in without}


def test_alerts_link_the_manual_where_it_is_served():
    manual = "https://manual.example.com/latest"
    documents = rendered(*MONITORED, f"monitoring.prometheusRule.runbookUrl={manual}/")
    (rule,) = of_kind(documents, "PrometheusRule")
    alerts = [one for group in rule["spec"]["groups"] for one in group["rules"]]
    for one in alerts:
        section = f"{manual}/reference/alerts.html#{one['alert'].lower()}"
        assert one["annotations"].pop("runbook_url") == section
    written = yaml.safe_load((plain.DEPLOY / "monitoring" / "rules.yaml").read_text())
    assert rule["spec"] == written, "nothing else changes"


async def test_an_api_server_accepts_what_differs(api, kubectl):
    space = {"metadata": {"name": names.NAMESPACE}}
    await api.call("POST", "/api/v1/namespaces", space)
    account = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/default"
    await api.wait_until(account, lambda found: found is not None, 60.0)
    mixed = [value for name in ("guarded", "older-kubelets") for value in COMBINATIONS[name]]
    for values in (mixed, (*COMBINATIONS["in-place"], *FOREIGN)):
        rendered_text = chart.template(
            IMAGE, *values, "crds.install=false", version=builds.version()
        )
        # A dry run makes no account, and no pod is accepted without its own.
        documents = [d for d in chart.documents(rendered_text) if d["kind"] != "Pod"]
        text = yaml.safe_dump_all(documents)
        said = await kubectl(
            "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=text
        )
        assert len(said.splitlines()) == len(documents)


GATES = {
    "of the quota": (
        (
            "quota.featureGates.MultiQuotaTree=false",
            "webhook.settings.featureGates.MultiQuotaTree=true",
        ),
        (),
        {"featureGates": {"MultiQuotaTree": False}},
    ),
    "of the webhook": (
        ("webhook.settings.featureGates.DisableDefaultQuota=true",),
        (),
        {"featureGates": {"DisableDefaultQuota": True}},
    ),
    "of the plug-in, switched off": (
        ("quota.featureGates.MultiQuotaTree=true",),
        (
            (
                'scheduler.config.pluginConfig=[{"name":"ElasticQuota","args":{'
                '"featureGates":{"MultiQuotaTree":false}}}]'
            ),
        ),
        {"featureGates": {"MultiQuotaTree": False}},
    ),
    "beside other arguments": (
        ("quota.featureGates.MultiQuotaTree=true",),
        (
            (
                'scheduler.config.pluginConfig=[{"name":"ElasticQuota","args":{"monitorAllQuotas":true,'
                '"featureGates":{"ElasticQuotaGuaranteeUsage":true}}}]'
            ),
        ),
        {
            "monitorAllQuotas": True,
            "featureGates": {"MultiQuotaTree": True, "ElasticQuotaGuaranteeUsage": True},
        },
    ),
    "without an extender": (
        ("quota.featureGates.MultiQuotaTree=true", "scheduler.mode=none"),
        (),
        {"featureGates": {"MultiQuotaTree": True}},
    ),
}


@pytest.mark.parametrize(
    ("values", "literal", "args"), [pytest.param(*case, id=name) for name, case in GATES.items()]
)
def test_gates_of_quota_stand_where_every_process_reads_them(values, literal, args):
    made = chart.documents(chart.template(IMAGE, *values, literal=literal))
    config = plain.named(made, "ConfigMap", names.CONFIG_MAP_SCHEDULER)
    written = scheduler_documents.read(config["data"]).settings.arguments["ElasticQuota"]
    assert written.wire() == args


def test_gates_of_quota_need_the_configuration_of_the_chart():
    with pytest.raises(chart.HelmError, match=r"featureGates needs scheduler\.config\.create"):
        chart.template(
            IMAGE, "quota.featureGates.MultiQuotaTree=true", "scheduler.config.create=false"
        )


CONSOLE = tuple(f"manager.console.{one}=true" for one in ("enabled", "viewer", "service"))


def test_the_chart_grants_the_reviews_where_the_console_is_on_only() -> None:
    def named(*values):
        found = of_kind(rendered(*values), "ClusterRole", "Service")
        return {one["metadata"]["name"] for one in found if "console" in one["metadata"]["name"]}

    assert named() == set()
    assert named(CONSOLE[0]) == {"koord-manager-console", "koord-console-viewer"}
    documents = rendered(*CONSOLE)
    services = of_kind(documents, "Service")
    assert "koord-manager-console" in {one["metadata"]["name"] for one in services}
    (viewer,) = (
        one for one in of_kind(documents, "ClusterRole")
        if one["metadata"]["name"] == "koord-console-viewer"
    )  # fmt: skip
    assert {verb for rule in viewer["rules"] for verb in rule["verbs"]} == {"list"}


WEBHOOKS = {
    "by default": (),
    "deny": ("quota.admission=deny", "gang.admission=none"),
    "none": ("quota.admission=none", *FOREIGN),
    **{
        gate: (f"webhook.settings.featureGates.{gate}={str(is_on).lower()}",)
        for gate, is_on in {
            "ConfigMapValidatingWebhook": False,
            "BindingAdmissionWebhook": True,
            "NodeValidatingWebhook": True,
            "EnablePodEnhancedValidator": True,
        }.items()
    },
}
AGENTS = {
    "agent": (),
    "agent without another source": ("agent.podsFallBack=false",),
    "device daemon": ("deviceDaemon.enabled=true",),
    "device daemon that labels nothing": (
        "deviceDaemon.enabled=true",
        "deviceDaemon.labelNode=false",
    ),
}
ASKED = {**WEBHOOKS, **AGENTS}


@pytest.mark.parametrize("values", ASKED.values(), ids=ASKED)
def test_doctor_asks_for_what_the_chart_grants(values):
    documents = rendered(*values)
    maps = {one["metadata"]["name"]: one for one in of_kind(documents, "ConfigMap")}
    accounts = [one["metadata"]["name"] for one in of_kind(documents, "ServiceAccount")]
    in_use = dict(permissions.processes(accounts, of_kind(documents, "DaemonSet")))
    # kube-scheduler stands in the same pod.
    looked_at = set(permissions.ACCOUNTS) - {"koord-scheduler"}
    given = {
        (grant.account.rpartition(":")[2], grant.verb, grant.group, grant.resource, grant.name,
         bool(grant.namespace))
        for grant in grants.granted(documents)
    }  # fmt: skip
    asked = {
        (account, verb, need.group, need.resource.partition("|")[0], name, need.own_namespace)
        for account, process in in_use.items()
        for need, verb, name in permissions.asked(process, facts.settings(maps, process), account)
    }
    assert {one for one in given if one[0] in looked_at} == {
        one for one in asked if one[0] in looked_at
    }
