"""A small client of the API server for what runs beside it: kubelets and workload controllers.

It exists so that the simulator shares no client code with what it tests. It works on any API
server, the embedded one as well as the real one.
"""

import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp

from process.runtime import clock as clocks

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
RETRY_SECONDS = 1.0
LINE_LIMIT = 16 * 1024 * 1024

_logger = logging.getLogger(__name__)


class LinkError(Exception):
    """The API server said no, or could not be asked; `code` is 0 then."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Link:
    """Requests to one API server as one user."""

    def __init__(self, session: aiohttp.ClientSession, server: str, clock: clocks.Clock) -> None:
        self._session = session
        self._server = server
        self._clock = clock

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request; raises LinkError unless it succeeds."""
        data = None if body is None else json.dumps(body)
        try:
            async with self._session.request(
                method,
                f"{self._server}{path}",
                data=data,
                params=query,
                headers={"Content-Type": kind},
            ) as response:
                answer = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise LinkError(0, f"{method} {path}: {error}") from error
        if not isinstance(answer, dict):
            raise LinkError(response.status, f"{method} {path}: {answer!r} is no object")
        if response.status >= 300:
            raise LinkError(response.status, str(answer.get("message", answer)))
        return answer

    async def follow(
        self,
        path: str,
        replace: Callable[[list[Object]], None],
        show: Callable[[str, Object], None],
    ) -> None:
        """Hand over a whole collection, then every change of it, for ever."""
        while True:
            try:
                await self._follow_once(path, replace, show)
            except (LinkError, aiohttp.ClientError, TimeoutError, ValueError) as error:
                _logger.debug("watch ended path=%s reason=%s", path, error)
                await self._clock.sleep(RETRY_SECONDS)

    async def _follow_once(
        self,
        path: str,
        replace: Callable[[list[Object]], None],
        show: Callable[[str, Object], None],
    ) -> None:
        listed = await self.call("GET", path)
        replace(listed["items"])
        version = listed["metadata"]["resourceVersion"]
        while True:
            query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
            async with self._session.get(f"{self._server}{path}", params=query) as response:
                if response.status != 200:
                    raise LinkError(response.status, await response.text())
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise LinkError(event["object"].get("code", 500), str(event["object"]))
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        show(event["type"], event["object"])


@contextlib.asynccontextmanager
async def connected(
    server: str, ca: bytes, token: str, *, clock: clocks.Clock, agent: str
) -> AsyncIterator[Link]:
    """A client that trusts this authority only."""
    context = ssl.create_default_context(cadata=ca.decode())
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=64),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        headers={"Authorization": f"Bearer {token}", "User-Agent": agent},
        read_bufsize=LINE_LIMIT,
    ) as session:
        yield Link(session, server, clock)
