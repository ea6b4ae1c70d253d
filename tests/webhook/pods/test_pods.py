"""What becomes of a pod, all rules together: refusals, warnings and what an update may do."""

import dataclasses
import json

import msgspec
import pytest

from api import names
from api.koordinator import colocation
from api.kubernetes import core
from domain.devices.requests import request_faults
from domain.pods import namespace_limits, required_labels, resources
from tests import builders
from tests.webhook.pods.reviewed_pods import PICTURE, asking, mutated, refused
from webhook import gates, pods, review
from webhook.rules.pods import pod_devices

BATCH = colocation.read_profile(
    builders.a_profile("batch", qosClass="BE", priorityClassName="koord-batch")
)


def test_whether_a_pod_may_be_preempted_stays():
    old = builders.a_pod(labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"})
    found = refused(builders.a_pod(), operation="UPDATE", old=old)
    assert found is not None
    assert 'it was "false"' in found[1]


# --- devices and labels -------------------------------------------------------------------------


def test_gpu_requests_are_checked_behind_their_gate():
    pod = builders.a_pod(requests={names.GPU: "150"})
    assert refused(pod) is None
    group, message = refused(pod, PICTURE.but(gates=frozenset({gates.DEVICES})))
    assert group == "device"
    assert "a multiple of 100" in message


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        pytest.param({names.NPU_CORE: "5"}, "ask for huawei.com/npu-core and", id="npu"),
        pytest.param({names.RDMA: "150"}, f"{names.RDMA}: 150 is above 100", id="rdma"),
        pytest.param(
            {names.NVIDIA_GPU: "1", names.GPU_CORE: "50", names.GPU_MEMORY: "1Gi"},
            "leave out",
            id="two-ways",
        ),
    ],
)
def test_illegal_device_requests_are_refused_behind_the_gate_and_told_without_it(
    requests, sentence
):
    pod = builders.a_pod(requests=requests)
    group, message = refused(pod, PICTURE.but(gates=frozenset({gates.DEVICE_COMBINATIONS})))
    assert (group, sentence in message) == ("device", True)
    decision = pods.validate(asking(pod), PICTURE)
    assert decision.refusal is None
    assert any(sentence in text for text in decision.warnings)


def test_a_whole_npu_stays_as_it_was_asked_for():
    asked = {names.NPU_CORE: "20", names.GPU_MEMORY_RATIO: "100"}
    container = mutated(builders.a_pod(requests=asked))["spec"]["containers"][0]
    assert container["resources"]["requests"] == asked


def test_gpu_requests_are_normalised_unless_switched_off():
    pod = builders.a_pod(requests={names.GPU: "200"})
    container = mutated(pod)["spec"]["containers"][0]
    wanted = {names.GPU_CORE: "200", names.GPU_MEMORY_RATIO: "200", names.GPU_SHARED: "2"}
    assert container["resources"] == {"requests": wanted, "limits": wanted}
    off = PICTURE.but(gates=frozenset({gates.DISABLE_DEVICES}))
    assert mutated(pod, off)["spec"]["containers"][0]["resources"]["requests"] == {names.GPU: "200"}


def test_gpu_requests_of_init_containers_speak_in_the_same_form():
    """A pod asks for what its containers ask for together, in whichever words: no node took two."""
    asked = {"requests": {names.GPU: "100"}, "limits": {names.GPU: "100"}}
    side = {"name": "side", "restartPolicy": "Always", "resources": asked}
    once = {"name": "once", "resources": asked}
    pod = builders.a_pod(requests={names.GPU: "100"}, spec={"initContainers": [once, side]})
    made = mutated(pod)
    together = resources.pod_requests(msgspec.convert(made, core.Pod))
    assert request_faults.faults(together) == ()
    assert together == {names.GPU_CORE: 200, names.GPU_MEMORY_RATIO: 200, names.GPU_SHARED: 2}
    told = json.loads(made["metadata"]["annotations"][names.ANNOTATION_CHANGES])["devices"]
    assert told == [pod["spec"]["containers"][0]["name"], "once", "side"]


RULES = required_labels.read(
    {
        "enable": " True ",
        "rules": '[{"name":"need","requiredLabels":["team","app"],"namespaceWhitelist":["free"]}]',
    }
)


@pytest.mark.parametrize(
    ("labels", "namespace", "missing"),
    [
        ({"team": "", "app": ""}, "default", None),
        ({"team": "a"}, "default", "app"),
        ({}, "free", None),
        ({names.LABEL_SKIP_ENHANCED_VALIDATION: "true"}, "default", None),
    ],
    ids=["any value", "one missing", "other namespace", "exempt"],
)
def test_demanded_labels_must_be_there(labels, namespace, missing):
    found = refused(builders.a_pod(labels=labels), PICTURE.but(demanded=RULES), namespace=namespace)
    assert (found is None) is (missing is None)
    assert missing is None or found[1].endswith(f"the label {missing}")


@pytest.mark.parametrize("on", [(), (gates.DEVICES,)], ids=["creation", "check"])
def test_a_gpu_request_that_is_no_quantity_is_refused_with_its_field(on):
    pod = builders.a_pod(requests={names.GPU: "much"})
    picture = PICTURE.but(gates=frozenset(on))
    decide = pods.validate if on else pods.mutate
    refusal = decide(asking(pod), picture).refusal
    assert refusal is not None
    assert '"much" is no quantity' in refusal.message


def test_a_gpu_request_of_an_init_container_that_is_no_quantity_is_named():
    first = {"name": "first", "resources": {"requests": {names.GPU: "much"}}}
    pod = builders.a_pod(spec={"initContainers": [first]})
    for found in (pod_devices.check(pod), pod_devices.normalise(pod)):
        assert isinstance(found, review.Refusal)
        assert found.reasons[0].startswith(
            'spec.initContainers[0].resources: "much" is no quantity'
        )


# --- updates ------------------------------------------------------------------------------------


def test_a_pod_that_slipped_through_loses_its_finalizers():
    wrong = builders.a_pod(labels={names.LABEL_QOS: "BE"})
    kept = {**wrong, "metadata": {**wrong["metadata"], "finalizers": ["a/b"]}}
    assert refused(wrong) is not None
    assert refused(wrong, operation="UPDATE", old=kept) is None
    relabelled = {**wrong, "metadata": {**wrong["metadata"], "labels": {}}}
    assert refused(wrong, operation="UPDATE", old=relabelled) is not None


def test_an_update_may_not_make_a_pod_a_stand_in():
    old = builders.a_pod()
    new = builders.a_pod(annotations={names.ANNOTATION_RESERVE_POD: "true"})
    found = refused(new, operation="UPDATE", old=old)
    assert found is not None
    assert found[0] == "reservation"


# --- warnings -----------------------------------------------------------------------------------

DOUBTS = {
    "class misspelt": (
        {"labels": {names.LABEL_QOS: "be"}},
        '"be" is none of LSE',
    ),
    "band misspelt": ({"labels": {names.LABEL_PRIORITY_CLASS: "batch"}}, '"batch" is none of'),
    "order is no number": ({"labels": {names.LABEL_PRIORITY: "first"}}, "no 32-bit integer"),
    "batch on native cpu": (
        {"labels": {names.LABEL_QOS: "BE"}, "priority": 5000},
        "takes the place of online services",
    ),
    "pod as a whole": (
        {
            "labels": {names.LABEL_QOS: "BE"},
            "priority": 5000,
            "requests": {names.BATCH_CPU: "1", names.BATCH_MEMORY: "1"},
            "spec": {"resources": {"requests": {"cpu": "1"}}},
        },
        "the pod asks for both",
    ),
    "half": (
        {"labels": {names.LABEL_QOS: "BE"}, "priority": 5000, "requests": {names.BATCH_CPU: "1"}},
        "without kubernetes.io/batch-memory",
    ),
    "no limit": (
        {
            "labels": {names.LABEL_QOS: "BE"},
            "priority": 5000,
            "requests": {names.BATCH_CPU: "1", names.BATCH_MEMORY: "1"},
        },
        "has no limit",
    ),
    "bound outside prod": (
        {"labels": {names.LABEL_QOS: "LSE"}, "priority": 5000},
        "in the band koord-prod only",
    ),
    "bound, not guaranteed": (
        {"labels": {names.LABEL_QOS: "LSR"}, "priority": 9000},
        "is not Guaranteed",
    ),
    "annotation": (
        {"annotations": {names.ANNOTATION_RESOURCE_SPEC: "{"}},
        "not JSON",
    ),
}


@pytest.mark.parametrize(("pod", "text"), DOUBTS.values(), ids=DOUBTS)
def test_what_is_legal_and_doubtful_is_told_at_creation(pod, text):
    made = builders.a_pod(**pod)
    decision = pods.validate(asking(made), PICTURE)
    assert decision.refusal is None
    assert any(text in warning for warning in decision.warnings), decision.warnings
    assert all(len(warning) <= 256 for warning in decision.warnings)


def test_a_plain_pod_is_warned_of_nothing():
    assert pods.validate(asking(builders.a_pod()), PICTURE) == review.Decision()


RANGE = namespace_limits.of_limit_range(
    {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}}
)
BOUND = namespace_limits.of_limit_range(
    {"spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}}
)
COUNT = namespace_limits.of_resource_quota({"spec": {"hard": {"requests.cpu": "9", "pods": "9"}}})
SPARED = namespace_limits.of_resource_quota(
    {"spec": {"hard": {"requests.cpu": "9"}, "scopes": ["NotBestEffort"]}}
)
OF_PRIORITY = namespace_limits.of_resource_quota(
    {
        "spec": {
            "hard": {"cpu": "9"},
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]},
        }
    }
)
ODD_RANGE = namespace_limits.of_limit_range(
    {"spec": {"limits": [{"type": "Container", "default": {"cpu": "much"}}, "x", {"type": "X"}]}}
)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (OF_PRIORITY, None),
        (ODD_RANGE, None),
        (RANGE, "LimitRange x adds cpu"),
        (BOUND, "LimitRange x demands max.memory of pods"),
        (COUNT, "ResourceQuota x counts requests.cpu"),
        (SPARED, None),
    ],
    ids=["quota of a class", "unreadable", "defaults", "bounds", "quota", "quota that spares"],
)
def test_limits_of_the_namespace_that_bite_are_told_where_cpu_was_moved(limits, text):
    picture = dataclasses.replace(PICTURE, limits={"default": [("x", limits)]})
    assert pods.mutate(asking(builders.a_pod()), picture).warnings == ()
    found = pods.mutate(asking(builders.a_pod()), picture.but(profiles=(BATCH,))).warnings
    assert [warning.startswith(text or "-") for warning in found] == [True] * bool(text)


# --- what is told to explain --------------------------------------------------------------------


def test_a_decision_says_who_changed_what_from_what_to_what():
    pod = builders.a_pod(labels={"app": "web"}, scheduler="mine")
    profile = colocation.read_profile(
        builders.a_profile("p", schedulerName="koord-scheduler", labelSuffixes={"app": "-x"})
    )
    effects = pods.mutate(asking(pod), PICTURE.but(profiles=(profile,))).effects
    assert [(one.by, one.path, one.before, one.after) for one in effects] == [
        ("p", "labels[app]", "web", "web-x"),
        ("p", "spec.schedulerName", "mine", "koord-scheduler"),
    ]


def test_only_creations_are_completed():
    pod = builders.a_pod(requests={names.GPU: "100"})
    assert pods.mutate(asking(pod, "UPDATE", pod), PICTURE) == review.Decision()


def test_what_an_earlier_pass_could_not_know_stays_while_limits_are_unknown():
    picture = PICTURE.but(profiles=(BATCH,), limits=None)
    first = mutated(builders.a_pod(), picture)
    first["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    again = mutated(first, picture)
    assert again["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
