"""Types of well-known fields, checked before anything reads them."""

from collections.abc import Iterator, Mapping
from typing import Any

from simulator import failures, kinds

_TYPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(
        ("metadata", "spec", "status", "template", "resources", "requests", "limits", "selector",
         "target", "clientConfig", "names", "securityContext"),
        (dict, "object"),
    ),
    **dict.fromkeys(
        ("containers", "initContainers", "tolerations", "ports", "env", "webhooks", "rules",
         "ownerReferences", "schedulingGates", "versions", "volumes", "conditions", "taints"),
        (list, "array of objects"),
    ),
    **dict.fromkeys(("labels", "annotations"), (dict, "object of strings")),
    **dict.fromkeys(("name", "namespace", "generateName", "resourceVersion"), (str, "string")),
}  # fmt: skip


def checked(kind: kinds.Kind, given: Any) -> dict[str, Any]:
    """Return a body whose well-known fields have the types that everybody relies on."""
    if not isinstance(given, dict):
        raise failures.bad_request("the body of the request must be an object")
    for field, expected, kind_name in (
        ("apiVersion", kind.resource.api_version, "API version"),
        ("kind", kind.name, "kind"),
    ):
        said = given.get(field)
        if said not in (None, "", expected):
            raise failures.bad_request(
                f"the {kind_name} in the data ({said}) does not match the expected {kind_name} "
                f"({expected})"
            )
    body: dict[str, Any] = {**given, "metadata": given.get("metadata") or {}}
    # The schema of a custom resource speaks for its own fields.
    looked = {"metadata": body["metadata"]} if kind.custom else body
    for path, found, wanted in _misfits(looked, ""):
        version = kind.resource.version
        raise failures.bad_request(
            f'{kind.name} in version "{version}" cannot be handled as a {kind.name}: json: cannot '
            f"unmarshal {_said(found)} into field {path} of type {wanted}"
        )
    return body


def loosely_checked(place: tuple[str, str, str], given: Any) -> dict[str, Any]:
    """Return the body of an action, which has a kind but no resource of its own."""
    if not isinstance(given, dict):
        raise failures.bad_request("the body of the request must be an object")
    if given.get("kind") not in (None, "", place[2]):
        raise failures.bad_request(f"the body is a {given['kind']}, expected a {place[2]}")
    body = {**given, "metadata": given.get("metadata") or {}}
    for path, found, wanted in _misfits(body, ""):
        raise failures.bad_request(
            f"{place[2]} cannot be read: cannot unmarshal {_said(found)} into field {path} "
            f"of type {wanted}"
        )
    return body


def _misfits(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, str]]:
    for name, inner in value.items():
        here = f"{path}.{name}" if path else str(name)
        wanted = _TYPES.get(name) if path.count(".") < 9 and not path.endswith("data") else None
        if wanted is not None and inner is not None:
            yield from _misfit(inner, here, *wanted)
        if isinstance(inner, Mapping) and name not in ("labels", "annotations", "selector"):
            yield from _misfits(inner, here)
        elif isinstance(inner, list):
            for index, item in enumerate(inner):
                if isinstance(item, Mapping):
                    yield from _misfits(item, f"{here}[{index}]")


def _misfit(value: Any, path: str, wanted: type, text: str) -> Iterator[tuple[str, Any, str]]:
    if not isinstance(value, wanted):
        yield path, value, text
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not isinstance(item, Mapping):
                yield f"{path}[{index}]", item, "object"
    elif isinstance(value, Mapping) and text == "object of strings":
        for key, item in value.items():
            if not isinstance(item, str):
                yield f"{path}.{key}", item, "string"


def _said(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
