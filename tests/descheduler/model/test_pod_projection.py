import json
import random
import types
import typing

import msgspec
import pytest

from api.koordinator.metadata import qos
from api.kubernetes import core, protobuf_fields
from descheduler.model import pod_object, pod_projection, podinfo
from domain.quota import placement
from kube.client import protobuf, wire
from tests import builders as objects
from tests import protobuf_messages as messages
from tests.hostile import broken

MADE = "2026-07-01T00:00:00Z"
LATER = "2026-07-01T00:01:30Z"
MADE_AT = 1_782_864_000.0
TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
PREFERRED = {"weight": 7, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
AFFINITY = {
    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]},
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
STATUS = {
    "phase": "Running",
    "startTime": MADE,
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": LATER},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": MADE},
    ],
    "containerStatuses": [
        {"name": "app", "restartCount": 0, "state": {"running": {"startedAt": MADE}}}
    ],
}


def projected(projector=None, *, metadata=None, status=None, **fields):
    raw = objects.a_pod("web-0", **fields)
    raw["metadata"] |= {"uid": "u", "creationTimestamp": MADE, **(metadata or {})}
    raw["status"] = {**raw["status"], **(status or {})}
    return (projector or pod_projection.Projector()).pod(msgspec.convert(raw, pod_object.Pod))


def test_what_filters_and_plug_ins_read_of_a_pod():
    pod = projected(
        node="n1",
        cpu="500m",
        labels={"koordinator.sh/qosClass": "LS"},
        annotations={"scheduling.koordinator.sh/eviction-cost": "5", "other": "x" * 9000},
        priority=9500,
        owner={"kind": "ReplicaSet", "name": "web", "uid": "rs", "apiVersion": "apps/v1"},
        spec={
            "affinity": AFFINITY,
            "nodeSelector": {"disk": "ssd"},
            "topologySpreadConstraints": [SPREAD],
            "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            ],
            "initContainers": [{"name": "init", "image": "i"}],
        },
        status=STATUS,
    )
    assert pod == podinfo.Pod(
        key="default/web-0",
        uid="u",
        node="n1",
        phase="Running",
        priority=9500,
        band=qos.Band.PROD,
        qos=qos.QoS.LS,
        kubernetes_qos="Burstable",
        scheduler_name="default-scheduler",
        labels={"koordinator.sh/qosClass": "LS"},
        annotations={"scheduling.koordinator.sh/eviction-cost": "5"},
        owners=(core.OwnerReference("apps/v1", "ReplicaSet", "web", "rs", controller=True),),
        requests={"cpu": 500, "memory": 1 << 30, "pods": 1},
        wanted=pod.wanted,
        created=MADE_AT,
        started=MADE_AT,
        ready=True,
        restarts_cost_seconds=90.0,
        containers=(
            podinfo.Container("init", "i", "init"),
            podinfo.Container("app", "registry.k8s.io/pause:3.9", state="running"),
        ),
        conditions=(
            podinfo.Condition("Ready", "True", since=MADE_AT + 90),
            podinfo.Condition("PodScheduled", "True", since=MADE_AT),
        ),
        has_local_storage=True,
        claims=("data",),
        spread=(SPREAD,),
        affinity={"podAntiAffinity": AFFINITY["podAntiAffinity"]},
        preferred_nodes=(PREFERRED,),
    )
    assert pod.wanted.nodes.matches("n", {"disk": "ssd"})
    assert not pod.wanted.nodes.matches("n", {"disk": "hdd"})


def volume(**source):
    return {"spec": {"volumes": [{"name": "v", **source}]}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, {"is_mirror": True}),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, {"is_mirror": True}),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, {"is_mirror": False}),
        (volume(hostPath={"path": "/"}), {"has_local_storage": True}),
        (volume(configMap={}), {"has_local_storage": False}),
        ({"spec": {"resourceClaims": [{"name": "gpu"}]}}, {"has_resource_claims": True}),
        ({"metadata": {"deletionTimestamp": LATER}}, {"leaves_at": MADE_AT + 90}),
        ({"status": {"qosClass": "BestEffort"}}, {"band": qos.Band.BATCH}),
        ({"phase": "Failed"}, {"has_ended": True, "ready": False, "node": ""}),
        ({"status": {"reason": "x" * 200}}, {"reason": "x" * 128}),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, {"gang": "default/g"}),
    ],
    ids=[
        "mirror", "from a file", "from the API server", "host path", "config map", "claims",
        "terminating", "best effort", "failed", "reason of failure", "gang",
    ],
)  # fmt: skip
def test_one_thing_about_a_pod(given, expected):
    pod = projected(**given)
    assert {name: getattr(pod, name) for name in expected} == expected
    assert not pod.flaw


def test_states_of_containers():
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    pod = projected(
        node="n",
        status={
            "containerStatuses": [{"name": "app", "restartCount": 9, "state": waiting}],
            "ephemeralContainerStatuses": [{"name": "debug", "state": killed}],
        },
    )
    app, debug = pod.containers
    assert (app.restarts, app.state, app.reason) == (9, "waiting", "CrashLoopBackOff")
    assert (debug.kind, debug.exit_code, debug.reason) == ("ephemeral", 137, "OOMKilled")
    assert pod.restarts_cost_seconds == 0.0


def test_pods_of_one_template_share_what_they_say():
    projector = pod_projection.Projector()
    given = {
        "node": "n",
        "labels": {"app": "web"},
        "owner": {"kind": "ReplicaSet", "name": "w", "uid": "r"},
        "spec": {"nodeSelector": {"disk": "ssd"}, "topologySpreadConstraints": [SPREAD]},
        "status": STATUS,
    }
    one, other = projected(projector, **given), projected(projector, **given)
    for name in ("labels", "owners", "requests", "wanted", "spread", "containers", "created"):
        assert getattr(one, name) is getattr(other, name), name


def test_daemon_pods_leave_what_others_share_alone():
    """Each of them names its node, so that 5,000 would push everything else out."""
    projector = pod_projection.Projector()
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d"}
    pin = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    term = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    pod = projected(projector, owner=owner, spec={"affinity": affinity})
    assert pod.wanted.nodes.matches("n7", {})
    assert not pod.wanted.nodes.matches("n8", {})
    assert len(projector._placements._found) == 0


def test_a_pod_that_cannot_be_read_keeps_its_room_and_has_a_flaw():
    pod = projected(node="n", cpu="many", labels={"app": "web"})
    assert "many" in pod.flaw
    assert (pod.node, pod.labels, pod.requests) == ("n", {"app": "web"}, {"pods": 1})


def test_no_pod_breaks_its_reader():
    rng, projector = random.Random(7), pod_projection.Projector()
    reader = wire.Reader(pod_object.Pod, projector.pod)
    base = objects.a_pod(
        "web-0", node="n", annotations={"scheduling.koordinator.sh/eviction-cost": "1"}
    )
    base["spec"] |= {"affinity": AFFINITY, "topologySpreadConstraints": [SPREAD], "volumes": [{}]}
    base["status"] = STATUS
    flaws = 0
    for _ in range(1500):
        raw = {
            **broken({"spec": base["spec"], "status": STATUS}, rng),
            "metadata": base["metadata"],
        }
        text = json.dumps({"metadata": {"resourceVersion": "1"}, "items": [raw]})
        text = text.replace("NaN", "null").replace("-Infinity", "0").replace("Infinity", "0")
        _, (item,) = reader.page(text.replace("\\ud800", "?").encode())
        flaws += bool(item.flaw or (item.value is not None and item.value.flaw))
    assert flaws > 100


def test_volumes_come_in_protobuf_as_in_json():
    said = {
        "metadata": {"name": "a", "namespace": "b", "resourceVersion": "3"},
        "spec": {
            "topologySpreadConstraints": [{**SPREAD, "labelSelector": {}, "minDomains": 2}],
            "volumes": [
                {"name": "v", "volumeSource": {"emptyDir": {}}},
                {"name": "w", "volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}},
                {"name": "x", "volumeSource": {}},
            ],
        },
        "status": {"ephemeralContainerStatuses": [{"name": "debug", "restartCount": 3}]},
    }
    codec = protobuf.Codec("Pod", protobuf_fields.POD_WITH_VOLUMES)
    reader = wire.Reader(pod_object.Pod, pod_projection.Projector().pod, codec)
    pod = reader.event(messages.event("ADDED", said)).item.value
    assert pod.claims == ("data",)
    assert pod.has_local_storage
    assert pod.spread == ({**SPREAD, "labelSelector": {}, "minDomains": 2},)
    assert pod.containers == (podinfo.Container("debug", kind="ephemeral", restarts=3),)


def _structs(kind):
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind):
        return [one for part in typing.get_args(kind) for one in _structs(part)]
    return []


def _missing(kind, message):
    written = protobuf_fields.POD_WITH_VOLUMES[message].split(", ")
    named = {one.split()[0]: one.split()[1].rstrip("[]{}?") for one in written}
    hints = typing.get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        if field.encode_name in named:
            for inner in _structs(hints[field.name]):
                yield from _missing(inner, named[field.encode_name])
        elif message != "Volume":
            yield f"{message}.{field.encode_name}"


def test_every_field_that_is_read_of_a_pod_comes_in_protobuf():
    assert list(_missing(pod_object.Pod, "Pod")) == []


@pytest.mark.parametrize("kind", ["preferred", "required", "tolerations"])
def test_a_pod_that_lists_more_than_can_be_compared_with_every_node_stays(kind):
    terms = [{"matchExpressions": [{"key": f"k{n}", "operator": "Exists"}]} for n in range(257)]
    preferred = [{"weight": 1, "preference": term} for term in terms]
    required = {"nodeSelectorTerms": terms}
    spec = {
        "preferred": {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
            }
        },
        "required": {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
        },
        "tolerations": {"tolerations": [{"key": "a", "operator": "Exists"}] * 257},
    }[kind]
    pod = projected(spec=spec)
    assert "too long" in pod.flaw
    assert (pod.preferred_nodes, pod.wanted) == ((), placement.NONE)
