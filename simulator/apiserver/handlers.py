"""From a request to its answer."""

from typing import Any

from aiohttp import web

from simulator.apiserver import authentication, authorization, discovery, openapi, services
from simulator.apiserver.admission import builtin
from simulator.apiserver.http import api_errors, requests, responses
from simulator.apiserver.registry import decoding, kinds
from simulator.apiserver.storage import lifecycle, object_store
from simulator.apiserver.tables import tables
from simulator.apiserver.verbs import reads, subresources, watch, writes

Object = dict[str, Any]

# As real API servers have it.
MAX_BODY_BYTES = 3 * 1024 * 1024
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
# Subresources that real API servers have and this one has not.
_ABSENT = frozenset(
    {
        "approval", "attach", "ephemeralcontainers", "exec", "finalize", "log", "portforward",
        "proxy", "resize", "scale", "token",
    }
)  # fmt: skip
# What a deletion answers with although it is gone.
_RETURNED = frozenset({object_store.PODS, object_store.NAMESPACES})
_RETURNED_AS_IT_WAS = frozenset({("", "serviceaccounts"), ("", "services")})


async def handle(parts: services.Services, request: web.Request) -> web.StreamResponse:
    """Answer any request; what goes wrong becomes a Status."""
    warnings: list[str] = []
    try:
        user = authentication.user(request.headers, request.path, parts.tokens)
        info = requests.parse(request.method, request.path, request.query, request.headers)
        if info is None:
            return _overview(parts, request)
        injected = await parts.faults.before(info)
        if injected is not None:
            return injected
        return await _resource(parts, request, info, user, warnings)
    except api_errors.FailureError as error:
        return responses.refusal(error, warnings)


def _overview(parts: services.Services, request: web.Request) -> web.Response:
    """Answer what is not about a resource: health, version, discovery, schemas."""
    path = request.path.rstrip("/")
    if path in HEALTH_PATHS or any(path.startswith(f"{health}/") for health in HEALTH_PATHS):
        return web.Response(text="ok")
    if request.method not in ("GET", "HEAD"):
        raise api_errors.method_not_allowed()
    if path == "/version":
        return responses.reply(discovery.VERSION)
    if path in ("/api", "/apis"):
        return _roots(parts, path, request.headers.get("Accept", ""))
    if path == "/openapi/v3":
        return responses.reply(openapi.index(parts.registry))
    if path.startswith("/openapi/v3/"):
        return responses.reply(
            _found(openapi.document(parts.registry, path.removeprefix("/openapi/v3/")))
        )
    pieces = path.strip("/").split("/")
    if pieces[0] == "api" and len(pieces) == 2:
        return responses.reply(_found(discovery.resource_list(parts.registry, "", pieces[1])))
    if pieces[0] == "apis" and len(pieces) == 2:
        return responses.reply(_found(discovery.group(parts.registry, pieces[1]), pieces[1]))
    if pieces[0] == "apis" and len(pieces) == 3:
        served = discovery.resource_list(parts.registry, pieces[1], pieces[2])
        return responses.reply(_found(served, pieces[1]))
    raise api_errors.missing(f"the path {request.path}")


def _found(body: Object | None, group: str = "") -> Object:
    if body is not None:
        return body
    if group in kinds.BUILT_IN_GROUPS and group:
        raise api_errors.missing(f"the API group {group} in that version")
    raise api_errors.no_such_path()


def _roots(parts: services.Services, path: str, accept: str) -> web.Response:
    for version in ("v2", "v2beta1"):
        wish = f"g=apidiscovery.k8s.io;v={version};as={discovery.AGGREGATED}"
        if wish in accept.replace(" ", ""):
            body = discovery.aggregated(parts.registry, core=path == "/api", version=version)
            return responses.reply(body, media=f"{responses.JSON};{wish}")
    if path == "/api":
        return responses.reply(discovery.core_versions(parts.address))
    return responses.reply(discovery.group_list(parts.registry))


async def _resource(
    parts: services.Services,
    request: web.Request,
    info: requests.RequestInfo,
    user: requests.User,
    warnings: list[str],
) -> web.StreamResponse:
    authorization.check(parts, user, info)
    if (review := authorization.reviewed(info)) is not None:
        body = responses.decoded(request.content_type, await _body(request))
        return responses.reply(authorization.answer(parts, review, body), 201, warnings)
    kind = _kind(parts.registry, info)
    _located(kind, info)
    accept = request.headers.get("Accept", "")
    if info.subresource in subresources.ACTIONS:
        return await _action(writes.Write(parts, kind, info, user, warnings), request)
    match info.verb:
        case "get":
            return reads.get(parts, kind, info, accept)
        case "list":
            return reads.listing(parts, kind, info, accept)
        case "watch":
            return await watch.watch(parts, kind, info, request)
        case "deletecollection":
            return await _delete_collection(parts, kind, info, user, request)
    write = writes.Write(parts, kind, info, user, warnings)
    return await _write(write, request)


def _kind(registry: kinds.Registry, info: requests.RequestInfo) -> kinds.Kind:
    found = registry.find(info.group, info.version, info.plural)
    if found is None:
        if info.group in kinds.BUILT_IN_GROUPS and (info.group, info.plural) not in kinds.GATED:
            text = api_errors.full_name(info.group, info.plural)
            raise api_errors.missing(f"the resource {text} in version {info.version}")
        raise api_errors.no_such_path()
    if info.subresource and info.subresource not in found.subresources:
        if info.subresource in _ABSENT and not found.custom:
            raise api_errors.missing(f"the subresource {info.plural}/{info.subresource}")
        raise api_errors.no_such_path()
    return found


def _located(kind: kinds.Kind, info: requests.RequestInfo) -> None:
    """Refuse what does not fit the scope of the kind, or the verbs of a path."""
    if info.namespace and not kind.namespaced:
        raise api_errors.no_such_path()
    if kind.namespaced and not info.namespace and (info.name or info.verb == "create"):
        raise api_errors.method_not_allowed()
    if (info.verb == "create") is bool(info.name) and info.verb in ("create", "update", "patch"):
        acts = info.verb == "create" and info.subresource in subresources.ACTIONS
        if not acts:
            raise api_errors.method_not_allowed()
    if info.subresource in subresources.ACTIONS and info.verb != "create":
        raise api_errors.method_not_allowed()
    if info.verb not in kind.verbs:
        raise api_errors.missing(f"enforcement of {kind.plural}, so they cannot be written")
    if info.subresource == "status" and info.verb not in ("get", "update", "patch"):
        raise api_errors.method_not_allowed()


async def _write(write: writes.Write, request: web.Request) -> web.Response:
    body = await _body(request)
    media, view = request.content_type, responses.view(request.headers.get("Accept", ""))
    match write.info.verb:
        case "create":
            item = await writes.create(write, responses.decoded(media, body))
            code = 201
        case "update":
            item, created = await writes.update(write, responses.decoded(media, body))
            code = 201 if created else 200
        case "patch":
            item, created = await writes.patch(write, media, body)
            code = 201 if created else 200
        case _:
            item = await _delete(write, responses.decoded(media, body))
            code = 200
    if view.metadata and item["kind"] != "Status":
        item = tables.metadata_of(item)
    return responses.reply(item, code, write.warnings)


async def _delete(write: writes.Write, options: Any) -> Object:
    """Delete and return the object if it lingers, else what its kind answers."""
    item, gone = await writes.delete(write, options)
    if not gone or write.kind.sort in _RETURNED:
        return item
    if write.kind.sort in _RETURNED_AS_IT_WAS:
        meta = {k: v for k, v in item["metadata"].items() if not k.startswith("deletion")}
        return {**item, "metadata": meta}
    details = {
        "name": write.info.name,
        "group": write.kind.group,
        "kind": write.kind.plural,
        "uid": item["metadata"]["uid"],
    }
    about = {key: value for key, value in details.items() if value}
    status = {k: v for k, v in subresources.success().items() if k != "code"}
    return {**status, "details": about}


async def _delete_collection(
    parts: services.Services,
    kind: kinds.Kind,
    info: requests.RequestInfo,
    user: requests.User,
    request: web.Request,
) -> web.Response:
    options = responses.decoded(request.content_type, await _body(request))
    items = []
    for value in reads.selected(parts, kind, info):
        meta = value["metadata"]
        one = requests.for_object(info, meta["name"], meta.get("namespace", ""))
        try:
            item, _ = await writes.delete(writes.Write(parts, kind, one, user), options)
        except api_errors.FailureError as error:
            # Another client may have deleted it since the list was made.
            if error.code != 404:
                raise
        else:
            items.append(item)
    meta = {"resourceVersion": str(parts.store.version)}
    return responses.reply(
        {
            "kind": f"{kind.name}List",
            "apiVersion": kind.resource.api_version,
            "metadata": meta,
            "items": items,
        }
    )


async def _action(write: writes.Write, request: web.Request) -> web.Response:
    """Bind or evict a pod."""
    parts, info = write.parts, write.info
    body = responses.decoded(request.content_type, await _body(request))
    place = subresources.ACTIONS[info.subresource]
    if body is None:
        raise api_errors.bad_request("the body of the request is empty")
    validation = info.query.get("fieldValidation", "Warn")
    value, warnings = decoding.action(place, body, validation)
    write.warnings += warnings
    name = value["metadata"].get("name") or info.name
    if name != info.name:
        raise api_errors.bad_request(f"name in URL does not match name in {place[2]} object")
    value["metadata"] = {**value["metadata"], "name": name, "namespace": info.namespace}
    options = value.get("deleteOptions") or {}
    if "All" in (options.get("dryRun") or ()):
        info = write.info = requests.dry(info)
    parts.store.get(object_store.PODS, info.name, info.namespace)
    builtin.namespace_checked(write.kind, info.namespace, info.name, parts.store)
    value = await writes.asked(write, place, value)
    now = lifecycle.timestamp(parts.clock.now())
    store = write.store
    if info.subresource == "binding":
        subresources.bind(store, info.namespace, info.name, value, now)
    else:
        pod = store.get(object_store.PODS, info.name, info.namespace)
        subresources.evict(store, parts.budgets.of(pod), pod, options, now)
    return responses.reply(subresources.success(), 201, write.warnings)


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        text = f"limit is {MAX_BODY_BYTES}"
        raise api_errors.FailureError(413, "RequestEntityTooLarge", text) from error
