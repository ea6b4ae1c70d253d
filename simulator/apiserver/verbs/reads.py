"""get and list."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from simulator.apiserver import services
from simulator.apiserver.http import api_errors, requests, responses
from simulator.apiserver.registry import kinds
from simulator.apiserver.storage import object_store
from simulator.apiserver.tables import tables
from simulator.apiserver.verbs import selectors

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next page begins."""

    version: int
    after: tuple[str, str]

    def token(self) -> str:
        """Return the continue parameter that leads here."""
        text = orjson.dumps([self.version, *self.after])
        return base64.urlsafe_b64encode(text).decode().rstrip("=")


def place(token: str) -> Place:
    """Read a continue parameter."""
    try:
        version, namespace, name = orjson.loads(
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        )
        return Place(int(version), (str(namespace), str(name)))
    except (ValueError, TypeError, binascii.Error) as error:
        raise api_errors.bad_request("continue key is not valid") from error


def get(
    parts: services.Services, kind: kinds.Kind, info: requests.RequestInfo, accept: str
) -> web.Response:
    """Answer with one object."""
    view = responses.view(accept)
    found = parts.store.get(kind.sort, info.name, info.namespace)
    item = services.shown(kind, found)
    if not view.table:
        return responses.reply(tables.metadata_of(item) if view.metadata else item)
    meta = {"resourceVersion": found["metadata"]["resourceVersion"]}
    return responses.reply(_table(parts, kind, [item], meta, info.query))


def listing(
    parts: services.Services, kind: kinds.Kind, info: requests.RequestInfo, accept: str
) -> web.Response:
    """Answer with a collection, perhaps a page of it."""
    view = responses.view(accept)
    query = info.query
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    passes = selectors.test(kind, labels, fields)
    limit = requests.number(query, "limit") or 0
    start = place(query["continue"]) if query.get("continue") else None
    found = _snapshot(parts.store, kind, info, start)
    shown = [services.shown(kind, value) for value in found.items]
    items = [item for item in shown if passes(item)]
    if start is not None:
        items = [item for item in items if _position(item) > start.after]
    meta: Object = {"resourceVersion": str(found.version)}
    if limit and len(items) > limit:
        meta["continue"] = Place(found.version, _position(items[limit - 1])).token()
        if not labels and not fields:
            meta["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    if view.table:
        return responses.reply(_table(parts, kind, items, meta, query))
    if not kind.custom:
        items = [{k: v for k, v in i.items() if k not in ("apiVersion", "kind")} for i in items]
    return responses.reply(
        {
            "kind": f"{kind.name}List",
            "apiVersion": kind.resource.api_version,
            "metadata": meta,
            "items": items,
        }
    )


def selected(
    parts: services.Services, kind: kinds.Kind, info: requests.RequestInfo
) -> list[Object]:
    """Return what the selectors of a request choose."""
    query = info.query
    passes = selectors.test(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    shown = (services.shown(kind, v) for v in parts.store.list(kind.sort, info.namespace).items)
    return [item for item in shown if passes(item)]


def version_of(text: str) -> int:
    """Read a resourceVersion parameter."""
    if not text.isdecimal():
        raise api_errors.bad_request(f'resourceVersion: Invalid value: "{text}": must be a number')
    return int(text)


def _snapshot(
    store: object_store.Objects, kind: kinds.Kind, info: requests.RequestInfo, start: Place | None
) -> object_store.Listing:
    wanted = info.query.get("resourceVersion", "")
    match = info.query.get("resourceVersionMatch", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise _wrong_match(
            f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""',
            "FieldValueNotSupported",
        )
    if match and (not wanted or start is not None):
        raise _wrong_match(
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided and "
            "with continue"
        )
    if start is not None:
        if wanted not in ("", "0"):
            raise api_errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        try:
            return store.list(kind.sort, info.namespace, at=start.version)
        except api_errors.FailureError as error:
            raise api_errors.FailureError(
                410,
                "Expired",
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter.",
            ) from error
    version = version_of(wanted) if wanted else 0
    if match == "Exact" and version:
        return store.list(kind.sort, info.namespace, at=version)
    if match == "Exact":
        raise _wrong_match(
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        )
    if version > store.version:
        raise api_errors.too_large(version, store.version)
    return store.list(kind.sort, info.namespace)


def _wrong_match(message: str, reason: str = "FieldValueForbidden") -> api_errors.FailureError:
    cause = api_errors.Cause("resourceVersionMatch", message, reason)
    return api_errors.invalid("meta.k8s.io", "ListOptions", "", [cause])


def _position(item: Object) -> tuple[str, str]:
    return (item["metadata"].get("namespace", ""), item["metadata"]["name"])


def _table(
    parts: services.Services,
    kind: kinds.Kind,
    items: list[Object],
    meta: Mapping[str, Any],
    query: Mapping[str, str],
) -> Object:
    return tables.table(
        kind,
        items,
        parts.clock.now(),
        metadata=meta,
        include=query.get("includeObject") or "Metadata",
    )
