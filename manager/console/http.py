"""Answers of the console over HTTP: who asks, what is shown, and headers that keep others out."""

import gzip
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from manager.console import assets
from manager.console.access import reviews, session

_logger = logging.getLogger(__name__)

Page = Callable[[session.Session, web.Request], Awaitable["Shown"]]
"""Returns what a user is shown."""

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_WORTH_PACKING: Final = 2048
_LEVEL: Final = 1


class Shown:
    """A document as bytes, with its entity tag; packed once however many ask for it."""

    __slots__ = ("_packed", "body", "tag")

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.body = encoded(document)
        self.tag = assets.tag(self.body)
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """Return the body as gzip."""
        if self._packed is None:
            self._packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return self._packed


def encoded(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON; one absurd amount or broken text in it hides nothing else."""
    try:
        return orjson.dumps(document)
    except TypeError:
        # Numbers beyond 64 bits and lone surrogates, which only the slower encoder knows.
        return json.dumps(document).encode()


def application(pages: Mapping[str, Page], sessions: session.Sessions) -> web.Application:
    """Return the site: the files of the page, and a document for each path."""
    app = web.Application()
    app.on_response_prepare.append(_protect)
    for name, asset in assets.read().items():
        app.router.add_get(f"/static/{name}", _file(asset))
        if name == assets.INDEX:
            app.router.add_get("/", _file(asset))
    for path, page in pages.items():
        app.router.add_get(path, _answering(page, sessions))
    return app


async def _protect(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")


def _file(asset: assets.Asset) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == asset.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(
            body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers
        )

    return answer


def _answering(
    page: Page, sessions: session.Sessions
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            shown = await page(await sessions.of(request), request)
        except reviews.AccessError as error:
            return _refused(error)
        except Exception as error:
            _logger.exception("console page failed path=%s", request.path)
            return _refused(
                reviews.AccessError(
                    500,
                    f"this page failed: {type(error).__name__}",
                    "the log of the manager says more",
                )
            )
        return _document(request, shown)

    return answer


def _document(request: web.Request, shown: Shown) -> web.Response:
    headers = {"ETag": shown.tag, "Vary": "Authorization, Accept-Encoding"}
    if request.headers.get("If-None-Match") == shown.tag:
        return web.Response(status=304, headers=headers)
    body = shown.body
    if len(body) > _WORTH_PACKING and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = shown.packed()
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, content_type="application/json", headers=headers)


def _refused(error: reviews.AccessError) -> web.Response:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="koord"'
    if error.status == 429:
        headers["Retry-After"] = "1"
    body = orjson.dumps({"error": str(error), "remedy": error.remedy})
    return web.Response(
        status=error.status, body=body, content_type="application/json", headers=headers
    )
