"""What a request asks for, taken from its method, path and query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from aiohttp import web

from simulator.apiserver.http import api_errors

_VERBS = {
    "GET": ("get", "list"),
    "HEAD": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("delete", "deletecollection"),
}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A request below /api or /apis that names a resource."""

    verb: str
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    agent: str
    """First part of the user agent; names the field manager when the query does not."""

    @property
    def manager(self) -> str:
        """Who owns the fields that this request writes."""
        return self.query.get("fieldManager") or self.agent or "unknown"

    @property
    def attributes(self) -> "Attributes":
        """What authorizers are asked about this request."""
        return Attributes(
            self.verb, self.group, self.plural, self.subresource, self.namespace, self.name
        )

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored."""
        return self.query.get("dryRun", "") == "All"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a user wants to do, as authorizers see it."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Authorizer(Protocol):
    """Who may do what."""

    def allows(self, user: User, asked: Attributes) -> bool:
        """Whether a user may do something."""


class AlwaysAllow:
    """The authorization mode of that name: everybody may do everything."""

    def allows(self, user: User, asked: Attributes) -> bool:
        """Allow it."""
        del user, asked
        return True


class Faults(Protocol):
    """Where trouble is injected."""

    async def before(self, request_info: RequestInfo) -> web.StreamResponse | None:
        """Delay or answer a request instead of the server; None lets it pass."""

    def stream_limit(self, request_info: RequestInfo) -> int | None:
        """After how many events a watch breaks off without a word; None never."""


class NoFaults:
    """The fault seam of a server that works."""

    async def before(self, request_info: RequestInfo) -> web.StreamResponse | None:
        """Let every request pass."""

    def stream_limit(self, request_info: RequestInfo) -> int | None:
        """Let every watch run."""


def for_object(info: RequestInfo, name: str, namespace: str) -> RequestInfo:
    """Return the request for one object of a collection."""
    return replace(info, name=name, namespace=namespace)


def dry(info: RequestInfo) -> RequestInfo:
    """Return the same request as a dry run."""
    return replace(info, query={**info.query, "dryRun": "All"})


def wet(info: RequestInfo) -> RequestInfo:
    """Return the same request as one that is carried out."""
    return replace(info, query={k: v for k, v in info.query.items() if k != "dryRun"})


def flag(query: Mapping[str, str], name: str) -> bool:
    """Read a yes/no parameter as a Go server does."""
    return query.get(name, "") in ("true", "1", "True", "TRUE", "t", "T")


def number(query: Mapping[str, str], name: str) -> int | None:
    """Read a whole parameter; None when it is absent."""
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise api_errors.bad_request(f'{name}: Invalid value: "{text}": must be a whole number')
    return int(text)


def parse(
    method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
) -> RequestInfo | None:
    """Take a resource request apart; None when the path names no resource."""
    parts = [part for part in path.split("/") if part]
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return None
    group, version, rest = _prefix(parts)
    if not rest:
        return None
    if rest[0] == "watch":
        raise api_errors.missing("the deprecated /watch/ paths")
    namespace, (plural, name, subresource) = _place(rest)
    verbs = _VERBS.get(method)
    if verbs is None:
        raise api_errors.method_not_allowed()
    verb = verbs[0] if name else verbs[1]
    if verb == "list" and flag(query, "watch"):
        verb = "watch"
    return RequestInfo(
        verb=verb,
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        query=query,
        agent=headers.get("User-Agent", "").split("/")[0].split(" ")[0],
    )


def _prefix(parts: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    if parts[0] == "api":
        return "", parts[1], parts[2:]
    return parts[1], parts[2], parts[3:]


def _place(rest: Sequence[str]) -> tuple[str, tuple[str, str, str]]:
    """Return the namespace and what lies in it: resource, name and subresource."""
    namespace = ""
    namespaced = rest[0] == "namespaces" and len(rest) > 2
    # A third part may be a subresource of the namespace itself.
    if namespaced and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise api_errors.missing(f"the path below {'/'.join(rest[:3])}")
    plural, name, subresource = (*rest, "", "")[:3]
    return namespace, (plural, name, subresource)
