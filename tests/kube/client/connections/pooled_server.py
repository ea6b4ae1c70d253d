"""A server whose answers and manners a test chooses."""

import asyncio
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from tests import patience

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Act = Callable[["Caller"], Awaitable[None]]


@dataclasses.dataclass
class Caller:
    """One connection as the server sees it, after a request was read from it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    over: asyncio.Event

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclasses.dataclass
class Server:
    """Answers requests one after another as a test says; the last way stays."""

    acts: list[Act]
    port: int = 0
    requests: list[tuple[int, bytes]] = dataclasses.field(default_factory=list)
    """Number of the connection and first line of each request."""
    connections: int = 0
    ended: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    """Who presented a certificate."""
    over: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        certificate = writer.get_extra_info("peercert")
        if certificate:
            self.names.append(dict(part[0] for part in certificate["subject"])["commonName"])
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(size or 0))
                self.requests.append((number, head.partition(b"\r\n")[0]))
                act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
                await act(Caller(reader, writer, self.over))
        self.ended += 1
        writer.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        await patience.arrives(condition)


@contextlib.asynccontextmanager
async def serving(*acts: Act, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    made = Server(list(acts))
    listener = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.over.set()
        listener.close()


async def ok(caller: Caller) -> None:
    await caller.say(OK)


async def hold(caller: Caller) -> None:
    await caller.over.wait()


async def leave(caller: Caller) -> None:
    caller.writer.close()
