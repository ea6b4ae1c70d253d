"""Nobody grants himself anything: what schedulers and admission write is theirs on every route."""

import json

import pytest

from api import names
from api.koordinator.metadata import protected_metadata
from tests import builders
from webhook import gates, pods, registry, review

SCHEDULER = "system:serviceaccount:koordinator-system:koord-scheduler"
TENANT = "system:serviceaccount:team:deployer"
PICTURE = review.Picture(
    (),
    {"default": {}},
    {},
    lambda _: 0,
    gates=frozenset({gates.PROTECTED}),
    writers=review.Writers(frozenset({SCHEDULER}), frozenset({"system:masters"})),
)
CPUS = '{"cpuset":"0-14"}'
BATCH = {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
BATCH_LABELS = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
DEEP = "[" * 5000 + "]" * 5000


def created(pod):
    decision = pods.mutate(review.Review("CREATE", "default", pod), PICTURE)
    assert decision.refusal is None, decision.refusal
    return decision


def checked(operation, pod, old=None, user=TENANT, groups=(), **more):
    asked = review.Review(operation, "default", pod, old, user=user, groups=groups, **more)
    decide = pods.protect if asked.subresource or asked.resource[1] != "pods" else pods.validate
    refusal = decide(asked, PICTURE).refusal
    return None if refusal is None else (refusal.group, refusal.code, refusal.message)


@pytest.mark.parametrize("key", protected_metadata.STRIPPED)
def test_a_new_pod_loses_what_only_schedulers_write_and_its_author_is_warned(key):
    decision = created(builders.a_pod(annotations={key: CPUS, "mine": "kept"}))
    assert decision.object["metadata"]["annotations"] == {"mine": "kept"}
    (warning,) = decision.warnings
    assert key in warning


def test_a_pod_restored_with_everything_is_warned_once_and_briefly():
    decision = created(builders.a_pod(annotations=dict.fromkeys(protected_metadata.STRIPPED, CPUS)))
    assert decision.object["metadata"]["annotations"] == {}
    (warning,) = decision.warnings
    assert len(warning) <= 256


WRITTEN = {
    "another amount": '{"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"900k"}}}}',
    "no JSON": "bad",
    "deep JSON": DEEP,
    "a container twice": '{"containers":{"app":{"requests":{"kubernetes.io/batch-cpu":"9"}}},'
    '"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"1k",'
    '"kubernetes.io/batch-memory":"1Gi"},"requests":{"kubernetes.io/batch-cpu":"1k",'
    '"kubernetes.io/batch-memory":"1Gi"}}}}',
    "empty": "",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_the_record_of_batch_resources_is_computed_whatever_the_author_wrote(text):
    annotations = {names.ANNOTATION_EXTENDED_RESOURCE_SPEC: text}
    asked = {"requests": BATCH, "limits": BATCH, "labels": BATCH_LABELS}
    found = created(builders.a_pod(annotations=annotations, **asked)).object
    wanted = created(builders.a_pod(**asked)).object
    assert found["metadata"]["annotations"] == wanted["metadata"]["annotations"]
    record = json.loads(found["metadata"]["annotations"][names.ANNOTATION_EXTENDED_RESOURCE_SPEC])
    assert record == {"containers": {"app": {"limits": BATCH, "requests": BATCH}}}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_pod_without_batch_resources_keeps_no_record_of_its_author(text):
    annotations = {names.ANNOTATION_EXTENDED_RESOURCE_SPEC: text}
    pod = builders.a_pod(annotations=annotations)
    found = created(pod).object["metadata"]["annotations"]
    assert found == {names.ANNOTATION_EXTENDED_RESOURCE_SPEC: "{}"}
    off = PICTURE.but(gates=frozenset({gates.DISABLE_RECORD}))
    decision = pods.mutate(review.Review("CREATE", "default", pod), off)
    assert decision.object["metadata"]["annotations"] == {}


GUARDED = (
    *protected_metadata.NEVER_CREATED,
    *protected_metadata.RECORDS,
    *protected_metadata.REQUESTS,
)
CHANGES = {"set": (None, CPUS), "changed": ('{"cpuset":"0"}', CPUS), "removed": (CPUS, None)}


def marked(key, text, **more):
    return builders.a_pod(node="n", annotations={} if text is None else {key: text}, **more)


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("key", GUARDED)
def test_an_update_by_a_tenant_leaves_protected_annotations_alone(key, before, after):
    old, new = marked(key, before), marked(key, after)
    group, code, message = checked("UPDATE", new, old)
    assert (group, code) == ("protected", 403)
    assert f"metadata.annotations[{key}]" in message
    for part in ("status", "ephemeralcontainers", "resize"):
        assert checked("UPDATE", new, old, subresource=part) == (group, code, message)


@pytest.mark.parametrize("label", protected_metadata.CLASSES)
def test_a_running_pod_keeps_its_class(label):
    old, new = builders.a_pod(node="n"), builders.a_pod(node="n", labels={label: "BE"})
    assert "protected" in checked("UPDATE", new, old)
    assert "protected" in checked("UPDATE", old, new, subresource="status")


@pytest.mark.parametrize("key", protected_metadata.NEVER_CREATED)
def test_a_pod_that_was_not_stripped_is_refused(key):
    assert checked("CREATE", builders.a_pod(annotations={key: CPUS}))[0] == "protected"


@pytest.mark.parametrize("key", GUARDED)
def test_a_binding_by_a_tenant_carries_none_of_it(key):
    body = {"metadata": {"name": "p", "annotations": {key: CPUS}}, "target": {"name": "n"}}
    for more in ({"subresource": "binding"}, {"resource": ("", "bindings")}):
        assert checked("CREATE", body, **more)[0] == "protected"
        assert checked("CREATE", body, user=SCHEDULER, **more) is None


def test_what_a_pod_asks_for_is_its_own_until_it_is_bound():
    key = names.ANNOTATION_RESOURCE_SPEC
    old, new = builders.a_pod(), builders.a_pod(annotations={key: "{}"})
    assert checked("CREATE", new) is None
    assert checked("UPDATE", new, old) is None


def test_unrelated_changes_of_a_pod_that_carries_everything_pass():
    everything = dict.fromkeys(GUARDED, CPUS)
    old = builders.a_pod(node="n", annotations=everything)
    new = builders.a_pod(node="n", annotations={**everything, "mine": "1"}, labels={"a": "b"})
    assert checked("UPDATE", new, old, subresource="status") is None


@pytest.mark.parametrize(
    ("user", "groups"), [(SCHEDULER, ()), ("admin", ("system:masters",))], ids=["account", "group"]
)
def test_listed_accounts_and_groups_may(user, groups):
    new = marked(names.ANNOTATION_RESOURCE_STATUS, CPUS)
    assert checked("UPDATE", new, builders.a_pod(node="n"), user=user, groups=groups) is None


def test_every_route_of_a_pod_is_registered_behind_the_gate():
    parts = {
        (kind.plural, part)
        for route in registry.ROUTES.values()
        if route.gate in (gates.PROTECTED, gates.PODS_VALIDATED)
        for kind in route.kinds
        for part in route.subresources
    }
    written = ("", "binding", "ephemeralcontainers", "resize", "status")
    assert parts == {*(("pods", part) for part in written), ("bindings", "")}


STAND_IN = {
    "labels": {names.LABEL_STAND_IN: "r"},
    "annotations": dict.fromkeys(protected_metadata.MARKS, "r"),
}


def test_the_stand_in_of_a_reservation_passes_unchanged():
    asked = review.Review("CREATE", "default", builders.a_pod(**STAND_IN), user=SCHEDULER)
    assert pods.mutate(asked, PICTURE) == pods.validate(asked, PICTURE) == review.Decision()
    assert pods.validation_needs(asked, PICTURE) == review.NO_NEEDS


def test_a_tenant_creates_no_stand_in():
    group, code, message = checked("CREATE", builders.a_pod(labels=STAND_IN["labels"]))
    assert (group, code) == ("protected", 403)
    assert f"metadata.labels[{names.LABEL_STAND_IN}]" in message


@pytest.mark.parametrize("before", [{}, STAND_IN["labels"]], ids=("put on", "taken off"))
def test_a_pod_neither_becomes_a_stand_in_nor_stops_being_one(before):
    after = STAND_IN["labels"] if not before else {}
    found = checked("UPDATE", builders.a_pod(labels=after), builders.a_pod(labels=before))
    assert found is not None
    assert found[0] == "protected"
