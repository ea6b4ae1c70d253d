"""One HTTP exchange with the API server: credentials, limits, retries, errors, figures."""

import asyncio
import contextlib
import dataclasses
import logging
import random
import ssl
import types
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

import aiohttp
import msgspec
import yarl

from kube.client import access, errors, failures, request_metrics
from kube.client.connections import connection_pool, http_request, streams
from kube.controllers import backoff
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

_SAFE: Final = frozenset({"GET", "HEAD"})
_OK: Final = 200
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})


class Guard(Protocol):
    """Something that can forbid a write at the last moment, such as the fence of a lease."""

    def check(self) -> None:
        """Raise ``errors.Deposed`` when the write must not be sent any more."""

    def remaining(self) -> float:
        """Return for how many more seconds writes are allowed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How long and how often one client tries."""

    connect_seconds: float = 5.0
    request_seconds: float = 30.0
    stream_seconds: float = 20.0
    """How long a stream may take to begin."""
    in_flight: int = 64
    attempts: int = 5
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 10.0


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request, and under which names it is counted."""

    method: str
    path: str
    verb: str
    resource: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    seconds: float | None = None
    guard: Guard | None = None
    large: bool = False
    """Whether its answer may be so long that it is worth being compressed."""
    attempts: int | None = None
    """How often it is tried at most where the limits of the client do not decide that."""


class Transport:
    """A session with one API server.

    Short questions go over kept connections of our own, and each stream has one; long answers and
    whatever has to pass a proxy go through the HTTP library.
    """

    def __init__(
        self,
        entry: access.Access,
        *,
        clock: clocks.Clock,
        user_agent: str,
        limits: Limits,
        rng: random.Random,
        registry: metrics.Registry | None,
    ) -> None:
        self._access = entry
        self._clock = clock
        longest = entry.request_seconds or limits.request_seconds
        self._limits = dataclasses.replace(limits, request_seconds=longest)
        self._rng = rng
        self.registry = registry
        self._figures = request_metrics.RequestMetrics(registry) if registry is not None else None
        self._user_agent = user_agent
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._open: aiohttp.ClientSession | None = None
        self._pool: connection_pool.Pool | None = None
        self._writer: http_request.Writer | None = None
        self._closed = False

    async def open(self) -> None:
        """Start the session; connections are made when they are needed."""
        verify = self._access.ssl_context()
        trace = aiohttp.TraceConfig()
        # The last moment before bytes leave, since waiting for a connection may have taken long.
        trace.on_request_headers_sent.append(_check_guard)
        self._closed = False
        self._open = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=verify if verify is not None else False, keepalive_timeout=30
            ),
            headers={"User-Agent": self._user_agent} | self._access.headers(),
            auto_decompress=True,
            trace_configs=[trace],
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        if not self._access.proxy:
            self._open_pool(verify)

    def _open_pool(self, verify: ssl.SSLContext | None) -> None:
        try:
            server = http_request.server(self._access.server)
        except ValueError as error:
            raise errors.AccessError(f"the address of the API server: {error}") from error
        self._writer = http_request.Writer(server, self._user_agent, self._access.headers())
        self._pool = connection_pool.Pool(
            connection_pool.Address(server.host, server.port, verify, self._access.server_name)
        )

    async def close(self) -> None:
        """End the session and its connections."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._open is not None:
            # First of all: others may send while connections are being closed.
            session, self._open, self._closed = self._open, None, True
            await session.close()

    async def send(self, call: Call) -> bytes:
        """Send a request and return the whole answer; safe requests are tried several times."""
        attempt, most = 0, call.attempts or self._limits.attempts
        while True:
            attempt += 1
            try:
                async with self._slots:
                    self._session()
                    if self._pool is not None and not call.large:
                        return await self._ask(call, self._pool)
                    return await self._exchange(call)
            except (errors.Unreachable, errors.TooManyRequests, errors.ServerFailure) as error:
                if not _is_retried(call, error) or attempt >= most:
                    raise
                pause = _pause(attempt, error, self._limits, self._rng)
                logger.info(
                    "request is tried again verb=%s resource=%s attempt=%d pause=%.1f error=%s",
                    call.verb, call.resource, attempt, pause, error,
                )  # fmt: skip
                await self._clock.sleep(pause)

    @contextlib.asynccontextmanager
    async def stream(self, call: Call, silence: float) -> AsyncIterator[streams.Parts]:
        """Send a request and yield its answer, whose content comes; silence is an error."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self._limits.stream_seconds):
                    answer = await self._begun(call, silence, stack)
                try:
                    yield answer
                except TimeoutError as error:
                    raise errors.Silent(
                        f"{call.verb} {call.resource}: silent for {silence:g} s"
                    ) from error
        except failures.FOREIGN as error:
            raise failures.ours(_name(call), error) from error

    async def _begun(
        self, call: Call, silence: float, stack: contextlib.AsyncExitStack
    ) -> streams.Parts:
        """Return a good answer that goes on until the stack is left."""
        self._session()
        seconds = self._limits.connect_seconds
        if self._pool is None:
            limit = aiohttp.ClientTimeout(total=None, sock_connect=seconds, sock_read=silence)
            answer = await stack.enter_async_context(self._answer(call, limit))
            return streams.LibraryStream(answer)
        for is_last in (False, True):
            written = await self._written(call)
            started, code = self._clock.monotonic(), 0
            opened = streams.opened(self._pool, written, silence, seconds)
            try:
                stream, refusal = await stack.enter_async_context(opened)
                code = refusal.status if refusal is not None else _OK
            finally:
                self._count(call, code, started)
            if refusal is None:
                return stream
            await self._renewed(failures.refused_by(refusal), is_last=is_last)
        raise AssertionError("the last try either returns or raises")

    async def _exchange(self, call: Call) -> bytes:
        """Send a request through the HTTP library and return the whole answer."""
        seconds = call.seconds or self._limits.request_seconds
        if call.guard is not None:
            call.guard.check()
            seconds = min(seconds, call.guard.remaining())
        timeout = aiohttp.ClientTimeout(
            total=seconds, sock_connect=min(seconds, self._limits.connect_seconds)
        )
        try:
            async with self._answer(call, timeout) as answer:
                return await answer.read()
        except failures.FOREIGN as error:
            raise failures.ours(_name(call), error) from error

    async def _ask(self, call: Call, pool: connection_pool.Pool) -> bytes:
        """Send a request over a kept connection and return the whole answer."""
        limits, guard = self._limits, call.guard
        for is_last in (False, True):
            seconds = call.seconds or limits.request_seconds
            if guard is not None:
                guard.check()
                seconds = min(seconds, guard.remaining())
            question = connection_pool.Request(
                await self._written(call),
                seconds,
                limits.connect_seconds,
                check=guard.check if guard is not None else _allowed,
                repeatable=call.method in _SAFE,
                without_body=call.method == "HEAD",
            )
            started, code = self._clock.monotonic(), 0
            try:
                answer = await pool.ask(question)
                code = answer.status
            except failures.FOREIGN as error:
                raise failures.ours(_name(call), error) from error
            finally:
                self._count(call, code, started)
            if code < 300:
                return answer.body
            await self._renewed(failures.refused_by(answer), is_last=is_last)
        raise AssertionError("the last try either returns or raises")

    async def _renewed(self, refusal: errors.ApiError, *, is_last: bool) -> None:
        """Renew the credential where that may help; else raise the refusal."""
        tokens = self._access.tokens
        if is_last or tokens is None or not isinstance(refusal, errors.Unauthorized):
            raise refusal
        await tokens.renew()

    async def _written(self, call: Call) -> bytes:
        tokens, writer = self._access.tokens, self._writer
        assert writer is not None
        authorization = await tokens.authorization() if tokens is not None else ""
        try:
            return writer.write(
                call.method,
                call.path,
                call.query,
                body=call.body,
                media=http_request.Media(call.content_type, call.accept),
                authorization=authorization,
            )
        except ValueError as error:
            raise errors.AccessError(f"{call.verb} {call.resource}: {error}") from error

    @contextlib.asynccontextmanager
    async def _answer(
        self, call: Call, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield a good answer; after a 401 the credential is renewed and tried once more."""
        for is_last in (False, True):
            started = self._clock.monotonic()
            code = 0
            try:
                async with self._session().request(
                    call.method,
                    _url(self._access.server, call),
                    data=call.body,
                    headers=await self._headers(call),
                    timeout=timeout,
                    server_hostname=self._access.server_name or None,
                    proxy=self._access.proxy or None,
                    allow_redirects=False,
                    trace_request_ctx=call.guard,
                ) as answer:
                    code = answer.status
                    if code < 300:
                        yield answer
                        return
                    error = await failures.refusal(answer)
            finally:
                self._count(call, code, started)
            await self._renewed(error, is_last=is_last)

    async def _headers(self, call: Call) -> dict[str, str]:
        headers = {"Accept": call.accept}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if self._access.tokens is not None:
            headers["Authorization"] = await self._access.tokens.authorization()
        return headers

    def _session(self) -> aiohttp.ClientSession:
        if self._closed:
            # A caller that is cut off by the end of the process meets an outage, not a mistake.
            raise errors.AccessError("the client is closed; nothing was sent")
        if self._open is None:
            raise RuntimeError("the client is not open; use it within 'async with'")
        return self._open

    def _count(self, call: Call, code: int, started: float) -> None:
        if self._figures is None:
            return
        self._figures.note(call.verb, call.resource, code, self._clock.monotonic() - started)


def _allowed() -> None:
    """Let everything go that no limit guards."""


async def _check_guard(
    _session: aiohttp.ClientSession, context: types.SimpleNamespace, _params: object
) -> None:
    guard: Guard | None = context.trace_request_ctx
    if guard is not None:
        guard.check()


def _url(server: str, call: Call) -> yarl.URL:
    path = call.path.strip("/").split("/")
    return yarl.URL(server.rstrip("/")).joinpath(*path).with_query(call.query)


def _is_retried(call: Call, error: errors.KubeError) -> bool:
    is_passing = not isinstance(error, errors.ApiError) or error.status in _RETRIED
    return call.method in _SAFE and is_passing


def _pause(attempt: int, error: errors.KubeError, limits: Limits, rng: random.Random) -> float:
    jittered = backoff.pause(attempt, limits.first_pause_seconds, limits.longest_pause_seconds, rng)
    asked = error.retry_after if isinstance(error, errors.ApiError) else None
    # A server that asks for patience gets it, spread out so that not all return at once.
    return jittered if asked is None else asked + jittered


def _name(call: Call) -> str:
    return f"{call.verb} {call.resource or call.path}"
