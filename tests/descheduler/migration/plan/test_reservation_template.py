"""The Reservation of a pod: what it asks for, on another node, and for whom."""

import copy

import pytest

from api.koordinator import migration, scheduling
from descheduler.migration.plan import reservation_template
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import NOW, PASSED

TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "rs",
    "controller": True,
    "blockOwnerDeletion": True,
}
POD = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "p",
        "resourceVersion": "7",
        "labels": {"app": "web", "koord.sh/reservation-stand-in": "x"},
        "annotations": {
            "asks": "yes",
            "koord.sh/placement": "x",
            "scheduling.koordinator.sh/resource-status": "{}",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
        "ownerReferences": [{**OWNER, "controller": False, "uid": "other"}, OWNER],
    },
    "spec": {
        "nodeName": "node-0",
        "schedulerName": "koord-scheduler",
        "serviceAccountName": "web",
        "priority": 9000,
        "priorityClassName": "koord-prod",
        "terminationGracePeriodSeconds": 60,
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "PASSWORD", "value": "secret"}],
                "command": ["run"],
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"hostPort": 80, "containerPort": 80}],
            }
        ],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {}}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "token", "projected": {}},
        ],
    },
    "status": {"phase": "Running"},
}
TERMS_OF_5M = reservation_template.Terms(ttl=300.0, now=NOW)


def job(template=None, **notes):
    spec = {}
    if template is not None:
        options = migration.ReservationOptions.model_validate({"template": template})
        spec = {"reservation_options": options}
    return builders.job("job", "shop/web-0", spec=spec, annotations={**PASSED, **notes})


def made(pod=POD, of=None, terms=TERMS_OF_5M):
    before = copy.deepcopy(pod)
    body = reservation_template.body(of or job(), pod, terms)
    assert pod == before
    # What the API server and our own processes read of it.
    read = scheduling.read_reservation(body)
    assert read.pod.spec.containers == () or read.pod.spec.containers[0].name
    return body


def test_it_has_what_schedulers_look_at():
    body = made()
    metadata, spec = body["metadata"], body["spec"]
    assert metadata["name"] == "uid-job"
    assert metadata["labels"] == {
        "app.kubernetes.io/created-by": "koord-descheduler",
        "scheduling.koordinator.sh/reservation-order": str(int(NOW * 1000)),
    }
    assert metadata["ownerReferences"][0]["uid"] == "uid-job"
    assert (spec["allocateOnce"], spec["ttl"], spec["unschedulable"]) == (True, "10m0s", True)
    template = spec["template"]
    assert template["metadata"] == {
        "namespace": "shop",
        "labels": {"app": "web"},
        "annotations": {"asks": "yes"},
    }
    kept = template["spec"]
    assert kept["containers"] == [
        {
            "name": "c",
            "image": "i",
            "ports": [{"hostPort": 80, "containerPort": 80}],
            "resources": {"requests": {"cpu": "1"}},
        }
    ]
    assert kept["initContainers"] == [{"name": "i", "restartPolicy": "Always"}]
    assert kept["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}]
    for name in ("schedulerName", "priorityClassName", "nodeSelector", "tolerations"):
        assert kept[name] == POD["spec"][name]
    assert not {"nodeName", "serviceAccountName"} & set(kept)


def test_no_secret_of_the_pod_is_copied_into_an_object_of_the_cluster():
    assert "secret" not in repr(made())


def test_without_claims_where_the_gate_says_so():
    terms = reservation_template.Terms(ttl=300.0, drops_claims=True, now=NOW)
    assert "volumes" not in made(terms=terms)["spec"]["template"]["spec"]


def test_a_job_that_never_times_out_reserves_for_ever():
    terms = reservation_template.Terms(ttl=None)
    assert made(terms=terms)["spec"]["ttl"] == "0s"


def test_a_place_of_a_group_is_kept_for_as_long_as_the_group_may_move():
    notes = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}
    assert made(of=job(**notes))["spec"]["ttl"] == "15m0s"


def with_spec(**spec):
    return {**POD, "spec": {**POD["spec"], **spec}}


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": []}
ELSEWHERE = {"key": "metadata.name", "operator": "NotIn", "values": ["node-0"]}
THERE = {"key": "metadata.name", "operator": "In", "values": ["node-7"]}
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
FIELD = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-9"]}]}
AFFINITIES = {
    "none": ({}, [{"matchFields": [ELSEWHERE]}]),
    "no node affinity": ({"podAffinity": {}}, [{"matchFields": [ELSEWHERE]}]),
    "preferred only": ({"nodeAffinity": PREFERRED}, [{"matchFields": [ELSEWHERE]}]),
    "every term": (
        {"nodeAffinity": {TERMS: {"nodeSelectorTerms": [ZONE, FIELD]}}},
        [
            {**ZONE, "matchFields": [ELSEWHERE]},
            {"matchFields": [*FIELD["matchFields"], ELSEWHERE]},
        ],
    ),
}


@pytest.mark.parametrize(("affinity", "terms"), AFFINITIES.values(), ids=AFFINITIES)
def test_it_may_not_be_placed_where_the_pod_is(affinity, terms):
    body = made(with_spec(affinity=affinity))
    found = body["spec"]["template"]["spec"]["affinity"]
    assert found["nodeAffinity"][TERMS]["nodeSelectorTerms"] == terms
    assert {k: v for k, v in found.items() if k != "nodeAffinity"} == {
        k: v for k, v in affinity.items() if k != "nodeAffinity"
    }


def test_it_goes_where_the_round_has_decided():
    target = {"koord.sh/migration-target": "node-7"}
    found = made(of=job(**target))["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert found[TERMS]["nodeSelectorTerms"] == [{"matchFields": [THERE]}]
    same = {"koord.sh/migration-target": "node-0"}
    found = made(of=job(**same))["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert found[TERMS]["nodeSelectorTerms"] == [{"matchFields": [ELSEWHERE]}]


CONTROLLER = {key: OWNER[key] for key in ("apiVersion", "kind", "name", "uid", "controller")}
OWNERS = {
    "controller": (POD, [{"controller": {**CONTROLLER, "namespace": "shop"}}]),
    "waits for a node": (
        with_spec(nodeName=""),
        [{"object": {"kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "p"}}],
    ),
    "no controller": (
        {**POD, "metadata": {**POD["metadata"], "ownerReferences": []}},
        [{"object": {"kind": "Pod", "namespace": "shop", "name": "web-0"}}],
    ),
}


@pytest.mark.parametrize(("pod", "owners"), OWNERS.values(), ids=OWNERS)
def test_the_pods_of_the_same_controller_may_use_it(pod, owners):
    body = made(pod)
    assert body["spec"]["owners"] == owners
    assert len(scheduling.read_reservation(body).spec.owners) == 1


def test_a_pod_without_a_node_may_be_placed_anywhere():
    spec = made(with_spec(nodeName=""))["spec"]
    assert "affinity" not in spec["template"]["spec"]
    # It waits for this very place.
    assert "unschedulable" not in spec


def test_what_the_job_says_about_its_reservation_has_precedence():
    template = {
        "metadata": {
            "name": "mine",
            "labels": {"a": "b", "scheduling.koordinator.sh/reservation-order": "5"},
        },
        "spec": {
            "expires": "2030-01-01T00:00:00Z",
            "allocateOnce": False,
            "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}],
            "template": {"spec": {"containers": [{"name": "own"}], "nodeName": "node-3"}},
        },
    }
    body = made(of=job(template))
    assert body["metadata"]["name"] == "mine"
    assert body["metadata"]["labels"] == {
        "a": "b",
        "scheduling.koordinator.sh/reservation-order": "5",
        "app.kubernetes.io/created-by": "koord-descheduler",
    }
    spec = body["spec"]
    assert (spec["allocateOnce"], spec["expires"]) == (False, "2030-01-01T00:00:00Z")
    assert "ttl" not in spec
    assert spec["owners"] == template["spec"]["owners"]
    assert spec["template"]["spec"]["containers"] == [{"name": "own"}]
    assert "nodeName" not in spec["template"]["spec"]


HOSTILE = {
    "metadata is a list": {"metadata": []},
    "spec is a text": {"spec": "x"},
    "template is a number": {"spec": {"template": 7}},
    "labels are lists": {"metadata": {"labels": {"a": []}, "name": 5}},
    "affinity of the template is a list": {
        "spec": {"template": {"spec": {"affinity": [], "containers": "x"}}}
    },
    "terms are texts": {
        "spec": {
            "template": {
                "spec": {
                    "affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": ["x", None]}}},
                    "containers": [],
                }
            }
        }
    },
}


@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_a_template_of_any_shape_raises_nothing(template):
    body = reservation_template.body(job(template), POD, TERMS_OF_5M)
    assert body["metadata"]["labels"]["app.kubernetes.io/created-by"] == "koord-descheduler"
