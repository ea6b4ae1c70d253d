"""Doors between a node's own network and the processes outside of it, in both directions."""

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
    return _inside(pid, lambda: socket.create_server((address, port)))


def datagrams(pid, address, port):
    """Return a socket for datagrams to an address in the network of another process."""

    def make():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, port))
        return made

    return _inside(pid, make)


async def connect(pid, address, port):
    """Open a connection inside the network of another process; returns reader and writer."""
    made = _inside(pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except OSError:
        made.close()
        raise
    return await asyncio.open_connection(sock=made)


def _inside(pid, make):
    """Make a socket in the network of another process."""
    found = []

    def inside():
        # Only this thread moves over, and it ends here; the socket stays in that network.
        try:
            with pathlib.Path(f"/proc/{pid}/ns/net").open() as namespace:
                if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"the network of process {pid}")
            found.append(make())
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

    async def to(_reader, _writer):
        return await asyncio.open_connection(host, port)

    async with carrying(listener, to):
        yield


@contextlib.asynccontextmanager
async def carrying(listener, to):
    """Carry every connection to where `to` connects with, for as long as the block lasts.

    `to` gets both ends of the connection, for what is said before there is another side.
    """
    # A loop forgets tasks that nobody holds.
    open_ones = set()

    async def carry(reader, writer):
        open_ones.add(asyncio.current_task())
        try:
            await _carry(reader, writer, to)
        finally:
            open_ones.discard(asyncio.current_task())

    unix = listener.family == socket.AF_UNIX
    start = asyncio.start_unix_server if unix else asyncio.start_server
    server = await start(carry, sock=listener)
    try:
        yield
    finally:
        server.close()
        for task in tuple(open_ones):
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


async def _carry(reader, writer, to):
    ends = [writer]
    try:
        theirs, ours = await to(reader, writer)
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
