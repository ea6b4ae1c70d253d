"""Label and field selectors."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds
from simulator.apiserver.verbs import selectors

POD = kinds.Kind(resources.PODS)
EVENT = kinds.Kind(resources.CORE_EVENTS)
NODE = kinds.Kind(resources.NODES)
WEB: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "one", "labels": {"tier": "web", "zone": "a"}},
    "spec": {"nodeName": "n1", "schedulerName": "koord-scheduler"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        pytest.param("", True, id="none"),
        pytest.param("tier=web", True, id="equal"),
        pytest.param("tier==web,zone=b", False, id="and"),
        pytest.param("tier!=db", True, id="unequal"),
        pytest.param("missing!=x", True, id="unequal of nothing"),
        pytest.param("tier in (web, db),zone notin (b)", True, id="sets"),
        pytest.param("zone notin (a)", False, id="not in"),
        pytest.param("tier", True, id="exists"),
        pytest.param("!tier", False, id="does not exist"),
        pytest.param("!missing", True, id="does not exist, indeed"),
        pytest.param("tier=", False, id="empty value"),
    ],
)
def test_labels(labels: str, fits: bool) -> None:
    assert selectors.test(POD, labels, "")(WEB) is fits


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        pytest.param("metadata.name=web", True, id="name"),
        pytest.param("metadata.namespace!=one", False, id="not the namespace"),
        pytest.param("spec.nodeName=n1,status.phase!=Failed", True, id="as kubectl describe"),
        pytest.param("spec.nodeName=", False, id="unscheduled"),
        pytest.param("spec.schedulerName==koord-scheduler", True, id="two equal signs"),
        pytest.param("spec.hostNetwork=false", True, id="absent is false"),
    ],
)
def test_fields(fields: str, fits: bool) -> None:
    assert selectors.test(POD, "", fields)(WEB) is fits


def test_fields_of_other_kinds() -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "web"}}
    wanted = "involvedObject.kind=Pod,involvedObject.name=web"
    assert selectors.test(EVENT, "", wanted)(event)
    node = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert selectors.test(NODE, "", "spec.unschedulable=true")(node)


@pytest.mark.parametrize(
    ("labels", "fields", "message"),
    [
        pytest.param("a=b=c", "", "unable to parse requirement", id="label syntax"),
        pytest.param("a in (b", "", "unable to parse requirement", id="open parenthesis"),
        pytest.param("", "spec.nope=1", "field label not supported: spec.nope", id="field"),
        pytest.param("", "metadata.name", "can't understand 'metadata.name'", id="no operator"),
    ],
)
def test_what_cannot_be_understood_is_named(labels: str, fields: str, message: str) -> None:
    with pytest.raises(api_errors.FailureError, match=message) as caught:
        selectors.test(POD, labels, fields)
    assert caught.value.code == 400
