"""Admission webhooks: who is asked, how, and what becomes of the answers."""

import asyncio
import base64
import binascii
import functools
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import orjson

from api.kubernetes import selectors
from api.kubernetes.webhooks import webhook_conditions
from simulator.apiserver.http import api_errors, requests
from simulator.apiserver.patching import patches
from simulator.apiserver.registry import kinds
from simulator.apiserver.storage import object_store

Object = dict[str, Any]

MUTATING = object_store.Collection("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING = object_store.Collection(
    "admissionregistration.k8s.io", "validatingwebhookconfigurations"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One write that webhooks are asked about."""

    kind: kinds.Kind
    operation: str
    namespace: str
    name: str
    subresource: str
    user: requests.User
    dry_run: bool
    object: Object | None
    old: Object | None
    object_kind: tuple[str, str, str] | None = None
    """Group, version and kind of the object where it is not that of the resource."""

    def review(self, uid: str) -> Object:
        """Return the AdmissionReview that asks this."""
        resource = self.kind.resource
        group, version, kind = self.object_kind or (resource.group, resource.version, resource.kind)
        gvk = {"group": group, "version": version, "kind": kind}
        gvr = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        more = {"subResource": self.subresource, "requestSubResource": self.subresource}
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "kind": gvk,
                "resource": gvr,
                "requestKind": gvk,
                "requestResource": gvr,
                **(more if self.subresource else {}),
                **({"name": self.name} if self.name else {}),
                **({"namespace": self.namespace} if self.namespace else {}),
                "operation": self.operation,
                "userInfo": {"username": self.user.name, "groups": list(self.user.groups)},
                "object": self.object,
                "oldObject": self.old,
                "dryRun": self.dry_run,
                "options": {"apiVersion": "meta.k8s.io/v1", "kind": f"{_OPTIONS[self.operation]}"},
            },
        }


_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


@dataclass(slots=True)
class Answer:
    """What the webhooks made of a write."""

    object: Object | None
    warnings: list[str] = field(default_factory=list)
    changed: bool = False


class CallError(Exception):
    """A webhook that gave no usable answer."""


class Webhooks:
    """Asks the webhooks that the stored configurations name."""

    def __init__(
        self,
        store: object_store.Objects,
        uid: Callable[[], str],
        services: Mapping[tuple[str, str], tuple[str, int]],
    ) -> None:
        """`services` says where the service of a client configuration listens on this machine."""
        self._store = store
        self._uid = uid
        self._services = services
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the session that all calls share."""
        self._session = aiohttp.ClientSession(trust_env=False, auto_decompress=True)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def mutate(self, question: Question, redefault: Callable[[Object], Object]) -> Answer:
        """Ask the mutating webhooks in order; those that wish are asked again after changes."""
        answer = Answer(question.object)
        hooks = list(self._matching(MUTATING, question))
        last_change = -1
        for position, hook in enumerate(hooks):
            if await self._mutated(hook, question, answer, redefault):
                last_change = position
        for hook in hooks[: max(last_change, 0)]:
            if hook.get("reinvocationPolicy") == "IfNeeded":
                await self._mutated(hook, question, answer, redefault)
        return answer

    async def validate(self, question: Question) -> list[str]:
        """Ask the validating webhooks at once; any of them may refuse."""
        hooks = list(self._matching(VALIDATING, question))
        answers = await asyncio.gather(
            *(self._asked(hook, question) for hook in hooks), return_exceptions=True
        )
        warnings: list[str] = []
        for hook, response in zip(hooks, answers, strict=True):
            if isinstance(response, BaseException):
                raise response
            warnings += response.get("warnings") or ()
            _allowed(hook, response)
        return warnings

    async def _mutated(
        self,
        hook: Object,
        question: Question,
        answer: Answer,
        redefault: Callable[[Object], Object],
    ) -> bool:
        before = answer.object
        response = await self._asked(hook, replace(question, object=before))
        answer.warnings += response.get("warnings") or ()
        _allowed(hook, response)
        if before is None or not response.get("patch"):
            return False
        try:
            if response.get("patchType") != "JSONPatch":
                raise ValueError(f"unsupported patch type {response.get('patchType')!r}")
            operations = orjson.loads(base64.b64decode(response["patch"]))
            after = redefault(patches.applied(before, operations))
        except (ValueError, binascii.Error) as error:
            raise api_errors.internal(f"error applying patch of {hook['name']}: {error}") from error
        if after == before:
            return False
        answer.object, answer.changed = after, True
        return True

    def _matching(self, sort: object_store.Collection, question: Question) -> Iterable[Object]:
        if question.kind.sort in (MUTATING, VALIDATING):
            # No webhook may lock the cluster out of repairing its webhooks.
            return
        for configuration in self._store.list(sort).items:
            for hook in configuration.get("webhooks") or ():
                if (
                    any(_rule_matches(rule, question) for rule in hook.get("rules") or ())
                    and self._selected(hook, question)
                    and all(one.holds(question.object, question.old) for one in _conditions(hook))
                ):
                    yield hook

    def _selected(self, hook: Object, question: Question) -> bool:
        space = question.namespace
        if question.kind.sort == object_store.NAMESPACES:
            labels = ((question.object or question.old or {}).get("metadata") or {}).get("labels")
        elif space:
            found = self._store.find(object_store.NAMESPACES, space) or {"metadata": {}}
            labels = found["metadata"].get("labels")
        else:
            labels = None
            space = ""
        named = space or question.kind.sort == object_store.NAMESPACES
        if named and not selectors.matches(hook.get("namespaceSelector") or {}, labels or {}):
            return False
        wanted = hook.get("objectSelector") or {}
        return any(
            selectors.matches(wanted, side["metadata"].get("labels") or {})
            for side in (question.object, question.old)
            if side is not None
        )

    async def _asked(self, hook: Object, question: Question) -> Object:
        """Return the response of a webhook; an allowing one when it fails and may."""
        if question.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise api_errors.bad_request(
                f"admission webhook {hook['name']!r} does not support dry run"
            )
        try:
            return await self._call(hook, question)
        except CallError as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return {"allowed": True}
            text = f'failed calling webhook "{hook["name"]}": {error}'
            raise api_errors.internal(text) from error

    async def _call(self, hook: Object, question: Question) -> Object:
        assert self._session is not None, "open() comes before the first request"
        seconds = hook.get("timeoutSeconds", 10)
        uid = self._uid()
        try:
            url, context, host = self._target(hook["clientConfig"])
            async with self._session.post(
                f"{url}{'&' if '?' in url else '?'}timeout={seconds}s",
                data=orjson.dumps(question.review(uid)),
                headers={
                    "Content-Type": "application/json",
                    "User-Agent": "kube-apiserver-admission",
                },
                ssl=context,
                server_hostname=host,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as response:
                body = await response.read()
                if response.status != 200:
                    text = body.decode(errors="replace").strip()[:200]
                    raise CallError(f"an error on the server ({response.status}): {text}")
        except TimeoutError as error:
            shown = hook["clientConfig"].get("url", "the service")
            raise CallError(
                f'Post "{shown}": context deadline exceeded after {seconds}s'
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f"{error}") from error
        return _read(body, uid)

    def _target(self, client: Mapping[str, Any]) -> tuple[str, ssl.SSLContext, str | None]:
        context = _context(client.get("caBundle") or "")
        if client.get("url"):
            return str(client["url"]), context, None
        service = client["service"]
        space, name = service["namespace"], service["name"]
        where = self._services.get((space, name))
        if where is None:
            raise CallError(f'service "{name}" in namespace "{space}" is not reachable from here')
        path = service.get("path") or "/"
        return f"https://{where[0]}:{where[1]}{path}", context, f"{name}.{space}.svc"


def problems(body: Mapping[str, Any]) -> list[api_errors.Cause]:
    """Return what is wrong with a webhook configuration."""
    found = []
    for index, hook in enumerate(body.get("webhooks") or ()):
        here = f"webhooks[{index}]"
        needed = ("name", "clientConfig", "sideEffects", "admissionReviewVersions")
        found += [
            api_errors.Cause(f"{here}.{name}", "Required value", "FieldValueRequired")
            for name in needed
            if not hook.get(name)
        ]
        if hook.get("sideEffects") not in (None, "None", "NoneOnDryRun"):
            message = (
                f'Unsupported value: "{hook["sideEffects"]}": '
                'supported values: "None", "NoneOnDryRun"'
            )
            found.append(api_errors.Cause(f"{here}.sideEffects", message))
        seconds = hook.get("timeoutSeconds", 10)
        if not isinstance(seconds, int) or not 1 <= seconds <= 30:
            message = (
                f"Invalid value: {seconds}: the timeout value must be between 1 and 30 seconds"
            )
            found.append(api_errors.Cause(f"{here}.timeoutSeconds", message))
        found += _client_problems(hook.get("clientConfig") or {}, f"{here}.clientConfig")
    return found


def unsupported(body: Mapping[str, Any]) -> str:
    """Name a feature of a configuration that is not implemented here; empty when there is none."""
    if any(None in _conditions(hook) for hook in body.get("webhooks") or ()):
        return "matchConditions (CEL) of webhooks other than Koord's"
    return ""


def _conditions(hook: Mapping[str, Any]) -> list[Any]:
    """Return the conditions of a webhook; None for one that cannot be evaluated here."""
    known = webhook_conditions.BY_EXPRESSION
    return [known.get(one.get("expression", "")) for one in hook.get("matchConditions") or ()]


def _client_problems(client: Mapping[str, Any], path: str) -> list[api_errors.Cause]:
    url, service = client.get("url"), client.get("service")
    if bool(url) == bool(service):
        message = "Required value: exactly one of url or service is required"
        return [api_errors.Cause(path, message, "FieldValueRequired")]
    if url and not str(url).startswith("https://"):
        message = f'Invalid value: "{url}": "https" is the only allowed URL scheme'
        return [api_errors.Cause(f"{path}.url", message)]
    bundle = client.get("caBundle")
    if bundle:
        try:
            _context(bundle)
        except CallError:
            message = "Invalid value: unable to load root certificates"
            return [api_errors.Cause(f"{path}.caBundle", message)]
    return []


@functools.lru_cache(maxsize=64)
def _context(bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the bundle of a client configuration."""
    if not bundle:
        return ssl.create_default_context()
    try:
        pem = base64.b64decode(bundle, validate=True).decode("ascii")
        return ssl.create_default_context(cadata=pem)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise CallError(f"unable to load root certificates: {error}") from error


def _rule_matches(rule: Mapping[str, Any], question: Question) -> bool:
    resource = question.kind.resource
    plural = resource.plural
    if question.subresource:
        names = {f"{plural}/{question.subresource}", f"{plural}/*", f"*/{question.subresource}"}
        names.add("*/*")
    else:
        names = {plural, "*", "*/*"}
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        _listed(rule.get("operations"), question.operation)
        and _listed(rule.get("apiGroups"), resource.group)
        and _listed(rule.get("apiVersions"), resource.version)
        and bool(names & set(rule.get("resources") or ()))
        and rule.get("scope", "*") in ("*", scope)
    )


def _listed(choices: Iterable[str] | None, value: str) -> bool:
    return any(choice in ("*", value) for choice in choices or ())


def _read(body: bytes, uid: str) -> Object:
    try:
        response = orjson.loads(body)["response"]
    except (ValueError, KeyError, TypeError) as error:
        raise CallError(f"the answer is no AdmissionReview with a response: {error}") from error
    if not isinstance(response, dict):
        raise CallError("the response of the answer is no object")
    if response.get("uid") != uid:
        raise CallError(f'expected response.uid="{uid}", got "{response.get("uid")}"')
    return response


def _allowed(hook: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    if response.get("allowed") is True:
        return
    status = response.get("status") or {}
    said, reason = status.get("message", ""), status.get("reason", "")
    text = f'admission webhook "{hook["name"]}" denied the request'
    if said:
        text += f": {said}"
    elif reason:
        text += f": {reason}"
    else:
        text += " without explanation"
    raise api_errors.FailureError(max(400, status.get("code") or 0), reason, text)
