"""create, update, patch and delete."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.apiserver import services
from simulator.apiserver.admission import builtin, webhooks
from simulator.apiserver.http import api_errors, requests
from simulator.apiserver.patching import field_sets, managed_fields, patches
from simulator.apiserver.registry import crds, decoding, kinds
from simulator.apiserver.storage import lifecycle, object_store
from simulator.apiserver.verbs import option_rules, strategies

Object = dict[str, Any]

# A patch without a resourceVersion is computed again when another client wrote meanwhile.
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
    option_rules.checked(write.info)
    new = _received(write, body)
    name = new["metadata"].get("name", "") or new["metadata"].get("generateName", "")
    return await _created(write, new, name, track=True)


async def update(write: Write, body: Any) -> tuple[Object, bool]:
    """Replace an object; also tells whether it was created, as some kinds allow."""
    option_rules.checked(write.info)
    kind, info = write.kind, write.info
    new = _received(write, body)
    name = new["metadata"].get("name", "")
    if name != info.name:
        raise api_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({info.name})"
        )
    if write.parts.store.find(kind.sort, info.name, info.namespace) is None:
        return await _absent(write, new), True
    unbased = not new["metadata"].get("resourceVersion")
    if (kind.custom or kind.conditional) and unbased:
        message = "Invalid value: 0x0: must be specified for an update"
        cause = api_errors.Cause("metadata.resourceVersion", message)
        raise api_errors.invalid(kind.group, kind.name, name, [cause])
    given = new["metadata"].get("resourceVersion", "")

    def replaced(_: Object) -> Object:
        return new

    return await _updated(write, replaced, retry=not given), False


async def _absent(write: Write, new: Object) -> Object:
    """Create what an update did not find, where its kind allows that and no uid is demanded."""
    kind, name = write.kind, write.info.name
    if not kind.made_by_update:
        raise api_errors.not_found(kind.group, kind.plural, name)
    if uid := new["metadata"].get("uid"):
        why = (
            "StorageError: invalid object, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {uid}, UID in object meta: "
        )
        raise api_errors.conflict(kind.group, kind.plural, name, why)
    return await _created(write, new, name, track=True)


async def patch(write: Write, media: str, body: bytes) -> tuple[Object, bool]:
    """Change an object by a patch; also tells whether server-side apply created it."""
    if media not in patches.MEDIA_TYPES:
        raise api_errors.unsupported_media(", ".join(patches.MEDIA_TYPES))
    option_rules.checked(write.info)
    content = patches.decode(media, body)
    if media == patches.APPLY:
        return await _applied(write, content)

    def patched(current: Object) -> Object:
        return _patched(write, patches.patched(write.kind, media, current, content))

    meta = content.get("metadata") if isinstance(content, dict) else None
    pinned = isinstance(meta, dict) and bool(meta.get("resourceVersion"))
    return await _updated(write, patched, retry=not pinned), False


async def delete(write: Write, options: Any) -> tuple[Object, bool]:
    """Delete an object; also tells whether it is gone already."""
    kind = write.kind
    how, dry = option_rules.deletion(write.info, options)
    info = write.info = requests.dry(write.info) if dry else requests.wet(write.info)
    store, place = write.parts.store, (kind.sort, info.name, info.namespace)
    before: Object | None = None
    while before is None or store.find(*place) is not before:
        # What was written while webhooks were asked is another object than they judged.
        before = store.get(*place)
        builtin.deletion_checked(kind, info.name)
        question = write.question("DELETE", services.shown(kind, before), None)
        answer = await write.parts.webhooks.mutate(question, lambda value: value)
        given = await write.parts.webhooks.validate(question)
        warnings = answer.warnings + given
    write.warnings += warnings
    target = write.store
    if kind.sort == strategies.CRDS:
        object_store.require(kind.sort, before, uid=how.uid, version=how.version, precondition=True)
        how = replace(how, version="")
        now = lifecycle.timestamp(write.parts.clock.now())
        target.modify(kind.sort, info.name, "", lambda body: crds.ending(body, now))
    left = target.delete(kind.sort, info.name, info.namespace, how)
    return services.shown(kind, left), lifecycle.may_go(left)


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


async def _applied(write: Write, config: Any) -> tuple[Object, bool]:
    """Server-side apply."""
    kind, info = write.kind, write.info
    option_rules.apply_checked(info)
    config = _configuration(write, config)
    force = requests.flag(info.query, "force")
    writer = write.writer("Apply")
    current = write.parts.store.find(kind.sort, info.name, info.namespace)
    if current is None and not info.subresource:
        applied = managed_fields.apply(None, config, kind, writer, force=force)
        applied = _patched(write, applied)
        try:
            return await _created(write, applied, info.name, track=False), True
        except api_errors.FailureError as error:
            # Another client was faster: then this is a change of what that one made.
            if error.reason != "AlreadyExists":
                raise

    def merged(before: Object) -> Object:
        applied = managed_fields.apply(before, config, kind, writer, force=force)
        if applied is before:
            return before
        patched = _patched(write, applied)
        # What is empty was left out just now: the same may be left as before.
        return before if managed_fields.is_same(before, patched) else patched

    return await _updated(write, merged, retry=True, track=False), False


async def _created(write: Write, new: Object, name: str, *, track: bool) -> Object:
    kind, info = write.kind, write.info
    builtin.definition_checked(kind, name, write.parts.store)
    if kind.namespaced:
        builtin.namespace_checked(kind, info.namespace, name, write.parts.store)
        new["metadata"] = {**new["metadata"], "namespace": info.namespace}
    filled = strategies.defaulted(kind, new)
    # Fields belong to who wrote them; what admission and the server add belongs to no manager.
    owned = _tracked(write, None, filled) if track else filled

    def resolved(value: Object) -> Object:
        value = strategies.defaulted(kind, value)
        if kind.sort == object_store.PODS:
            builtin.placement_checked(value)
            return builtin.priority_resolved(value, write.parts.store)
        return value

    begun = strategies.begun(kind, resolved(owned))
    new = await _admitted(write, "CREATE", None, begun, resolved)
    if kind.namespaced:
        builtin.namespace_checked(kind, info.namespace, name, write.parts.store)
    value = services.stored(kind, new)
    created = write.store.create(kind.sort, value, info.namespace if kind.namespaced else "")
    shown = services.shown(kind, created)
    if info.dry_run:
        # What was not stored has no version.
        shown = {**shown, "metadata": {**shown["metadata"]}}
        del shown["metadata"]["resourceVersion"]
    return shown


async def _updated(
    write: Write, change: Callable[[Object], Object], *, retry: bool, track: bool = True
) -> Object:
    """Read, change, admit and store; again when another client was faster."""
    kind, info = write.kind, write.info
    for attempt in range(1, ATTEMPTS + 1):
        before = write.parts.store.get(kind.sort, info.name, info.namespace)
        old = services.shown(kind, before)
        proposed = change(old)
        _same(write, before, proposed)
        new = _bounded(write, old, strategies.defaulted(kind, proposed))
        if track:
            new = _tracked(write, old, new)
        new = strategies.carried(kind, old, new, status=bool(info.subresource))
        new = await _admitted(
            write, "UPDATE", old, new, lambda value: strategies.defaulted(kind, value)
        )
        value = services.stored(kind, _bounded(write, old, new))
        value["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        try:
            return _answered(write, before, write.store.update(kind.sort, value))
        except api_errors.FailureError as error:
            if error.reason != "Conflict" or not retry or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _answered(write: Write, before: Object, after: Object) -> Object:
    """Return the answer to an update; a dry run gives no new version."""
    shown = services.shown(write.kind, after)
    if not write.info.dry_run:
        return shown
    version = before["metadata"]["resourceVersion"]
    return {**shown, "metadata": {**shown["metadata"], "resourceVersion": version}}


def _same(write: Write, before: Object, proposed: Object) -> None:
    """Refuse a change that was meant for another object or another version of it."""
    kind, name = write.kind, write.info.name
    current, wanted = before["metadata"], proposed["metadata"]
    if wanted.get("name", name) != name:
        raise api_errors.bad_request(
            f"the name of the object ({wanted['name']}) does not match the name on the URL ({name})"
        )
    if (wanted.get("uid") or current["uid"]) != current["uid"]:
        if write.info.verb == "patch":
            message = f'Invalid value: "{wanted["uid"]}": field is immutable'
            cause = api_errors.Cause("metadata.uid", message)
            raise api_errors.invalid(kind.group, kind.name, name, [cause])
        why = (
            f"Precondition failed: UID in precondition: {wanted['uid']}, "
            f"UID in object meta: {current['uid']}"
        )
        raise api_errors.conflict(kind.group, kind.plural, name, why)
    version = current["resourceVersion"]
    if wanted.get("resourceVersion") and not str(wanted["resourceVersion"]).isdecimal():
        text = f'strconv.ParseUint: parsing "{wanted["resourceVersion"]}": invalid syntax'
        raise api_errors.untyped(text)
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
    value, warnings = decoding.body(kind, body, info.query.get("fieldValidation", "Warn"))
    write.warnings += warnings
    _located(write, value)
    value["metadata"] = {k: v for k, v in value["metadata"].items() if v is not None}
    if kind.namespaced:
        value["metadata"]["namespace"] = info.namespace
    return value


def _located(write: Write, value: Object) -> None:
    namespace = value["metadata"].get("namespace") or ""
    if not write.kind.namespaced:
        value["metadata"].pop("namespace", None)
    elif namespace and namespace != write.info.namespace:
        raise api_errors.bad_request(
            f"the namespace of the provided object does not match the namespace sent on the "
            f"request: {namespace!r} is not {write.info.namespace!r}"
        )


def _patched(write: Write, result: Any) -> Object:
    """Check what a patch made of an object; what does not fit is the fault of the patch."""
    try:
        return _received(write, result)
    except api_errors.FailureError as error:
        if error.code != 400:
            raise
        cause = api_errors.Cause("patch", f"Invalid value: {error.message}")
        raise api_errors.invalid("", "", "", [cause]) from error


def _configuration(write: Write, config: Any) -> Object:
    """Read the configuration of a server-side apply."""
    kind, info = write.kind, write.info
    if not isinstance(config, dict) or not config.get("apiVersion") or not config.get("kind"):
        raise api_errors.bad_request("invalid object type: /, Kind=")
    decoding.named(config, kind.resource.api_version, kind.name)
    if wrong := decoding.untyped(field_sets.type_of(kind), config):
        raise api_errors.untyped(f"failed to create typed patch object: {wrong}")
    meta = {**(config.get("metadata") or {}), "name": info.name}
    if meta.get("managedFields"):
        raise api_errors.bad_request("metadata.managedFields must be nil")
    _located(write, {"metadata": meta})
    if kind.namespaced:
        meta["namespace"] = info.namespace
    return {**config, "metadata": meta}


def _tracked(write: Write, before: Object | None, value: Object) -> Object:
    return managed_fields.track(before, value, write.kind, write.writer("Update"))
