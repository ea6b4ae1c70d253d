"""Bodies of the API server, the scheduler and admission keep their wire names."""

import base64
import json

import msgspec
import pytest

from api import resources
from api.kubernetes import core, extender
from api.kubernetes.webhooks import admission
from tests import builders

POD = b"""{"apiVersion":"v1","kind":"Pod","unknown":{"deep":[1]},
"metadata":{"name":"a","namespace":"n","uid":"u","creationTimestamp":null,
 "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"y"},
  {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"z","controller":true}]},
"spec":{"nodeName":"n1","schedulerName":"s","priority":9000,"preemptionPolicy":"Never",
 "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":1,"memory":"1Gi"}}}],
 "initContainers":[{"name":"d","restartPolicy":"Always"}],
 "overhead":{"cpu":"10m"},"schedulingGates":[{"name":"g"}],"hostNetwork":true,
 "tolerations":[{"key":"k","operator":"Exists"}],"affinity":{"nodeAffinity":{}}},
"status":{"phase":"Running","podIP":"10.0.0.1","qosClass":"Burstable",
 "nominatedNodeName":"n2","conditions":[{"type":"Ready","status":"True"}],
 "containerStatuses":[{"name":"c","containerID":"containerd://1","state":{"running":{}}}]}}"""


def test_a_pod_keeps_what_we_read():
    pod = msgspec.json.decode(POD, type=core.Pod)
    assert pod.metadata.key == "n/a"
    assert pod.metadata.controller is not None
    assert pod.metadata.controller.kind == "ReplicaSet"
    assert pod.spec.containers[0].resources.requests == {"cpu": 1, "memory": "1Gi"}
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert (pod.spec.priority, pod.spec.preemption_policy) == (9000, "Never")
    assert pod.spec.scheduling_gates == (core.SchedulingGate(name="g"),)
    assert pod.status.container_statuses[0].container_id == "containerd://1"
    assert (pod.status.pod_ip, pod.status.nominated_node_name) == ("10.0.0.1", "n2")
    ready = pod.status.condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    assert not pod.finished


def test_wire_names_survive_a_round_trip():
    pod = msgspec.json.decode(POD, type=core.Pod)
    again = msgspec.json.decode(msgspec.json.encode(pod), type=core.Pod)
    assert again == pod


def test_builders_make_what_the_structs_read():
    pod = msgspec.convert(
        builders.a_pod(node="n", gates=["g"], priority=5, owner={"kind": "Job", "uid": "1"}),
        core.Pod,
    )
    assert (pod.spec.node_name, pod.status.phase) == ("n", "Running")
    assert pod.metadata.controller == core.OwnerReference(kind="Job", uid="1", controller=True)
    node = msgspec.convert(builders.a_node(extra={"nvidia.com/gpu": "8"}), core.Node)
    assert node.ready
    assert node.status.allocatable["nvidia.com/gpu"] == "8"
    assert not msgspec.convert(builders.a_node(ready=False), core.Node).ready
    budget = {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}
    assert msgspec.convert(budget, core.PodDisruptionBudget).status.disruptions_allowed == 1
    data = msgspec.convert(builders.a_config_map(data={"a": "b"}), core.ConfigMap).data
    assert data == {"a": "b"}
    assert msgspec.convert(builders.a_priority_class("p", 7), core.PriorityClass).value == 7


def test_filter_by_names_and_by_nodes():
    names = msgspec.json.decode(b'{"Pod":{},"Nodes":null,"NodeNames":["a"]}', type=extender.Args)
    assert (names.nodes, names.node_names) == (None, ("a",))
    body = b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"x"},"kept":[1,2]}]},"NodeNames":null}'
    full = msgspec.json.decode(body, type=extender.Args)
    assert full.nodes is not None
    assert full.nodes.decoded()[0].metadata.name == "x"
    written = json.loads(msgspec.json.encode(extender.FilterResult(nodes=full.nodes)))
    assert written == {
        "Nodes": {
            "items": [{"metadata": {"name": "x"}, "kept": [1, 2]}],
            "kind": "NodeList",
            "apiVersion": "v1",
        },
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_prioritize_bind_and_preempt():
    assert msgspec.json.encode([extender.HostPriority(host="n", score=7)]) == (
        b'[{"Host":"n","Score":7}]'
    )
    asked = b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"}'
    bind = msgspec.json.decode(asked, type=extender.BindingArgs)
    assert (bind.pod_uid, bind.node) == ("u", "n")
    assert msgspec.json.encode(extender.BindingResult()) == b'{"Error":""}'
    question = b"""{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":
        {"n":{"Pods":[{"UID":"u"}],"NumPDBViolations":2}}}"""
    preempt = msgspec.json.decode(question, type=extender.PreemptionArgs)
    assert preempt.node_name_to_meta_victims is not None
    assert preempt.node_name_to_meta_victims["n"].violations == 2
    answer = extender.PreemptionResult(preempt.node_name_to_meta_victims)
    assert json.loads(msgspec.json.encode(answer)) == {
        "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}}
    }
    full = b'{"Pod":{},"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"uid":"u"}}]}}}'
    victims = msgspec.json.decode(full, type=extender.PreemptionArgs).node_name_to_victims
    assert victims is not None
    assert victims["n"].pods is not None
    assert victims["n"].pods[0].metadata.uid == "u"


REVIEW = b"""{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",
"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1",
"resource":"pods"},"subResource":"binding","name":"p","namespace":"d","operation":"UPDATE",
"userInfo":{"username":"me","groups":["g"]},"object":{"a":1},"oldObject":{"a":2},
"dryRun":true,"options":null}}"""


def test_a_review_is_read():
    request = admission.decode(REVIEW)
    assert (request.uid, request.operation, request.sub_resource) == ("1", "UPDATE", "binding")
    assert (request.object, request.old_object, request.dry_run) == ({"a": 1}, {"a": 2}, True)
    assert request.user_info.groups == ["g"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request":{}}', b"\xff"])
def test_anything_else_is_no_review(body):
    with pytest.raises(admission.ReviewError, match=r"admission\.k8s\.io/v1"):
        admission.decode(body)


def test_answers_are_written():
    operations = [{"op": "add", "path": "/a", "value": 1}]
    allowed = json.loads(
        admission.encode(admission.allowed("1", operations=operations, warnings=["w"]))
    )
    patch = allowed["response"].pop("patch")
    assert json.loads(base64.b64decode(patch)) == operations
    assert allowed == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "1", "allowed": True, "patchType": "JSONPatch", "warnings": ["w"]},
    }
    untouched = json.loads(admission.encode(admission.allowed("1", operations=[])))
    assert untouched["response"] == {"uid": "1", "allowed": True}
    refused = json.loads(admission.encode(admission.refused("1", "no", code=422, reason="Invalid")))
    assert refused["response"] == {
        "uid": "1",
        "allowed": False,
        "status": {"code": 422, "message": "no", "reason": "Invalid"},
    }


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (resources.PODS, (), "/api/v1/pods"),
        (resources.PODS, ("d",), "/api/v1/namespaces/d/pods"),
        (resources.PODS, ("d", "p", "binding"), "/api/v1/namespaces/d/pods/p/binding"),
        (resources.NODES, ("ignored", "n", "status"), "/api/v1/nodes/n/status"),
        (resources.LEASES, ("d",), "/apis/coordination.k8s.io/v1/namespaces/d/leases"),
        (resources.NODE_SLOS, ("", "n"), "/apis/slo.koordinator.sh/v1alpha1/nodeslos/n"),
    ],
)
def test_paths(resource, arguments, path):
    assert resource.path(*arguments) == path


def test_every_custom_resource_has_one_name():
    known = [(item.group, item.plural) for item in resources.CUSTOM]
    assert len(known) == len(set(known)) == 15
    assert resources.NODE_SLOS.api_version == "slo.koordinator.sh/v1alpha1"
    assert resources.PODS.api_version == "v1"
    assert resources.DEVICES.review_name() == "devices.scheduling.koordinator.sh"
