"""The plain manifests hold together: what they name exists, and what they set can be set."""

import re

import pytest
import yaml

from agent import settings as agent_settings
from api import names
from api.kubernetes import scheduler_config
from domain.scheduler_settings import documents as scheduler_documents
from extender import settings as extender_settings
from manager import settings as manager_settings
from manager.cluster_settings import plan as cluster_settings
from process.configuration import settings
from process.runtime import entry
from tests.planes.install import chart, plain
from webhook import settings as webhook_settings

MODELS = {
    "extender": extender_settings.Settings,
    "webhook": webhook_settings.Settings,
    "manager": manager_settings.Settings,
    "agent": agent_settings.Settings,
}
LOADED = {mode: plain.documents(mode) for mode in chart.MODES}
CONTAINERS = [
    pytest.param(mode, workload, pod, container, id=f"{mode}-{container['name']}")
    for mode, documents in LOADED.items()
    for workload, pod, container in plain.containers(documents)
]
OURS = [case for case in CONTAINERS if case.values[3]["name"] in MODELS]
each_container = pytest.mark.parametrize(("mode", "workload", "pod", "container"), CONTAINERS)
each_process = pytest.mark.parametrize(("mode", "workload", "pod", "container"), OURS)
each_mode = pytest.mark.parametrize("mode", chart.MODES)
ENVIRONMENT = {"metadata.name": "a-pod", "spec.nodeName": "a-node", "status.hostIP": "10.0.0.1"}


def expanded(container):
    """The environment of a container as a kubelet would fill it in."""
    found = {}
    for one in container.get("env", ()):
        if "value" in one:
            found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda m: found[m.group(1)], one["value"])
        else:
            found[one["name"]] = ENVIRONMENT[one["valueFrom"]["fieldRef"]["fieldPath"]]
    return found


def settings_of(mode, pod, container, folder):
    """The settings that a process of ours would run with."""
    name, *words = container["args"]
    options = entry.parse(words)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volume = mounts[str(options.config.parent)]
    (source,) = (one["configMap"]["name"] for one in pod["volumes"] if one["name"] == volume)
    data = plain.named(LOADED[mode], "ConfigMap", source)["data"]
    file = folder / "settings.yaml"
    file.write_text(data[options.config.name])
    return settings.load(
        MODELS[name],
        file=file,
        environ=expanded(container),
        prefix=entry.prefix_of(name),
        flags=options.flags,
    )


@each_process
def test_every_setting_is_one_that_the_process_knows(mode, workload, pod, container, tmp_path):
    assert container["args"][0] == container["name"]
    read = settings_of(mode, pod, container, tmp_path)
    assert read.log.format == "json"
    if container["name"] == "extender":
        assert read.instance == "a-pod"
    if container["name"] == "agent":
        assert (read.node_name, read.kubelet.url) == ("a-node", "https://10.0.0.1:10250")


@each_process
def test_ports_of_a_container_are_those_the_process_listens_on(
    mode, workload, pod, container, tmp_path
):
    read = settings_of(mode, pod, container, tmp_path)
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports["metrics"] == read.health.port
    assert read.health.host == "0.0.0.0"
    if "https" in ports:
        assert ports["https"] == read.server.port
        assert read.server.host == "0.0.0.0"


@each_container
def test_every_container_is_locked_in(mode, workload, pod, container):
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container["securityContext"]
    assert own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"]["drop"] == ["ALL"]
    assert not own.get("privileged")
    if container["name"] == "agent":
        return
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not own["capabilities"].get("add")
    assert not any("hostPath" in volume for volume in pod["volumes"])
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()


@each_container
def test_every_container_has_resources_and_probes(mode, workload, pod, container):
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    ports = {one["name"] for one in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] in ports
        assert asked["path"] in ("/healthz", "/readyz")


@each_container
def test_every_mounted_volume_exists_and_no_root_is_written(mode, workload, pod, container):
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "configMap" in volume:
            assert mount["readOnly"] is True
            plain.named(LOADED[mode], "ConfigMap", volume["configMap"]["name"])
        if "emptyDir" in volume:
            assert volume["emptyDir"]["medium"] == "Memory"
            assert volume["emptyDir"]["sizeLimit"]


@each_container
def test_images_have_to_be_named_by_whoever_installs(mode, workload, pod, container):
    name, _, tag = container["image"].rpartition(":")
    if container["name"] == "kube-scheduler":
        assert (name, tag) == ("registry.k8s.io/kube-scheduler", chart.SCHEDULER_TAG)
    else:
        assert name == chart.IMAGE


@each_container
def test_tokens_are_mounted_only_where_they_are_used(mode, workload, pod, container):
    account = plain.named(LOADED[mode], "ServiceAccount", pod["serviceAccountName"])
    assert account["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True
    assert pod["enableServiceLinks"] is False


@each_mode
def test_every_selector_selects_the_workload_it_is_meant_for(mode):
    documents = LOADED[mode]
    labels = {}
    for workload in plain.of_kind(documents, *plain.WORKLOADS):
        name = workload["metadata"]["name"]
        labels[name] = workload["spec"]["template"]["metadata"]["labels"]
        assert plain.selects(workload["spec"]["selector"]["matchLabels"], labels[name])
        for spread in workload["spec"]["template"]["spec"].get("topologySpreadConstraints", ()):
            assert plain.selects(spread["labelSelector"]["matchLabels"], labels[name])
    budgets = plain.of_kind(documents, "PodDisruptionBudget")
    policies = plain.of_kind(documents, "NetworkPolicy")
    services = plain.of_kind(documents, "Service")
    selectors = [
        *((one, one["spec"]["selector"]["matchLabels"]) for one in budgets),
        *((one, one["spec"]["podSelector"]["matchLabels"]) for one in policies),
        *((one, one["spec"]["selector"]) for one in services),
    ]
    for document, selector in selectors:
        matched = [name for name, found in labels.items() if plain.selects(selector, found)]
        assert matched == [document["metadata"]["name"]]
    replicated = {w["metadata"]["name"] for w in plain.of_kind(documents, "Deployment")}
    assert {one["metadata"]["name"] for one in budgets} == replicated
    assert {one["metadata"]["name"] for one in policies} == labels.keys()


@each_mode
def test_ports_of_services_and_policies_are_ports_of_containers(mode):
    documents = LOADED[mode]
    ports = {}
    for workload, _, container in plain.containers(documents):
        known = ports.setdefault(workload["metadata"]["name"], set())
        known |= {one["name"] for one in container["ports"]}
    services = [*plain.of_kind(documents, "Service")]
    policies = [*plain.of_kind(documents, "NetworkPolicy")]
    assert services
    assert policies
    for service in services:
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports[service["metadata"]["name"]]
    for policy in policies:
        for rule in policy["spec"]["ingress"]:
            for port in rule["ports"]:
                assert port["port"] in ports[policy["metadata"]["name"]]


@each_mode
def test_the_webhook_is_called_where_it_listens(mode, tmp_path):
    documents = LOADED[mode]
    (case,) = (c.values for c in OURS if c.id == f"{mode}-webhook")
    read = settings_of(mode, case[2], case[3], tmp_path)
    service = plain.named(documents, "Service", read.registration.service)
    assert service["metadata"]["namespace"] == read.namespace
    assert read.certificates.names == (f"{read.registration.service}.{read.namespace}.svc",)
    assert [port["port"] for port in service["spec"]["ports"]] == [443]
    plain.named(documents, "Secret", read.certificates.secret)


def test_the_scheduler_calls_the_extender_in_its_own_pod(tmp_path):
    documents = LOADED["beside"]
    text = plain.named(documents, "ConfigMap", "koord-scheduler")["data"]["scheduler.yaml"]
    lease = scheduler_config.Lease(names.NAMESPACE, "koord-scheduler")
    options = scheduler_config.Options(
        "http://127.0.0.1:9211",
        scheduler_names=("koord-scheduler",),
        leader_elect=True,
        lease=lease,
    )
    assert yaml.safe_load(text) == scheduler_config.render(options)
    (case,) = (c.values for c in OURS if c.id == "beside-extender")
    assert settings_of("beside", case[2], case[3], tmp_path).server.port == 9211
    rules = plain.named(documents, "Role", "koord-scheduler")["rules"]
    assert [rule["resourceNames"] for rule in rules] == [[lease.name]]


@each_mode
def test_what_is_set_for_the_cluster_can_be_read_and_lends_nothing_yet(mode):
    data = plain.named(LOADED[mode], "ConfigMap", names.CONFIG_MAP_SLO)["data"]
    read = cluster_settings.read(None, data)
    assert read.problems == ()
    assert read.settings.available
    assert not read.settings.colocation_enabled


@each_mode
def test_what_plugins_are_told_is_installed_and_leaves_them_to_the_settings(mode):
    written = plain.named(LOADED[mode], "ConfigMap", names.CONFIG_MAP_SCHEDULER)["data"]
    reading = scheduler_documents.read(written)
    assert (reading.settings, reading.faults, reading.warnings) == (
        scheduler_documents.NOTHING,
        (),
        (),
    )
    (profile,) = yaml.safe_load(written[names.CONFIG_MAP_SCHEDULER])["profiles"]
    assert profile["schedulerName"] == scheduler_config.PROFILE


@each_mode
def test_priorities_lie_in_their_bands(mode):
    found = plain.of_kind(LOADED[mode], "PriorityClass")
    values = {one["metadata"]["name"]: one["value"] for one in found}
    assert values == {
        "koord-prod": 9000,
        "koord-mid": 7000,
        "koord-batch": 5000,
        "koord-free": 3000,
    }


@each_mode
def test_nothing_stands_twice_and_everything_is_ours(mode):
    keys = [chart.key(document) for document in LOADED[mode]]
    assert len(keys) == len(set(keys))
    for document in LOADED[mode]:
        assert document["metadata"]["labels"]["app.kubernetes.io/part-of"] == "koord"


def test_every_file_is_brought_in():
    listed = {path for one in chart.MODES for path in plain.files(plain.MANIFESTS / one)}
    folders = ("beside", "in-place", "common")
    there = {
        path
        for folder in folders
        for path in (plain.MANIFESTS / folder).glob("*.yaml")
        if path.name not in plain.NAMES
    }
    definitions = set((plain.DEPLOY / "crds").glob("*.yaml"))
    assert listed == there | definitions


def test_the_registration_in_the_chart_is_the_one_the_webhook_writes():
    written = chart.WEBHOOKS.read_text()
    assert written == chart.webhooks(), "run `make manifests`"
