"""Which stored pods are said to have slipped through, and which are not."""

import dataclasses

import msgspec
import pytest

from api import names
from api.kubernetes import core
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from manager.admission import plan as admission
from manager.admission import registered
from manager.model import projections
from tests import builders

DAY = 86_400.0
INSTALLED, CHANGED, CREATED = 1_800_000_000.0, 1_800_000_000.0 + DAY, 1_800_000_000.0 + 2 * DAY
PROFILE = {
    "metadata": {
        "name": "batch",
        "creationTimestamp": durations.moment(INSTALLED),
        "managedFields": [
            {"manager": "x", "time": durations.moment(CHANGED)},
            {"manager": "y", "time": durations.moment(CREATED + DAY), "subresource": "status"},
        ],
    },
    "spec": {
        "selector": {"matchLabels": {"colocate": "yes"}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
    },
}
SYSTEM = {
    "matchExpressions": [{"key": "system", "operator": "DoesNotExist"}],
}


def hook(selector=None, **annotations):
    return registered.view(
        {
            "metadata": {
                "name": "koord-webhook",
                "creationTimestamp": durations.moment(INSTALLED),
                "annotations": annotations,
            },
            "webhooks": [{"name": "a", "namespaceSelector": selector or SYSTEM}],
        }
    )


def answering(mode="enforce", *gates):
    note = webhook_configuration.text(webhook_configuration.Answering(mode, gates))
    return hook(**{names.ANNOTATION_ADMISSION: note})


PICTURE = admission.Picture(
    profiles=(admission.profile(PROFILE),),
    namespaces={"default": {}, "own": {"system": "yes"}, "kube-system": {}},
    mutating=hook(),
    validating=hook(),
    unreviewed=frozenset({"kube-system"}),
)


def pod(*, created=CREATED, labels=None, **more):
    labels = {"colocate": "yes"} if labels is None else labels
    return msgspec.convert(builders.a_pod(labels=labels, created=created, **more), core.Pod)


def found(given, **changes):
    return [
        fault.kind for fault in admission.faults(given, dataclasses.replace(PICTURE, **changes))
    ]


GPUS = {names.GPU: "100"}
OLD = {"kubernetes.io/rdma": "50"}
BESIDE = registered.view(
    {
        "metadata": {
            "name": "koord-webhook",
            "creationTimestamp": durations.moment(INSTALLED),
        },
        "webhooks": [
            {"name": "mpod.koordinator.sh", "namespaceSelector": SYSTEM},
            {"name": "vconfigmap.koordinator.sh"},
        ],
    }
)
SIGNED = {names.ANNOTATION_PROFILES: "batch"}
CONTRADICTS = {names.LABEL_QOS: "LSR"}


@pytest.mark.parametrize(
    ("given", "changes", "kinds"),
    [
        pytest.param(pod(), {}, ["unchanged"], id="missed"),
        pytest.param(pod(annotations=SIGNED), {}, [], id="signed"),
        pytest.param(pod(labels={}), {}, [], id="of no profile"),
        pytest.param(pod(created=CHANGED), {}, [], id="as old as the profile"),
        pytest.param(pod(created=INSTALLED), {}, [], id="older than the last change of it"),
        pytest.param(pod(phase="Succeeded"), {}, [], id="over"),
        pytest.param(pod(namespace="own"), {}, [], id="namespace is not reviewed"),
        pytest.param(pod(namespace="new"), {}, [], id="namespace is not known yet"),
        pytest.param(pod(), {"mutating": None}, ["unchanged"], id="nothing is registered"),
        pytest.param(
            pod(namespace="kube-system"), {"mutating": None}, [], id="never reviewed by default"
        ),
        pytest.param(pod(), {"mutating": answering("observe")}, [], id="admission only observes"),
        pytest.param(pod(), {"mutating": answering("off")}, [], id="admission is off"),
        pytest.param(
            pod(annotations={"kubernetes.io/config.mirror": "x"}), {}, [], id="mirror of a file"
        ),
        pytest.param(pod(labels=CONTRADICTS, cpu="1500m"), {}, ["refused"], id="contradicts"),
        pytest.param(
            pod(labels=CONTRADICTS, cpu="1500m"), {"validating": None}, [], id="nobody checks"
        ),
        pytest.param(
            pod(labels=CONTRADICTS, cpu="1500m", created=INSTALLED), {}, [], id="older than us"
        ),
        pytest.param(
            pod(labels={}, annotations={names.ANNOTATION_RESERVE_POD: "true"}),
            {},
            ["refused"],
            id="what only the system writes",
        ),
        pytest.param(
            pod(labels={"colocate": "yes", **CONTRADICTS}), {}, ["unchanged", "refused"], id="both"
        ),
        pytest.param(pod(labels={}, requests=GPUS), {}, ["unchanged"], id="devices missed"),
        pytest.param(
            pod(
                labels={}, spec={"initContainers": [{"name": "i", "resources": {"requests": GPUS}}]}
            ),
            {},
            ["unchanged"],
            id="devices of an init container missed",
        ),
        pytest.param(
            pod(labels={}, requests=GPUS, created=INSTALLED), {}, [], id="devices older than us"
        ),
        pytest.param(pod(labels={}, requests=OLD), {}, ["unchanged"], id="retired names"),
        pytest.param(
            pod(labels={}, requests=OLD, created=INSTALLED), {}, [], id="names older than us"
        ),
        pytest.param(pod(labels={}, requests=OLD, node="n"), {}, [], id="placed by old names"),
        pytest.param(
            pod(namespace="own", labels={}, requests=OLD), {}, [], id="names nobody reviews"
        ),
        pytest.param(
            pod(labels={}, requests=GPUS),
            {"mutating": answering("enforce", "DisableDeviceResourceSpec")},
            [],
            id="devices are left as they are",
        ),
        pytest.param(
            pod(labels={}, requests={names.GPU_SHARED: "1"}),
            {"mutating": answering("enforce", "ValidatePodDeviceResource")},
            ["refused"],
            id="devices contradict",
        ),
        pytest.param(
            pod(namespace="own"), {"mutating": BESIDE}, [], id="only our settings are reviewed"
        ),
    ],
)
def test_verdict(given, changes, kinds):
    assert found(given, **changes) == kinds


def test_the_sentence_names_profile_lack_and_remedy():
    (fault,) = admission.faults(pod(), PICTURE)
    assert "ClusterColocationProfile batch was not applied" in fault.note
    assert "spec.priorityClassName is not 'koord-batch'" in fault.note
    assert "create the pod anew" in fault.note


def test_a_profile_that_draws_lots_blames_nobody():
    maybe = {**PROFILE, "spec": {**PROFILE["spec"], "probability": "50%"}}
    assert found(pod(), profiles=(admission.profile(maybe),)) == []


def test_a_waiting_pod_with_a_fault_is_kept_and_holds_nothing():
    kept = admission.view(pod(), lambda one: admission.faults(one, PICTURE))
    assert (kept.node, kept.request.cpu) == ("", 0)
    assert [fault.kind for fault in kept.faults] == ["unchanged"]
    placed = pod(node="n")
    assert admission.view(placed, lambda _: ()) == projections.pod(placed)
    assert admission.view(pod(), lambda _: ()) is None
