"""create, update, patch and delete."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.apiserver import services
from simulator.apiserver.admission import builtin, webhooks
from simulator.apiserver.http import api_errors, requests
from simulator.apiserver.patching import managed_fields, patches
from simulator.apiserver.registry import kinds, shapes
from simulator.apiserver.storage import lifecycle, object_store
from simulator.apiserver.verbs import strategies

Object = dict[str, Any]

# A patch without a resourceVersion is computed again when somebody else wrote meanwhile.
ATTEMPTS = 5


@dataclass(slots=True)
class Write:
    """One write on its way: who wants it, what it may change, what its author should know."""

    parts: services.Services
    kind: kinds.Kind
    info: requests.RequestInfo
    user: requests.User
    warnings: list[str] = field(default_factory=list)

    @property
    def store(self) -> object_store.Objects:
        """Where the write goes: a copy when it must leave no trace."""
        return self.parts.store.scratch() if self.info.dry_run else self.parts.store

    @property
    def part(self) -> object_store.Part:
        """What the write may change."""
        if self.info.subresource == "status":
            return object_store.Part.STATUS_ONLY if self.kind.custom else object_store.Part.STATUS
        return object_store.Part.MAIN if self.kind.has_status else object_store.Part.WHOLE

    def writer(self, operation: str) -> managed_fields.Writer:
        """Return who is recorded as the owner of the written fields."""
        return managed_fields.Writer(
            manager=self.info.manager,
            operation=operation,
            version=self.kind.resource.api_version,
            subresource=self.info.subresource,
            time=lifecycle.timestamp(self.parts.clock.now()),
        )

    def question(self, operation: str, old: Object | None, new: Object | None) -> webhooks.Question:
        """Return what webhooks are asked about this write."""
        present = new or old or {"metadata": {}}
        return webhooks.Question(
            kind=self.kind,
            operation=operation,
            namespace=self.info.namespace,
            name=self.info.name or present["metadata"].get("name", ""),
            subresource=self.info.subresource,
            user=self.user,
            dry_run=self.info.dry_run,
            object=new,
            old=old,
        )


async def create(write: Write, body: Any) -> Object:
    """Store a new object."""
    new = _received(write, body)
    name = new["metadata"].get("name", "") or new["metadata"].get("generateName", "")
    return await _created(write, new, name, lambda value: _tracked(write, None, value))


async def update(write: Write, body: Any) -> Object:
    """Replace an object."""
    kind, info = write.kind, write.info
    new = _received(write, body)
    name = new["metadata"].get("name", "")
    if name != info.name:
        raise api_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({info.name})"
        )
    if kind.custom and not new["metadata"].get("resourceVersion"):
        message = "Invalid value: 0x0: must be specified for an update"
        cause = api_errors.Cause("metadata.resourceVersion", message)
        raise api_errors.invalid(kind.group, kind.name, name, [cause])
    given = new["metadata"].get("resourceVersion", "")

    def replaced(_: Object) -> Object:
        return new

    return await _updated(write, replaced, retry=not given)


async def patch(write: Write, media: str, body: bytes) -> tuple[Object, bool]:
    """Change an object by a patch; also tells whether server-side apply created it."""
    if media not in patches.MEDIA_TYPES:
        raise api_errors.unsupported_media(", ".join(patches.MEDIA_TYPES))
    content = patches.decode(media, body)
    if media == patches.APPLY:
        return await _applied(write, content)

    def patched(current: Object) -> Object:
        result = patches.patched(write.kind, media, current, content)
        return _received(write, result)

    meta = content.get("metadata") if isinstance(content, dict) else None
    pinned = isinstance(meta, dict) and bool(meta.get("resourceVersion"))
    return await _updated(write, patched, retry=not pinned), False


async def delete(write: Write, options: Any) -> tuple[Object, bool]:
    """Delete an object; also tells whether it is gone already."""
    kind, info = write.kind, write.info
    options = options or {}
    if not isinstance(options, dict):
        raise api_errors.bad_request("the body of a deletion must be DeleteOptions")
    old = services.shown(kind, write.parts.store.get(kind.sort, info.name, info.namespace))
    builtin.deletion_checked(kind, info.name)
    write.warnings += await write.parts.webhooks.validate(write.question("DELETE", old, None))
    grace = options.get("gracePeriodSeconds", requests.number(info.query, "gracePeriodSeconds"))
    wanted = options.get("preconditions") or {}
    uid, version = wanted.get("uid", ""), wanted.get("resourceVersion", "")
    store = write.store
    if store is write.parts.store:
        _propagated(write, old, options)
    marked = store.find(kind.sort, info.name, info.namespace)
    if marked is None:
        return old, True
    removed = store.delete(
        kind.sort, info.name, info.namespace, grace=grace, uid=uid, version=version
    )
    left = store.find(kind.sort, info.name, info.namespace)
    return services.shown(kind, left or removed), left is None


async def asked(write: Write, place: tuple[str, str, str], body: Object) -> Object:
    """Ask webhooks about the body of an action such as a binding."""
    group, version, kind = place
    stamped = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, **body}
    question = replace(write.question("CREATE", None, stamped), object_kind=place)
    answer = await write.parts.webhooks.mutate(question, lambda value: value)
    write.warnings += answer.warnings
    question = replace(question, object=answer.object)
    write.warnings += await write.parts.webhooks.validate(question)
    return answer.object or body


def _propagated(write: Write, old: Object, options: Object) -> None:
    """Treat dependents as the deletion wishes; in the background is the default."""
    policy = options.get("propagationPolicy") or write.info.query.get("propagationPolicy", "")
    if options.get("orphanDependents"):
        policy = "Orphan"
    if policy not in ("", "Background", "Foreground", "Orphan"):
        raise api_errors.bad_request(
            f'propagationPolicy: Unsupported value: "{policy}": supported values: '
            '"Background", "Foreground", "Orphan"'
        )
    uid = old["metadata"]["uid"]
    if policy == "Orphan":
        write.parts.garbage.orphan(uid)
    elif policy == "Foreground":
        key = object_store.Key(*write.kind.sort, write.info.namespace, write.info.name)
        write.parts.garbage.foreground(key, uid)


async def _applied(write: Write, config: Any) -> tuple[Object, bool]:
    """Server-side apply."""
    kind, info = write.kind, write.info
    if not info.query.get("fieldManager"):
        raise api_errors.bad_request("fieldManager: Required value: is required for apply patch")
    received = _received(write, config)
    if received["metadata"].get("managedFields"):
        raise api_errors.bad_request("metadata.managedFields must be nil")
    received["metadata"] = {"name": info.name, **received["metadata"]}
    config = received if kind.schema is None else kind.schema.pruned(received)
    force = requests.flag(info.query, "force")
    writer = write.writer("Apply")
    current = write.parts.store.find(kind.sort, info.name, info.namespace)
    if current is None and not info.subresource:
        applied = managed_fields.apply(None, config, kind, writer, force=force)
        return await _created(write, applied, info.name, lambda value: value), True

    def merged(before: Object) -> Object:
        return managed_fields.apply(before, config, kind, writer, force=force)

    return await _updated(write, merged, retry=True, track=False), False


async def _created(
    write: Write, new: Object, name: str, finish: Callable[[Object], Object]
) -> Object:
    kind, info = write.kind, write.info
    if kind.namespaced:
        builtin.namespace_checked(kind, info.namespace, name, write.parts.store)
        new["metadata"] = {**new["metadata"], "namespace": info.namespace}

    def begun(value: Object) -> Object:
        filled = strategies.prepared(kind, value, new=True)
        if kind.sort == object_store.PODS:
            filled = builtin.priority_resolved(filled, write.parts.store)
        return filled

    new = await _admitted(write, "CREATE", None, begun(new), begun)
    if kind.namespaced:
        builtin.namespace_checked(kind, info.namespace, name, write.parts.store)
    value = finish(services.stored(kind, new))
    created = write.store.create(kind.sort, value, info.namespace if kind.namespaced else "")
    return services.shown(kind, created)


async def _updated(
    write: Write, change: Callable[[Object], Object], *, retry: bool, track: bool = True
) -> Object:
    """Read, change, admit and store; again when somebody else was faster."""
    kind, info = write.kind, write.info
    for attempt in range(1, ATTEMPTS + 1):
        before = write.parts.store.get(kind.sort, info.name, info.namespace)
        old = services.shown(kind, before)
        proposed = change(old)
        _same(write, before, proposed)
        new = _bounded(write, old, strategies.prepared(kind, proposed, new=False))
        new = await _admitted(
            write, "UPDATE", old, new, lambda value: strategies.prepared(kind, value, new=False)
        )
        value = services.stored(kind, _bounded(write, old, new))
        if track:
            value = _tracked(write, before, value)
        value["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        try:
            return services.shown(kind, write.store.update(kind.sort, value))
        except api_errors.FailureError as error:
            if error.reason != "Conflict" or not retry or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _same(write: Write, before: Object, proposed: Object) -> None:
    """Refuse a change that was meant for another object or another version of it."""
    kind, name = write.kind, write.info.name
    current, wanted = before["metadata"], proposed["metadata"]
    if (wanted.get("uid") or current["uid"]) != current["uid"]:
        why = (
            f"Precondition failed: UID in precondition: {wanted['uid']}, "
            f"UID in object meta: {current['uid']}"
        )
        raise api_errors.conflict(kind.group, kind.plural, name, why)
    version = current["resourceVersion"]
    if (wanted.get("resourceVersion") or version) != version:
        raise api_errors.stale(kind.group, kind.plural, name)


def _bounded(write: Write, old: Object, new: Object) -> Object:
    """Return what is left of a change when only one part may change."""
    return write.kind.stamp(lifecycle.combined(old, new, write.part))


async def _admitted(
    write: Write,
    operation: str,
    old: Object | None,
    new: Object,
    redefault: Callable[[Object], Object],
) -> Object:
    """Ask webhooks and rules; the answer may differ from what was proposed."""
    kind = write.kind
    question = write.question(operation, old, kind.stamp(new))
    answer = await write.parts.webhooks.mutate(question, redefault)
    write.warnings += answer.warnings
    assert answer.object is not None, "mutating webhooks return what they were asked about"
    new = answer.object
    strategies.checked(kind, old, new)
    write.warnings += strategies.warnings(kind, new)
    final = write.question(operation, old, kind.stamp(new))
    write.warnings += await write.parts.webhooks.validate(final)
    return new


def _received(write: Write, body: Any) -> Object:
    """Check the shape of a body against the request that carries it."""
    if body is None:
        raise api_errors.bad_request("the body of the request is empty")
    kind, info = write.kind, write.info
    value = shapes.checked(kind, body)
    validation = info.query.get("fieldValidation", "Warn")
    write.warnings += strategies.decoded(kind, value, validation)
    namespace = value["metadata"].get("namespace") or ""
    if namespace and namespace != info.namespace:
        raise api_errors.bad_request(
            f"the namespace of the provided object does not match the namespace sent on the "
            f"request: {namespace!r} is not {info.namespace!r}"
        )
    value["metadata"] = {k: v for k, v in value["metadata"].items() if v is not None}
    if kind.namespaced:
        value["metadata"]["namespace"] = info.namespace
    return value


def _tracked(write: Write, before: Object | None, value: Object) -> Object:
    return managed_fields.track(before, value, write.kind, write.writer("Update"))
