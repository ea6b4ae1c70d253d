"""Where a pod would be placed, who would leave for it, or why nothing helps."""

import json

import msgspec
import pytest

from api import names, resources
from api.wire import durations
from cli.placement import answer, asked_pod, preview
from cli.snapshot import renaming
from tests import builders
from tests.cli.placement import clusters
from tests.cli.placement.clusters import (
    a_budget,
    a_class,
    a_device,
    a_reservation,
    a_team,
    a_topology,
    holds_cpus,
    holds_gpu,
    low,
    of_team,
    wanted,
    wants_gpu,
)

GPUS = {clusters.GPU: "2"}


def tried(*objects, pod=None, plugins=(), **more):
    asked = asked_pod.added(clusters.snapshot(*objects, **more), pod or wanted(), "default")
    return preview.preview(asked, plugins)


def a_node(name="n1", cpu="16", **more):
    return builders.a_node(name, cpu=cpu, **more)


def test_nodes_that_take_it_stand_in_the_order_of_their_scores():
    found = tried(
        a_node("n1"), a_node("n2"), a_node("n3", cpu="2"), a_node("n4", taints=[
            {"key": "k", "value": "v", "effect": "NoSchedule"}]),
        a_reservation(node="n2", ttl="0s"), pod=wanted(labels={"team": "x"}),
    )  # fmt: skip
    assert [(one.node, one.tier > 0) for one in found.places] == [("n2", True), ("n1", False)]
    assert (found.fits, found.nodes, found.leaving) == (2, 4, None)
    assert {one.nodes: one.by for one in found.refused} == {
        ("n3",): "kube-scheduler",
        ("n4",): "kube-scheduler",
    }


def test_a_pod_of_a_file_requests_what_it_limits():
    pod = wanted()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "4", clusters.GPU: "1"}}
    found = tried(a_node("n1"), a_node("n2", cpu="2", extra=GPUS), pod=pod)
    assert found.places == ()
    found = tried(a_node("n1"), a_node("n2", extra={clusters.GPU: "1"}), pod=pod)
    assert [one.node for one in found.places] == ["n2"]


@pytest.mark.parametrize("renamed", [False, True], ids=["as it is", "renamed"])
@pytest.mark.parametrize("home", [names.NAMESPACE, "acme"])
def test_no_quota_holds_pods_of_the_namespace_in_which_koord_runs(home, renamed):
    team = [of_team(low("used", namespace="acme")), a_node(), a_team()]
    pod = of_team(wanted(namespace="acme"))
    snapshot = asked_pod.added(clusters.snapshot(*team, home=home), pod, "acme").snapshot
    if renamed:
        snapshot = renaming.renamed(snapshot)
    (waits,) = [one for one in snapshot.objects["pods"] if "nodeName" not in one["spec"]]
    asked = asked_pod.Asked(snapshot, waits["metadata"]["uid"])
    found = preview.preview(asked)
    is_home = home == "acme"
    assert (found.fits, found.leaving is None) == (int(is_home), is_home)


CASES = [
    pytest.param(
        [a_node(cpu="4"), low()], wanted(), ("kube-scheduler", "n1", "lacks 4 cores"),
        id="no room: kube-scheduler's own preemption",
    ),
    pytest.param(
        [a_node(), a_team(), of_team(low())], of_team(wanted()),
        ("extender", "n1", "quota"), id="quota",
    ),
    pytest.param(
        [a_node(cpu="32"), a_topology(), holds_cpus("0-15", cpu="16")],
        wanted(**clusters.CPUS), ("extender", "n1", "CPU"), id="CPUs",
    ),
    pytest.param(
        [a_node(extra=GPUS), a_device(), holds_gpu()], wants_gpu(),
        ("extender", "n1", "GPU"), id="devices",
    ),
    pytest.param(
        [a_node(cpu="10"), a_reservation(ttl="0s"), low(cpu="3")], wanted(),
        ("extender", "n1", "reserv"), id="a Reservation beside it",
    ),
    pytest.param(
        [a_node(cpu="32"), a_node("n2", cpu="32"), a_topology(), a_topology("n2"),
         holds_cpus("0-15", cpu="16", name="other", priority=2000),
         holds_cpus("0-15", cpu="16", node="n2")],
        wanted(**clusters.CPUS), ("extender", "n2", "CPU"),
        id="of two nodes the one where CPUs leave",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "pod", "expected"), CASES)
def test_who_leaves(objects, pod, expected):
    found = tried(*objects, pod=pod, plugins=("NodeNUMAResource",))
    assert found.places == ()
    assert found.leaving is not None, found
    by, node, reason = expected
    assert (found.leaving.by, found.leaving.node) == (by, node)
    assert [one.key for one in found.leaving.victims] == ["default/low"]
    assert reason.lower() in found.leaving.reason.lower()
    text = "\n".join(answer.lines(found))
    assert f"evict 1 pod on node {node}" in text
    assert "default/low (priority 10)" in text


@pytest.mark.parametrize(("objects", "pod", "expected"), CASES)
def test_renaming_changes_no_answer(objects, pod, expected):
    """A renamed snapshot still says who holds which CPUs and devices."""
    plain = asked_pod.added(clusters.snapshot(*objects), pod, "default")
    renamed = asked_pod.Asked(renaming.renamed(plain.snapshot), "")
    raw = renamed.snapshot.of(resources.PODS)[-1]
    found = preview.preview(renamed._replace(uid=raw["metadata"]["uid"]), ("NodeNUMAResource",))
    assert found.leaving is not None
    assert (found.leaving.by, len(found.leaving.victims)) == (expected[0], 1)
    assert found.leaving.node.startswith("node-")


@pytest.mark.parametrize(
    ("objects", "pod", "why"),
    [
        pytest.param([a_node(cpu="2")], wanted(), "no node would pods of lower priority",
                     id="no room anywhere"),
        pytest.param([a_node(cpu="4"), low(priority=2000)], wanted(), "no node would pods",
                     id="only more important pods"),
        pytest.param([a_node(cpu="4"), low()], wanted(spec={"preemptionPolicy": "Never"}),
                     "preemptionPolicy is Never", id="it preempts nobody"),
        pytest.param([a_node(extra=GPUS), a_device(), holds_gpu(priority=2000)], wants_gpu(),
                     "no victims would help", id="a more important pod has the GPU"),
        pytest.param([a_node(extra=GPUS), a_device(), holds_gpu(
            labels={names.LABEL_DISABLE_PREEMPTIBLE: "true"})], wants_gpu(),
            "no victims would help", id="a pod that may not be preempted"),
    ],
)  # fmt: skip
def test_where_nothing_helps_it_says_why(objects, pod, why):
    found = tried(*objects, pod=pod)
    assert (found.places, found.leaving) == ((), None)
    assert why in found.nothing
    assert f"No eviction would help: {found.nothing}." in list(answer.lines(found))
    assert answer.document(found)["outcome"] == "nothing"
    assert found.refused


@pytest.mark.parametrize(("allowed", "violations"), [(0, 1), (1, 0)])
def test_disruption_budgets_are_counted(allowed, violations):
    victim = holds_gpu(labels={"app": "kept"})
    found = tried(a_node(extra=GPUS), a_device(), victim, a_budget(allowed), pod=wants_gpu())
    assert found.leaving is not None
    assert found.leaving.violations == violations


def test_a_plug_in_decides_only_where_it_is_enabled():
    objects = [a_node(cpu="32"), a_topology(), holds_cpus("0-15", cpu="16")]
    settings = clusters.SETTINGS.replace("DeviceShare", "DeviceShare, NodeNUMAResource")
    pod = wanted(**clusters.CPUS)
    assert tried(*objects, pod=pod).fits == 1
    assert tried(*objects, pod=pod, settings=settings).fits == 0


@pytest.mark.parametrize(
    ("more", "note"),
    [
        pytest.param({"without": (resources.DEVICES,)},
                     "an older release took this snapshot, without devices.scheduling",
                     id="no Devices yet"),
        pytest.param({"without": (resources.NODE_RESOURCE_TOPOLOGIES,)},
                     "without noderesourcetopologies", id="no topologies yet"),
        pytest.param({"settings": ""}, "the plug-ins are those that are enabled by default",
                     id="no settings"),
        pytest.param({"settings": "plugins: 7"}, "cannot be read", id="odd settings"),
        pytest.param({"settings": "preemption: {mode: observe}"},
                     "preemption.mode observe keeps the extender from evicting", id="observing"),
        pytest.param({"without": (resources.NODE_METRICS,)},
                     "no measured usage, so LoadAware", id="no NodeMetrics yet"),
        pytest.param({}, "no measured usage, so LoadAware", id="no usage"),
    ],
)  # fmt: skip
def test_what_a_snapshot_lacks_is_noted(more, note):
    found = tried(a_node(), **more)
    assert found.fits == 1
    assert any(note in one for one in found.notes), found.notes


@pytest.mark.parametrize(
    ("held", "fits"),
    [
        pytest.param([], 1, id="no claim"),
        pytest.param([clusters.a_claim()], 1, id="a claim without devices"),
        pytest.param([clusters.a_claim(0)], 0, id="a claim that holds it"),
        pytest.param([clusters.a_claim(1)], 1, id="a claim that holds another one"),
    ],
)
@pytest.mark.parametrize("name", [lambda one: one, renaming.renamed], ids=["as it is", "renamed"])
def test_devices_that_claims_hold_are_taken(held, fits, name):
    found = [a_node(extra=GPUS), clusters.a_device(), clusters.a_slice(), *held]
    whole = name(clusters.snapshot(*found))
    asked = asked_pod.added(whole, wants_gpu(), "default")
    assert preview.preview(asked).fits == fits


def test_of_slices_and_claims_is_kept_what_identifies_devices():
    text = json.dumps(clusters.snapshot(clusters.a_slice(), clusters.a_claim(0)).objects)
    assert "GPU-0" in text
    assert "secret" not in text


def a_report(node="n1", cpu="1", age=30.0, pods=()):
    at = durations.timestamp(clusters.NOW) - age
    return builders.a_node_metric(node, cpu=cpu, memory="1Gi", update_time=at, pods=pods)


@pytest.mark.parametrize("name", [lambda one: one, renaming.renamed], ids=["as it is", "renamed"])
@pytest.mark.parametrize(
    ("reports", "fits"),
    [
        pytest.param([a_report()], 1, id="little load"),
        pytest.param([a_report(cpu="15")], 0, id="high load"),
        pytest.param([a_report(cpu="15"), a_report("other", cpu="1")], 0, id="of no node"),
    ],
)
def test_measured_usage_counts(reports, fits, name):
    whole = name(clusters.snapshot(a_node(cpu="16"), *reports))
    found = preview.preview(asked_pod.added(whole, wanted(cpu="1"), "default"))
    assert found.fits == fits
    assert not any("measured usage" in note for note in found.notes)


@pytest.mark.parametrize(("cpu", "fits"), [("1", 1), ("14", 0)], ids=["little", "much"])
def test_what_online_pods_hold_is_not_lent_to_batch_pods(cpu, fits):
    lends = {"kubernetes.io/batch-cpu": "8000", "kubernetes.io/batch-memory": "8Gi"}
    asks = {"kubernetes.io/batch-cpu": "4000", "kubernetes.io/batch-memory": "1Gi"}
    labels = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
    rule = {"enable": True, "cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 60}
    strategy = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.CONFIG_MAP_SLO},
        "data": {"colocation-config": json.dumps(rule)},
    }  # fmt: skip
    found = tried(
        a_node(extra=lends), a_report(), strategy, low(cpu=cpu, priority=9500),
        pod=wanted(requests=asks, labels=labels), settings="plugins: {enabled: [BatchFit]}",
    )  # fmt: skip
    assert found.fits == fits
    assert [one.by for one in found.refused] == ([] if fits else ["BatchFit"])


def test_of_a_report_is_kept_what_load_is_read_from():
    pod = builders.a_pod_metric("acme-1", cpu="1", memory="1Gi")
    raw = a_report(pods=[pod]) | {"spec": {"metricCollectPolicy": {"acme": "secret"}}}
    raw["status"]["hostApplicationMetric"] = [{"name": "secret"}]
    whole = clusters.snapshot(raw)
    assert "secret" not in json.dumps(whole.objects)
    (kept,) = whole.of(resources.NODE_METRICS)
    assert kept["status"]["podsMetric"][0]["name"] == "acme-1"
    assert "acme" not in json.dumps(renaming.renamed(whole).objects)


def test_an_older_file_still_answers_without_what_it_lacks():
    pod, without = wants_gpu(), (resources.DEVICES, resources.NODE_RESOURCE_TOPOLOGIES)
    snapshot = clusters.snapshot(a_node(extra=GPUS), without=without)
    assert all(snapshot.lacks(one) for one in without)
    found = preview.preview(asked_pod.added(snapshot, pod, "default"))
    assert len([note for note in found.notes if "older release" in note]) == 2


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        pytest.param({"priority": 7}, 7, id="written"),
        pytest.param({"priorityClassName": "high"}, 900, id="of its class"),
        pytest.param({}, 5, id="of the default class"),
    ],
)
def test_priority_is_that_which_admission_writes(spec, priority):
    pod = wanted(priority=None, spec=spec)
    classes = [a_class("high", 900), a_class("usual", 5, globalDefault=True)]
    assert tried(a_node(), *classes, pod=pod).priority == priority


def test_a_pod_of_the_cluster_is_tried_by_its_name():
    snapshot = clusters.snapshot(a_node(), wanted(), low())
    found = preview.preview(asked_pod.named(snapshot, clusters.WANTED))
    assert (found.pod, found.fits) == (clusters.WANTED, 1)
    again = asked_pod.added(snapshot, wanted(cpu="99"), "default")
    assert len(again.snapshot.of(resources.PODS)) == 2
    assert "takes its place" in again.notes[0]
    assert preview.preview(again).fits == 0


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        pytest.param(lambda found: asked_pod.named(found, "default/low"), "is on node n1 already",
                     id="it has a node"),
        pytest.param(lambda found: asked_pod.named(found, "default/x"), "no pod default/x",
                     id="it does not exist"),
        pytest.param(lambda found: asked_pod.added(
            found, wanted(priority=None, spec={"priorityClassName": "x"}), "default"),
            "no PriorityClass x", id="its class does not exist"),
        pytest.param(lambda found: asked_pod.added(found, {"spec": {"containers": 7}}, "default"),
                     "no Pod that can be read", id="it is no pod"),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_be_tried_is_refused_with_the_remedy(ask, why):
    with pytest.raises(asked_pod.AskedPodError, match=why):
        ask(clusters.snapshot(a_node(), low()))


def test_gates_and_a_node_of_the_file_are_noted():
    pod = wanted(gates=["koord.sh/quota"], node="n1")
    found = tried(a_node(), pod=pod)
    assert found.fits == 1
    assert [note for note in found.notes if "koord.sh/quota" in note]
    assert [note for note in found.notes if "spec.nodeName" in note]


def test_objects_of_an_unexpected_shape_are_named_and_left_out():
    snapshot = clusters.snapshot(a_node(), a_node("n2"))
    bad = {"metadata": {"name": "n1"}, "spec": {"devices": 7}}
    held = {
        **snapshot.objects,
        resources.DEVICES.review_name(): (bad,),
        resources.RESERVATIONS.review_name(): ({"metadata": {"name": "r"}, "spec": 7},),
    }
    asked = asked_pod.added(msgspec.structs.replace(snapshot, objects=held), wanted(), "default")
    found = preview.preview(asked)
    assert found.fits == 2
    assert [note for note in found.notes if note.startswith("Device n1 cannot be read")]
    assert [note for note in found.notes if note.startswith("Reservation r cannot be read")]


def a_config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(
    ("name", "data", "fits", "note"),
    [
        pytest.param(names.CONFIG_MAP_SWITCHES, {"preemption": "observe"}, 0,
                     "live switch preemption keeps the extender", id="live switch"),
        pytest.param(names.CONFIG_MAP_SCHEDULER, {"k": "profiles: 7"}, 0, "has faults",
                     id="a configuration with faults"),
        pytest.param(names.CONFIG_MAP_SCHEDULER, {"k": """
            apiVersion: kubescheduler.config.k8s.io/v1
            kind: KubeSchedulerConfiguration
            profiles:
              - schedulerName: koord-scheduler
                plugins: {filter: {disabled: [{name: DeviceShare}]}}
            """}, 1, "no measured usage", id="a filter that is disabled"),
        pytest.param(names.CONFIG_MAP_GPU_TEMPLATES, {"data.yaml": "7"}, 0,
                     "gpu-shared-resource-templates cannot be read", id="templates"),
    ],
)  # fmt: skip
def test_config_maps_of_the_installation_count(name, data, fits, note):
    objects = [a_node(extra=GPUS), a_device(), holds_gpu(), a_config_map(name, **data)]
    found = tried(*objects, pod=wants_gpu())
    assert found.fits == fits
    assert any(note in one for one in found.notes), found.notes
