"""The narrow async client: get, list, watch, create, update, patch, delete, bind, evict."""

import contextlib
import dataclasses
import enum
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Required, Self, TypedDict, Unpack

import orjson
from msgspec import structs

from api import resources
from kube.client import access as accesses
from kube.client import errors, request_parts, transport, wire
from kube.client import horizon as horizons
from kube.client.connections import streams
from process.runtime import clock as clocks
from process.runtime import metrics

PAGE: Final = 500
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
_EITHER: Final = f"{wire.PROTOBUF};stream=watch, application/json"
Body = Mapping[str, Any] | Sequence[Any] | bytes
Watch = contextlib.AbstractAsyncContextManager[AsyncIterator[Sequence[bytes]]]


class Patch(enum.StrEnum):
    """How a patch is to be read, by its content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    """For built-in kinds the cheapest: the API server writes and reads no JSON of the object."""
    APPLY = "application/apply-patch+yaml"


class WriteOptions(TypedDict, total=False):
    """What may accompany a create, an update or a patch."""

    subresource: str
    field_manager: str
    force: bool
    dry_run: bool
    brief: bool
    """Ask for the metadata alone as the answer, and for no search for unknown fields: less work for
    the API server where something is written on very many objects."""


class Placing(TypedDict, total=False):
    """Where a pod goes, what is written on it, and on which terms."""

    uid: Required[str]
    node: Required[str]
    annotations: Required[Mapping[str, str]]
    version: str
    """Bind the pod only as it was at this resource version; empty: as it is."""
    guard: transport.Guard
    """What may hold the write back at the last moment."""


class DeleteOptions(TypedDict, total=False):
    """Preconditions and manner of a deletion."""

    uid: str
    resource_version: str
    grace_seconds: int | None
    dry_run: bool
    guard: transport.Guard
    """Of an eviction: what can forbid it at the last moment."""


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """A complete list and the version at which it was true."""

    items: list[dict[str, Any]]
    resource_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource: all of them, or by namespace, labels and fields."""

    resource: resources.Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        query = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in query.items() if value}


class Client:
    """A client of one API server, opened with ``async with``."""

    def __init__(
        self,
        access: accesses.Access,
        *,
        clock: clocks.Clock,
        user_agent: str = "koord",
        limits: transport.Limits | None = None,
        rng: random.Random | None = None,
        registry: metrics.Registry | None = None,
    ) -> None:
        self._guard: transport.Guard | None = None
        self.horizon = horizons.Horizon()
        self._transport = transport.Transport(
            access,
            clock=clock,
            user_agent=user_agent,
            limits=limits or transport.Limits(),
            rng=rng or random.Random(),
            registry=registry,
        )

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    @property
    def registry(self) -> metrics.Registry | None:
        """The metrics that this client and what is built on it report to."""
        return self._transport.registry

    def fenced(self, guard: transport.Guard) -> "Client":
        """Return a client on the same connections whose writes end when the guard says so."""
        fenced = object.__new__(type(self))
        fenced._guard, fenced.horizon = guard, self.horizon
        fenced._transport = self._transport
        return fenced

    async def get(
        self, resource: resources.Resource, name: str, namespace: str = ""
    ) -> dict[str, Any]:
        """Return one object."""
        path = request_parts.path(resource, namespace, name)
        return _object(
            await self._transport.send(transport.Call("GET", path, "get", resource.plural))
        )

    async def read(
        self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None
    ) -> bytes:
        """Return what is served at a path that is no object: the version, a log, a pod's page."""
        return await self._transport.send(
            transport.Call("GET", path, "read", "", query=query or {}, seconds=seconds, large=True)
        )

    async def list(
        self,
        resource: resources.Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
    ) -> Listing:
        """Return all objects of a selection, read page by page."""
        selection = Selection(resource, namespace, labels, fields)
        try:
            return await self._list(selection, PAGE)
        except errors.Gone:
            # The list changed for longer than its pages are kept; take it in one piece.
            return await self._list(selection, 0)

    async def page(
        self, selection: Selection, query: Mapping[str, str], *, attempts: int | None = None
    ) -> bytes:
        """Return one page of a list as the API server wrote it."""
        return await self._transport.send(
            transport.Call(
                "GET",
                selection.resource.path(selection.namespace),
                "list",
                selection.resource.plural,
                query={**selection.query(), **query},
                seconds=60.0,
                large=True,
                attempts=attempts,
            )
        )

    @contextlib.asynccontextmanager
    async def watch(
        self,
        selection: Selection,
        query: Mapping[str, str],
        *,
        silence: float = 90.0,
        protobuf: bool = False,
    ) -> AsyncIterator[AsyncIterator[Sequence[bytes]]]:
        """Yield the events of a watch in the batches they come in; silence is Unreachable.

        An event is a line of JSON; with `protobuf` a frame of it where the API server speaks that.
        """
        call = transport.Call(
            "GET",
            selection.resource.path(selection.namespace),
            "watch",
            selection.resource.plural,
            query={**selection.query(), **query, "watch": "true"},
            accept=_EITHER if protobuf else "application/json",
        )
        async with self._transport.stream(call, silence) as answer:
            is_binary = answer.content_type == wire.PROTOBUF
            yield _batches(answer, wire.Frames() if is_binary else wire.Lines())

    async def current_version(self, resource: resources.Resource) -> int:
        """Return the newest resource version, agreed by the API server's quorum."""
        return await self.version_of(Selection(resource))

    async def version_of(
        self, selection: Selection, *, cached: bool = False, attempts: int | None = None
    ) -> int:
        """Return the same, asked with no other permission than to list this selection.

        From its memory an API server may return an older one, and the whole selection with it.
        """
        query = {"limit": "1", **({"resourceVersion": "0"} if cached else {})}
        data = await self.page(selection, query, attempts=attempts)
        return wire.number(wire.page(data)[0].metadata.resource_version)

    async def create(
        self,
        resource: resources.Resource,
        body: Body,
        namespace: str = "",
        *,
        name: str = "",
        **options: Unpack[WriteOptions],
    ) -> dict[str, Any]:
        """Create an object, or post to the subresource of the named one."""
        path = resource.path(namespace)
        if name:
            path = request_parts.path(resource, namespace, name, options.get("subresource", ""))
        call = transport.Call("POST", path, "create", resource.plural, _query(options))
        return await self._write(call, body)

    async def update(
        self,
        resource: resources.Resource,
        body: Mapping[str, Any],
        **options: Unpack[WriteOptions],
    ) -> dict[str, Any]:
        """Replace an object; its metadata names it and, with a version, guards against races."""
        metadata = body["metadata"]
        namespace, subresource = metadata.get("namespace", ""), options.get("subresource", "")
        path = request_parts.path(resource, namespace, metadata["name"], subresource)
        call = transport.Call("PUT", path, "update", resource.plural, _query(options))
        return await self._write(call, body)

    async def patch(
        self,
        resource: resources.Resource,
        name: str,
        body: Body,
        *,
        namespace: str = "",
        kind: Patch = Patch.MERGE,
        **options: Unpack[WriteOptions],
    ) -> dict[str, Any]:
        """Change parts of an object; an apply patch needs a field manager."""
        path = request_parts.path(resource, namespace, name, options.get("subresource", ""))
        verb = "apply" if kind is Patch.APPLY else "patch"
        call = transport.Call("PATCH", path, verb, resource.plural, _query(options))
        if options.get("brief"):
            call = structs.replace(call, accept=_METADATA)
        return await self._write(structs.replace(call, content_type=kind.value), body)

    async def delete(
        self,
        resource: resources.Resource,
        name: str,
        namespace: str = "",
        **options: Unpack[DeleteOptions],
    ) -> None:
        """Delete an object, if wanted only this very one."""
        path = request_parts.path(resource, namespace, name)
        call = transport.Call("DELETE", path, "delete", resource.plural)
        await self._write(call, _delete_options(options))

    async def bind(self, namespace: str, name: str, **placing: Unpack[Placing]) -> None:
        """Bind a pod to a node and write annotations on it, in one step."""
        path = request_parts.path(resources.PODS, namespace, name, "binding")
        call = transport.Call("POST", path, "bind", "pods", guard=placing.get("guard"))
        version = placing.get("version", "")
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": placing["uid"],
                "annotations": dict(placing["annotations"]),
                **({"resourceVersion": version} if version else {}),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": placing["node"]},
        }
        await self._write(call, body)

    async def evict(
        self,
        namespace: str,
        name: str,
        **options: Unpack[DeleteOptions],
    ) -> None:
        """Evict a pod; a disruption budget that forbids it for now raises TooManyRequests."""
        path = request_parts.path(resources.PODS, namespace, name, "eviction")
        call = transport.Call("POST", path, "evict", "pods", guard=options.get("guard"))
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(options),
        }
        await self._write(call, body)

    async def _write(self, call: transport.Call, body: Body) -> dict[str, Any]:
        data = request_parts.body(body)
        guard = call.guard or self._guard
        return _object(await self._transport.send(structs.replace(call, body=data, guard=guard)))

    async def _list(self, selection: Selection, limit: int) -> Listing:
        items: list[dict[str, Any]] = []
        query = {"limit": str(limit)} if limit else {}
        resource = selection.resource
        while True:
            page = _object(await self.page(selection, query))
            for item in page.get("items") or ():
                # Objects in a list leave out what they are.
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                items.append(item)
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return Listing(items, metadata.get("resourceVersion", ""))
            query["continue"] = metadata["continue"]


async def _batches(
    content: streams.Parts, events: wire.Frames | wire.Lines
) -> AsyncIterator[Sequence[bytes]]:
    while chunk := await content.readany():
        yield events.feed(chunk)


def _object(data: bytes) -> dict[str, Any]:
    try:
        decoded = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise errors.Malformed(f"an answer is not JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise errors.Malformed(f"an answer is a {type(decoded).__name__}, not an object")
    return decoded


def _query(options: WriteOptions) -> dict[str, str]:
    query = {}
    if options.get("field_manager"):
        query["fieldManager"] = options["field_manager"]
    if options.get("force"):
        query["force"] = "true"
    if options.get("dry_run"):
        query["dryRun"] = "All"
    if options.get("brief"):
        query["fieldValidation"] = "Ignore"
    return query


def _delete_options(options: DeleteOptions) -> dict[str, Any]:
    preconditions = {
        "uid": options.get("uid"),
        "resourceVersion": options.get("resource_version"),
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {name: value for name, value in preconditions.items() if value},
    }
    if options.get("grace_seconds") is not None:
        body["gracePeriodSeconds"] = options["grace_seconds"]
    if options.get("dry_run"):
        body["dryRun"] = ["All"]
    return body
