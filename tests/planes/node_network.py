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
    # A loop forgets tasks that nobody holds.
    open_ones = set()

    async def carry(reader, writer):
        open_ones.add(asyncio.current_task())
        try:
            await _carry(reader, writer, host, port)
        finally:
            open_ones.discard(asyncio.current_task())

    server = await asyncio.start_server(carry, sock=listener)
    try:
        yield
    finally:
        server.close()
        for task in tuple(open_ones):
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


async def _carry(reader, writer, host, port):
    ends = [writer]
    try:
        theirs, ours = await asyncio.open_connection(host, port)
        ends.append(ours)
        await asyncio.gather(_copy(reader, ours), _copy(theirs, writer))
    except (OSError, asyncio.CancelledError):
        # Nobody waits for this task: who called finds the connection closed.
        return
    finally:
        for end in ends:
            end.close()


async def _copy(reader, writer):
    # A connection that breaks on one side ends on both.
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
