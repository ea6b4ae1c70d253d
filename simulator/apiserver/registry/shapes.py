"""Types of well-known fields, checked before anything reads them."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds


class Shape(NamedTuple):
    """The JSON type of a field and the shapes below it."""

    type: str
    below: Mapping[str, "Shape"] = MappingProxyType({})


TEXT = Shape("string")
TEXTS = Shape("object of strings")
MAP = Shape("object")
LIST = Shape("array of objects")


_PYTHON: Mapping[str, type] = {
    "string": str,
    "object": dict,
    "object of strings": dict,
    "array": list,
    "array of objects": list,
}


def _map(**below: Shape) -> Shape:
    return Shape("object", below)


def _list(**below: Shape) -> Shape:
    return Shape("array of objects", below)


_METADATA = _map(
    name=TEXT,
    namespace=TEXT,
    generateName=TEXT,
    resourceVersion=TEXT,
    uid=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    ownerReferences=LIST,
    finalizers=Shape("array"),
    managedFields=LIST,
)
_CONTAINERS = _list(
    name=TEXT,
    image=TEXT,
    ports=LIST,
    env=LIST,
    volumeMounts=LIST,
    resources=_map(requests=MAP, limits=MAP),
)
_POD = {
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "tolerations": LIST,
    "schedulingGates": _list(name=TEXT),
    "volumes": LIST,
    "readinessGates": LIST,
    "nodeSelector": TEXTS,
    "nodeName": TEXT,
    "schedulerName": TEXT,
    "priorityClassName": TEXT,
}
_TEMPLATE = _map(metadata=_METADATA, spec=Shape("object", _POD))
_BUILT_IN = _map(
    metadata=_METADATA,
    spec=_map(
        **_POD,
        template=_TEMPLATE,
        selector=MAP,
        taints=LIST,
        ports=LIST,
        group=TEXT,
        scope=TEXT,
        names=_map(plural=TEXT, kind=TEXT, singular=TEXT, listKind=TEXT),
        conversion=MAP,
        versions=_list(name=TEXT, schema=_map(openAPIV3Schema=MAP), additionalPrinterColumns=LIST),
    ),
    status=_map(conditions=LIST, containerStatuses=LIST, capacity=MAP, allocatable=MAP),
    data=MAP,
    stringData=MAP,
    webhooks=_list(
        name=TEXT, rules=LIST, clientConfig=MAP, namespaceSelector=MAP, objectSelector=MAP
    ),
    target=_map(name=TEXT),
    deleteOptions=_map(preconditions=MAP),
    involvedObject=MAP,
    regarding=MAP,
    subjects=LIST,
    roleRef=MAP,
    rules=LIST,
)
_CUSTOM = _map(metadata=_METADATA)


def checked(kind: kinds.Kind, given: Any) -> dict[str, Any]:
    """Return a body whose well-known fields have the types that everybody relies on."""
    if not isinstance(given, dict):
        raise api_errors.bad_request("the body of the request must be an object")
    for field, expected, kind_name in (
        ("apiVersion", kind.resource.api_version, "API version"),
        ("kind", kind.name, "kind"),
    ):
        said = given.get(field)
        if said not in (None, "", expected):
            raise api_errors.bad_request(
                f"the {kind_name} in the data ({said}) does not match the expected {kind_name} "
                f"({expected})"
            )
    # To say null is to say nothing, as for a Go server; a custom resource may mean it.
    body = dict(given) if kind.custom else _without_nulls(given)
    if body.get("metadata") is None:
        body["metadata"] = {}
    # The schema of a custom resource speaks for its own fields.
    for path, found, wanted in _misfits(body, "", _CUSTOM if kind.custom else _BUILT_IN):
        version = kind.resource.version
        raise api_errors.bad_request(
            f'{kind.name} in version "{version}" cannot be handled as a {kind.name}: json: cannot '
            f"unmarshal {_said(found)} into field {path} of type {wanted}"
        )
    return body


def loosely_checked(place: tuple[str, str, str], given: Any) -> dict[str, Any]:
    """Return the body of an action, which has a kind but no resource of its own."""
    if not isinstance(given, dict):
        raise api_errors.bad_request("the body of the request must be an object")
    if given.get("kind") not in (None, "", place[2]):
        raise api_errors.bad_request(f"the body is a {given['kind']}, expected a {place[2]}")
    body = _without_nulls(given)
    body.setdefault("metadata", {})
    for path, found, wanted in _misfits(body, "", _BUILT_IN):
        raise api_errors.bad_request(
            f"{place[2]} cannot be read: cannot unmarshal {_said(found)} into field {path} "
            f"of type {wanted}"
        )
    return body


def _without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_nulls(inner) if isinstance(inner, Mapping) else inner
        for key, inner in value.items()
        if inner is not None
    }


def _misfits(value: Any, path: str, shape: Shape) -> Iterator[tuple[str, Any, str]]:
    if not isinstance(value, _PYTHON[shape.type]):
        yield path, value, shape.type
        return
    for step, inner, below in _parts(value, shape):
        yield from _misfits(inner, f"{path}{step}".lstrip("."), below)


def _parts(value: Any, shape: Shape) -> Iterator[tuple[str, Any, Shape]]:
    """Yield what has to be looked at inside a value that is of the right type itself."""
    if shape.type == LIST.type:
        for index, item in enumerate(value):
            yield f"[{index}]", item, Shape(MAP.type, shape.below)
    elif shape.type == TEXTS.type:
        for key, item in value.items():
            yield f".{key}", item, TEXT
    elif shape.type == MAP.type:
        for name, below in shape.below.items():
            if value.get(name) is not None:
                yield f".{name}", value[name], below


def _said(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
