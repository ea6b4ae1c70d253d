"""Options of writes: DeleteOptions, and the parameters that create, update and patch share."""

from typing import Any

from simulator.apiserver.http import api_errors, requests
from simulator.apiserver.registry import decoding
from simulator.apiserver.storage import object_store

Object = dict[str, Any]

_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_POLICIES = ("Background", "Foreground", "Orphan")
_GROUP = "meta.k8s.io"


def checked(info: requests.RequestInfo) -> None:
    """Refuse parameters of a write that have no meaning."""
    kind = _KINDS.get(info.verb, "DeleteOptions")
    found = []
    if info.query.get("dryRun", "") not in ("", "All"):
        found.append(_unsupported("dryRun", info.query["dryRun"], ("All",)))
    validation = info.query.get("fieldValidation", "")
    if validation not in ("", *decoding.VALIDATIONS):
        found.append(_unsupported("fieldValidation", validation, decoding.VALIDATIONS))
    if len(info.query.get("fieldManager", "")) > 128:
        message = "Too long: may not be more than 128 bytes"
        found.append(api_errors.Cause("fieldManager", message, "FieldValueTooLong"))
    if found:
        raise api_errors.invalid(_GROUP, kind, "", found)


def apply_checked(info: requests.RequestInfo) -> None:
    """Refuse an apply that does not say whose it is."""
    if not info.query.get("fieldManager"):
        message = "Required value: is required for apply patch"
        cause = api_errors.Cause("fieldManager", message, "FieldValueRequired")
        raise api_errors.invalid(_GROUP, "PatchOptions", "", [cause])


def deletion(info: requests.RequestInfo, given: Any) -> tuple[object_store.Deletion, bool]:
    """Return how to delete, and whether only to pretend; parameters count without a body."""
    options = decoding.options(given) if given is not None else _from_query(info)
    policy, orphan = options.get("propagationPolicy", ""), options.get("orphanDependents")
    found = []
    if policy and orphan is not None:
        message = "Invalid value: orphanDependents and deletionPropagation cannot be both set"
        found.append(api_errors.Cause("propagationPolicy", message))
    if policy and policy not in _POLICIES:
        found.append(_unsupported("propagationPolicy", policy, _POLICIES))
    dry = options.get("dryRun") or []
    if any(word != "All" for word in dry):
        found.append(_unsupported("dryRun", dry, ("All",)))
    if found:
        raise api_errors.invalid(_GROUP, "DeleteOptions", "", found)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    wanted = options.get("preconditions") or {}
    how = object_store.Deletion(
        grace=options.get("gracePeriodSeconds"),
        uid=wanted.get("uid", ""),
        version=wanted.get("resourceVersion", ""),
        policy=policy,
    )
    return how, bool(dry)


def _from_query(info: requests.RequestInfo) -> Object:
    query = info.query
    options: Object = {}
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    if query.get("orphanDependents"):
        options["orphanDependents"] = requests.flag(query, "orphanDependents")
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    seconds = requests.number(query, "gracePeriodSeconds")
    return options if seconds is None else {**options, "gracePeriodSeconds": seconds}


def _unsupported(field: str, value: Any, supported: tuple[str, ...]) -> api_errors.Cause:
    listed = ", ".join(f'"{word}"' for word in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return api_errors.Cause(field, message, "FieldValueNotSupported")
