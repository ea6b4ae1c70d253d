"""Custom resource definitions: what they must say, how they are established, what they serve."""

from collections.abc import Callable, Mapping
from typing import Any

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import jsonpath, kinds, schemas
from simulator.apiserver.storage import object_store

Object = dict[str, Any]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition whose objects have to go first."""


def problems(body: Mapping[str, Any]) -> list[api_errors.Cause]:
    """Return what keeps a definition from being served."""
    spec = body.get("spec", {})
    names = spec.get("names", {})
    needed = {f"spec.{field}": spec.get(field) for field in ("group", "scope", "versions")}
    needed |= {f"spec.names.{field}": names.get(field) for field in ("plural", "kind")}
    found = [
        api_errors.Cause(field, "Required value", "FieldValueRequired")
        for field, value in needed.items()
        if not value
    ]
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    name = body.get("metadata", {}).get("name", "")
    if name != wanted:
        message = (
            f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group, that is {wanted}'
        )
        found.append(api_errors.Cause("metadata.name", message))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        found.append(api_errors.Cause("spec.versions", message))
    for index, version in enumerate(versions):
        if not version.get("schema", {}).get("openAPIV3Schema"):
            field = f"spec.versions[{index}].schema.openAPIV3Schema"
            found.append(api_errors.Cause(field, "Required value: schemas are required"))
        for position, column in enumerate(version.get("additionalPrinterColumns") or ()):
            field = f"spec.versions[{index}].additionalPrinterColumns[{position}].jsonPath"
            found += _path_problems(column.get("jsonPath", ""), field)
    return found


def _path_problems(path: str, field: str) -> list[api_errors.Cause]:
    try:
        jsonpath.find({}, path)
    except jsonpath.PathError as error:
        return [api_errors.Cause(field, f'Invalid value: "{path}": {error}')]
    return []


def unsupported(body: Mapping[str, Any]) -> str:
    """Name a feature of a definition that is not implemented here; empty when there is none."""
    spec = body.get("spec", {})
    if (spec.get("conversion") or {}).get("strategy", "None") != "None":
        return "conversion webhooks of custom resource definitions"
    if any("scale" in (v.get("subresources") or {}) for v in spec.get("versions", ())):
        return "the scale subresource of custom resource definitions"
    return ""


def warnings(body: Mapping[str, Any]) -> list[str]:
    """Say what a definition asks for and will not get."""
    if schemas.has_rules(body.get("spec", {})):
        return ["x-kubernetes-validations (CEL) are stored but not evaluated here"]
    return []


def defaulted(body: Mapping[str, Any]) -> Object:
    """Return a definition with the names that may be left out."""
    spec = dict(body.get("spec", {}))
    names = dict(spec.get("names", {}))
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    return {**body, "spec": spec}


def established(body: Mapping[str, Any], now: str) -> Object:
    """Return the status of a definition that is served."""
    spec = body["spec"]
    facts = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    return {
        "acceptedNames": spec["names"],
        "storedVersions": [v["name"] for v in spec["versions"] if v.get("storage")],
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for kind, reason, message in facts
        ],
    }


def served(body: Mapping[str, Any]) -> tuple[kinds.Kind, ...]:
    """Return the kinds that a definition adds."""
    spec = body["spec"]
    names = spec["names"]
    return tuple(
        kinds.Kind(
            resources.Resource(
                spec["group"],
                version["name"],
                names["plural"],
                names["kind"],
                spec["scope"] == "Namespaced",
            ),
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            subresources=frozenset(
                name for name in (version.get("subresources") or {}) if name == "status"
            ),
            singular=names.get("singular") or names["kind"].lower(),
            custom=True,
            schema=schemas.Schema(version["schema"]["openAPIV3Schema"]),
            columns=tuple(version.get("additionalPrinterColumns") or ()),
        )
        for version in spec["versions"]
        if version.get("served")
    )


def ending(body: Object, now: str) -> None:
    """Let a definition that is to be deleted wait until its objects are gone."""
    meta, status = body["metadata"], body.setdefault("status", {})
    if "deletionTimestamp" in meta:
        return
    meta["finalizers"] = [*(meta.get("finalizers") or ()), CLEANUP]
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; its objects are deleted first",
    }
    status["conditions"] = [*(status.get("conditions") or ()), condition]


class Definitions:
    """Keeps the registry equal to the stored definitions, establishes new ones and ends others."""

    def __init__(self, store: object_store.Objects, registry: kinds.Registry) -> None:
        self._store = store
        self._registry = registry
        self._waits: dict[str, Callable[[], None]] = {}
        """How to stop following the objects of definitions that are being deleted, by name."""
        store.subscribe(self._changed, resources.CRDS)

    def _changed(self, event: object_store.Event) -> None:
        name = event.key.name
        body = event.object
        if event.type == "DELETED":
            self._registry.forget(name)
            self._waits.pop(name, _nothing)()
            self._empty(_collection(body))
            return
        if "deletionTimestamp" in body["metadata"]:
            self._end(name, _collection(body))
            return
        if event.previous is None or event.previous["spec"] != body["spec"]:
            self._registry.define(name, served(body))
        current = self._store.find(resources.CRDS, name)
        if current is not None and not _is_established(current):
            status = established(current, current["metadata"]["creationTimestamp"])
            self._store.update(resources.CRDS, {**current, "status": status})

    def _empty(self, sort: object_store.Collection) -> None:
        for item in self._store.list(sort).items:
            meta = item["metadata"]
            self._store.delete(sort, meta["name"], meta.get("namespace", ""))

    def _end(self, name: str, sort: object_store.Collection) -> None:
        """Delete the objects of a definition, which is served until the last of them is gone."""
        if name not in self._waits:
            self._empty(sort)
            self._waits[name] = self._store.subscribe(lambda _: self._finish(name, sort), sort)
        self._finish(name, sort)

    def _finish(self, name: str, sort: object_store.Collection) -> None:
        current = self._store.find(resources.CRDS, name)
        finalizers = [] if current is None else current["metadata"].get("finalizers") or []
        if current is None or CLEANUP not in finalizers or self._store.list(sort).items:
            return
        rest = [one for one in finalizers if one != CLEANUP]
        meta = {**current["metadata"], "finalizers": rest}
        self._store.update(resources.CRDS, {**current, "metadata": meta})


def _nothing() -> None:
    """Do nothing."""


def _collection(body: Mapping[str, Any]) -> object_store.Collection:
    return object_store.Collection(body["spec"]["group"], body["spec"]["names"]["plural"])


def _is_established(body: Mapping[str, Any]) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Established" for condition in conditions)
