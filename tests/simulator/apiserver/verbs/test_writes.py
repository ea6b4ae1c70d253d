"""Writes over HTTPS, beyond what the scenarios cover."""

import asyncio
import random

import pytest

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(name="p", **spec):
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def definition(group="example.com", **version):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"boxes.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


async def test_a_body_may_be_yaml(api, maps):
    body = b"metadata:\n  name: a\ndata:\n  x: '1'\n"
    made = await api.must("POST", maps, body, media="application/yaml")
    assert made["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        pytest.param(b"", "application/json", 400, id="empty"),
        pytest.param(b"[]", "application/json", 400, id="list"),
        pytest.param(b"a: [", "application/yaml", 400, id="broken yaml"),
        pytest.param(b"k8s", "application/vnd.kubernetes.protobuf", 400, id="broken protobuf"),
        pytest.param(b"x", "text/plain", 415, id="text"),
        pytest.param(b"{" + b" " * 3_200_000 + b"}", "application/json", 413, id="too large"),
        pytest.param(
            b'{"metadata":{"name":"a"},"data":{"x":1}}', "application/json", 400, id="data"
        ),
    ],
)
async def test_bodies_that_cannot_be_stored(api, maps, body, media, status):
    assert (await api.call("POST", maps, body, media=media)).status == status


async def test_priorities_come_from_classes(api):
    await api.must("POST", CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    made = await api.must("POST", PODS, pod("a", priorityClassName="high"))
    assert made["spec"]["priority"] == 1000
    made = await api.must("POST", PODS, pod("b", priorityClassName="system-node-critical"))
    assert made["spec"]["priority"] == 2_000_001_000
    assert (await api.must("POST", PODS, pod("c")))["spec"]["priority"] == 0
    body = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    await api.must("POST", CLASSES, body)
    made = await api.must("POST", PODS, pod("d"))
    assert (made["spec"]["priority"], made["spec"]["priorityClassName"]) == (7, "usual")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none", id="class"),
        pytest.param({"priority": 5}, "must not be provided in pod spec", id="value"),
        pytest.param({"preemptionPolicy": "Never"}, "PreemptionPolicy (Never)", id="policy"),
    ],
)
async def test_priorities_that_do_not_fit_are_forbidden(api, spec, words):
    answer = await api.call("POST", PODS, pod(**spec))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert words in answer.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"metadata": {"name": "system-mine"}, "value": 1}, "not a known system priority class"),
        ({"metadata": {"name": "huge"}, "value": 2_000_000_000}, "maximum allowed value"),
    ],
)
async def test_priority_classes_are_checked(api, body, words):
    answer = await api.call("POST", CLASSES, body)
    assert answer.status == 422
    assert words in answer.message


@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/kube-system", f"{CLASSES}/system-node-critical"],
)
async def test_what_a_cluster_needs_cannot_be_deleted(api, path):
    assert (await api.call("DELETE", path)).status == 403


async def test_nothing_new_in_a_namespace_that_goes_away(api):
    await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "gone"}})
    inside = "/api/v1/namespaces/gone/configmaps"
    body = {"metadata": {"name": "held", "finalizers": ["koord.sh/hold"]}}
    await api.must("POST", inside, body)
    await api.must("DELETE", "/api/v1/namespaces/gone")
    answer = await api.call("POST", inside, {"metadata": {"name": "late"}})
    assert answer.status == 403
    assert "being terminated" in answer.message
    await api.must("PATCH", f"{inside}/held", {"metadata": {"finalizers": None}}, media=MERGE)
    assert (await api.call("GET", "/api/v1/namespaces/gone")).status == 404


async def test_a_strategic_patch_knows_the_lists_of_pods(api):
    await api.must("POST", PODS, pod())
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}],
            "containers": [{"name": "c", "image": "j"}],
        }
    }
    made = await api.must("PATCH", f"{PODS}/p", patch, media=STRATEGIC)
    assert [c["image"] for c in made["spec"]["containers"]] == ["j"]


async def test_apply_creates_owns_and_conflicts(api, maps):
    path = f"{maps}/a"

    async def apply(manager, data, **query):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        params = {"fieldManager": manager, **query}
        return await api.call("PATCH", path, body, media=APPLY, params=params)

    assert (await apply("one", {"x": "1", "y": "1"})).status == 201
    refused = await apply("two", {"x": "2"})
    assert refused.status == 409
    assert 'conflict with "one" using v1: .data.x' in refused.message
    assert (await apply("two", {"x": "2"}, force="true")).body["data"] == {"x": "2", "y": "1"}
    assert (await apply("one", {})).body["data"] == {"x": "2"}
    unnamed = await api.call("PATCH", path, {"data": {}}, media=APPLY)
    assert "fieldManager" in unnamed.message


async def test_patches_of_many_at_once_all_arrive(api, maps):
    await api.must("POST", maps, {"metadata": {"name": "a"}})
    await asyncio.gather(
        *(api.must("PATCH", f"{maps}/a", {"data": {f"k{n}": "x"}}, media=MERGE) for n in range(20))
    )
    assert len((await api.must("GET", f"{maps}/a"))["data"]) == 20


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_dependents_are_treated_as_wished(api, maps, policy):
    owner = await api.must("POST", maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    await api.must("POST", maps, {"metadata": {"name": "leaf", "ownerReferences": [reference]}})
    answer = await api.must("DELETE", f"{maps}/owner", {"propagationPolicy": policy})
    # Whoever has a finalizer is marked; the garbage collector ends that.
    assert answer["kind"] == ("Status" if policy == "Background" else "ConfigMap")
    left = [item["metadata"]["name"] for item in (await api.must("GET", maps))["items"]]
    assert left == (["leaf"] if policy == "Orphan" else [])


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
async def test_dry_runs_leave_no_trace(api, maps, server, verb):
    if verb != "POST":
        await api.must("POST", maps, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    before = server.objects.version
    path = maps if verb == "POST" else f"{maps}/a"
    body = {"metadata": {"name": "a"}, "data": {"x": "2"}}
    media = MERGE if verb == "PATCH" else "application/json"
    sent = None if verb == "DELETE" else body
    await api.must(verb, path, sent, media=media, params={"dryRun": "All"})
    assert server.objects.version == before


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        pytest.param({"scope": ""}, 422, "spec.scope: Required value", id="scope"),
        pytest.param({"group": "other.com"}, 422, "must be spec.names.plural", id="name"),
        pytest.param(
            {"conversion": {"strategy": "Webhook"}}, 501, "conversion webhooks", id="conversion"
        ),
    ],
)
async def test_definitions_are_checked(api, change, status, words):
    body = definition()
    body["spec"] |= change
    answer = await api.call("POST", CRDS, body)
    assert answer.status == status
    assert words in answer.message


async def test_a_definition_with_a_path_beyond_our_dialect_is_refused(api):
    column = {"name": "X", "type": "string", "jsonPath": ".a[?(@.b > 3)]"}
    answer = await api.call("POST", CRDS, definition(additionalPrinterColumns=[column]))
    assert answer.status == 422
    assert "additionalPrinterColumns[0].jsonPath" in answer.message


async def test_rules_in_cel_are_announced_as_not_evaluated(api):
    rule = {"type": "object", "x-kubernetes-validations": [{"rule": "false"}]}
    answer = await api.call("POST", CRDS, definition(schema={"openAPIV3Schema": rule}))
    assert answer.status == 201
    assert any("not evaluated" in text for text in answer.warnings)


async def test_custom_resources_leave_with_their_definition(api):
    await api.must("POST", CRDS, definition())
    boxes = "/apis/example.com/v1/boxes"
    await api.must("POST", boxes, {"metadata": {"name": "a"}, "anything": 1})
    answer = await api.call("PUT", f"{boxes}/a", {"metadata": {"name": "a"}})
    assert answer.status == 422
    assert "must be specified for an update" in answer.message
    await api.must("DELETE", f"{CRDS}/boxes.example.com")
    assert (await api.call("GET", boxes)).status == 404
    await api.must("POST", CRDS, definition())
    assert (await api.must("GET", boxes))["items"] == []


async def test_unknown_fields_are_warned_about(api):
    closed = {"type": "object", "properties": {"spec": {"type": "object"}}}
    await api.must("POST", CRDS, definition(schema={"openAPIV3Schema": closed}))
    body = {"metadata": {"name": "a"}, "spec": {"typo": 1}}
    answer = await api.call("POST", "/apis/example.com/v1/boxes", body)
    assert answer.warnings == ['299 - "unknown field \\"spec.typo\\""']
    assert answer.body["spec"] == {}


async def operate(api, maps, seed):
    """Write at random; refusals are part of the game."""
    chance = random.Random(seed)
    for _ in range(40):
        name = chance.choice("abcd")
        value = {"x": str(chance.randrange(3))}
        labels = {"in": chance.choice(["yes", "no"])}
        body = {"metadata": {"name": name, "labels": labels}, "data": value}
        verb = chance.choice(["POST", "PUT", "PATCH", "DELETE"])
        path = maps if verb == "POST" else f"{maps}/{name}"
        media = MERGE if verb == "PATCH" else "application/json"
        answer = await api.call(verb, path, None if verb == "DELETE" else body, media=media)
        assert answer.status in (200, 201, 404, 409), answer.body


@pytest.mark.parametrize("selector", ["", "in=yes"])
@pytest.mark.parametrize("seed", range(4))
async def test_a_list_and_its_watch_are_the_next_list(api, maps, seed, selector):
    await operate(api, maps, seed + 100)
    query = {"labelSelector": selector} if selector else {}
    listed = await api.must("GET", maps, params=query)
    state = {item["metadata"]["name"]: item for item in listed["items"]}
    start = listed["metadata"]["resourceVersion"]
    await operate(api, maps, seed)
    now = await api.must("GET", maps, params=query)
    end = {"metadata": {"name": "end", "labels": {"in": "yes"}}}
    await api.must("POST", maps, end)
    async with api.watch(maps, resourceVersion=start, **query) as following:
        while (event := await following())["object"]["metadata"]["name"] != "end":
            item = event["object"]
            item.pop("apiVersion")
            item.pop("kind")
            name = item["metadata"]["name"]
            assert (name in state) is (event["type"] != "ADDED")
            if event["type"] == "DELETED":
                del state[name]
            else:
                state[name] = item
    assert sorted(state.items()) == sorted((i["metadata"]["name"], i) for i in now["items"])
