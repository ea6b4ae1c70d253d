"""Reservations, gangs, migrations and the other kinds of scheduling."""

import pytest

from api import resources
from api.koordinator import colocation, explanation, migration, scheduling, topology
from api.koordinator.metrics import analysis
from api.wire import base
from tests import builders


@pytest.mark.parametrize(
    ("name", "cpu", "seconds", "once"),
    [
        ("000-reservation-spark-job-reservation-202401", "8", 600, True),
        ("000-reservation-flink-job-batch-20240101", "4", 7200, False),
        ("002-reservation-batch-job-reservation", "8", 43200, True),
    ],
)
def test_the_examples(manifests, name, cpu, seconds, once):
    read = scheduling.review_reservation(manifests[name])
    assert read.warnings == ()
    assert (read.value.spec.ttl, read.value.spec.allocate_once) == (seconds, once)
    (container,) = read.value.pod.spec.containers
    assert (container.image, container.resources.requests["cpu"]) == ("", cpu)


def test_the_illustrated_status_is_read_as_given(manifests):
    status = scheduling.read_reservation(
        manifests["000-reservation-spark-job-reservation-202401"]
    ).status
    assert (status.phase, status.node_name, len(status.current_owners)) == (
        "Available",
        "node-001",
        2,
    )
    assert status.allocated == {"cpu": "8", "memory": "16Gi"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 1000 + 86400),
        ({"ttl": "10m"}, 1600),
        ({"ttl": "24h0m0s"}, 87400),
        ({"ttl": "0"}, None),
        ({"expires": "1970-01-02T00:00:00Z"}, 86400),
        ({"expires": "1970-01-02T00:00:00Z", "ttl": "10m"}, 86400),
    ],
)
def test_lifetime(given, expected):
    read = scheduling.review_reservation(builders.a_reservation(created=1000, **given))
    assert read.value.expires_at == expected
    assert bool(read.warnings) is (len(given) == 2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "Aligned"),
        ({"preAllocation": True}, "Restricted"),
        ({"allocatePolicy": "Restricted"}, "Restricted"),
        ({"allocatePolicy": "Aligned"}, "Aligned"),
    ],
)
def test_policy(given, expected):
    assert scheduling.read_reservation(builders.a_reservation(**given)).policy == expected


def test_a_new_reservation_is_pending():
    read = scheduling.read_reservation(builders.a_reservation())
    assert read.status.phase == scheduling.PENDING
    assert scheduling.PHASES == ("Pending", "Available", "Waiting", "Succeeded", "Failed")


def test_a_misspelt_policy_is_answered_with_a_hint():
    read = scheduling.review_reservation(builders.a_reservation(allocationPolicy="Aligned"))
    assert read.warnings == ("spec.allocationPolicy: no such field, write allocatePolicy",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"template": None}, "spec.template: Field required"),
        ({"owners": None}, "spec.owners: Field required"),
        ({"owners": []}, "spec.owners: Tuple should have at least 1 item"),
        ({"owners": [{}]}, r"spec.owners\[0\]: give at least one of object, controller"),
        (
            {"owners": [{"controller": {"kind": "Job"}}]},
            r"owners\[0\].controller.apiVersion: Field",
        ),
        ({"ttl": "ten minutes"}, 'spec.ttl: "ten minutes" is no duration'),
        ({"ttl": 600}, None),
        ({"allocatePolicy": "Strict"}, "spec.allocatePolicy: Input should be 'Aligned' or 'Restr"),
        ({"preAllocationPolicy": {"mode": "All"}}, "spec.preAllocationPolicy.mode"),
        ({"taints": [{"key": "a"}]}, r"spec.taints\[0\].effect: Field required"),
    ],
)
def test_bad_reservations_are_refused(changes, message):
    raw = builders.a_reservation(**changes)
    if message is None:
        assert scheduling.read_reservation(raw).spec.ttl == 600
        return
    with pytest.raises(base.ReadError, match=f"Reservation reservation: .*{message}"):
        scheduling.read_reservation(raw)


def test_every_form_of_owner_is_read():
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}
    owners = [{"object": {"name": "p"}}, {"controller": controller}, {"labelSelector": {}}]
    read = scheduling.read_reservation(builders.a_reservation(owners=owners))
    assert read.spec.wire()["owners"] == owners


def test_a_template_with_a_bad_pod_is_named():
    template = {"spec": {"containers": [{"name": 5}], "nodeName": None}}
    read = scheduling.read_reservation(builders.a_reservation(template=template))
    with pytest.raises(base.ReadError, match=r"reservation: spec.template: .*name"):
        _ = read.pod


def test_pod_groups():
    spec = {"minMember": 3, "minResources": {"cpu": "10"}, "scheduleTimeoutSeconds": 60}
    read = scheduling.read_pod_group(builders.an_object(resources.POD_GROUPS, "g", "d", spec=spec))
    assert (read.spec.min_member, read.metadata.key) == (3, "d/g")
    with pytest.raises(base.ReadError, match=r"PodGroup g: spec.minMember"):
        scheduling.read_pod_group(
            builders.an_object(resources.POD_GROUPS, "g", "d", spec={"minMember": "3"})
        )


def test_migration_jobs():
    spec = {"podRef": {"namespace": "d", "name": "p"}, "ttl": "5m", "mode": "EvictDirectly"}
    raw = builders.an_object(resources.POD_MIGRATION_JOBS, "j", spec=spec)
    read = migration.read_pod_migration_job(raw)
    assert (read.spec.pod_ref.name, read.spec.ttl, read.status.phase) == ("p", 300, "")
    with pytest.raises(base.ReadError, match=r"PodMigrationJob j: spec.podRef: Field required"):
        migration.read_pod_migration_job(
            builders.an_object(resources.POD_MIGRATION_JOBS, "j", spec={})
        )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "spec.target: Field required"),
        ({"type": "job"}, "spec.target.type: Input should be 'workload' or 'podSelector'"),
        ({"type": "workload"}, "spec.target: workload: required when type is workload"),
        ({"type": "podSelector", "workload": {"kind": "a", "name": "b"}}, "podSelector: required"),
        ({"type": "workload", "workload": {"kind": "Deployment"}}, "workload.name: Field required"),
    ],
)
def test_bad_recommendations_are_refused(target, message):
    raw = builders.an_object(resources.RECOMMENDATIONS, "r", "d", spec={"target": target})
    with pytest.raises(base.ReadError, match=f"Recommendation r: .*{message}"):
        analysis.read_recommendation(raw)


def test_the_sample_recommendation(manifests):
    read = analysis.read_recommendation(manifests["002-recommendation-example-recommendation"])
    assert read.spec.target.workload is not None
    assert read.spec.target.workload.name == "example-app"


def test_explanations_live_a_day():
    raw = builders.an_object(
        resources.SCHEDULE_EXPLANATIONS, "e", "d", spec={"questionObjectKey": "d/p"}
    )
    read = explanation.read_schedule_explanation(raw)
    assert (read.spec.ttl, read.spec.question_object_key) == (86400, "d/p")


def test_topologies():
    zone = {
        "name": "node-10",
        "type": "Node",
        "costs": [{"name": "node-0", "value": 21}],
        "resources": [{"name": "cpu", "capacity": "4", "allocatable": 4, "available": "3500m"}],
    }
    raw = {"metadata": {"name": "n"}, "topologyPolicies": ["None"], "zones": [zone]}
    read = topology.read_node_resource_topology(raw)
    assert read.zones[0].number == 10
    assert read.zones[0].resources[0].allocatable == "4"
    assert topology.Zone(name="socket", type="Socket").number is None
    network = {"networkTopologySpec": [{"topologyLayer": "NodeTopologyLayer"}]}
    layers = topology.read_cluster_network_topology(
        builders.an_object(resources.CLUSTER_NETWORK_TOPOLOGIES, "default", spec=network)
    )
    assert layers.spec.network_topology_spec[0].topology_layer == "NodeTopologyLayer"


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        *((None, 100), (0, 0), (100, 100), ("30%", 30), (30, 30), ("030%", 30), ("00%", 0)),
        pytest.param(f"{'0' * 5000}30%", 30, id="leading zeros"),
        pytest.param(f"{'1' * 5000}%", 111_111_111, id="very many"),
    ],
)
def test_probability_of_a_profile(probability, expected):
    read = colocation.read_profile(builders.a_profile(probability=probability))
    assert read.percentage == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"probability": "often"}, 'spec.probability: "often" is no percentage'),
        ({"probability": 0.5}, "spec.probability: must be an integer or a percentage"),
        ({"probability": True}, "spec.probability: must be an integer or a percentage"),
        ({"qosClass": "be"}, "spec.qosClass: Input should be 'LSE', 'LSR', 'LS', 'BE' or 'SYS"),
        ({"qosClass": ""}, "spec.qosClass"),
        ({"koordinatorPriority": 2**31}, "spec.koordinatorPriority"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "needs at least one",
        ),
    ],
)
def test_bad_profiles_are_refused(spec, message):
    with pytest.raises(base.ReadError, match=f"ClusterColocationProfile profile: .*{message}"):
        colocation.read_profile(builders.a_profile(**spec))


def test_a_profile_without_selectors_is_pointed_out(manifests):
    assert colocation.review_profile(builders.a_profile(selector={})).warnings == ()
    (warning,) = colocation.review_profile(builders.a_profile()).warnings
    assert "every pod matches" in warning
    sample = colocation.review_profile(manifests["002-clustercolocationprofile-high-priority"])
    assert sample.warnings == ()
    assert sample.value.spec.wire() == {
        "selector": {"matchLabels": {"priority": "high"}},
        "qosClass": "LSE",
        "priorityClassName": "system-cluster-critical",
    }
