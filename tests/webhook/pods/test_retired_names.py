"""A pod that asks by retired names of resources is stored with the present ones."""

import copy
import json

import msgspec
import pytest

from api import names
from api.koordinator import colocation
from domain.quota.tree import quota_trees
from tests import builders
from tests.webhook.pods import reviewed_pods
from tests.webhook.pods.reviewed_pods import PICTURE, asking
from webhook import pods, review

OLD_CPU, OLD_MEMORY = "koordinator.sh/batch-cpu", "koordinator.sh/batch-memory"
BE = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}


def decided(pod, picture=PICTURE):
    decision = pods.mutate(asking(pod), picture)
    assert decision.refusal is None, decision.refusal
    return decision


def resources(pod, group="containers", index=0):
    return pod["spec"][group][index]["resources"]


def stored(requests, limits=None):
    return resources(decided(builders.a_pod(requests=requests, limits=limits)).object)


def told(decision):
    return [text for text in decision.warnings if "is retired" in text]


@pytest.mark.parametrize(("old", "new"), names.DEPRECATED_RESOURCES.items())
def test_every_retired_name_is_stored_as_the_present_one(old, new):
    share = {old: "100"}
    assert stored(share, share) == stored({new: "100"}, {new: "100"})


@pytest.mark.parametrize(
    ("requests", "limits", "wanted"),
    [
        # Of its own resources Kubernetes takes a limit above the request, or none.
        ({OLD_CPU: "1k"}, None, {"requests": {names.BATCH_CPU: "1k"}}),
        (
            {OLD_CPU: "1k"},
            {OLD_CPU: "2k"},
            {"requests": {names.BATCH_CPU: "1k"}, "limits": {names.BATCH_CPU: "2k"}},
        ),
        # Of all others it demands one that equals the request.
        (
            {"kubernetes.io/rdma": "50"},
            None,
            {"requests": {names.RDMA: "50"}, "limits": {names.RDMA: "50"}},
        ),
        (
            {"kubernetes.io/rdma": "50"},
            {"kubernetes.io/rdma": "100", "cpu": "1"},
            {"requests": {names.RDMA: "50"}, "limits": {names.RDMA: "50", "cpu": "1"}},
        ),
        (
            {"cpu": "1"},
            {"kubernetes.io/rdma": "100"},
            {"requests": {"cpu": "1"}, "limits": {names.RDMA: "100"}},
        ),
        # Where both stand the present one counts, and kube-scheduler would look for the other.
        (
            {OLD_CPU: "1k", names.BATCH_CPU: "2k"},
            {OLD_CPU: "1k"},
            {"requests": {names.BATCH_CPU: "2k"}, "limits": {names.BATCH_CPU: "1k"}},
        ),
        (
            {"kubernetes.io/rdma": "50", names.RDMA: "100"},
            {"kubernetes.io/rdma": "50", names.RDMA: "100"},
            {"requests": {names.RDMA: "100"}, "limits": {names.RDMA: "100"}},
        ),
        (
            {"kubernetes.io/rdma": "50"},
            {names.RDMA: "100"},
            {"requests": {names.RDMA: "50"}, "limits": {names.RDMA: "100"}},
        ),
    ],
)
def test_requests_and_limits_are_such_as_the_api_server_takes(requests, limits, wanted):
    assert stored(requests, limits) == wanted


def test_a_whole_gpu_gets_the_form_that_all_readers_expect():
    share = {"kubernetes.io/gpu": "50"}
    assert stored(share)["requests"] == {
        names.GPU_CORE: "50",
        names.GPU_MEMORY_RATIO: "50",
        names.GPU_SHARED: "1",
    }


def test_init_containers_are_looked_at_and_a_second_pass_changes_nothing():
    pod = builders.a_pod(requests={OLD_CPU: "1k"}, labels=BE)
    pod["spec"]["initContainers"] = [
        {"name": "i", "resources": {"requests": {OLD_MEMORY: "1Gi"}, "limits": {OLD_CPU: "1"}}}
    ]
    before = copy.deepcopy(pod)
    first = decided(pod)
    assert pod == before
    assert resources(first.object, "initContainers") == {
        "requests": {names.BATCH_MEMORY: "1Gi"},
        "limits": {names.BATCH_CPU: "1"},
    }
    assert len(told(first)) == 3
    again = decided(first.object)
    assert (again.object, told(again)) == (first.object, [])


def test_the_author_is_told_what_was_written_instead():
    both = {"kubernetes.io/rdma": "50", names.RDMA: "100"}
    pod = builders.a_pod(requests={OLD_CPU: "1k", **both}, limits=both)
    field, new = "spec.containers[0].resources", names.BATCH_CPU
    double = (
        f"is retired, so it was left out, as {names.RDMA} stands there too; write {names.RDMA} "
        "alone"
    )
    assert told(decided(pod)) == [
        f"{field}.requests[{OLD_CPU}]: is retired, so {new} was written instead; write {new}",
        f"{field}.requests[kubernetes.io/rdma]: {double}",
        f"{field}.limits[kubernetes.io/rdma]: {double}",
    ]


def test_what_was_replaced_stands_on_the_pod():
    pod = decided(builders.a_pod(requests={OLD_CPU: "1k", OLD_MEMORY: "1Gi"})).object
    notes = pod["metadata"]["annotations"]
    assert json.loads(notes[names.ANNOTATION_CHANGES]) == {
        "renamed": {OLD_CPU: names.BATCH_CPU, OLD_MEMORY: names.BATCH_MEMORY}
    }
    changed = copy.deepcopy(pod)
    changed["spec"]["containers"].append(
        {"name": "b", "resources": {"requests": {"kubernetes.io/gpu": "100"}}}
    )
    notes = decided(changed).object["metadata"]["annotations"]
    assert json.loads(notes[names.ANNOTATION_CHANGES]) == {
        "renamed": {
            OLD_CPU: names.BATCH_CPU,
            OLD_MEMORY: names.BATCH_MEMORY,
            "kubernetes.io/gpu": names.GPU,
        },
        "devices": ["b"],
    }


def test_it_is_renamed_before_batch_resources_are_recorded_and_cpu_is_moved():
    profile = colocation.read_profile(
        {
            "metadata": {"name": "all"},
            "spec": {"selector": {}, "qosClass": "BE", "priorityClassName": "koord-batch"},
        }
    )
    asks = {OLD_CPU: "1k", OLD_MEMORY: "1Gi"}
    pod = decided(builders.a_pod(requests=asks, limits=asks), PICTURE.but(profiles=[profile]))
    present = {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
    assert resources(pod.object) == {"requests": present, "limits": present}
    notes = pod.object["metadata"]["annotations"]
    assert json.loads(notes[names.ANNOTATION_EXTENDED_RESOURCE_SPEC]) == {
        "containers": {"app": {"requests": present, "limits": present}}
    }


def test_the_overhead_stays_what_the_runtime_class_says():
    """The API server refuses a pod whose overhead is another one."""
    pod = builders.a_pod(requests={}, labels=BE, spec={"overhead": {OLD_CPU: "100"}})
    decision = decided(pod)
    assert decision.object["spec"]["overhead"] == {OLD_CPU: "100"}
    assert told(decision) == []
    (text,) = told(pods.validate(asking(decision.object), PICTURE))
    assert text == (
        f"spec.overhead[{OLD_CPU}]: is retired, and kube-scheduler finds no node that offers it; "
        f"write {names.BATCH_CPU} in the RuntimeClass"
    )


def test_a_quota_is_asked_for_what_it_is_written_in():
    trees = quota_trees.trees([quota_trees.Member("q", "default")], [])
    picture = review.Picture((), {"default": {}}, {}, lambda _: 0, trees=trees, charges_quotas=True)
    pod = builders.a_pod(requests={OLD_CPU: "1k"}, labels={**BE, names.LABEL_QUOTA_NAME: "q"})
    for sent in (pod, decided(pod).object):
        charge = pods.validation_needs(asking(sent), picture).charge
        assert charge.requests == {"pods": 1, names.BATCH_CPU: 1000}


@pytest.mark.parametrize("amount", ["lots", "-1", "1e999999", "0.5", "", 7, 1.5, "9" * 200])
@pytest.mark.parametrize("old", ["kubernetes.io/gpu-memory", OLD_CPU])
def test_hostile_amounts_are_left_to_those_who_check_them(old, amount):
    asks, present = {old: amount}, {names.DEPRECATED_RESOURCES[old]: amount}
    sent = [
        pods.mutate(asking(builders.a_pod(requests=one, limits=one)), PICTURE)
        for one in (asks, present)
    ]
    refusals = [one.refusal for one in sent]
    assert refusals[0] == refusals[1]
    if refusals[0] is None:
        assert resources(sent[0].object) == resources(sent[1].object)


def test_warnings_are_few_and_short():
    pod = builders.a_pod(requests={OLD_CPU: "1"})
    pod["spec"]["containers"] *= 500
    decision = decided(pod)
    assert 0 < len(told(decision)) < 20
    assert max(map(len, decision.warnings)) <= 256


def test_a_pod_that_is_stored_stays_as_it_is():
    old = builders.a_pod(requests={OLD_CPU: "1k"}, labels=BE)
    new = builders.a_pod(requests={OLD_CPU: "1k"}, labels={**BE, "a": "b"})
    updated = asking(new, "UPDATE", old)
    assert pods.mutate(updated, PICTURE) == review.Decision()
    assert told(pods.validate(updated, PICTURE)) == []


def test_a_pod_of_a_profile_is_not_refused_for_what_its_present_names_allow():
    share = {OLD_CPU: "1k", OLD_MEMORY: "1Gi"}
    pod = reviewed_pods.mutated(builders.a_pod(requests=share, limits=share, labels=BE))
    assert reviewed_pods.refused(pod) is None
    assert msgspec.json.decode(msgspec.json.encode(pod)) == pod


def patching(name):
    """A picture with a profile that asks for half a GPU by this name."""
    container = {"name": "app", "resources": {"requests": {name: "50"}}}
    patch = {"spec": {"containers": [container]}}
    raw = {"metadata": {"name": "all"}, "spec": {"selector": {}, "patch": patch}}
    return PICTURE.but(profiles=[colocation.read_profile(raw)])


@pytest.mark.parametrize("name", ["kubernetes.io/gpu", names.GPU])
def test_what_a_profile_patches_in_is_renamed_and_replaces_what_the_pod_asks(name):
    picture = patching("kubernetes.io/gpu")
    first = decided(builders.a_pod(requests={name: "1"}, limits={name: "1"}), picture)
    assert resources(first.object)["requests"] == {
        names.GPU_CORE: "50",
        names.GPU_MEMORY_RATIO: "50",
        names.GPU_SHARED: "1",
    }
    assert decided(first.object, picture).object == first.object


def test_containers_of_devices_stay_recorded_when_a_pod_comes_again():
    picture = patching(names.GPU)
    pod = builders.a_pod(requests={})
    pod["spec"]["containers"].append({"name": "b", "resources": {"requests": {names.GPU: "100"}}})
    first = decided(pod, picture).object
    assert decided(first, picture).object == first
    changes = json.loads(first["metadata"]["annotations"][names.ANNOTATION_CHANGES])
    assert changes["devices"] == ["app", "b"]
