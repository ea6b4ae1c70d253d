"""What the metadata of every object must be: names, labels, annotations, finalizers, owners."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds

Object = dict[str, Any]

# All annotations of an object together, keys and values.
MAX_ANNOTATIONS = 256 * 1024
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
# Kinds whose names are host names of one part.
_SHORT_NAMES = frozenset({("", "namespaces"), ("", "services")})
# Kinds whose finalizers need a domain only at the beginning.
_LENIENT = frozenset(
    {
        ("", "namespaces"),
        ("", "pods"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("policy", "poddisruptionbudgets"),
    }
)
_UNJUDGED = frozenset({("", "events"), ("coordination.k8s.io", "leases")})
_PATH_NAMES = "rbac.authorization.k8s.io"


def problems(kind: kinds.Kind, old: Object | None, new: Object) -> list[api_errors.Cause]:
    """Return what is wrong with the metadata of a new or changed object."""
    found = list(_named(kind, new)) if old is None else list(_changed(old, new))
    meta = new["metadata"]
    found += label_problems(meta.get("labels") or {}, "metadata.labels")
    found += annotation_problems(meta.get("annotations") or {}, "metadata.annotations")
    found += _finalizers(kind, meta.get("finalizers") or [], new=old is None)
    found += _owners(meta.get("ownerReferences") or [])
    return found


def label_problems(labels: Mapping[str, Any], path: str) -> list[api_errors.Cause]:
    """Return what is wrong with labels; also those of a pod template or a selector."""
    found = []
    for key, value in labels.items():
        found += [_invalid(path, key, why) for why in qualified_name_problems(key)]
        if why := label_value_problem(value):
            found.append(_invalid(f"{path}.{key}" if path else key, value, why))
    return found


def annotation_problems(annotations: Mapping[str, Any], path: str) -> list[api_errors.Cause]:
    """Return what is wrong with annotations, also together."""
    found = [
        _invalid(path, key, why)
        for key in annotations
        for why in qualified_name_problems(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        found.append(api_errors.Cause(path, message, "FieldValueTooLong"))
    return found


def qualified_name_problems(text: str) -> list[str]:
    """Return what is wrong with a name that may have a domain as its prefix."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"a qualified name must consist of alphanumeric characters: {_QUALIFIED_RULE}"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash and not api_errors.is_subdomain(prefix):
        found.append(f"prefix part {api_errors.SUBDOMAIN_RULE}")
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        found.append(_QUALIFIED_RULE)
    return found


def label_value_problem(value: str) -> str:
    """Return what is wrong with the value of a label, empty when nothing is."""
    if len(value) > 63:
        return "must be no more than 63 bytes"
    return "" if not value or _NAME.fullmatch(value) else _VALUE_RULE


def is_label(name: str) -> bool:
    """Tell whether a name is one part of a host name."""
    return len(name) <= 63 and "." not in name and api_errors.is_subdomain(name)


def _invalid(path: str, value: Any, why: str) -> api_errors.Cause:
    return api_errors.Cause(path, f'Invalid value: "{value}": {why}')


def _named(kind: kinds.Kind, new: Object) -> Iterator[api_errors.Cause]:
    meta = new["metadata"]
    # A generated name is made when the object is stored; its prefix decides whether it is valid.
    prefix = meta.get("generateName", "")
    name = meta.get("name", "") or (prefix and f"{prefix}x")
    if not name:
        message = "Required value: name or generateName is required"
        yield api_errors.Cause("metadata.name", message, "FieldValueRequired")
    elif kind.group == _PATH_NAMES:
        if name in (".", "..") or "/" in name or "%" in name:
            yield _invalid("metadata.name", name, "may not be '.' or '..' or contain '/' or '%'")
    elif kind.sort in _SHORT_NAMES:
        if not is_label(name):
            yield _invalid("metadata.name", name, _LABEL_RULE)
    elif not api_errors.is_subdomain(name):
        yield _invalid("metadata.name", name, api_errors.SUBDOMAIN_RULE)
    if meta.get("generation", 0) < 0:
        why = "must be greater than or equal to 0"
        yield _invalid("metadata.generation", meta["generation"], why)


def _changed(old: Object, new: Object) -> Iterator[api_errors.Cause]:
    before, after = old["metadata"], new["metadata"]
    for field in ("name", "namespace"):
        if before.get(field, "") != after.get(field, ""):
            yield _invalid(f"metadata.{field}", after.get(field, ""), "field is immutable")
    added = set(after.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if added and "deletionTimestamp" in before:
        message = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            f"finalizers {sorted(added)}"
        )
        yield api_errors.Cause("metadata.finalizers", message, "FieldValueForbidden")


def _finalizers(kind: kinds.Kind, finalizers: list[str], *, new: bool) -> list[api_errors.Cause]:
    found = []
    for index, name in enumerate(finalizers):
        wrong = qualified_name_problems(name)
        found += [_invalid("metadata.finalizers", name, why) for why in wrong]
        lenient = kind.sort in _UNJUDGED or (not new and kind.sort in _LENIENT)
        judged = not kind.custom and not lenient
        if judged and "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(_invalid(f"metadata.finalizers[{index}]", name, why))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(_invalid("metadata.finalizers", finalizers, why))
    return found


def _owners(references: list[Object]) -> list[api_errors.Cause]:
    found = []
    for index, owner in enumerate(references):
        path = f"metadata.ownerReferences[{index}]"
        version = str(owner.get("apiVersion", ""))
        if not version.rpartition("/")[2]:
            found.append(_invalid(f"{path}.apiVersion", version, "version must not be empty"))
        found += [
            _invalid(f"{path}.{field}", "", f"{field} must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if (version, owner.get("kind")) == ("v1", "Event"):
            found.append(_invalid(path, "Event", "/v1, Kind=Event is disallowed from being owner"))
    controllers = [owner.get("name") for owner in references if owner.get("controller")]
    if len(controllers) > 1:
        why = f"Only one reference can have Controller set to true. Found {controllers}"
        found.append(_invalid("metadata.ownerReferences", references, why))
    return found
