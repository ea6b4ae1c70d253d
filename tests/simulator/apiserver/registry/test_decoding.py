"""Bodies are read as the Go types of the API, before anything relies on them."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import builtin_schemas, decoding, kinds

POD = kinds.Kind(resources.PODS)
SECRET = kinds.Kind(resources.SECRETS)
BUDGET = kinds.Kind(resources.POD_DISRUPTION_BUDGETS)
EVENT = kinds.Kind(resources.CORE_EVENTS)
CUSTOM = kinds.Kind(resources.NODE_SLOS, custom=True)


def read(kind: kinds.Kind, body: Any, validation: str = "Warn") -> dict[str, Any]:
    return decoding.body(kind, body, validation)[0]


def pod(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **container}]}}


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        pytest.param(POD, [], "must be an object", id="list"),
        pytest.param(POD, {"kind": "Node"}, r"the kind in the data \(Node\)", id="kind"),
        pytest.param(
            POD, {"apiVersion": "v2"}, r"the API version in the data \(v2\)", id="version"
        ),
        pytest.param(POD, {"metadata": []}, "array into field metadata", id="metadata"),
        pytest.param(POD, {"spec": "x"}, "string into field spec of type struct", id="spec"),
        pytest.param(POD, {"spec": {"containers": {}}}, "object into field", id="containers"),
        pytest.param(
            POD, {"spec": {"containers": ["c"]}}, r"field spec.containers\[0\]", id="element"
        ),
        pytest.param(
            POD, {"spec": {"hostNetwork": "yes"}}, "into field spec.hostNetwork", id="text for bool"
        ),
        pytest.param(POD, {"spec": {"priority": 1.0}}, "number into", id="fraction for integer"),
        pytest.param(POD, {"spec": {"priority": True}}, "bool into", id="bool for integer"),
        pytest.param(POD, {"spec": {"priority": 1 << 31}}, "number into", id="beyond 32 bits"),
        pytest.param(
            POD, pod(resources={"requests": {"cpu": "1 core"}}), "quantity", id="no quantity"
        ),
        pytest.param(
            POD, pod(resources={"requests": {"cpu": True}}), "bool into", id="bool for quantity"
        ),
        pytest.param(BUDGET, {"spec": {"minAvailable": 1.5}}, "int-or-string", id="int or string"),
        pytest.param(SECRET, {"data": {"a": "!"}}, "of type bytes", id="no base64"),
        pytest.param(EVENT, {"eventTime": "yesterday"}, "of type time", id="no time"),
        pytest.param(
            POD,
            {"metadata": {"labels": {"a": True}}},
            "bool into field metadata.labels.a of type string",
            id="unquoted label",
        ),
        pytest.param(CUSTOM, {"metadata": {"annotations": {"a": 1}}}, "number into", id="custom"),
    ],
)
def test_misfits_are_named(kind: kinds.Kind, body: Any, words: str) -> None:
    with pytest.raises(api_errors.FailureError, match=words) as caught:
        read(kind, body)
    assert caught.value.code == 400


def test_null_is_absent_in_built_in_kinds_only() -> None:
    body = {"metadata": None, "spec": {"containers": None, "nodeName": "n"}}
    assert read(POD, body) == {"metadata": {}, "spec": {"nodeName": "n"}}
    assert read(CUSTOM, {"spec": {"a": None}})["spec"] == {"a": None}


def test_an_element_that_is_null_is_an_empty_one() -> None:
    assert read(POD, pod(env=[None], args=[None]))["spec"]["containers"][0] == {
        "name": "c",
        "env": [{}],
        "args": [""],
    }


def test_empty_lists_and_maps_say_nothing_and_empty_structs_do() -> None:
    body = {"metadata": {"labels": {}, "finalizers": []}, "spec": {"securityContext": {}}}
    assert read(POD, body) == {"metadata": {}, "spec": {"securityContext": {}}}
    assert read(POD, {"spec": {"containers": []}})["spec"] == {"containers": []}


def test_custom_resources_speak_for_their_own_fields() -> None:
    assert read(CUSTOM, {"spec": "free"})["spec"] == "free"


UNKNOWN = {
    "metadata": {"name": "p", "color": "red"},
    "spec": {"containers": [{"name": "c", "imagee": "i"}], "replicas": 1},
}
PATHS = ["metadata.color", "spec.containers[0].imagee", "spec.replicas"]


@pytest.mark.parametrize("validation", ["", "Ignore", "Warn", "Strict"])
def test_unknown_fields_are_dropped_told_or_refused(validation: str) -> None:
    told = [f'unknown field "{path}"' for path in PATHS]
    if validation == "Strict":
        with pytest.raises(api_errors.FailureError, match="strict decoding error") as caught:
            decoding.body(POD, UNKNOWN, validation)
        assert caught.value.code == 400
        assert all(text in caught.value.message for text in told)
        return
    value, warnings = decoding.body(POD, UNKNOWN, validation)
    assert value == {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    assert warnings == ([] if validation == "Ignore" else told)


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: str(kind.resource.review_name()))
def test_every_built_in_kind_has_a_type(kind: kinds.Kind) -> None:
    found = builtin_schemas.find(kind.resource.api_version, kind.name)
    assert found is not None
    assert {"apiVersion", "kind", "metadata"} <= set(found.fields)


def test_every_reference_is_resolved() -> None:
    seen = [builtin_schemas.named(name) for name in builtin_schemas.definitions()]
    for found in seen:
        for field in found.fields.values():
            assert field.sort
            if field.sort in ("list", "map"):
                assert field.element.sort


@pytest.mark.parametrize(
    ("versions", "ordered"),
    [
        (["v1alpha1", "v1", "v1beta1"], ["v1", "v1beta1", "v1alpha1"]),
        (["v1", "v2", "v10"], ["v10", "v2", "v1"]),
        (["v1beta2", "v1beta10", "foo"], ["v1beta10", "v1beta2", "foo"]),
    ],
)
def test_versions_are_ordered_by_maturity(versions: list[str], ordered: list[str]) -> None:
    assert sorted(versions, key=kinds.version_order) == ordered
