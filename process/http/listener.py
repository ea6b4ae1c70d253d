"""The listening socket of a site: opened with clear errors, closed without losing a request."""

import asyncio
import errno
import logging
import math
import socket
import ssl
from collections.abc import Callable, Iterator

from process.configuration import explained_error, settings
from process.http import connections, fast_path, http_connection

_logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_SECONDS = 0.1


class ServerError(explained_error.ExplainedError):
    """A site that cannot be started; the text names the setting and the remedy."""


async def bind(limits: settings.ServerSettings, name: str) -> list[socket.socket]:
    """Open one socket per address of the host, all on the same port."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            limits.host, limits.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise ServerError(
            f"{name}.host {limits.host}: no such address: {error.strerror};"
            " use an address of this machine, 127.0.0.1 or 0.0.0.0"
        ) from error
    opened: list[socket.socket] = []
    port = limits.port
    for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
        try:
            opened.append(_open(family, (address[0], port, *address[2:])))
        except OSError as error:
            for one in opened:
                one.close()
            raise ServerError(_why(error, limits, name)) from error
        port = opened[0].getsockname()[1]
    return opened


def _open(family: int, address: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Each connection inherits these.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            # `::` means every address, of both families, only when this is off.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        sock.setblocking(False)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _why(error: OSError, limits: settings.ServerSettings, name: str) -> str:
    where = f"{name}.port {limits.port} on {limits.host}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: already in use; stop the program that has it"
            f" or set {name}.port to a free one (0 lets the system choose)"
        )
    if error.errno == errno.EACCES:
        return f"{where}: not allowed; set {name}.port to 1024 or above"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: not an address of this machine; set {name}.host to 127.0.0.1 or 0.0.0.0"
    return f"{where}: cannot listen: {error.strerror}"


class Listener:
    """Accepts connections until it is drained."""

    def __init__(
        self,
        sockets: list[socket.socket],
        accepted: connections.Connections,
        limits: settings.ServerSettings,
        context: ssl.SSLContext | None,
    ) -> None:
        self.stopping = False
        """A stop was asked for; callers should go elsewhere."""
        self._sockets = sockets
        self._accepted = accepted
        self._limits = limits
        self._context = context
        self._handshake = limits.header_seconds if context is not None else None
        self._spawn: fast_path.Spawner | None = None
        self._listening = False

    def open(self, spawn: fast_path.Spawner) -> None:
        """Begin to accept; each connection is opened by a task of its own."""
        self._spawn = spawn
        self._listening = True
        for sock in self._sockets:
            sock.listen(self._limits.backlog)
            self._look(sock)

    def _look(self, sock: socket.socket) -> None:
        if self._listening:
            asyncio.get_running_loop().add_reader(sock.fileno(), self._take, sock)

    def _take(self, sock: socket.socket) -> None:
        """Accept one who has dialled; for the next one the loop calls again, after others.

        To ask whether there is a next one costs more than that call.
        """
        try:
            one, address = sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            _logger.warning("cannot accept connections reason=%s", error)
            loop = asyncio.get_running_loop()
            loop.remove_reader(sock.fileno())
            loop.call_later(_EXHAUSTED_SECONDS, self._look, sock)
            return
        self._admit(one, str(address[0]))

    def _admit(self, one: socket.socket, address: str) -> None:
        assert self._spawn is not None
        connection = self._accepted.admit(address)
        if connection is None:
            one.close()
            return
        one.setblocking(False)
        connection.arrival = self._spawn("accept", self._serve(one, connection))

    async def _serve(self, one: socket.socket, connection: http_connection.Connection) -> None:
        """Open an accepted connection, with its TLS handshake if there is one."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                one,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake,
            )
        except OSError as error:
            _logger.debug("connection not opened reason=%s", error)
        finally:
            if not connection.opened:
                self._accepted.closed(connection)
                one.close()

    async def sweep(self) -> None:
        """Drop clients that are too slow, again and again; never ends."""
        # Sockets live in real time, whatever clock the rest of the process uses.
        pause = min(1.0, self._limits.header_seconds / 4, self._limits.body_seconds / 4)
        while True:
            await asyncio.sleep(pause)
            self._accepted.sweep()

    async def drain(self) -> None:
        """Let clients leave, stop accepting, then wait for requests in flight."""
        self.stopping = True
        await asyncio.sleep(self._limits.announce_seconds)
        self._accepted.retire()
        await _until(lambda: self._accepted.empty, self._limits.linger_seconds)
        await self.close()
        if not await _until(lambda: not self._accepted.busy, self._limits.drain_seconds):
            _logger.warning("requests cut off by the end of the drain n=%s", self._accepted.busy)

    async def close(self) -> None:
        """Stop accepting; connections the system has already accepted are served, not reset."""
        if not self._listening:
            return
        waiting = [one for sock in self._sockets for one in _pending(sock)]
        self.shut()
        for one, address in waiting:
            self._admit(one, address)
        await _until(lambda: not self._accepted.arriving, self._limits.header_seconds)

    def end(self) -> None:
        """Stop accepting and close what no other part will close."""
        self.shut()
        self._accepted.end()

    def shut(self) -> None:
        """Close the listening sockets now; for a drain that was itself interrupted."""
        self._listening = False
        for sock in self._sockets:
            if sock.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(sock.fileno())
                sock.close()


def _pending(sock: socket.socket) -> Iterator[tuple[socket.socket, str]]:
    """Take what waits in the queue of the kernel; closing the socket would reset it."""
    while True:
        try:
            one, address = sock.accept()
        except OSError:
            return
        yield one, str(address[0])


async def _until(condition: Callable[[], bool], seconds: float) -> bool:
    for _ in range(math.ceil(seconds / _POLL_SECONDS)):
        if condition():
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return condition()
