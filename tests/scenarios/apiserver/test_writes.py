"""What a write does to an object, and which writes an API server refuses."""

import pytest

from tests.planes import raw


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def maps(here):
    return here.path("configmaps")


async def test_the_server_owns_identity_and_version(here, maps):
    body = config_map("a", x="1")
    body["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = await here.api.post(maps, body)
    meta = made["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] > "2001"
    assert int(meta["resourceVersion"]) > 0
    assert meta["namespace"] == here.namespace
    assert (await here.api.get(f"{maps}/a"))["metadata"] == meta


async def test_a_name_can_be_generated(here, maps):
    body = {"metadata": {"generateName": "worker-"}}
    first = await here.api.post(maps, body)
    second = await here.api.post(maps, body)
    assert first["metadata"]["name"].startswith("worker-")
    assert first["metadata"]["name"] != second["metadata"]["name"]


async def test_a_taken_name_is_refused(here, maps):
    await here.api.post(maps, config_map("a"))
    answer = await here.api.call("POST", maps, config_map("a"))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'


async def test_what_does_not_exist_is_not_found(here, maps):
    answer = await here.api.call("GET", f"{maps}/a")
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'configmaps "a" not found'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_an_object_needs_its_namespace(here):
    path = "/api/v1/namespaces/no-such-place/configmaps"
    answer = await here.api.call("POST", path, config_map("a"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'namespaces "no-such-place" not found'


async def test_a_malformed_name_is_invalid(here, maps):
    answer = await here.api.call("POST", maps, config_map("Not_A_Name"))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_a_write_on_an_old_version_conflicts(here, maps):
    made = await here.api.post(maps, config_map("a", x="1"))
    await here.api.put(f"{maps}/a", {**made, "data": {"x": "2"}})
    answer = await here.api.call("PUT", f"{maps}/a", {**made, "data": {"x": "3"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the object has been modified" in answer.message
    assert (await here.api.get(f"{maps}/a"))["data"] == {"x": "2"}


async def test_a_write_without_a_version_wins(here, maps):
    await here.api.post(maps, config_map("a", x="1"))
    updated = await here.api.put(f"{maps}/a", config_map("a", x="2"))
    assert updated["data"] == {"x": "2"}


async def test_a_write_for_another_uid_conflicts(here, maps):
    await here.api.post(maps, config_map("a"))
    body = config_map("a", x="2")
    body["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    answer = await here.api.call("PUT", f"{maps}/a", body)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_write_that_changes_nothing_is_no_write(here, maps):
    made = await here.api.post(maps, config_map("a", x="1"))
    again = await here.api.put(f"{maps}/a", made)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    patched = await here.api.patch(f"{maps}/a", {"data": {"x": "1"}})
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_dry_run_writes_nothing(here, maps):
    answer = await here.api.post(maps, config_map("a"), dryRun="All")
    assert answer["metadata"]["name"] == "a"
    assert (await here.api.call("GET", f"{maps}/a")).status == 404


async def test_a_dry_run_of_a_change_shows_the_version_that_is_stored(here, maps):
    made = await here.api.post(maps, config_map("a"))
    patched = await here.api.patch(f"{maps}/a", {"data": {"x": "1"}}, dryRun="All")
    assert patched["data"] == {"x": "1"}
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("kept", "status", "reason"),
    [
        pytest.param((), 201, None, id="nothing"),
        pytest.param(("resourceVersion",), 201, None, id="its version"),
        pytest.param(("resourceVersion", "uid"), 409, "Conflict", id="its uid"),
    ],
)
async def test_an_update_of_a_lease_that_is_gone_creates_it_anew(here, kept, status, reason):
    leases = here.path("leases", group="coordination.k8s.io/v1")
    made = await here.api.post(leases, {"metadata": {"name": "a"}})
    await here.api.delete(f"{leases}/a")
    meta = {"name": "a", **{field: made["metadata"][field] for field in kept}}
    answer = await here.api.call("PUT", f"{leases}/a", {"metadata": meta})
    assert (answer.status, answer.reason) == (status, reason)
    left = await here.api.call("GET", f"{leases}/a")
    assert (left.status == 200) is (status == 201)


async def test_a_merge_patch_merges_and_null_removes(here, maps):
    await here.api.post(maps, config_map("a", x="1", y="2"))
    patched = await here.api.patch(f"{maps}/a", {"data": {"x": None, "z": "3"}})
    assert patched["data"] == {"y": "2", "z": "3"}


async def test_a_patch_may_demand_a_version(here, maps):
    made = await here.api.post(maps, config_map("a", x="1"))
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    await here.api.patch(f"{maps}/a", {"data": {"x": "2"}})
    answer = await here.api.call(
        "PATCH", f"{maps}/a", {**old, "data": {"x": "3"}}, kind=raw.MERGE_PATCH
    )
    assert (answer.status, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize(
    ("operations", "status"),
    [
        pytest.param([{"op": "add", "path": "/data/y", "value": "2"}], 200, id="add"),
        pytest.param([{"op": "test", "path": "/data/x", "value": "1"}], 200, id="test holds"),
        pytest.param([{"op": "test", "path": "/data/x", "value": "9"}], 422, id="test fails"),
        pytest.param([{"op": "remove", "path": "/data/nothing"}], 422, id="nothing to remove"),
        pytest.param([{"op": "replace", "path": "/no/where", "value": 1}], 422, id="no parent"),
        pytest.param({"op": "add"}, 400, id="not a list"),
    ],
)
async def test_a_json_patch_is_all_or_nothing(here, maps, operations, status):
    await here.api.post(maps, config_map("a", x="1"))
    answer = await here.api.call("PATCH", f"{maps}/a", operations, kind=raw.JSON_PATCH)
    assert answer.status == status


async def test_a_strategic_patch_merges_lists_by_key(here):
    await here.pod("web")
    condition = {"type": "koord.sh/a", "status": "True"}
    path = f"{here.path('pods', 'web')}/status"
    kind = raw.STRATEGIC_PATCH
    await here.api.patch(path, {"status": {"conditions": [condition]}}, kind=kind)
    other = {"type": "koord.sh/b", "status": "False"}
    patched = await here.api.patch(path, {"status": {"conditions": [other]}}, kind=kind)
    found = {c["type"]: c["status"] for c in patched["status"]["conditions"]}
    assert found["koord.sh/a"] == "True"
    assert found["koord.sh/b"] == "False"


async def test_an_unknown_kind_of_patch_is_refused(here, maps):
    await here.api.post(maps, config_map("a"))
    answer = await here.api.call("PATCH", f"{maps}/a", {}, kind="application/json")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_body_that_is_not_json_is_refused(here, maps):
    answer = await here.api.call("POST", maps, b"{")
    assert answer.status == 400


async def test_the_wrong_kind_in_the_body_is_refused(here, maps):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    assert (await here.api.call("POST", maps, body)).status == 400


async def test_another_name_in_the_body_is_refused(here, maps):
    await here.api.post(maps, config_map("a"))
    assert (await here.api.call("PUT", f"{maps}/a", config_map("b"))).status == 400


async def test_an_unknown_caller_is_refused(here):
    answer = await here.api.as_user("nobody").call("GET", "/api/v1/nodes")
    assert (answer.status, answer.reason) == (401, "Unauthorized")


async def test_an_unknown_path_is_not_found(here):
    assert (await here.api.call("GET", "/apis/no.such.group/v1/things")).status == 404


async def test_deletion_may_demand_a_uid(here, maps):
    made = await here.api.post(maps, config_map("a"))
    options = {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}}
    answer = await here.api.call("DELETE", f"{maps}/a", options)
    assert (answer.status, answer.reason) == (409, "Conflict")
    options = {"preconditions": {"uid": made["metadata"]["uid"]}}
    assert (await here.api.call("DELETE", f"{maps}/a", options)).status == 200


async def test_a_finalizer_keeps_an_object_until_it_is_removed(here, maps):
    body = config_map("a")
    body["metadata"]["finalizers"] = ["koord.sh/keep"]
    await here.api.post(maps, body)
    await here.api.delete(f"{maps}/a")
    held = await here.api.get(f"{maps}/a")
    assert "deletionTimestamp" in held["metadata"]
    await here.api.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    assert (await here.api.call("GET", f"{maps}/a")).status == 404


async def test_a_collection_can_be_deleted_by_label(here, maps):
    for name, tier in (("a", "web"), ("b", "db")):
        body = config_map(name)
        body["metadata"]["labels"] = {"tier": tier}
        await here.api.post(maps, body)
    await here.api.delete(maps, labelSelector="tier=web")
    left = await here.api.get(maps, labelSelector="tier")
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_the_spec_of_a_pod_hardly_changes(here):
    await here.pod("web")
    body = {"spec": {"priority": 5}}
    answer = await here.api.call("PATCH", here.path("pods", "web"), body, kind=raw.MERGE_PATCH)
    assert answer.status in (403, 422)


async def test_metadata_alone_is_what_a_client_gets_that_asks_for_it(here, maps):
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
    await here.api.post(maps, config_map("a", x="1"))
    kind = raw.MERGE_PATCH
    body = {"metadata": {"labels": {"to": "y"}}, "data": {"x": "2"}}
    patched = await here.api.call("PATCH", f"{maps}/a", body, kind=kind, accept=accept)
    shown = await here.api.call("GET", f"{maps}/a", accept=accept)
    whole = await here.api.get(f"{maps}/a")
    for answer in (patched, shown):
        assert (answer.status, answer.body["kind"]) == (200, "PartialObjectMetadata")
        assert answer.body["metadata"] == whole["metadata"]
        assert "data" not in answer.body
    assert whole["data"] == {"x": "2"}
    missing = await here.api.call("PATCH", f"{maps}/b", body, kind=kind, accept=accept)
    assert (missing.status, missing.reason) == (404, "NotFound")
