"""What the chart makes of the values of the agent."""

import pytest
import yaml

from agent import settings as agent_settings
from tests.e2e.install.chart_texts import IMAGE, helm, of_kind, rendered
from tests.planes.install import chart, plain

__all__ = ["helm"]


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
    assert read.strategies.reclaim.enable is evicts
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


@pytest.mark.parametrize(
    ("version", "values", "reached"),
    [
        ("1.32.13", (), False),
        ("1.32.13", ("measure.network=kubelet",), True),
        ("1.33.0", (), True),
        ("1.36.3", ("kubeletAccess=none", "measure.network=kubelet"), True),
        ("1.36.3", ("kubeletAccess=none", "measure.network=processes"), False),
        ("1.32.13", ("kubeletAccess=proxy",), True),
    ],
)
def test_agents_reach_kubelets_where_they_ask_them_for_anything(version, values, reached):
    documents = rendered(*(f"agent.{value}" for value in values), version=version)
    policy = plain.named(documents, "NetworkPolicy", "koord-agent")
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert (10250 in ports) is reached
    role = plain.named(documents, "ClusterRole", "koord-agent")
    granted = {name for rule in role["rules"] for name in rule["resources"]}
    assert any(name.startswith("nodes/") for name in granted) is reached


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
