"""AdmissionReview in and out."""

import base64
import re
from typing import Any, Final, Literal

import msgspec

API_VERSION = "admission.k8s.io/v1"
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class GroupVersionKind(msgspec.Struct, frozen=True):
    """A kind by its full name."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True):
    """A resource by its full name."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """One question of the API server; ``object`` is the new and ``old_object`` the present one."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: Operation = "CREATE"
    user_info: UserInfo = UserInfo()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    dry_run: bool | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """What the API server posts."""

    request: Request
    api_version: str = API_VERSION
    kind: str = "AdmissionReview"


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request is refused."""

    code: int = 0
    message: str = ""
    reason: str = ""


class Response(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Our answer; ``uid`` and ``allowed`` are always written."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch: str = ""
    patch_type: str = ""
    warnings: list[str] = []
    audit_annotations: dict[str, str] = {}


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What goes back to the API server."""

    response: Response
    api_version: str = API_VERSION
    kind: str = "AdmissionReview"


_DECODER = msgspec.json.Decoder(Review)
_ENCODER = msgspec.json.Encoder()


class ReviewError(ValueError):
    """A body that is no AdmissionReview."""


def decode(body: bytes) -> Request:
    """Read the body of a review."""
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is no {API_VERSION} AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise ReviewError(
            f"the body is no {API_VERSION} AdmissionReview but a {review.api_version} {review.kind}"
        )
    return review.request


DEEPEST: Final = 100
"""Levels of a review below which nothing is read; no field that anybody knows lies as deep."""
# A string may lack its end, so that none is looked at again from each quote inside it.
_BRACKETS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|([\[{])|[\]}]', re.DOTALL)


def trimmed(body: bytes) -> bytes:
    """Return a review in which null stands for whatever lies deeper than `DEEPEST` levels.

    API servers pass on up to 10,000 levels of managed fields and unknown fields, and readers
    fail at about a thousand. What cannot be read must be judged all the same.
    """
    parts: list[bytes] = []
    depth = kept = 0
    for found in _BRACKETS.finditer(body):
        start = found.start()
        if body[start] == _QUOTE:
            continue
        if found.lastindex:
            depth += 1
            if depth == DEEPEST + 1:
                parts.append(body[kept:start])
            continue
        if depth == DEEPEST + 1:
            parts.append(b"null")
            kept = found.end()
        depth -= 1
    return b"".join((*parts, body[kept:]))


_QUOTE: Final = ord('"')


def allowed(
    uid: str, *, operations: list[dict[str, Any]] | None = None, warnings: list[str] | None = None
) -> Response:
    """Build the answer that lets a request pass, with JSON patch operations if it is changed."""
    patch = base64.b64encode(_ENCODER.encode(operations)).decode() if operations else ""
    return Response(
        uid=uid,
        allowed=True,
        patch=patch,
        patch_type="JSONPatch" if patch else "",
        warnings=warnings or [],
    )


def refused(
    uid: str,
    message: str,
    *,
    code: int = 403,
    reason: str = "Forbidden",
    warnings: list[str] | None = None,
) -> Response:
    """Build the answer that refuses a request."""
    status = Status(code=code, message=message, reason=reason)
    return Response(uid=uid, allowed=False, status=status, warnings=warnings or [])


def encode(response: Response) -> bytes:
    """Write the body that goes back."""
    return _ENCODER.encode(Answer(response=response))
