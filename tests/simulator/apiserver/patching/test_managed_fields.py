"""Field ownership and server-side apply."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.patching import managed_fields
from simulator.apiserver.registry import kinds, schemas

NODE_SLO = kinds.Kind(
    resources.NODE_SLOS,
    custom=True,
    schema=schemas.Schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
)
POD = kinds.Kind(resources.PODS)


def writer(manager: str, operation: str = "Apply", subresource: str = "") -> managed_fields.Writer:
    return managed_fields.Writer(manager, operation, "v1", subresource, "2024-01-01T00:00:00Z")


def made(spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", **meta}, "spec": spec}


def apply(
    before: dict[str, Any] | None,
    spec: dict[str, Any],
    manager: str,
    *,
    force: bool = False,
    kind: kinds.Kind = NODE_SLO,
) -> dict[str, Any]:
    return managed_fields.apply(before, made(spec), kind, writer(manager), force=force)


def owners(value: dict[str, Any]) -> dict[str, Any]:
    return {e["manager"]: e["fieldsV1"] for e in value["metadata"].get("managedFields", ())}


def test_the_first_apply_owns_its_leaves() -> None:
    first = apply(None, {"a": 1, "list": [1, 2], "deep": {"b": 2}}, "one")
    fields = {"f:spec": {"f:a": {}, "f:list": {}, "f:deep": {"f:b": {}}}}
    assert owners(first) == {"one": fields}


def test_a_field_its_owner_drops_is_removed() -> None:
    first = apply(None, {"a": 1, "deep": {"b": 2}}, "one")
    second = apply(first, {"a": 1}, "one")
    assert second["spec"] == {"a": 1}
    assert owners(second) == {"one": {"f:spec": {"f:a": {}}}}


def test_a_field_somebody_else_owns_too_stays() -> None:
    first = apply(None, {"a": 1, "b": 2}, "one")
    second = apply(first, {"b": 2}, "two")
    third = apply(second, {"a": 1}, "one")
    assert third["spec"] == {"a": 1, "b": 2}


def test_another_value_for_an_owned_field_is_a_conflict() -> None:
    first = apply(None, {"a": 1}, "one")
    with pytest.raises(api_errors.FailureError) as caught:
        apply(first, {"a": 2}, "two")
    error = caught.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == 'Apply failed with 1 conflict: conflict with "one" using v1: .spec.a'
    assert error.status()["details"]["causes"][0]["reason"] == "FieldManagerConflict"


def test_force_takes_the_field_over() -> None:
    first = apply(None, {"a": 1, "b": 1}, "one")
    second = apply(first, {"a": 2}, "two", force=True)
    assert second["spec"] == {"a": 2, "b": 1}
    assert owners(second) == {"one": {"f:spec": {"f:b": {}}}, "two": {"f:spec": {"f:a": {}}}}


def test_what_nobody_owned_belongs_to_the_time_before() -> None:
    unowned = made({"a": 1, "b": 1})
    with pytest.raises(api_errors.FailureError, match='conflict with "before-first-apply"'):
        apply(unowned, {"a": 2}, "one")
    taken = apply(unowned, {"a": 2}, "one", force=True)
    assert taken["spec"] == {"a": 2, "b": 1}
    assert sorted(owners(taken)) == ["before-first-apply", "one"]


def test_an_ordinary_write_to_what_was_never_managed_is_not_managed() -> None:
    unowned = made({"a": 1})
    written = managed_fields.track(unowned, made({"a": 2}), NODE_SLO, writer("two", "Update"))
    assert "managedFields" not in written["metadata"]


def test_the_order_of_a_merged_list_follows_the_configuration() -> None:
    names = ("a", "b", "c")
    first = apply(None, {"containers": [{"name": n} for n in names]}, "one", kind=POD)
    second = apply(first, {"containers": [{"name": n} for n in "cxb"]}, "two", kind=POD)
    assert [c["name"] for c in second["spec"]["containers"]] == ["a", "c", "x", "b"]


def test_lists_of_built_in_kinds_merge_by_key() -> None:
    first = apply(
        None,
        {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
        "one",
        kind=POD,
    )
    second = apply(
        first, {"containers": [{"name": "a", "tty": True}, {"name": "c"}]}, "two", kind=POD
    )
    third = apply(second, {"containers": [{"name": "a", "image": "z"}]}, "one", kind=POD)
    assert third["spec"]["containers"] == [
        {"name": "a", "image": "z", "tty": True},
        {"name": "c"},
    ]


def test_lists_of_custom_kinds_are_owned_as_a_whole() -> None:
    first = apply(None, {"items": [{"name": "a"}]}, "one")
    with pytest.raises(api_errors.FailureError, match=r"\.spec\.items"):
        apply(first, {"items": [{"name": "b"}]}, "two")


def test_an_ordinary_write_takes_what_it_changes() -> None:
    first = apply(None, {"a": 1, "b": 1}, "one")
    changed = {**first, "spec": {"a": 2, "b": 1, "c": 3}}
    second = managed_fields.track(first, changed, NODE_SLO, writer("two", "Update"))
    fields = {"f:spec": {"f:a": {}, "f:c": {}}}
    assert owners(second) == {"one": {"f:spec": {"f:b": {}}}, "two": fields}
    with pytest.raises(api_errors.FailureError, match='conflict with "two"'):
        apply(second, {"a": 1, "b": 1}, "one")


def test_a_write_that_changes_nothing_owns_nothing() -> None:
    first = apply(None, {"a": 1}, "one")
    second = managed_fields.track(first, {**first}, NODE_SLO, writer("two", "Update"))
    assert second == first


def test_a_removed_field_loses_its_owners() -> None:
    first = apply(None, {"a": 1, "b": 1}, "one")
    second = managed_fields.track(
        first, {**first, "spec": {"b": 1}}, NODE_SLO, writer("x", "Update")
    )
    assert owners(second) == {"one": {"f:spec": {"f:b": {}}}}


def test_labels_are_owned_key_by_key() -> None:
    config = made({}, labels={"a": "1"})
    first = managed_fields.apply(None, config, NODE_SLO, writer("one"), force=False)
    more = made({}, labels={"b": "2"})
    second = managed_fields.apply(first, more, NODE_SLO, writer("two"), force=False)
    assert second["metadata"]["labels"] == {"a": "1", "b": "2"}
    third = managed_fields.apply(second, made({}), NODE_SLO, writer("one"), force=False)
    assert third["metadata"]["labels"] == {"b": "2"}
