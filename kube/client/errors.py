"""What can go wrong with the API server: the one tree that callers catch.

::

    KubeError
    ├── AccessError           no usable address, certificate or credential
    ├── Unreachable           no answer: refused, reset, timed out
    │   ├── NotSent           no connection was there, so no byte of the request left
    │   └── Silent            a stream that was answered, but told nothing for too long
    ├── Malformed             an answer that is not what the API promises
    ├── Deposed               a fenced write after its lease ended; nothing was sent
    └── ApiError              the API server said no
        ├── BadRequest        400
        ├── Unauthorized      401, after the credential was renewed once
        ├── Forbidden         403
        ├── NotFound          404
        ├── Conflict          409, the object moved on
        ├── AlreadyExists     409, the name is taken
        ├── Gone              410, the version is too old: list again
        ├── Invalid           422
        ├── TooManyRequests   429, also an eviction that a budget refuses
        └── ServerFailure     5xx
"""
# ruff: noqa: N818 - callers read "except errors.Conflict"; the module name says that it is an error

import http
from collections.abc import Mapping
from typing import Any, Final

from process.configuration import explained_error


class KubeError(Exception):
    """Anything that went wrong between us and the API server."""


class AccessError(KubeError, explained_error.ExplainedError):
    """There is no usable address, certificate or credential of an API server."""


class Unreachable(KubeError):
    """The API server gave no answer, or none in time."""


class NotSent(Unreachable):
    """There was no connection to the API server, so no byte of the request has left."""


class Silent(Unreachable):
    """A stream that was answered told nothing for too long; it may be dead or just quiet."""


class Malformed(KubeError):
    """The API server's answer is not what its API promises."""


class Deposed(KubeError):
    """A write was held back because the lease that allowed it has ended."""


class ApiError(KubeError):
    """The API server's refusal, as it worded it."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.reason = reason or _phrase(status)
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after
        super().__init__(
            f"{status} {self.reason}: {message}" if message else f"{status} {self.reason}"
        )

    @property
    def is_of_unserved_kind(self) -> bool:
        """Whether a list was refused because no objects of that kind can exist.

        An API server answers 404, the embedded control plane 501 for kinds that it does not know.
        """
        return self.status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.NOT_IMPLEMENTED)


class BadRequest(ApiError):
    """The request itself is wrong."""


class Unauthorized(ApiError):
    """The credential is not accepted."""


class Forbidden(ApiError):
    """The credential may not do this."""


class NotFound(ApiError):
    """There is no such object or no such resource."""


class Conflict(ApiError):
    """The object changed since it was read, or a precondition does not hold."""


class AlreadyExists(ApiError):
    """An object of this name is there already."""


class Gone(ApiError):
    """The requested version is no longer kept: list again."""


class Invalid(ApiError):
    """The object does not pass validation or admission."""


class TooManyRequests(ApiError):
    """The server sheds load, or a disruption budget refuses an eviction for now."""


class ServerFailure(ApiError):
    """The API server or something behind it failed."""


OUTAGE: Final = (Unreachable, TooManyRequests, ServerFailure)
"""The server is away or overloaded: nothing is wrong with what was asked."""

_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_LONGEST_MESSAGE: Final = 2000
_LONGEST_PATIENCE: Final = 600
"""For as many seconds at most we wait when asked to, whatever in between says so."""


def from_status(
    body: Mapping[str, Any], *, status: int = 0, retry_after: float | None = None
) -> ApiError:
    """Build the error that a ``Status`` object describes, in an answer or on a watch."""
    code = status or _integer(body.get("code")) or 500
    reason = str(body.get("reason") or "")
    details = body.get("details")
    details = details if isinstance(details, Mapping) else {}
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = _integer(details["retryAfterSeconds"])
    if retry_after is not None:
        retry_after = float(min(max(retry_after, 0), _LONGEST_PATIENCE))
    return _class_of(code, reason)(
        code,
        reason,
        str(body.get("message") or "")[:_LONGEST_MESSAGE],
        details=details,
        retry_after=retry_after,
    )


def _class_of(code: int, reason: str) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    if reason == "Expired":
        return Gone
    if code >= 500:
        return ServerFailure
    return _BY_STATUS.get(code, ApiError)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
