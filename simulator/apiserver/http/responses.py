"""Bodies in and out: media types, warnings, Status."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml
from aiohttp import web

from simulator.apiserver.http import api_errors, bodies, protobuf

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class View:
    """The form in which a client wants objects."""

    table: bool = False
    metadata: bool = False
    """Its metadata alone."""


def view(accept: str) -> View:
    """Choose among the forms that a client accepts, in the order it names them."""
    for part in accept.split(",") if accept else ["*/*"]:
        media, *rest = (piece.strip() for piece in part.split(";"))
        wishes = dict(piece.partition("=")[::2] for piece in rest)
        if media not in (JSON, "application/*", "*/*"):
            continue
        shape = wishes.get("as", "")
        if shape == "Table" and wishes.get("v") == "v1":
            return View(table=True)
        of_meta = wishes.get("g") == "meta.k8s.io" and wishes.get("v") == "v1"
        if shape == "PartialObjectMetadata" and of_meta:
            return View(metadata=True)
        if not shape:
            return View()
    raise api_errors.not_acceptable(JSON)


def encoded(body: Any) -> bytes:
    """Write a body as JSON."""
    return orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)


def reply(
    body: Mapping[str, Any], code: int = 200, warnings: Iterable[str] = (), media: str = JSON
) -> web.Response:
    """Answer with a JSON object."""
    response = web.Response(body=encoded(body), status=code)
    response.headers["Content-Type"] = media
    for text in dict.fromkeys(warnings):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def refusal(error: api_errors.FailureError, warnings: Iterable[str] = ()) -> web.Response:
    """Answer with a Status."""
    response = reply(error.status(), error.code, warnings)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="koord"'
    return response


def decoded(media: str, body: bytes) -> Any:
    """Read the body of a write; None when there is none."""
    if not body.strip():
        return None
    kind = media.partition(";")[0].strip().lower() or JSON
    try:
        if kind == JSON:
            # To say null is to say nothing of any field.
            loaded = orjson.loads(body)
            return {} if loaded is None else loaded
        if kind in ("application/yaml", "text/yaml"):
            return bodies.read(body)
        if kind == protobuf.MEDIA:
            return protobuf.decoded(body)
    except (ValueError, yaml.YAMLError) as error:
        raise api_errors.bad_request(f"the object provided is unrecognized: {error}") from error
    raise api_errors.unsupported_media(f"{JSON}, application/yaml")
