"""How a Kubernetes API server says no: one exception that carries a Status."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Cause(NamedTuple):
    """One field that is wrong, or one budget that forbids."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class FailureError(Exception):
    """An answer other than success; `status()` is its body on the wire."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        """Return the Status object that clients read."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = dict(self.details)
        return body

    @property
    def retry_after(self) -> int | None:
        """Seconds after which a client may try again, None when that was not said."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else None


def full_name(group: str, plural: str) -> str:
    """Return a resource as messages name it, for instance `leases.coordination.k8s.io`."""
    return f"{plural}.{group}" if group else plural


def _about(group: str, plural: str, name: str, **more: Any) -> dict[str, Any]:
    about = {"name": name, "group": group, "kind": plural, **more}
    return {key: value for key, value in about.items() if value}


def bad_request(message: str) -> FailureError:
    """Say that the request cannot be understood."""
    return FailureError(400, "BadRequest", message)


def not_found(group: str, plural: str, name: str) -> FailureError:
    """Say that an object does not exist."""
    message = f'{full_name(group, plural)} "{name}" not found'
    return FailureError(404, "NotFound", message, _about(group, plural, name))


def no_such_path() -> FailureError:
    """Say that nothing is served at this path."""
    return FailureError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> FailureError:
    """Say that the name is taken."""
    message = f'{full_name(group, plural)} "{name}" already exists'
    return FailureError(409, "AlreadyExists", message, _about(group, plural, name))


def conflict(
    group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = ()
) -> FailureError:
    """Say that a write was based on something that is not so."""
    message = f'Operation cannot be fulfilled on {full_name(group, plural)} "{name}": {why}'
    return FailureError(
        409, "Conflict", message, _about(group, plural, name, causes=_causes(causes))
    )


def stale(group: str, plural: str, name: str) -> FailureError:
    """Say that the written resourceVersion is not the newest."""
    return conflict(
        group,
        plural,
        name,
        "the object has been modified; "
        "please apply your changes to the latest version and try again",
    )


def gone(requested: int, oldest: int) -> FailureError:
    """Say that the history a client asks for was compacted."""
    return FailureError(410, "Expired", f"too old resource version: {requested} ({oldest})")


def too_large(requested: int, current: int) -> FailureError:
    """Say that a resourceVersion lies in the future."""
    message = f"Too large resource version: {requested}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return FailureError(504, "Timeout", message, {"retryAfterSeconds": 1, "causes": causes})


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> FailureError:
    """Say which fields of an object are wrong."""
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    message = f'{full_name(group, kind)} "{name}" is invalid: {text}'
    return FailureError(422, "Invalid", message, _about(group, kind, name, causes=_causes(causes)))


def forbidden(group: str, plural: str, name: str, why: str) -> FailureError:
    """Say that admission does not let this through."""
    message = f'{full_name(group, plural)} "{name}" is forbidden: {why}'
    return FailureError(403, "Forbidden", message, _about(group, plural, name))


def unauthorized() -> FailureError:
    """Say that the caller is unknown."""
    return FailureError(401, "Unauthorized", "Unauthorized")


def method_not_allowed(message: str = "") -> FailureError:
    """Say that the path exists but does not take this verb."""
    text = message or "the server does not allow this method on the requested resource"
    return FailureError(405, "MethodNotAllowed", text, {})


def not_acceptable(accepted: str) -> FailureError:
    """Say that none of the wanted media types is written here."""
    message = f"only the following media types are accepted: {accepted}"
    return FailureError(406, "NotAcceptable", message, {})


def unsupported_media(accepted: str) -> FailureError:
    """Say that the body is of a media type that is not read here."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {accepted}"
    )
    return FailureError(415, "UnsupportedMediaType", message, {})


def too_many_requests(
    message: str, causes: Sequence[Cause] = (), retry_after: int = 0
) -> FailureError:
    """Say that the request may pass later."""
    details = {"causes": _causes(causes), "retryAfterSeconds": retry_after}
    return FailureError(
        429, "TooManyRequests", message, {key: value for key, value in details.items() if value}
    )


def internal(message: str) -> FailureError:
    """Say that something behind the server failed."""
    return FailureError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        {"causes": [{"message": message}]},
    )


def untyped(message: str) -> FailureError:
    """Say that something failed for which a real API server has no reason either."""
    return FailureError(500, "", message)


def missing(what: str) -> FailureError:
    """Refuse by name what the embedded control plane does not have; nothing is pretended."""
    return FailureError(
        501,
        "NotImplemented",
        f"the embedded control plane does not implement {what}; use a real cluster for that",
        {},
    )


def _causes(causes: Sequence[Cause]) -> list[dict[str, str]]:
    return [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]


_WORD = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def is_subdomain(name: str) -> bool:
    """Tell whether a name may name most objects."""
    return len(name) <= 253 and _WORD.fullmatch(name) is not None
