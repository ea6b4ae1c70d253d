"""Passes bytes between a caller and a server and counts them."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator

_CHUNK = 1 << 16


@dataclasses.dataclass(slots=True)
class Counted:
    """What went through a relay so far."""

    url: str
    to_server: int = 0
    to_caller: int = 0
    connections: int = 0


@contextlib.asynccontextmanager
async def running(port: int) -> AsyncIterator[Counted]:
    """Relay to a port of the loopback interface."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counted.connections += 1
        behind, before = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, before, "to_server"), _pump(behind, writer, "to_caller"))

    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, side: str) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                setattr(counted, side, getattr(counted, side) + len(data))
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    counted = Counted(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield counted
    finally:
        server.close()
