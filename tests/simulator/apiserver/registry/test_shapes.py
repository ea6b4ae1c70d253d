"""Types of well-known fields are checked before anything reads them."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds, shapes

POD = kinds.Kind(resources.PODS)
CUSTOM = kinds.Kind(resources.NODE_SLOS, custom=True)


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        pytest.param(POD, [], "must be an object", id="list"),
        pytest.param(POD, {"kind": "Node"}, r"the kind in the data \(Node\)", id="kind"),
        pytest.param(
            POD, {"apiVersion": "v2"}, r"the API version in the data \(v2\)", id="version"
        ),
        pytest.param(POD, {"metadata": []}, "array into field metadata", id="metadata"),
        pytest.param(POD, {"spec": "x"}, "string into field spec of type object", id="spec"),
        pytest.param(POD, {"spec": {"containers": {}}}, "object into field", id="containers"),
        pytest.param(
            POD, {"spec": {"containers": [None]}}, r"field spec.containers\[0\]", id="element"
        ),
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
        shapes.checked(kind, body)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"status": {"conditions": [{"status": "True"}]}}, id="status as text"),
        pytest.param({"spec": {"selector": {"a": "b"}}}, id="selector as map"),
    ],
)
def test_what_fits_passes(body: dict[str, Any]) -> None:
    assert shapes.checked(POD, body) == {**body, "metadata": {}}


def test_null_is_absent_in_built_in_kinds_only() -> None:
    body = {"metadata": None, "spec": {"containers": None, "nodeName": "n"}}
    assert shapes.checked(POD, body) == {"metadata": {}, "spec": {"nodeName": "n"}}
    assert shapes.checked(CUSTOM, {"spec": {"a": None}})["spec"] == {"a": None}


def test_custom_resources_speak_for_their_own_fields() -> None:
    assert shapes.checked(CUSTOM, {"spec": "free"})["spec"] == "free"


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
