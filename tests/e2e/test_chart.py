"""The chart through Helm itself, and against what an API server accepts."""

import base64
import functools
import json

import pytest
import yaml

from agent import settings as agent_settings
from api import names
from domain.scheduler_settings import documents as scheduler_documents
from domain.scheduler_settings.plugin_sets import Enabled
from tests.e2e import binaries as builds
from tests.planes import chart, plain
from webhook import configurations
from webhook import settings as webhook_settings

IMAGE = "image.repository=registry.example.com/koord"
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
FOREIGN = (
    "webhook.registration.by=chart",
    f"webhook.registration.caBundle={BUNDLE}",
    "webhook.registration.tlsSecret=my-pair",
)
COMBINATIONS = {
    "in-place": ("scheduler.mode=in-place", "namespace.create=true"),
    "no-scheduler": ("scheduler.mode=none",),
    "private": (
        f"image.digest=sha256:{'0' * 64}",
        "image.pullSecrets={one,two}",
        "image.pullPolicy=Always",
    ),
    "everything-else-is-somebody's": (
        "crds.install=false",
        "priorityClasses.create=false",
        "clusterSettings.create=false",
        "scheduler.config.create=false",
        "podDisruptionBudget.enabled=false",
        "networkPolicy.enabled=false",
        "uninstall.hook=false",
    ),
    "guarded": ("networkPolicy.apiServerBlocks={10.0.0.1/32,fd00::1/128}", "uninstall.purge=true"),
    "foreign-certificate": FOREIGN,
    "no-agent": ("agent.enabled=false",),
    "older-kubelets": ("agent.kubeletAccess=proxy", "agent.criticalPodsQuota=true"),
    "tuned": (
        "scheduler.percentageOfNodesToScore=100",
        "scheduler.extraArgs={--v=4}",
        "agent.profile=observe",
        "manager.settings.workers=4",
        "switches.extender=observe",
        "agent.maxUnavailable=1",
    ),
}
MONITORED = (
    "monitoring.serviceMonitor.enabled=true",
    "monitoring.prometheusRule.enabled=true",
    "monitoring.dashboards.enabled=true",
)
CERT_MANAGER = ("webhook.registration.by=chart", "webhook.registration.certManager=true")
# What does not contradict each other is looked at together.
TOGETHER = (
    ("private", "guarded", "tuned"),
    ("in-place", "foreign-certificate", "older-kubelets"),
    ("no-scheduler", "everything-else-is-somebody's", "no-agent"),
)
ALL = [
    (),
    *([value for name in some for value in COMBINATIONS[name]] for some in TOGETHER),
    (*MONITORED, *CERT_MANAGER),
]


@pytest.fixture(scope="module", autouse=True)
def _helm(control_plane_binaries):
    if not builds.can_build():
        pytest.skip("needs Go to build Helm")


@functools.cache
def text_of(*assignments, **options):
    return chart.template(IMAGE, "crds.install=false", *assignments, **options)


def rendered(*assignments, **options):
    return chart.documents(text_of(*assignments, **options))


def of_kind(documents, *kinds):
    return plain.of_kind(documents, *kinds)


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
    for document in rendered(namespace="elsewhere"):
        assert names.NAMESPACE not in yaml.safe_dump(document)


def test_a_change_of_settings_replaces_the_pods():
    def marks(*values):
        found = of_kind(rendered(*values), *plain.WORKLOADS)
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
    ):
        after = marks(*values)
        assert {name for name in before if before[name] != after[name]} == changed, values


@pytest.mark.parametrize(
    ("version", "values", "granted", "source"),
    [
        ("1.32.13", (), {("pods", "list"), ("pods", "watch")}, "apiServer"),
        ("1.33.0", (), {("nodes/pods", "get"), ("nodes/configz", "get"), ("pods", "list")}, None),
        ("1.36.3", ("kubeletAccess=none",), {("pods", "list"), ("pods", "watch")}, "apiServer"),
        ("1.32.13", ("kubeletAccess=proxy", "podsFallBack=false"), {("nodes/proxy", "get")}, None),
    ],
    ids=["before 1.33", "from 1.33 on", "none", "proxy, asked for"],
)
def test_an_agent_may_run_no_commands_in_pods_unless_it_is_asked_for(
    version, values, granted, source
):
    documents = rendered(*(f"agent.{value}" for value in values), version=version)
    roles = {one["metadata"]["name"]: one for one in of_kind(documents, "ClusterRole")}
    rights = {
        (resource, verb)
        for rule in roles["koord-agent"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource.startswith("nodes/") or resource == "pods"
    }
    assert rights == granted
    maps = {one["metadata"]["name"]: one for one in of_kind(documents, "ConfigMap")}
    written = yaml.safe_load(maps["koord-agent"]["data"]["settings.yaml"])
    assert written["kubelet"].get("podsFrom") == source


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
    documents = rendered(*MONITORED)
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
        f"koord-{part}-metrics" for part in ("agent", "manager", "scheduler", "webhook")
    }


@pytest.mark.parametrize(
    ("profile", "mode", "evicts"), [("observe", "observe", False), ("full", "enforce", True)]
)
def test_the_profile_of_the_agent_says_how_far_it_goes(profile, mode, evicts):
    text = chart.template(IMAGE, f"agent.profile={profile}", "agent.settings.tickSeconds=2")
    maps = {one["metadata"]["name"]: one for one in of_kind(chart.documents(text), "ConfigMap")}
    settings = yaml.safe_load(maps["koord-agent"]["data"]["settings.yaml"])
    read = agent_settings.Settings.model_validate(settings | {"nodeName": "n"})
    assert (read.mode if profile == "observe" else read.strategies.mode) == mode
    assert read.tick_seconds == 2
    assert read.feature_gates.get("BEMemoryEvict", False) is evicts
    roles = {one["metadata"]["name"]: one for one in of_kind(chart.documents(text), "ClusterRole")}
    granted = [name for rule in roles["koord-agent"]["rules"] for name in rule["resources"]]
    assert ("pods/eviction" in granted) is evicts


def leaves(value, path=""):
    """What an object says, each with its place."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], f"{path}.{key}")]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one, f"{path}[]")]
    return [f"{path[1:]}={value}"]


@pytest.mark.parametrize(
    ("value", "added"),
    [
        (
            "agent.network.enabled=true",
            {
                "hostNetwork=True",
                "dnsPolicy=ClusterFirstWithHostNet",
                "containers[].securityContext.capabilities.add[]=NET_ADMIN",
            },
        ),
        (
            "agent.terwayFolder=/var/lib/terway/qos",
            {
                "containers[].volumeMounts[].name=terway",
                "containers[].volumeMounts[].mountPath=/host/terway",
                "volumes[].name=terway",
                "volumes[].hostPath.path=/var/lib/terway/qos",
            },
        ),
        (
            "agent.writableCgroups=systemd-v2",
            {
                "containers[].volumeMounts[].name=kubepods",
                "containers[].volumeMounts[].mountPath=/host/cgroup/kubepods.slice",
                "volumes[].name=kubepods",
                "volumes[].hostPath.path=/sys/fs/cgroup/kubepods.slice",
            },
        ),
    ],
    ids=["network", "terway", "kubepods"],
)
def test_an_option_of_the_agent_adds_what_it_says_and_no_more(value, added):
    pods = []
    for values in ((), (value,)):
        (found,) = [one for one in of_kind(rendered(*values), "DaemonSet") if "agent" in str(one)]
        pods.append(set(leaves(found["spec"]["template"]["spec"])))
    assert pods[0] < pods[1]
    assert pods[1] - pods[0] == added
    page = (plain.DEPLOY.parent / "docs" / "node.md").read_text()
    assert f"| `{value.partition('=')[0]}` |" in page


@pytest.mark.parametrize(
    ("figure", "gate", "adds"),
    [
        ("performance", "CPICollector", {"PERFMON"}),
        ("network=processes", "", {"hostPID"}),
        ("network=kubelet", "", {"nodes/stats"}),
        ("coldPages", "ColdPageCollector", {"/sys"}),
        ("caches", "ResctrlCollector", {"/sys"}),
        ("volumes", "", {"/var/lib/kubelet/pods"}),
    ],
)
def test_a_figure_of_the_agent_adds_what_it_takes_and_nothing_else(figure, gate, adds):
    granted = {}
    value = figure if "=" in figure else f"{figure}=true"
    for values in ((), (f"agent.measure.{value}",)):
        text = chart.template(IMAGE, *values)
        documents = chart.documents(text)
        (pod,) = of_kind(documents, "DaemonSet")
        spec = pod["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        paths = {one["hostPath"]["path"] for one in spec["volumes"] if "hostPath" in one}
        added = container["securityContext"]["capabilities"].get("add", [])
        roles = of_kind(documents, "ClusterRole")
        (role,) = (one for one in roles if one["metadata"]["name"] == "koord-agent")
        kinds = {name for rule in role["rules"] for name in rule["resources"]}
        granted[values] = kinds | paths | {*added} | {name for name in spec if "host" in name}
        assert ((gate or "PSICollector") in text) is (bool(values) and bool(gate))
        mounts = [one for one in container["volumeMounts"] if one["name"] in ("sys", "pods")]
        assert all(mount["readOnly"] for mount in mounts)
    before, after = granted.values()
    assert after - before == adds
    assert before <= after


async def test_an_api_server_accepts_what_differs(api, kubectl):
    space = {"metadata": {"name": names.NAMESPACE}}
    await api.call("POST", "/api/v1/namespaces", space)
    account = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/default"
    await api.wait_until(account, lambda found: found is not None, 60.0)
    mixed = [value for name in ("guarded", "older-kubelets") for value in COMBINATIONS[name]]
    for values in (mixed, (*COMBINATIONS["in-place"], *FOREIGN)):
        text = chart.template(IMAGE, *values, "crds.install=false", version=builds.version())
        said = await kubectl(
            "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=text
        )
        assert len(said.splitlines()) == len(chart.documents(text))


@pytest.mark.parametrize("layout", ["systemd-v2", "cgroupfs-v2"])
def test_cgroups_outside_of_pods_are_read_only_where_the_layout_is_known(layout):
    (found,) = of_kind(rendered(f"agent.writableCgroups={layout}"), "DaemonSet")
    spec = found["spec"]["template"]["spec"]
    mounts = {one["mountPath"]: one for one in spec["containers"][0]["volumeMounts"]}
    writable = [path for path, one in mounts.items() if not one.get("readOnly")]
    name = "kubepods.slice" if layout == "systemd-v2" else "kubepods"
    own = ["/var/lib/koord-agent", "/var/run/koord-agent"]
    assert sorted(writable) == [f"/host/cgroup/{name}", "/tmp", *own]
    assert mounts["/host/cgroup"]["readOnly"]


PLACED = {
    "nodeSelector": {"pool": "koord"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "koord"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                ]
            }
        }
    },
    "priorityClassName": "koord-own",
}


@pytest.mark.parametrize("component", ["scheduler", "webhook", "manager", "agent"])
def test_components_run_on_the_nodes_that_the_values_choose(component):
    values = [f"{component}.{name}={json.dumps(value)}" for name, value in PLACED.items()]
    pods = {}
    for chosen in ((), tuple(values)):
        documents = chart.documents(chart.template(IMAGE, "crds.install=false", literal=chosen))
        for one in of_kind(documents, "Deployment", "DaemonSet"):
            pods.setdefault(one["metadata"]["name"], []).append(one["spec"]["template"]["spec"])
    for name, (before, after) in pods.items():
        if name != f"koord-{component}":
            assert before == after
            continue
        # Maps of values are merged key by key, lists are replaced.
        assert after["nodeSelector"] == {**before["nodeSelector"], **PLACED["nodeSelector"]}
        assert after["tolerations"] == PLACED["tolerations"]
        assert after["priorityClassName"] == PLACED["priorityClassName"]
        assert after["affinity"] == PLACED["affinity"]


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
