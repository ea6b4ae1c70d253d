"""OpenAPI types of built-in kinds, as a real API server of one release publishes them.

The document beside this module is made by `python -m tests.e2e.openapi`. A type is resolved when
something asks for it, so that a process pays for the kinds that it reads.
"""

import functools
import gzip
import importlib.resources
from collections.abc import Mapping
from typing import Any

import orjson

FILE = "builtin_schemas.json.gz"
_REFERENCE = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# What the document describes as text or as anything, and what the server reads more strictly.
_SCALARS: Mapping[str, str] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    f"{_META}Time": "time",
    f"{_META}MicroTime": "time",
}


class Type:
    """The type of a field: what may stand there, and how writers share it."""

    def __init__(self, name: str, raw: Mapping[str, Any]) -> None:
        """`name` is the definition, empty for what stands in another one."""
        self.name = name
        self.raw = raw

    @functools.cached_property
    def sort(self) -> str:
        """`struct`, `map`, `list`, the name of a scalar, or `any`."""
        if self.name in _SCALARS:
            return _SCALARS[self.name]
        said = self.raw.get("type", "any")
        if said == "object":
            if "properties" in self.raw:
                return "struct"
            return "map" if "additionalProperties" in self.raw else "any"
        if said == "string" and self.raw.get("format") == "byte":
            return "bytes"
        return {"array": "list"}.get(said, str(said))

    @functools.cached_property
    def fields(self) -> Mapping[str, "Type"]:
        """The fields of a struct."""
        return {name: _type(raw) for name, raw in self.raw.get("properties", {}).items()}

    @functools.cached_property
    def element(self) -> "Type":
        """What a list or map holds."""
        if self.sort == "map":
            return _type(self.raw["additionalProperties"])
        return _type(self.raw.get("items") or {})

    @functools.cached_property
    def required(self) -> frozenset[str]:
        """The fields that are always written, even when they are empty."""
        return frozenset(self.raw.get("required", ()))

    @property
    def atomic(self) -> bool:
        """Whether a manager that sets a part of it owns all of it."""
        if self.sort == "list":
            return self.raw.get("x-kubernetes-list-type") not in ("set", "map")
        return bool(self.raw.get("x-kubernetes-map-type") == "atomic")

    @property
    def is_set(self) -> bool:
        """Whether it is a list of which each element has owners of its own."""
        return bool(self.raw.get("x-kubernetes-list-type") == "set")

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that tell the elements of a list apart; empty where they are not merged."""
        if self.raw.get("x-kubernetes-list-type") != "map":
            return ()
        return tuple(self.raw.get("x-kubernetes-list-map-keys", ()))

    @property
    def default(self) -> Any:
        """What stands there when nothing is said."""
        return self.raw.get("default")


def release() -> str:
    """Return the Kubernetes release whose types these are."""
    return str(_document()["release"])


def find(api_version: str, kind: str) -> Type | None:
    """Return the type of a built-in kind, None when it is not described."""
    name = _document()["kinds"].get(f"{api_version}/{kind}")
    return None if name is None else named(name)


def metadata() -> Type:
    """Return the type of the metadata of every object."""
    return named(f"{_META}ObjectMeta")


def definitions() -> Mapping[str, Mapping[str, Any]]:
    """Return all definitions by name."""
    found: Mapping[str, Mapping[str, Any]] = _document()["schemas"]
    return found


@functools.cache
def named(name: str) -> Type:
    """Return a definition."""
    return Type(name, _document()["schemas"][name])


@functools.cache
def _document() -> Mapping[str, Any]:
    data = importlib.resources.files(__package__).joinpath(FILE).read_bytes()
    document: Mapping[str, Any] = orjson.loads(gzip.decompress(data))
    return document


def _type(raw: Mapping[str, Any]) -> Type:
    (reference, *others) = raw.get("allOf") or [raw]
    place = reference.get("$ref")
    if place is None or others:
        return Type("", raw)
    found = named(place.removeprefix(_REFERENCE))
    beside = {key: value for key, value in raw.items() if key not in ("allOf", "$ref")}
    return Type(found.name, {**found.raw, **beside}) if beside else found
