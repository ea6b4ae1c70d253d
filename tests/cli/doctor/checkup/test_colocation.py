"""Quotas, limits and autoscalers around pods that ask for no cpu any more."""

import dataclasses

import pytest

from api import names
from cli.doctor.checkup import colocation, facts, findings
from tests.planes.install import checkups


def quota(namespace="shop", *, scopes=(), selector=None, **hard):
    spec = {"hard": {key.replace("_", "."): "10" for key in hard}, "scopes": list(scopes)}
    if selector:
        spec["scopeSelector"] = {"matchExpressions": [selector]}
    return {"metadata": {"name": "q", "namespace": namespace}, "spec": spec}


PRIORITY = "PriorityClass"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (quota(requests_cpu=1), True),
        (quota(memory=1), True),
        (quota(limits_memory=1), True),
        (quota(pods=1), False),
        (quota("bank", requests_cpu=1), False),
        (quota(requests_cpu=1, scopes=["NotBestEffort"]), False),
        (quota(requests_cpu=1, selector={"scopeName": "NotBestEffort"}), False),
        (quota(requests_cpu=1, selector={"scopeName": "NotTerminating"}), True),
        (
            quota(
                requests_cpu=1,
                selector={"scopeName": PRIORITY, "operator": "In", "values": ["koord-prod"]},
            ),
            False,
        ),
        (
            quota(
                requests_cpu=1,
                selector={"scopeName": PRIORITY, "operator": "In", "values": ["koord-batch"]},
            ),
            True,
        ),
        (
            quota(
                requests_cpu=1,
                selector={"scopeName": PRIORITY, "operator": "NotIn", "values": ["koord-batch"]},
            ),
            False,
        ),
    ],
)
def test_quotas(found, given, told):
    names_found = set(found(quotas=[given]))
    assert names_found == ({"colocation.resource-quota"} if told else set())


@pytest.mark.parametrize("prefix", ["requests.", ""])
def test_quotas_that_count_what_kubernetes_does_not(found, prefix):
    spec = {"hard": {f"{prefix}{names.BATCH_CPU}": "100k", "pods": "10"}}
    given = {"metadata": {"name": "q", "namespace": "bank"}, "spec": spec}
    told = found(quotas=[given])
    assert set(told) == {"colocation.quota-without-effect"}
    assert f"{prefix}{names.BATCH_CPU} in vain" in told["colocation.quota-without-effect"].sentence


def limit_range(namespace="shop", kind="Container", **parts):
    metadata = {"name": "l", "namespace": namespace}
    return {"metadata": metadata, "spec": {"limits": [{"type": kind, **parts}]}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (limit_range(default={"cpu": "1"}), {"colocation.limit-range-default"}),
        (limit_range(defaultRequest={"memory": "1Gi"}), {"colocation.limit-range-default"}),
        (limit_range(min={"cpu": "1"}), {"colocation.limit-range-default"}),
        (limit_range(maxLimitRequestRatio={"cpu": "2"}), {"colocation.limit-range-bounds"}),
        (limit_range(kind="Pod", max={"memory": "1Gi"}), {"colocation.limit-range-bounds"}),
        (limit_range(max={names.BATCH_CPU: "1k"}), {"colocation.limit-range-lent"}),
        (
            limit_range("bank", kind="Pod", min={names.MID_CPU: "1k"}),
            {"colocation.limit-range-lent"},
        ),
        (limit_range(kind="PersistentVolumeClaim", max={"storage": "1Gi"}), set()),
        (limit_range("bank", default={"cpu": "1"}), set()),
    ],
)
def test_limit_ranges(found, given, told):
    assert set(found(limit_ranges=[given])) == told


def scaler(kind="HorizontalPodAutoscaler", target=("Deployment", "crunch"), **spec):
    reference = dict(zip(("kind", "name"), target, strict=True))
    field = "scaleTargetRef" if kind.startswith("H") else "targetRef"
    metadata = {"name": "s", "namespace": "shop"}
    return {"kind": kind, "metadata": metadata, "spec": {field: reference, **spec}}


def metric(kind, name="cpu", source="resource"):
    return {"type": "Resource", source: {"name": name, "target": {"type": kind}}}


BATCH = checkups.pods(checkups.pod("crunch-7d4-x", owner=("ReplicaSet", "crunch-7d4")))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (scaler(metrics=[metric("Utilization")]), True),
        (scaler(metrics=[metric("Utilization", source="containerResource")]), True),
        (scaler(metrics=[metric("AverageValue")]), False),
        (scaler(metrics=[metric("Utilization", name="example.com/queue")]), False),
        (scaler(metrics=[{"type": "External"}]), False),
        (scaler(target=("Deployment", "web"), metrics=[metric("Utilization")]), False),
    ],
)
def test_horizontal_autoscalers(found, given, told):
    names_found = set(found(pods=BATCH, horizontal=[given]))
    assert names_found == ({"colocation.hpa"} if told else set())


@pytest.mark.parametrize(
    ("policy", "told"),
    [({}, True), ({"updatePolicy": {"updateMode": "Off"}}, False)],
)
def test_vertical_autoscalers(found, policy, told):
    given = scaler("VerticalPodAutoscaler", **policy)
    assert set(found(pods=BATCH, vertical=[given])) == ({"colocation.vpa"} if told else set())


def test_an_autoscaler_that_cannot_be_read_ends_no_other_check(found):
    unread = facts.Unknown("horizontalpodautoscalers", "501 Not Implemented")
    told = found(horizontal=unread, quotas=[quota(requests_cpu=1)])
    assert set(told) == {"colocation", "colocation.resource-quota"}


@pytest.mark.parametrize(
    ("profile", "selected"),
    [
        (checkups.profile(), {"shop": "batch"}),
        (checkups.profile(namespaceSelector=None), {"shop": "batch", "bank": "batch"}),
        (checkups.profile(qosClass="LS", priorityClassName="koord-prod"), {}),
        (checkups.profile(qosClass=None, priorityClassName="koord-mid"), {"shop": "batch"}),
    ],
)
def test_which_namespaces_are_concerned(healthy, profile, selected):
    assert colocation.namespaces([profile], colocation.admitted(healthy)) == selected


def test_a_profile_that_leaves_resources_alone_concerns_none(healthy):
    profile = checkups.profile()
    profile["metadata"]["annotations"] = {names.ANNOTATION_SKIP_UPDATE_RESOURCES: ""}
    assert colocation.namespaces([profile], colocation.admitted(healthy)) == {}


def test_namespaces_that_the_webhook_leaves_out_are_not_concerned(found, healthy):
    assert set(colocation.admitted(healthy)) == {"shop", "bank"}
    left_out = {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}
    mutating, validating = healthy.webhooks
    hook = {**mutating["webhooks"][0], "namespaceSelector": left_out}
    hooks = [{**mutating, "webhooks": [hook]}, validating]
    told = found(webhooks=hooks, quotas=[quota(requests_cpu=1)], pods=checkups.pods(slipped()))
    assert not [name for name in told if name.startswith("colocation.")]
    unregistered = dataclasses.replace(healthy, webhooks=())
    assert set(colocation.admitted(unregistered)) == {"shop", "bank"}


def slipped(**changes):
    raw = checkups.pod("missed", batch=False, **changes)
    raw["metadata"]["labels"] = {"colocate": "yes"}
    return raw


def test_pods_that_were_created_past_their_profile(found):
    told = found(pods=checkups.pods(slipped()))
    assert told["colocation.slipped-through"].object == "shop/missed"
    ended = slipped()
    ended["status"] = {"phase": "Succeeded"}
    assert found(pods=checkups.pods(ended)) == {}
    marked = slipped()
    marked["metadata"]["annotations"] = {names.ANNOTATION_PROFILES: "batch"}
    assert found(pods=checkups.pods(marked)) == {}


def test_a_profile_that_cannot_be_read_is_said(found):
    told = found(profiles=[checkups.profile(qosClass=["BE"])])
    assert told["colocation"].severity is findings.Severity.UNKNOWN
    assert "profile batch" in told["colocation"].sentence
