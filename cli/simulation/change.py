"""What is to be tried: objects as they would be applied, put into a snapshot. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from api import resources
from api.koordinator import colocation
from api.wire import base
from cli import reading
from cli.snapshot import format as formats
from cli.snapshot import projection

_KINDS: Final = {
    (one.api_version, one.kind): one for one in projection.RESOURCES if one != resources.PODS
}
_NAMESPACE: Final = "default"


class ChangeError(ValueError):
    """A change that cannot be tried; says what to write instead."""


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A snapshot with the change in it."""

    snapshot: formats.Snapshot
    said: tuple[str, ...]
    """What was changed, a sentence each."""
    profiles: tuple[colocation.ClusterColocationProfile, ...] = ()
    """Profiles, which change pods only when they are created."""


def applied(snapshot: formats.Snapshot, documents: Sequence[Mapping[str, Any]]) -> Changed:
    """Put objects into a snapshot; one that is there is replaced."""
    said: list[str] = []
    profiles: list[colocation.ClusterColocationProfile] = []
    for document in documents:
        kind, name = str(document.get("kind")), _name(document)
        if kind == resources.COLOCATION_PROFILES.kind:
            try:
                profiles.append(colocation.read_profile(document))
            except (base.ReadError, *reading.UNREADABLE) as error:
                raise ChangeError(f"{kind} {name}: {error}") from error
            continue
        resource = _resource(document, name)
        kept = _kept(resource, document, name)
        snapshot, replaced = _with(snapshot, resource, kept)
        said.append(f"{kind} {key_of(kept)} is {'changed' if replaced else 'added'}")
    return Changed(snapshot, tuple(said), tuple(profiles))


def _name(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _resource(document: Mapping[str, Any], name: str) -> resources.Resource:
    """Return what kind of object a document is, if a snapshot holds such objects."""
    kind, version = str(document.get("kind")), str(document.get("apiVersion"))
    if not name:
        raise ChangeError(f"{kind}: metadata.name is missing")
    if kind == "ConfigMap":
        if name not in projection.SETTINGS:
            known = ", ".join(projection.SETTINGS)
            raise ChangeError(f"ConfigMap {name}: no decision reads it; write one of {known}")
        return resources.CONFIG_MAPS
    if kind == "Pod":
        raise ChangeError(f"Pod {name}: try pods with `koord simulate pod -f`")
    found = _KINDS.get((version, kind))
    if found is None:
        known = ", ".join(sorted({one for _, one in _KINDS}))
        raise ChangeError(
            f"{version} {kind} {name}: such objects are not tried; write a ConfigMap, a "
            f"ClusterColocationProfile or one of {known}"
        )
    return found


def _kept(resource: resources.Resource, document: Mapping[str, Any], name: str) -> formats.Raw:
    metadata = dict(document["metadata"])
    if resource is resources.CONFIG_MAPS:
        data = document.get("data") or {}
        if not isinstance(data, Mapping) or not all(isinstance(v, str) for v in data.values()):
            raise ChangeError(f"ConfigMap {name}: data: write texts under keys")
    elif resource.namespaced:
        metadata["namespace"] = metadata.get("namespace") or _NAMESPACE
    try:
        return projection.kept(resource, {**document, "metadata": metadata})
    except reading.UNREADABLE as error:
        raise ChangeError(f"{resource.kind} {name}: {error}") from error


def _with(
    snapshot: formats.Snapshot, resource: resources.Resource, kept: formats.Raw
) -> tuple[formats.Snapshot, bool]:
    """Return a snapshot that holds the object, and whether it takes the place of another."""
    key, present = key_of(kept), snapshot.of(resource)
    if resource is resources.CONFIG_MAPS:
        key = kept["metadata"]["name"]
        others = tuple(one for one in present if one["metadata"]["name"] != key)
    else:
        others = tuple(one for one in present if key_of(one) != key)
        old = next((one for one in present if key_of(one) == key), None)
        # The object stays the same one, with what controllers have written on it.
        kept = kept if old is None else {**old, **kept, "metadata": _merged(old, kept)}
    objects = {**snapshot.objects, resource.review_name(): (*others, kept)}
    unread = {k: v for k, v in snapshot.unread.items() if k != resource.review_name()}
    changed = msgspec.structs.replace(snapshot, objects=objects, unread=unread)
    return changed, len(others) < len(present)


def _merged(old: formats.Raw, new: formats.Raw) -> formats.Raw:
    kept = {
        key: old["metadata"][key] for key in ("uid", "creationTimestamp") if key in old["metadata"]
    }
    return {**new["metadata"], **{key: value for key, value in kept.items() if value}}


def key_of(raw: Mapping[str, Any]) -> str:
    """Return the name of an object, with its namespace where it has one."""
    metadata = raw["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")
