"""`koord simulate settings`: lent amounts and placements of a change, on small snapshots."""

import json

import pytest
import yaml
from PIL import Image

from api import names, resources
from api.wire import durations
from cli import main
from cli.explain import lending_breakdown
from cli.simulation import added_nodes, change, command, lent
from cli.snapshot import reader
from process.runtime import clock as clocks
from tests import builders
from tests.cli.placement import clusters

NOW = durations.timestamp(clusters.NOW)
ON = {"enable": True, "cpuReclaimThresholdPercent": 60, "memoryReclaimThresholdPercent": 65}
MORE = {**ON, "cpuReclaimThresholdPercent": 90}


def settings(colocation, **others):
    data = {"colocation-config": json.dumps(colocation), **others}
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP_SLO}, "data": data,
    }  # fmt: skip


def report(node, *, cpu="3", system="1", pods=(), **more):
    kind = resources.NODE_METRICS
    raw = builders.a_node_metric(
        node, cpu=cpu, memory="9Gi", update_time=NOW - 5, pods=pods,
        system={"cpu": system, "memory": "2Gi"}, **more,
    )  # fmt: skip
    return {"apiVersion": kind.api_version, "kind": kind.kind, **raw}


def web(node="n1", cpu="4"):
    return builders.a_pod("web", cpu=cpu, memory="8Gi", node=node, labels={
        names.LABEL_QOS: "LS", names.LABEL_PRIORITY_CLASS: "koord-prod"})  # fmt: skip


def batch(name, cores, node="", **more):
    wanted = {names.BATCH_CPU: str(cores * 1000), names.BATCH_MEMORY: "1Gi"}
    return builders.a_pod(
        name, node=node, requests=wanted, priority=5500, labels={names.LABEL_QOS: "BE"}, **more
    )


def small(*pods, colocation=ON):
    """Two nodes that report, a service on the first, and other pods."""
    used = builders.a_pod_metric("web", cpu="2500m", memory="4Gi", band="koord-prod", qos="LS")
    return clusters.snapshot(
        builders.a_node("n1"), builders.a_node("n2", cpu="8"), web(),
        report("n1", pods=(used,)), report("n2", cpu="1"), *pods, settings(colocation),
    )  # fmt: skip


def test_what_is_lent_is_what_the_manager_writes_node_by_node():
    snapshot = small(
        builders.a_node("silent"), builders.a_node("late"), {**report("late"), "status": {
            **report("late")["status"], "updateTime": durations.moment(NOW - 9000)}},
    )  # fmt: skip
    found = lent.calculated(snapshot)
    clock = clocks.ManualClock(NOW)
    by_name = {one["metadata"]["name"]: one for one in snapshot.of(resources.NODE_METRICS)}
    data = settings(ON)["data"]
    for node in snapshot.of(resources.NODES):
        name = node["metadata"]["name"]
        pods = [one for one in snapshot.of(resources.PODS) if one["spec"].get("nodeName") == name]
        told = lending_breakdown.explained(node, pods, by_name.get(name), data, clock)
        expected = {one["resource"]: one["offered"] for one in told["resources"]}
        assert found.nodes[name] == expected, name
    # 16 cores, 40 % kept back, 1 of the system and 2.5 of the service.
    assert found.nodes["n1"][names.BATCH_CPU] == 6100
    assert found.nodes["silent"] == found.nodes["late"] == {}


def test_hosts_and_predictions_of_a_snapshot_count():
    mid = {**ON, "midCPUThresholdPercent": 50, "midMemoryThresholdPercent": 50}
    one = report("n1", reclaimable={"cpu": "2", "memory": "3Gi"})
    one["status"]["hostApplicationMetric"] = [
        {"name": "nginx", "priority": "koord-prod", "usage": {"resources": {"cpu": "500m"}}}
    ]
    found = lent.calculated(clusters.snapshot(builders.a_node("n1"), one, settings(mid)))
    assert found.nodes["n1"][names.MID_CPU] == 2000
    assert found.nodes["n1"][names.BATCH_CPU] == 16000 - 6400 - 1500


def test_pods_get_a_place_on_what_the_change_lends():
    snapshot = small(batch("a", 6), batch("b", 4, created=10.0), batch("c", 9, created=20.0))
    found = command.compared(snapshot, [settings(MORE)])
    assert [(one.key, one.node) for one in found.without.placed.places] == [("default/a", "n1")]
    assert [(one.key, one.node) for one in found.changed.placed.places] == [
        ("default/a", "n1"), ("default/b", "n2"),
    ]  # fmt: skip
    (waits,) = found.changed.placed.waits
    assert (waits.key, waits.by) == ("default/c", "kube-scheduler")
    assert found.changed.lent.nodes["n1"][names.BATCH_CPU] == 10900
    assert found.said == (f"ConfigMap {names.CONFIG_MAP_SLO} is changed",)


def test_pods_that_hold_more_than_is_lent_are_named_the_youngest_first():
    held = [batch(f"j{n}", 3, "n1", created=float(n)) for n in range(3)]
    found = command.compared(small(*held), [settings({**ON, "cpuReclaimThresholdPercent": 50})])
    (over,) = found.changed.over
    assert (over.node, over.resource, over.held, over.lent) == ("n1", names.BATCH_CPU, 9000, 4500)
    assert over.pods == ("default/j2", "default/j1")


def test_new_nodes_lend_what_the_system_and_daemons_leave():
    daemon = builders.a_pod("d", cpu="1", node="n1", owner={
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"})  # fmt: skip
    found = command.compared(small(daemon, batch("c", 7)), [], (2, "n1"))
    # The daemon is not measured, so that its request counts: 16 - 6.4 - 1 - 1.
    assert found.changed.lent.nodes["n1-copy-2"][names.BATCH_CPU] == 7600
    assert [one.node for one in found.changed.placed.places] == ["n1-copy-1"]
    assert found.without.placed.places == ()


def test_quotas_and_thresholds_of_plug_ins_are_tried():
    pod = clusters.of_team(builders.a_pod("p", cpu="4", priority=9000))
    quota = clusters.a_team(most="2")
    snapshot = clusters.snapshot(builders.a_node("n1"), pod, quota)
    found = command.compared(snapshot, [clusters.a_team(most="8")])
    assert found.without.placed.waits[0].by == "ElasticQuota"
    assert [one.key for one in found.changed.placed.places] == ["default/p"]


def test_gated_pods_are_not_tried():
    snapshot = small(batch("a", 1, gates=["koordinator.sh/quota"]))
    found = command.compared(snapshot, [settings(MORE)])
    assert found.changed.placed.gated == ("default/a",)
    assert any("1 pod waits behind scheduling gates" in note for note in found.notes)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}},
                     "no decision reads it", id="map"),
        pytest.param({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
            "name": names.CONFIG_MAP_SLO}, "data": {"a": 1}}, "data: write texts", id="data"),
        pytest.param({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "x"}},
                     "such objects are not tried", id="kind"),
        pytest.param({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}},
                     "koord simulate pod", id="pod"),
        pytest.param({"kind": "Node", "apiVersion": "v1"}, "metadata.name", id="name"),
        pytest.param({"kind": "ClusterColocationProfile", "metadata": {"name": "x"},
                      "spec": {"probability": []}}, "probability", id="profile"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_is_refused_by_name(document, why):
    with pytest.raises(change.ChangeError, match=why):
        change.applied(small(), [document])


@pytest.mark.parametrize(("count", "like", "why"), [(0, "n1", "--nodes 0"), (1, "x", "--like x")])
def test_nodes_that_cannot_be_added_are_refused(count, like, why):
    with pytest.raises(change.ChangeError, match=why):
        added_nodes.grown(small(), count, like)


def test_settings_that_are_wrong_are_told():
    found = command.compared(small(), [settings({**ON, "cpuReclaimThresholdPercent": "much"})])
    assert any("cpuReclaimThresholdPercent" in note for note in found.notes)


def test_the_command_reads_files_and_prints_lines_and_documents(tmp_path, capsys):
    file, snapshot = tmp_path / "change.yaml", tmp_path / "s"
    file.write_text(yaml.safe_dump(settings(MORE)))
    reader.save(snapshot, small(batch("a", 6), batch("b", 4)))
    words = ["simulate", "settings", f"--snapshot={snapshot}"]
    assert main.main([*words, "-f", str(file)]) == 0
    out = capsys.readouterr().out
    assert f"try: ConfigMap {names.CONFIG_MAP_SLO} is changed" in out
    assert "Of 2 waiting pods 2 would get a place; without the change 1." in out
    assert main.main([*words, "-f", str(file), "-o", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["lent"][names.BATCH_CPU] == {"before": 9900, "after": 17100}
    assert body["changed"]["placed"][0]["pod"] == "default/a"
    html, png = tmp_path / "r.html", tmp_path / "r.png"
    assert main.main([*words, "-f", str(file), f"--html={html}", f"--png={png}"]) == 0
    capsys.readouterr()
    text = html.read_text()
    assert "Of 2 waiting pods 2 would get a place; without the change 1." in text
    assert "<td>n1</td><td>kubernetes.io/batch-cpu</td><td>6.1</td><td>10.9</td>" in text
    assert "<td>default/b</td><td>waits</td><td>n2</td>" in text
    assert text.count("<svg") == 4
    assert "17.1 cores" in text
    with Image.open(png) as picture:
        assert picture.format == "PNG"
    assert main.main(words) == 2
    assert "nothing is changed" in capsys.readouterr().err
    assert main.main([*words, "--nodes=2"]) == 2
    assert "--like go together" in capsys.readouterr().err
