"""A retired name is answered with a warning, once, that says what replaces it."""

import pytest

from api import names, resources
from api.koordinator import quota
from tests import builders
from webhook import kinds, pods, quotas, review

PICTURE = review.Picture((), {"default": {}}, {}, lambda _: 0)


def told(pod, old=None):
    asked = review.Review("CREATE" if old is None else "UPDATE", "default", pod, old)
    decision = pods.validate(asked, PICTURE)
    assert decision.refusal is None
    return [text for text in decision.warnings if "is retired" in text]


@pytest.mark.parametrize(("old", "new"), names.DEPRECATED_RESOURCES.items())
def test_what_admission_has_not_renamed_is_told_to_be_unknown_to_the_scheduler(old, new):
    pod = builders.a_pod(requests={old: "1"}, limits={old: "1"}, labels=BE)
    (request, limit) = told(pod)
    assert request.startswith(f"spec.containers[0].resources.requests[{old}]: is retired")
    assert "kube-scheduler finds no node" in request
    assert request.endswith(f"write {new} instead")
    assert "resources.limits" in limit
    assert told(builders.a_pod(requests={new: "1"}, limits={new: "1"}, labels=BE)) == []


BE = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}


def test_init_containers_and_overhead_are_looked_at():
    amounts = {"koordinator.sh/batch-cpu": "1"}
    init = [{"name": "i", "resources": {"requests": amounts}}]
    pod = builders.a_pod(labels=BE, spec={"initContainers": init, "overhead": amounts})
    fields = [text.partition("[koordinator.sh/batch-cpu]")[0] for text in told(pod)]
    assert fields == ["spec.initContainers[0].resources.requests", "spec.overhead"]


def test_a_retired_label_or_annotation_is_told_when_it_comes():
    marks = {
        "labels": {names.LABEL_POD_GROUP_OLD: "g"},
        "annotations": {names.ANNOTATION_SCHEDULING_HINT_OLD: "{}"},
    }
    pod = builders.a_pod(**marks)
    assert len(told(pod)) == 2
    (of_label, of_annotation) = told(pod, builders.a_pod())
    assert names.LABEL_POD_GROUP in of_label
    assert names.ANNOTATION_SCHEDULING_HINT in of_annotation
    more = builders.a_pod(labels={**marks["labels"], "a": "b"}, annotations=marks["annotations"])
    assert told(more, pod) == []
    only = builders.a_pod(annotations=marks["annotations"])
    assert told(only, builders.a_pod()) == [of_annotation]


def test_a_quota_with_a_retired_resource_works_and_says_so():
    old = "koordinator.sh/batch-cpu"
    body = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"min": {old: "1"}, "max": {old: "2"}},
    }
    where = ("scheduling.sigs.k8s.io", "elasticquotas")
    decision = quotas.validate(
        review.Review("CREATE", "default", body, name="q", resource=where), PICTURE
    )
    assert decision.refusal is None
    assert [text.partition("[")[0] for text in decision.warnings] == ["spec.min", "spec.max"]
    assert quota.amounts(body["spec"]["max"]) == quota.amounts({names.BATCH_CPU: "2"})


@pytest.mark.parametrize(
    ("resource", "spec", "field"),
    [
        (resources.RESERVATIONS, "template", "spec.template.spec"),
        (resources.COLOCATION_PROFILES, "patch", "spec.patch.spec"),
    ],
)
def test_what_readers_understand_in_an_object_is_told_to_stop_working(resource, spec, field):
    container = {"name": "c", "resources": {"requests": {"kubernetes.io/gpu": "50"}}}
    body = {
        "metadata": {"name": "x"},
        "spec": {"owners": [{"labelSelector": {}}], spec: {"spec": {"containers": [container]}}},
    }
    asked = review.Review("CREATE", "", body, name="x", resource=(resource.group, resource.plural))
    decision = kinds.validate(asked, PICTURE)
    assert decision.refusal is None
    assert (
        f"{field}.containers[0].resources.requests[kubernetes.io/gpu]: is retired and will stop "
        f"working; write {names.GPU} instead"
    ) in decision.warnings
