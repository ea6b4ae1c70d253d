"""The connections of one listener: how many, from where, and how much they may hold together."""

import asyncio
import functools
from typing import Any, Protocol

from aiohttp import web

from process.configuration import settings
from process.http import connection_age, fast_path, http_connection, tls
from process.limits import places

# Clients dial in order to ask, so a connection this young has its first request on the way.
_ARRIVAL_SECONDS = 1.0
_MOST_SOURCES = 1024


class Tally(Protocol):
    """A counter."""

    def inc(self) -> None:
        """Count one more."""


class Connections:
    """Makes the connections of a listener and keeps them within their limits."""

    def __init__(
        self, server: web.Server, limits: settings.ServerSettings, refused: Tally, cut: Tally
    ) -> None:
        self.express: fast_path.FastPath | None = None
        """The short way of this site, if it has one."""
        self.ages: connection_age.Ages | None = None
        """When connections are retired, if their age is limited."""
        self._draining = False
        self.server = server
        """Serves whatever does not take the short way."""
        self.places: places.Places[http_connection.Connection] = places.Places(
            limits.max_connections, limits.max_connections_by_address
        )
        blocks = tuple(map(places.network, limits.caller_blocks))
        # Callers dial again and again, and to read an address takes long.
        self._source = functools.lru_cache(_MOST_SOURCES)(
            lambda address: places.source(address, blocks)
        )
        self._limits = limits
        self._refused = refused
        self._cut = cut
        self._options: dict[str, Any] = {
            "keepalive_timeout": limits.keep_alive_seconds,
            "max_line_size": limits.max_header_bytes,
            "max_field_size": limits.max_header_bytes,
            "lingering_time": min(2.0, limits.body_seconds),
            "access_log": None,
        }
        request_of = server.request_factory

        def announce(*arguments: Any) -> web.BaseRequest:
            request = request_of(*arguments)
            connection = request.protocol
            if isinstance(connection, http_connection.Connection):
                connection.reading(request.content)
            if request.client_max_size != limits.max_body_bytes:
                return request.clone(client_max_size=limits.max_body_bytes)
            return request

        server.request_factory = announce

    def lets_in(self, wire: asyncio.BaseTransport) -> bool:
        """Return whether the client's certificate carries a name that is let in."""
        chosen = self._limits.tls
        if chosen is None or tls.is_named(wire.get_extra_info("peercert"), chosen.client_names):
            return True
        self._refused.inc()
        return False

    def admit(self, address: str) -> http_connection.Connection | None:
        """Give a place to a client that has just dialled; None where it is to be refused."""
        source = self._source(address)
        if self._limits.refuse_others and not source.named:
            self._refused.inc()
            return None
        if self.places.lacks(source):
            silent = self.places.gives_way(source)
            if silent is None:
                self._refused.inc()
                return None
            self._end(silent)
        connection = http_connection.Connection(self, self._options, source)
        self.places.add(connection)
        return connection

    def __len__(self) -> int:
        """How many connections there are, handshakes included."""
        return len(self.places)

    @property
    def arriving(self) -> bool:
        """Whether the handshake of a client is under way."""
        return any(not one.opened for one in self.places)

    @property
    def empty(self) -> bool:
        """Whether no client is here or about to be."""
        now = asyncio.get_running_loop().time()
        return not any(one.opened or _is_arriving(one, now) for one in self.places)

    @property
    def busy(self) -> int:
        """How many connections have a request in flight or, just dialled, on its way."""
        now = asyncio.get_running_loop().time()
        return sum(
            (one.opened and one.busy) or (not one.used and _is_arriving(one, now))
            for one in self.places
        )

    def opened(self, connection: http_connection.Connection) -> None:
        """Note that a connection is ready for requests."""
        if self._draining:
            connection.retire()
        elif self.ages is not None:
            self.ages.add(connection)

    def closed(self, connection: http_connection.Connection) -> None:
        """Forget a connection."""
        self.places.drop(connection)
        if self.ages is not None:
            self.ages.drop(connection)

    def retire(self) -> None:
        """Close every connection after its next answer, and those that are still to come."""
        self._draining = True
        for connection in self.places:
            connection.retire()

    def hold(self, connection: http_connection.Connection, size: int) -> None:
        """Note what a connection holds of requests that are not answered; cut off what is most."""
        if size == connection.held:
            return
        self.places.hold(connection, size)
        if self.places.held <= self._limits.max_pending_bytes:
            return
        for one in self.places:
            one.settle()
        while self.places.held > self._limits.max_pending_bytes:
            heaviest = self.places.heaviest()
            if heaviest is None:
                return
            self._end(heaviest)

    def _end(self, connection: http_connection.Connection) -> None:
        self._cut.inc()
        connection.cut()
        self.places.drop(connection)

    def end(self) -> None:
        """Close what took the short way only; the server ends its own connections."""
        for connection in list(self.places):
            if not connection.awake:
                connection.cut()

    def sweep(self) -> None:
        """Drop clients that keep a request open for too long."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.places):
            if connection.opened:
                connection.check(now, self._limits)


def _is_arriving(connection: http_connection.Connection, now: float) -> bool:
    return now - connection.since < _ARRIVAL_SECONDS
