"""Binding and eviction over HTTPS."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"


def pod(name="p", **spec):
    return {
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"mine": "kept"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def binding(node="n", **meta):
    return {"metadata": {"name": "p", **meta}, "target": {"kind": "Node", "name": node}}


async def test_a_binding_is_one_write(api, server):
    made = await api.must("POST", PODS, pod())
    before = server.objects.version
    annotations = {"koord.sh/placement": "{}"}
    body = binding(uid=made["metadata"]["uid"], annotations=annotations, labels={"new": "label"})
    answer = await api.call("POST", f"{PODS}/p/binding", body)
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert server.objects.version == before + 1
    bound = await api.must("GET", f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"] == {"mine": "kept", **annotations}
    assert bound["metadata"]["labels"] == {"app": "web", "new": "label"}
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


@pytest.mark.parametrize(
    ("spec", "body", "status", "words"),
    [
        pytest.param({}, binding(uid="other"), 409, "UID in precondition: other", id="uid"),
        pytest.param(
            {},
            binding(resourceVersion="1"),
            409,
            "ResourceVersion in precondition: 1",
            id="version",
        ),
        pytest.param({"nodeName": "m"}, binding(), 409, 'assigned to node "m"', id="bound"),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]}, binding(), 409, "schedulingGates", id="gated"
        ),
        pytest.param({}, binding(node=""), 500, "target.name: Required value", id="no node"),
        pytest.param(
            {}, {**binding(), "target": {"kind": "Rack", "name": "n"}}, 500, "Rack", id="no rack"
        ),
        pytest.param({}, binding(name="q"), 400, "does not match", id="name"),
        pytest.param({}, {**binding(), "kind": "Pod"}, 400, "expected kind", id="kind"),
        pytest.param({}, {**binding(), "target": []}, 400, "field target", id="shape"),
        pytest.param({}, [], 400, "must be an object", id="list"),
    ],
)
async def test_bindings_that_are_refused(api, spec, body, status, words):
    await api.must("POST", PODS, pod(**spec))
    answer = await api.call("POST", f"{PODS}/p/binding", body)
    assert answer.status == status
    assert words in answer.message


async def test_a_pod_that_leaves_is_not_bound(api):
    body = pod()
    body["metadata"]["finalizers"] = ["koord.sh/hold"]
    await api.must("POST", PODS, body)
    await api.must("DELETE", f"{PODS}/p")
    answer = await api.call("POST", f"{PODS}/p/binding", binding())
    assert answer.status == 409
    assert "is being deleted" in answer.message


@pytest.fixture
async def running(api):
    """Three pods that run; the first is not ready."""
    for name, ready in (("p", "False"), ("q", "True"), ("r", "True")):
        await api.must("POST", PODS, pod(name, nodeName="n"))
        conditions = [{"type": "Ready", "status": ready}]
        status = {"status": {"phase": "Running", "conditions": conditions}}
        await api.must("PATCH", f"{PODS}/{name}/status", status, media=MERGE)


async def protect(api, name="b", **spec):
    selector = {"matchLabels": {"app": "web"}}
    body = {"metadata": {"name": name}, "spec": {"selector": selector, **spec}}
    await api.must("POST", BUDGETS, body)


def evict(api, name, **options):
    body = {"metadata": {"name": name}, **({"deleteOptions": options} if options else {})}
    return api.call("POST", f"{PODS}/{name}/eviction", body)


async def test_a_budget_lets_go_what_it_can_spare(api, running):
    await protect(api, minAvailable=1)
    assert (await evict(api, "q")).status == 201
    status = (await api.must("GET", f"{BUDGETS}/b"))["status"]
    assert (status["disruptionsAllowed"], status["currentHealthy"]) == (0, 1)
    refused = await evict(api, "r")
    assert refused.status == 429
    (cause,) = refused.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert "deletionTimestamp" in (await api.must("GET", f"{PODS}/q"))["metadata"]


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"minAvailable": 2}, 201, id="budget is met"),
        pytest.param({"minAvailable": 3}, 429, id="budget is short"),
        pytest.param(
            {"minAvailable": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201, id="always"
        ),
    ],
)
async def test_pods_that_are_not_ready_may_go_if_the_budget_is_met(api, running, spec, status):
    await protect(api, **spec)
    assert (await evict(api, "p")).status == status


async def test_two_budgets_for_one_pod_are_an_error(api, running):
    await protect(api, "a", minAvailable=1)
    await protect(api, "b", minAvailable=1)
    answer = await evict(api, "q")
    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.message


async def test_an_eviction_may_have_its_own_grace_and_preconditions(api, running):
    assert (await evict(api, "q", preconditions={"uid": "other"})).status == 409
    assert (await evict(api, "q", dryRun=["All"])).status == 201
    assert "deletionTimestamp" not in (await api.must("GET", f"{PODS}/q"))["metadata"]
    assert (await evict(api, "q", gracePeriodSeconds=0)).status == 201
    assert (await api.call("GET", f"{PODS}/q")).status == 404


async def test_a_pod_that_waits_needs_no_budget(api):
    await api.must("POST", PODS, pod())
    await protect(api, minAvailable=1)
    assert (await evict(api, "p")).status == 201
    assert (await api.call("GET", f"{PODS}/p")).status == 404


async def test_budgets_are_checked(api):
    body = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}}
    assert (await api.call("POST", BUDGETS, body)).status == 422


async def test_a_collection_is_deleted_as_it_is_selected(api, running):
    await api.must("PATCH", f"{PODS}/q", {"metadata": {"labels": {"app": "db"}}}, media=MERGE)
    query = {"labelSelector": "app=web", "gracePeriodSeconds": "0"}
    deleted = await api.must("DELETE", PODS, params=query)
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["p", "r"]
    assert [i["metadata"]["name"] for i in (await api.must("GET", PODS))["items"]] == ["q"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        pytest.param([], 400, id="list"),
        pytest.param({"propagationPolicy": "Sideways"}, 422, id="policy"),
        pytest.param({"preconditions": {"resourceVersion": "1"}}, 409, id="version"),
        pytest.param({"orphanDependents": True}, 200, id="orphans"),
    ],
)
async def test_options_of_a_deletion(api, options, status):
    await api.must("POST", PODS, pod())
    assert (await api.call("DELETE", f"{PODS}/p", [1] if options == [] else options)).status == (
        status
    )
