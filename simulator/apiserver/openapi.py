"""OpenAPI v3 as far as kubectl reads it: which parameters a patch takes, what fields mean.

Only custom resources have their schema described; built-in kinds are checked by the server but
not spelled out. The strategic merge patch is left out of the listed media types on purpose: then
kubectl uses the merge rules it was built with.
"""

import hashlib
from typing import Any

import orjson

from simulator.apiserver.registry import kinds

Object = dict[str, Any]

_FIELD_VALIDATION = {
    "name": "fieldValidation",
    "in": "query",
    "description": "what to do about unknown fields: Ignore, Warn or Strict",
    "schema": {"type": "string", "uniqueItems": True},
}
_DRY_RUN = {
    "name": "dryRun",
    "in": "query",
    "description": "All: nothing is stored",
    "schema": {"type": "string", "uniqueItems": True},
}


def index(registry: kinds.Registry) -> Object:
    """Answer /openapi/v3."""
    paths = {}
    for kind in registry.kinds():
        place = _place(kind)
        if place not in paths:
            text = orjson.dumps(document(registry, place), option=orjson.OPT_SORT_KEYS)
            digest = hashlib.sha256(text).hexdigest()[:32].upper()
            paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
    return {"paths": paths}


def document(registry: kinds.Registry, place: str) -> Object | None:
    """Answer /openapi/v3/api/v1 or /openapi/v3/apis/GROUP/VERSION."""
    served = [kind for kind in registry.kinds() if _place(kind) == place]
    if not served:
        return None
    paths: Object = {}
    for kind in served:
        space = "/namespaces/{namespace}" if kind.namespaced else ""
        path = f"/{place}{space}/{kind.plural}"
        paths[path] = {"post": _operation(kind, "post"), "get": _operation(kind, "list")}
        paths[f"{path}/{{name}}"] = {
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put"),
            "patch": _operation(kind, "patch"),
            "delete": _operation(kind, "delete"),
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Koord embedded control plane", "version": "v1.32.0"},
        "paths": paths,
        "components": {"schemas": {_name(kind): _schema(kind) for kind in served}},
    }


def _place(kind: kinds.Kind) -> str:
    return f"{'apis' if kind.group else 'api'}/{kind.resource.api_version}"


def _name(kind: kinds.Kind) -> str:
    reverse = ".".join(reversed((kind.group or "core.api.k8s.io").split(".")))
    return f"{reverse}.{kind.resource.version}.{kind.name}"


def _gvk(kind: kinds.Kind) -> Object:
    return {"group": kind.group, "version": kind.resource.version, "kind": kind.name}


def _schema(kind: kinds.Kind) -> Object:
    if kind.schema is None:
        text = f"{kind.name} is a built-in kind; its fields are not described here."
        schema: Object = {"type": "object", "description": text}
    else:
        schema = dict(kind.schema.raw)
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties = {**identity, "metadata": {"type": "object"}, **schema.get("properties", {})}
    gvk = {"x-kubernetes-group-version-kind": [_gvk(kind)]}
    return {**schema, "properties": properties, **gvk}


def _operation(kind: kinds.Kind, verb: str) -> Object:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{_name(kind)}"}}}
    action = {"put": "put", "post": "post", "patch": "patch", "delete": "delete"}.get(verb, verb)
    operation: Object = {
        "operationId": f"{action}{kind.group}{kind.resource.version}{kind.name}",
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
    if verb in ("post", "put", "patch"):
        operation["parameters"] = [_DRY_RUN, _FIELD_VALIDATION]
    return operation
