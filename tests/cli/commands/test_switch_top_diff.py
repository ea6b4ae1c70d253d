"""`koord switch`, `koord top` and `koord diff` from their arguments to their output."""

import asyncio
import io
import json
import sys
import time

import pytest
import yaml

from api import names, resources
from api.kubernetes import crds
from cli import main
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.processes import credentials
from tests import builders

NAMESPACE = names.NAMESPACE
KINDS = {"NodeMetric", "ClusterColocationProfile", "ElasticQuota"}
STRATEGY = {"enable": True, "cpuReclaimThresholdPercent": 60, "memoryReclaimThresholdPercent": 65}
PROFILE = {
    "apiVersion": resources.COLOCATION_PROFILES.api_version,
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "batch"},
    "spec": {
        "selector": {"matchLabels": {"team": "a"}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
    },
}
UNLIMITED = {
    "metadata": {"name": "all"},
    "spec": {"min": {"cpu": "1"}, "max": {"cpu": "1844674407370955161"}},
}
"""As much as Koordinator writes into its default quota."""


@pytest.fixture
async def served(tmp_path):
    """An administrator, and a function that runs a command against an API server."""
    clock = ManualClock(float(int(time.time())))
    async with apiserver.running(clock=clock) as plane:
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(credentials.kubeconfig(plane.url, plane.ca, plane.token)))
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await admin.create(resources.NAMESPACES, {"metadata": {"name": NAMESPACE}})

            async def run(*words):
                return await asyncio.to_thread(main.main, [*words, f"--kubeconfig={file}"])

            yield admin, run


async def filled(admin):
    """A node that reports, with a service and a pod of a team on it."""
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] in KINDS:
            await admin.create(resources.CRDS, definition)
    batch = {"metadata": {"name": "koord-batch"}, "value": 5000}
    await admin.create(resources.PRIORITY_CLASSES, batch)
    node = builders.a_node("n1", cpu="16", memory="64Gi")
    node["metadata"]["labels"] = {"pool": "x"}
    await admin.create(resources.NODES, node)
    await admin.patch(resources.NODES, "n1", {"status": node["status"]}, subresource="status")
    for name, labels in (("web", {}), ("job", {"team": "a"})):
        pod = builders.a_pod(name, cpu="4", memory="8Gi", node="n1")
        pod["metadata"] = {"name": name, "namespace": "default", "labels": labels}
        pod.pop("status", None)
        await admin.create(resources.PODS, pod, "default")
    report = builders.a_node_metric("n1", cpu="3", memory="9Gi", update_time=time.time())
    usage = {"resources": {"cpu": "2500m", "memory": "4Gi"}}
    report["status"]["podsMetric"] = [{"namespace": "default", "name": "web", "podUsage": usage}]
    await admin.create(resources.NODE_METRICS, {**report, "metadata": {"name": "n1"}})
    await admin.patch(
        resources.NODE_METRICS, "n1", {"status": report["status"]}, subresource="status"
    )


async def test_a_switch_is_set_after_a_question_and_taken_back(served, capsys, monkeypatch):
    admin, run = served
    assert await run("switch", "extender", "observe", "--dry-run") == 0
    assert "would set extender: default -> observe on http" in capsys.readouterr().out
    assert await run("switch", "extender", "observe") == 1
    assert "pass --yes" in capsys.readouterr().out
    assert await run("switch", "extender", "observe", "--yes") == 0
    assert await run("switch", "agent.evictions", "off", "--yes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "extender is observe; it was default", "agent.evictions is off; it was default",
    ]  # fmt: skip
    found = await admin.get(resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, NAMESPACE)
    assert found["data"] == {"extender": "observe", "agent.evictions": "off"}

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    assert await run("switch", "extender", "default") == 1
    assert "nothing was done" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert await run("switch", "extender", "default") == 0
    assert await run("switch", "extender", "default", "--yes") == 0
    assert "extender is default already" in capsys.readouterr().out
    assert await run("switch", "-o", "jsonpath={.items[*].mode}") == 0
    assert capsys.readouterr().out.split() == ["default"] * 9 + ["off"]
    assert await run("switch", "agent.evictions") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["agent.evictions", "off"]


@pytest.mark.parametrize(
    ("key", "why"),
    [("extendr", "there is no switch extendr"), ("agent.nothing", "there is no such switch")],
)
def test_an_unknown_switch_is_refused(key, why, capsys):
    assert main.main(["switch", key, "off"]) == 2
    assert why in capsys.readouterr().err


def test_an_unknown_mode_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main.main(["switch", "agent", "of"])
    assert "(choose from 'enforce', 'observe', 'off', 'default')" in capsys.readouterr().err


async def test_top_shows_what_is_requested_used_and_lent(served, capsys):
    admin, run = served
    await filled(admin)
    assert await run("top", "nodes") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:6] == ["NODE", "CPU", "REQUESTED", "USED", "LENT", "BORROWED"]
    assert row.split()[:6] == ["n1", "16.0", "8.0", "3.0", "0.0", "0.0"]
    assert await run("top", "nodes", "-l", "pool=y") == 0
    assert capsys.readouterr().err == "there are no nodes with labels pool=y\n"
    assert await run("top", "pods", "-l", "pool=y") == 0
    assert capsys.readouterr().err == (
        "there are no pods with labels pool=y in namespace default; -A shows all\n"
    )
    assert await run("top", "pods", "-l", "pool=y", "-A") == 0
    assert capsys.readouterr().err == "there are no pods with labels pool=y\n"
    assert await run("top", "pods", "-l", "team!=a") == 0
    _, row = capsys.readouterr().out.splitlines()
    assert row.split()[1:3] == ["web", "n1"]
    assert row.split()[-6:] == ["4.0", "2.5", "0.0", "8.0Gi", "4.0Gi", "0.0Gi"]
    assert await run("top", "pods", "-A", "-o", "name") == 0
    assert capsys.readouterr().out.splitlines() == ["default/job", "default/web"]
    assert await run("top", "nodes", "-o", "wide") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.count("USED %") == 2
    assert row.split()[4] == "18%"
    assert await run("top", "pods", "-o", "wide") == 0
    assert capsys.readouterr().out.splitlines()[0].split()[4:6] == ["BAND", "PHASE"]
    await admin.create(resources.ELASTIC_QUOTAS, UNLIMITED, "default")
    assert await run("top", "quotas", "-A") == 0
    assert "unlimited" in capsys.readouterr().out
    assert await run("top", "node", "-o", "name") == 0
    assert capsys.readouterr().out.splitlines() == ["n1"]


async def test_status_shows_nodes_with_labels_and_pods_of_a_namespace(served, capsys):
    admin, run = served
    await filled(admin)
    late = builders.a_pod("late", cpu="90")
    late.pop("status", None)
    late["metadata"] = {"name": "late", "namespace": "default"}
    await admin.create(resources.PODS, late, "default")
    assert await run("status") == 0
    assert "default/late asks" in capsys.readouterr().out
    assert await run("status", "-n", "other", "-l", "pool=x", "-o", "wide") == 0
    said = capsys.readouterr().out
    assert "default/late" not in said
    assert "n1" in said
    assert "MEM CAPACITY" in said
    assert await run("status", "-l", "pool=y", "-o", "jsonpath={.nodes[*].name}") == 0
    assert not capsys.readouterr().out.strip()


async def test_diff_tells_what_settings_and_profiles_would_do(served, tmp_path, capsys):
    admin, run = served
    await filled(admin)
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP_SLO},
        "data": {"colocation-config": json.dumps(STRATEGY)},
    }
    file = tmp_path / "change.yaml"
    file.write_text(yaml.safe_dump_all([settings, PROFILE]))
    assert await run("diff", "-f", str(file)) == 1
    said = capsys.readouterr()
    assert "cluster settings: 1 of 1 node would lend other amounts" in said.out
    assert f"n1  {names.BATCH_CPU}  0.0 -> " in said.out
    assert "profile batch: selects 1 pod; 1 would get other classes" in said.out
    assert "default/job  qos LS -> BE, band koord-prod -> koord-batch" in said.out
    assert "pods that run keep their class" in said.err
    # Applied, the settings differ no more, and what the manager calculates is what was told.
    await admin.create(resources.CONFIG_MAPS, settings, NAMESPACE)
    file.write_text(yaml.safe_dump(settings))
    assert await run("diff", "-f", str(file), "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["lending"]["changes"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: Pod\nmetadata: {name: p}\n", "Pod p: only a ConfigMap"),
        ("", "the files hold no objects"),
        ("a: [", "cannot be read"),
        (f"kind: ConfigMap\nmetadata: {{name: {names.CONFIG_MAP_SLO}}}\ndata: 3\n", "data: write"),
        ("- 1\n", "a document"),
    ],
    ids=["another kind", "nothing", "no YAML", "data that is none", "a list"],
)
def test_a_file_that_cannot_be_compared_is_refused(tmp_path, capsys, text, why):
    file = tmp_path / "change.yaml"
    file.write_text(text)
    assert main.main(["diff", "-f", str(file)]) == 2
    assert why in capsys.readouterr().err
