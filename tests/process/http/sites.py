"""A site over real sockets, and clients that speak to it byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from process.http import server

Serve = Callable[..., AbstractAsyncContextManager[server.Site]]


@asynccontextmanager
async def dialled(
    site: server.Site,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = "/healthz"
) -> str:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line for line in head.splitlines() if line.lower().startswith("content-length"))
    await reader.readexactly(int(length.partition(":")[2]))
    return head


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(body=await request.read())
