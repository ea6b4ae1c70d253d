"""Prebuilt HTTP requests over kept TLS connections, cheap enough not to be what is measured."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, cast
from urllib import parse

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_CHUNKS_END = b"0\r\n\r\n"


class CallError(RuntimeError):
    """An answer that a benchmark must not count."""


class Call(NamedTuple):
    """One call in seconds of `time.perf_counter`.

    What passes before it is sent is not the server's, unless it had not answered those before.
    """

    due: float
    sent: float
    done: float

    @property
    def milliseconds(self) -> float:
        """How long it took from when it was due."""
        return (self.done - self.due) * 1e3


class Connection(asyncio.Protocol):
    """One request at a time; the answer is looked at only to find its end."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer = b""
        self._done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # Not every loop's transports are of the class that they behave like.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Collect the answer until it is complete."""
        self._answer = self._answer + data if self._answer else data
        if self._done is not None and not self._done.done() and _is_complete(self._answer):
            self._done.set_result(self._answer)

    def connection_lost(self, error: Exception | None) -> None:
        """Wake all waiters."""
        if self._done is not None and not self._done.done():
            self._done.set_exception(CallError(f"the connection ended: {error}"))

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return its answer."""
        assert self._transport is not None
        self._answer = b""
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        answer = await self._done
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise CallError(answer[:300].decode(errors="replace"))
        return answer

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


def _is_complete(answer: bytes) -> bool:
    end = answer.find(_HEAD_END)
    if end < 0:
        return False
    head = answer[:end].lower()
    at = head.find(_LENGTH)
    if at < 0:
        return answer.endswith(_CHUNKS_END)
    length = int(head[at + len(_LENGTH) :].partition(b"\r\n")[0])
    return len(answer) >= end + len(_HEAD_END) + length


def request(url: str, body: bytes, headers: Sequence[str] = ()) -> bytes:
    """Build a POST that is sent as it is."""
    parts = parse.urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = (
        f"POST {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return "\r\n".join(lines).encode() + _HEAD_END + body


@contextlib.asynccontextmanager
async def connected(
    url: str, ca: bytes, count: int, *, name: str = ""
) -> AsyncIterator[list[Connection]]:
    """Open connections that verify the server under this name."""
    parts = parse.urlsplit(url)
    context = ssl.create_default_context(cadata=ca.decode())
    context.set_alpn_protocols(["http/1.1"])
    loop = asyncio.get_running_loop()
    opened: list[Connection] = []
    try:
        for _ in range(count):
            _, connection = await loop.create_connection(
                Connection,
                parts.hostname,
                parts.port,
                ssl=context,
                server_hostname=name or parts.hostname,
            )
            opened.append(connection)
        yield opened
    finally:
        for connection in opened:
            connection.close()


async def closed_loop(
    connections: Sequence[Connection], wanted: bytes, seconds: float
) -> list[float]:
    """Ask as fast as answers come, on every connection; return the milliseconds of each."""
    end = time.perf_counter() + seconds
    taken: list[float] = []

    async def one(connection: Connection) -> None:
        started = time.perf_counter()
        while started < end:
            await connection.ask(wanted)
            now = time.perf_counter()
            taken.append((now - started) * 1e3)
            started = now

    await asyncio.gather(*map(one, connections))
    return taken


async def open_loop(
    connections: Sequence[Connection],
    wanted: bytes,
    rate: float,
    seconds: float,
    calls: list[Call] | None = None,
) -> list[float]:
    """Ask at a fixed rate; return the milliseconds from when each question was due."""
    start = time.perf_counter()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    taken: list[float] = []

    async def one(connection: Connection, due: float) -> None:
        sent = time.perf_counter()
        await connection.ask(wanted)
        done = time.perf_counter()
        taken.append((done - due) * 1e3)
        if calls is not None:
            calls.append(Call(due, sent, done))
        free.put_nowait(connection)

    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            due = start + number / rate
            pause = due - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            group.create_task(one(await free.get(), due))
    return taken
