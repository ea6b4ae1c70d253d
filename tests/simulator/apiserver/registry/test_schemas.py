"""Structural schemas: what is unknown, pruned, defaulted and refused."""

from typing import Any

import pytest

from simulator.apiserver.registry import schemas

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
        "note": {"type": "string", "nullable": True, "default": "none"},
        "nested": {"type": "object", "properties": {"depth": {"type": "integer", "default": 3}}},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"],
        },
        "amount": {"x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time"},
        "small": {"type": "integer", "format": "int32"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "either": {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]},
        "pod": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object", "properties": {}}},
        },
    },
}
SCHEMA = schemas.Schema({"type": "object", "properties": {"spec": SPEC}})


def made(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "a/v1", "kind": "Box", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        pytest.param({"size": 1}, [], id="nothing"),
        pytest.param({"typo": 1}, ["spec.typo"], id="field"),
        pytest.param({"items": [{"n": 1}, {"m": 2}]}, ["spec.items[1].m"], id="in a list"),
        pytest.param({"free": {"any": {"thing": 1}}}, [], id="preserved"),
        pytest.param({"labels": {"any": "x"}}, [], id="additional properties"),
        pytest.param({"pod": {"kind": "Pod", "metadata": {"a": 1}}}, [], id="embedded identity"),
        pytest.param({"pod": {"spec": {"x": 1}}}, ["spec.pod.spec.x"], id="embedded field"),
    ],
)
def test_unknown_fields_are_found_and_pruned(spec: dict[str, Any], unknown: list[str]) -> None:
    body = made(**spec)
    assert SCHEMA.unknown(body) == unknown
    pruned = SCHEMA.pruned(body)
    assert SCHEMA.unknown(pruned) == []
    assert (pruned == body) is not bool(unknown)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"mode": "safe", "note": "none"}, id="top"),
        pytest.param({"mode": None}, {"mode": "safe", "note": "none"}, id="null is absent"),
        pytest.param({"note": None}, {"mode": "safe", "note": None}, id="nullable stays null"),
        pytest.param(
            {"nested": {}, "items": [{}]},
            {"mode": "safe", "note": "none", "nested": {"depth": 3}, "items": [{"n": 1}]},
            id="below what is there",
        ),
    ],
)
def test_defaults(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    assert SCHEMA.defaulted(made(**spec))["spec"] == expected


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param({}, "spec.size", "Required value", id="required"),
        pytest.param(
            {"size": "x"},
            "spec.size",
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
            id="type",
        ),
        pytest.param(
            {"size": 0},
            "spec.size",
            "Invalid value: 0: spec.size in body should be greater than or equal to 1",
            id="minimum",
        ),
        pytest.param(
            {"size": 1, "share": 0},
            "spec.share",
            "Invalid value: 0: spec.share in body should be greater than 0",
            id="exclusive minimum",
        ),
        pytest.param(
            {"size": 1, "mode": "slow"},
            "spec.mode",
            'Unsupported value: "slow": supported values: "fast", "safe"',
            id="enum",
        ),
        pytest.param(
            {"size": 1, "since": "yesterday"},
            "spec.since",
            'Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"',
            id="time",
        ),
        pytest.param(
            {"size": 1, "small": 2**31},
            "spec.small",
            "Invalid value: 2147483648: spec.small in body must be of type int32: 2147483648",
            id="int32",
        ),
        pytest.param(
            {"size": 1, "amount": 1.5},
            "spec.amount",
            'Invalid value: "number": spec.amount in body must be of type integer,string: "number"',
            id="number or text",
        ),
        pytest.param(
            {"size": 1, "either": 3},
            "spec.either",
            "Invalid value: 3: spec.either in body must validate at least one schema (anyOf)",
            id="any of",
        ),
        pytest.param(
            {"size": 1, "labels": {"a": 1}},
            "spec.labels.a",
            'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
            id="in a map",
        ),
    ],
)
def test_problems_are_worded_as_by_a_real_server(
    spec: dict[str, Any], field: str, message: str
) -> None:
    (cause,) = SCHEMA.problems(made(**spec))
    assert (cause.field, cause.message) == (field, message)


@pytest.mark.parametrize("amount", [5, "5Gi"])
def test_numbers_and_text_are_amounts(amount: int | str) -> None:
    assert SCHEMA.problems(made(size=1, amount=amount, since="2024-01-01T00:00:00Z")) == []


def test_rules_in_cel_are_noticed_at_any_depth() -> None:
    assert not schemas.has_rules(SPEC)
    assert schemas.has_rules({"allOf": [{"x": {"x-kubernetes-validations": []}}]})
