"""What a real API server refuses or does beside what was asked; seen on one, shown here."""

import pytest

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def config_map(name="a", **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}


def pod(**spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


async def applied(api, path, body, manager, **query):
    params = {"fieldManager": manager, **query}
    return await api.must("PATCH", path, body, media=APPLY, params=params)


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        pytest.param({"labels": {"a b": "c"}}, "metadata.labels", id="label key"),
        pytest.param({"labels": {"a": "b c"}}, "metadata.labels.a", id="label value"),
        pytest.param({"labels": {"a": "x" * 64}}, "metadata.labels.a", id="long label value"),
        pytest.param({"labels": {"x" * 64: ""}}, "metadata.labels", id="long label key"),
        pytest.param({"labels": {"Example.com/a": ""}}, "metadata.labels", id="label prefix"),
        pytest.param({"labels": {"a/b/c": ""}}, "metadata.labels", id="two slashes"),
        pytest.param({"annotations": {"a b": ""}}, "metadata.annotations", id="annotation key"),
        pytest.param({"annotations": {"a": "x" * 262_144}}, "metadata.annotations", id="too long"),
        pytest.param(
            {"annotations": {"a": "x" * 140_000, "b": "x" * 140_000}},
            "metadata.annotations",
            id="too long together",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            "metadata.ownerReferences[0].uid",
            id="owner without uid",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["create", "update", "patch"])
async def test_metadata_that_is_refused(api, maps, verb, metadata, field):
    if verb == "create":
        answer = await api.call("POST", maps, config_map(**metadata))
    else:
        await api.must("POST", maps, config_map())
        if verb == "update":
            answer = await api.call("PUT", f"{maps}/a", config_map(**metadata))
        else:
            answer = await api.call("PATCH", f"{maps}/a", {"metadata": metadata}, media=MERGE)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


async def test_a_finalizer_without_a_domain_is_refused(api, maps):
    answer = await api.call("POST", maps, config_map(finalizers=["plain"]))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "nor is it fully qualified" in answer.message


async def test_annotations_just_small_enough_pass(api, maps):
    await api.must("POST", maps, config_map(annotations={"a": "x" * (256 * 1024 - 1)}))


@pytest.mark.parametrize("validation", ["Ignore", "Warn", "Strict"])
async def test_unknown_fields_of_built_in_kinds(api, validation):
    body = pod(nodename="n")
    answer = await api.call("POST", PODS, body, params={"fieldValidation": validation})
    if validation == "Strict":
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
        assert 'unknown field "spec.nodename"' in answer.message
        return
    assert answer.status == 201
    assert "nodename" not in answer.body["spec"]
    told = ['299 - "unknown field \\"spec.nodename\\""'] if validation == "Warn" else []
    assert answer.warnings == told


async def test_a_lease_is_updated_from_a_version(api):
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    made = await api.must("POST", LEASES, body)
    answer = await api.call("PUT", f"{LEASES}/l", body)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion" in answer.message
    await api.must("PUT", f"{LEASES}/l", made)


async def test_a_deleted_object_gets_no_new_finalizer(api, maps):
    await api.must("POST", maps, config_map(finalizers=["koord.sh/one"]))
    await api.must("DELETE", f"{maps}/a")
    more = {"metadata": {"finalizers": ["koord.sh/one", "koord.sh/two"]}}
    answer = await api.call("PATCH", f"{maps}/a", more, media=MERGE)
    assert answer.status == 422
    assert "no new finalizers can be added" in answer.message
    await api.must("PATCH", f"{maps}/a", {"metadata": {"finalizers": None}}, media=MERGE)
    assert (await api.call("GET", f"{maps}/a")).status == 404


@pytest.mark.parametrize(
    "change", [{"data": {"x": "2"}}, {"immutable": None}, {"binaryData": {"y": "MQ=="}}]
)
async def test_an_immutable_config_map_stays(api, maps, change):
    await api.must("POST", maps, {**config_map(), "data": {"x": "1"}, "immutable": True})
    answer = await api.call("PATCH", f"{maps}/a", change, media=MERGE)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    labels = {"metadata": {"labels": {"a": "b"}}}
    await api.must("PATCH", f"{maps}/a", labels, media=MERGE)


TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
KIND = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED = {KIND: [TERM]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": TERM["labelSelector"]}
FORBIDS = {**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            {"affinity": {"podAntiAffinity": {KIND: [{**TERM, "namespaceSelector": {}}]}}},
            "namespaceSelector of required podAntiAffinity",
            id="anti",
        ),
        pytest.param({"affinity": {"podAffinity": REQUIRED}}, "podAffinity", id="affinity"),
        pytest.param(
            {"topologySpreadConstraints": [{**FORBIDS, "minDomains": 2}]},
            "minDomains of topology spread",
            id="spread",
        ),
    ],
)
async def test_what_the_scheduler_would_not_obey_is_refused_by_name(api, spec, words):
    answer = await api.call("POST", PODS, pod(**spec))
    assert answer.status == 501
    assert words in answer.message
    await api.must("POST", PODS, pod(nodeName="n", **spec))


@pytest.mark.parametrize("precondition", [{"uid": "other"}, {"resourceVersion": "1"}])
@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_a_deletion_that_was_not_meant_touches_no_dependent(api, maps, precondition, policy):
    owner = await api.must("POST", maps, config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    await api.must("POST", maps, config_map("leaf", ownerReferences=[reference]))
    before = (await api.must("GET", maps))["items"]
    options = {"preconditions": precondition, "propagationPolicy": policy}
    answer = await api.call("DELETE", f"{maps}/owner", options)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert (await api.must("GET", maps))["items"] == before


async def test_applying_the_same_again_writes_nothing(api, maps, clock):
    body = {**config_map(labels={"a": "b"}), "data": {"x": "1"}}
    first = await applied(api, f"{maps}/a", body, "one")
    await clock.advance(10)
    assert await applied(api, f"{maps}/a", body, "one") == first
    changed = await applied(api, f"{maps}/a", {**body, "data": {"x": "2"}}, "one")
    assert changed["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]


async def test_applying_what_is_empty_again_writes_nothing(api, maps, clock):
    body = {**config_map(labels={}, annotations={}), "data": {}}
    await api.must("POST", maps, config_map())
    first = await applied(api, f"{maps}/a", body, "one")
    await clock.advance(10)
    assert await applied(api, f"{maps}/a", body, "one") == first


async def test_finalizers_belong_to_whoever_applied_them(api, maps):
    await applied(api, f"{maps}/a", config_map(finalizers=["koord.sh/one"]), "one")
    both = await applied(api, f"{maps}/a", config_map(finalizers=["koord.sh/two"]), "two")
    assert both["metadata"]["finalizers"] == ["koord.sh/one", "koord.sh/two"]
    left = await applied(api, f"{maps}/a", config_map(), "one")
    assert left["metadata"]["finalizers"] == ["koord.sh/two"]


async def test_owner_references_are_merged_by_uid(api, maps):
    references = []
    for name in ("x", "y"):
        owner = await api.must("POST", maps, config_map(name))
        uid = owner["metadata"]["uid"]
        references.append({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
    one, two = references
    await applied(api, f"{maps}/a", config_map(ownerReferences=[one]), "one")
    both = await applied(api, f"{maps}/a", config_map(ownerReferences=[two]), "two")
    assert both["metadata"]["ownerReferences"] == [one, two]
    left = await applied(api, f"{maps}/a", config_map(), "one")
    assert left["metadata"]["ownerReferences"] == [two]


async def test_an_eviction_says_so_in_the_status(api):
    await api.must("POST", PODS, pod(nodeName="n", terminationGracePeriodSeconds=30))
    running = {"status": {"phase": "Running"}}
    await api.must("PATCH", f"{PODS}/p/status", running, media=MERGE)
    await api.must("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    evicted = await api.must("GET", f"{PODS}/p")
    (told,) = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (told["status"], told["reason"]) == ("True", "EvictionByEvictionAPI")
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_an_eviction_of_another_pod_costs_no_budget(api):
    labels = {"app": "x"}
    body = pod(nodeName="n")
    body["metadata"]["labels"] = labels
    await api.must("POST", PODS, body)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.must("PATCH", f"{PODS}/p/status", {"status": status}, media=MERGE)
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    await api.must("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": budget})
    wrong = {"deleteOptions": {"preconditions": {"uid": "other"}}}
    answer = await api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}, **wrong})
    assert answer.status == 409
    after = await api.must("GET", f"{BUDGETS}/b")
    assert after["status"]["disruptionsAllowed"] == 1
    conditions = (await api.must("GET", f"{PODS}/p"))["status"]["conditions"]
    assert [c["type"] for c in conditions] == ["Ready"]
