"""Label and field selectors of list and watch requests."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from api.kubernetes import label_selector_text, selectors
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds

Object = Mapping[str, Any]
Test = Callable[[Object], bool]

_EVENT_FIELDS = tuple(
    f"{{about}}.{field}"
    for field in (
        "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath",
    )
)  # fmt: skip
_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "events"): (
        *(field.format(about="involvedObject") for field in _EVENT_FIELDS),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "events"): (
        *(field.format(about="regarding") for field in _EVENT_FIELDS),
        "reason",
        "reportingController",
        "type",
    ),
}
_TERM = re.compile(r"(?P<field>[^=!]+)(?P<operator>==|!=|=)(?P<value>.*)")


def test(kind: kinds.Kind, labels: str, fields: str) -> Test:
    """Return the test that a selecting list or watch applies to objects as the kind shows them."""
    requirements = _requirements(labels)
    terms = _field_terms(kind, fields)

    def passes(value: Object) -> bool:
        own = value["metadata"].get("labels") or {}
        return label_selector_text.matches(requirements, own) and all(
            (_field(value, path) == wanted) is equal for path, equal, wanted in terms
        )

    return passes


def _requirements(text: str) -> tuple[label_selector_text.Requirement, ...]:
    try:
        return label_selector_text.parse(text)
    except selectors.SelectorError as error:
        raise api_errors.bad_request(str(error)) from None


def _field_terms(kind: kinds.Kind, fields: str) -> list[tuple[str, bool, str]]:
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get((kind.group, kind.plural), ()))
    found = []
    for part in filter(None, fields.split(",")):
        match = _TERM.fullmatch(part)
        if match is None:
            raise api_errors.bad_request(
                f"invalid selector: '{part}'; can't understand '{part}' in field selector"
            )
        if match["field"] not in known:
            raise api_errors.bad_request(f"field label not supported: {match['field']}")
        found.append((match["field"], match["operator"] != "!=", match["value"]))
    return found


def _field(value: Object, path: str) -> str:
    if path == "source" or (path == "reportingComponent" and not value.get(path)):
        return str((value.get("source") or {}).get("component", ""))
    current: Any = value
    for name in path.split("."):
        current = current.get(name) if isinstance(current, Mapping) else None
    if isinstance(current, bool):
        return "true" if current else "false"
    if current is None:
        return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    return str(current)
