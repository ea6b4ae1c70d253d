"""Custom resources: discovery, validation, defaults, pruning, status."""

import pytest
import pytest_asyncio

from tests.planes import raw

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
        "nested": {
            "type": "object",
            "default": {},
            "properties": {"depth": {"type": "integer", "default": 3}},
        },
        "amount": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 5}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": SPEC,
        "status": {"type": "object", "properties": {"used": {"type": "integer"}}},
    },
}


def definition(group, scope="Namespaced"):
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boxes.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


def established(found):
    conditions = (found or {}).get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


class Boxes:
    def __init__(self, here, group):
        self.here = here
        self.group = group
        self.path = here.path("boxes", group=f"{group}/v1")

    def body(self, name="a", **spec):
        meta = {"name": name}
        return {"apiVersion": f"{self.group}/v1", "kind": "Box", "metadata": meta, "spec": spec}

    async def served(self):
        return (await self.here.api.call("GET", self.path)).status == 200

    async def make(self, name="a", **spec):
        return await self.here.api.post(self.path, self.body(name, **spec))


@pytest_asyncio.fixture(loop_scope="session")
async def boxes(here):
    group = f"{here.id}.example.koord.sh"
    await here.api.post(DEFINITIONS, definition(group))
    path = f"{DEFINITIONS}/boxes.{group}"
    try:
        await here.api.wait_until(path, established)
        made = Boxes(here, group)
        # Serving starts a moment after the condition says so.
        await raw.eventually(made.served)
        yield made
    finally:
        # A test may have deleted it.
        await here.api.call("DELETE", path)


async def test_defaults_are_filled_in_at_every_depth(boxes):
    made = await boxes.make(size=2)
    assert made["spec"] == {"size": 2, "mode": "safe", "nested": {"depth": 3}}


async def test_unknown_fields_are_pruned_unless_they_are_welcome(boxes):
    made = await boxes.make(size=2, typo=1, free={"any": {"thing": 1}})
    assert "typo" not in made["spec"]
    assert made["spec"]["free"] == {"any": {"thing": 1}}


async def test_strict_callers_hear_about_unknown_fields(boxes):
    answer = await boxes.here.api.call(
        "POST", boxes.path, boxes.body(size=2, typo=1), query={"fieldValidation": "Strict"}
    )
    assert answer.status == 400
    assert 'unknown field "spec.typo"' in answer.message


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        pytest.param({"size": 11}, "spec.size", "should be less than or equal to 10", id="maximum"),
        pytest.param(
            {"size": 0}, "spec.size", "should be greater than or equal to 1", id="minimum"
        ),
        pytest.param({"size": "2"}, "spec.size", "must be of type integer", id="type"),
        pytest.param({}, "spec.size", "Required value", id="required"),
        pytest.param(
            {"size": 2, "mode": "slow"}, "spec.mode", 'supported values: "fast", "safe"', id="enum"
        ),
        pytest.param({"size": 2, "names": ["toolong"]}, "spec.names[0]", "5", id="in a list"),
        pytest.param({"size": 2, "labels": {"a": 1}}, "spec.labels.a", "string", id="in a map"),
    ],
)
async def test_a_wrong_field_is_named(boxes, spec, field, words):
    answer = await boxes.here.api.call("POST", boxes.path, boxes.body(**spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(f'Box.{boxes.group} "a" is invalid: ')
    assert words in answer.message
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize("amount", [pytest.param(5, id="number"), pytest.param("5Gi", id="text")])
async def test_an_amount_may_be_a_number_or_text(boxes, amount):
    made = await boxes.make(size=2, amount=amount)
    assert made["spec"]["amount"] == amount


async def test_status_has_a_path_of_its_own(boxes):
    api = boxes.here.api
    body = {**boxes.body(size=2), "status": {"used": 7}}
    made = await api.post(boxes.path, body)
    assert "status" not in made
    path = f"{boxes.path}/a"
    done = await api.patch(f"{path}/status", {"spec": {"size": 5}, "status": {"used": 1}})
    assert done["spec"]["size"] == 2
    assert done["status"] == {"used": 1}
    assert done["metadata"]["generation"] == 1
    changed = await api.patch(path, {"spec": {"size": 5}, "status": {"used": 9}})
    assert changed["status"] == {"used": 1}
    assert changed["metadata"]["generation"] == 2


async def test_updates_are_validated_too(boxes):
    await boxes.make(size=2)
    answer = await boxes.here.api.call(
        "PATCH", f"{boxes.path}/a", {"spec": {"size": 99}}, kind=raw.MERGE_PATCH
    )
    assert answer.status == 422


async def test_strategic_patches_are_for_built_in_kinds_only(boxes):
    await boxes.make(size=2)
    answer = await boxes.here.api.call(
        "PATCH", f"{boxes.path}/a", {"spec": {"size": 3}}, kind=raw.STRATEGIC_PATCH
    )
    assert answer.status == 415


async def test_discovery_lists_the_kind(boxes):
    api = boxes.here.api
    groups = await api.get("/apis")
    assert boxes.group in [group["name"] for group in groups["groups"]]
    resources = (await api.get(f"/apis/{boxes.group}/v1"))["resources"]
    found = {resource["name"]: resource for resource in resources}
    assert found["boxes"]["kind"] == "Box"
    assert found["boxes"]["shortNames"] == ["bx"]
    assert found["boxes"]["namespaced"] is True
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(
        found["boxes"]["verbs"]
    )
    assert "boxes/status" in found


async def test_tables_have_the_printer_columns(boxes):
    await boxes.make(size=2)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    answer = await boxes.here.api.call("GET", boxes.path, accept=accept)
    columns = [column["name"] for column in answer.body["columnDefinitions"]]
    assert columns == ["Name", "Size"]
    assert answer.body["rows"][0]["cells"] == ["a", 2]


async def test_unknown_metadata_of_the_user_survives(boxes):
    body = boxes.body(size=2)
    body["metadata"] |= {"labels": {"a": "b"}, "annotations": {"x/y": "z"}}
    made = await boxes.here.api.post(boxes.path, body)
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {"x/y": "z"}


async def test_a_definition_goes_after_the_last_object_of_its_kind(here, boxes):
    body = boxes.body(size=1)
    body["metadata"]["finalizers"] = ["koord.sh/test"]
    await here.api.post(boxes.path, body)
    path = f"{DEFINITIONS}/boxes.{boxes.group}"
    answer = await here.api.call("DELETE", path)
    assert (answer.status, answer.body["kind"]) == (200, "CustomResourceDefinition")
    await here.api.wait_until(
        f"{boxes.path}/a", lambda found: "deletionTimestamp" in found["metadata"]
    )
    late = await here.api.call("POST", boxes.path, boxes.body("late", size=1))
    assert (late.status, late.reason) == (403, "Forbidden")
    assert "is terminating" in late.message
    assert (await here.api.call("GET", path)).status == 200
    await here.api.patch(f"{boxes.path}/a", {"metadata": {"finalizers": None}})
    await here.api.wait_until(path, lambda found: found is None)
    assert (await here.api.call("GET", boxes.path)).status == 404
