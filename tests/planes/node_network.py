"""A door from a node's own network to the API server outside of it."""

import asyncio
import contextlib
import ctypes
import pathlib
import socket
import threading

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
CHUNK = 1 << 16


def listen(pid, address, port):
    """Return a socket that listens in the network of another process."""
    found = []

    def inside():
        # Only this thread moves over, and it ends here; the socket stays in that network.
        try:
            with pathlib.Path(f"/proc/{pid}/ns/net").open() as namespace:
                if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"the network of process {pid}")
            found.append(socket.create_server((address, port)))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


@contextlib.asynccontextmanager
async def forwarding(listener, host, port):
    """Carry every connection to another address, for as long as the block lasts."""

    async def carry(reader, writer):
        try:
            theirs, ours = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, ours))
                both.create_task(_copy(theirs, writer))
        finally:
            for end in (writer, ours):
                end.close()

    server = await asyncio.start_server(carry, sock=listener)
    try:
        yield
    finally:
        server.close()


async def _copy(reader, writer):
    # A connection that breaks on one side ends on both.
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
