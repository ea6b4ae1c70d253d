"""An HTTP site: TLS that reloads, limits for slow and greedy clients, and a stop without loss."""

import contextlib
import dataclasses
import json
import socket
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from process.configuration import settings
from process.http import (
    connection_age,
    connections,
    fast_path,
    health,
    http_connection,
    listener,
    tls,
)
from process.runtime import clock as clocks
from process.runtime import collector, loop_latency, metrics, supervise

ServerError = listener.ServerError


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """Where a running listener can be reached."""

    url: str
    port: int


HEALTH: web.AppKey[health.Health] = web.AppKey("health", health.Health)
REGISTRY: web.AppKey[metrics.Registry] = web.AppKey("registry", metrics.Registry)


def health_routes(
    app: web.Application, checks: health.Health, registry: metrics.Registry
) -> web.Application:
    """Add /healthz, /readyz and /metrics to an application and return it."""
    app[HEALTH] = checks
    app[REGISTRY] = registry
    registry.gauge(
        "koord_process_ready", "1 while /readyz says yes: the process may be sent work."
    ).set_function(lambda: float(checks.ready))
    registry.gauge(
        "koord_process_warnings", "Warnings that /readyz shows while work goes on."
    ).set_function(lambda: float(len(checks.warnings())))
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz)
    app.router.add_get("/metrics", _metrics)
    return app


async def _healthz(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _readyz(request: web.Request) -> web.Response:
    checks = request.app[HEALTH]
    failing = checks.failing()
    body = {"ready": not failing, "failing": failing, "warnings": checks.warnings()}
    return web.Response(
        status=503 if failing else 200,
        text=json.dumps(body, indent=2) + "\n",
        content_type="application/json",
    )


async def _metrics(request: web.Request) -> web.Response:
    body, content_type = request.app[REGISTRY].exposition(request.headers.get("Accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})


@contextlib.asynccontextmanager
async def running_site(
    app: web.Application,
    server_settings: settings.ServerSettings,
    *,
    clock: clocks.Clock | None = None,
    name: str = "server",
    checks: health.Health | None = None,
    registry: metrics.Registry | None = None,
) -> AsyncIterator[Site]:
    """Serve an application; yields when listening, drains and stops on exit.

    The name is that of the settings group: error texts, the site's health checks and the label
    `server` of its metrics carry it. The given clock measures when certificate files are looked at
    and how old connections are; the time-outs of sockets are real time. A site with /metrics also
    measures what stops the loop.
    """
    checks = checks if checks is not None else health.Health()
    registry = registry if registry is not None else metrics.Registry()
    clock = clock or clocks.SystemClock()
    reloader = _reloader(server_settings, clock, name)
    sockets = await listener.bind(server_settings, name)
    async with _handled(app, sockets) as handler:
        accepted = connections.Connections(
            handler, server_settings, _refusals(registry, name), _cuts(registry, name)
        )
        context = None if reloader is None else reloader.context
        door = listener.Listener(sockets, accepted, server_settings, context)
        _show(registry, name, accepted, reloader)
        try:
            async with supervise.Supervisor(name) as supervisor:
                accepted.express = _express(app, server_settings, supervisor)
                accepted.ages = _ages(server_settings, clock, supervisor)
                with _checked(checks, name, door, reloader):
                    door.open(supervisor.spawn)
                    supervisor.start("sweep", door.sweep)
                    if REGISTRY in app:
                        _measure(supervisor, registry)
                    if reloader is not None:
                        supervisor.start("tls", reloader.run)
                    try:
                        yield _site(sockets[0], "http" if reloader is None else "https")
                    finally:
                        await door.drain()
        finally:
            door.end()


@contextlib.asynccontextmanager
async def _handled(app: web.Application, sockets: list[socket.socket]) -> AsyncIterator[web.Server]:
    """Start an application; yields what handles its connections, closes the sockets on exit."""
    app.on_response_prepare.append(_close_after_last)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    try:
        await runner.setup()
        assert runner.server is not None
        yield runner.server
    finally:
        for sock in sockets:
            sock.close()
        await runner.cleanup()


def _measure(supervisor: supervise.Supervisor, registry: metrics.Registry) -> None:
    supervisor.start("lag", loop_latency.LoopLatency(registry).run)
    supervisor.start("collections", collector.Timing(registry).run)


def _express(
    app: web.Application,
    limits: settings.ServerSettings,
    supervisor: supervise.Supervisor,
) -> fast_path.FastPath | None:
    """Return the short way of an application that offers one."""
    if fast_path.ROUTES not in app:
        return None
    sizes = (limits.max_header_bytes, limits.max_body_bytes)
    return fast_path.FastPath(app[fast_path.ROUTES], sizes, supervisor.spawn)


def _ages(
    limits: settings.ServerSettings, clock: clocks.Clock, supervisor: supervise.Supervisor
) -> connection_age.Ages | None:
    """Begin to measure how old connections are, if that is limited."""
    if not limits.max_connection_age_seconds:
        return None
    ages = connection_age.Ages(limits.max_connection_age_seconds, clock)
    supervisor.start("age", ages.run)
    return ages


def _reloader(
    server_settings: settings.ServerSettings, clock: clocks.Clock, name: str
) -> tls.Reloader | None:
    if server_settings.tls is None:
        return None
    try:
        return tls.Reloader(server_settings.tls, clock)
    except tls.TlsError as error:
        raise ServerError(f"{name}.{error}") from error


async def _close_after_last(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Mark the last answer of a connection, so that its client dials again, perhaps elsewhere."""
    response.headers["Server"] = "koord"
    connection = request.protocol
    if isinstance(connection, http_connection.Connection) and connection.ends:
        response.headers["Connection"] = "close"
        response.force_close()


@contextlib.contextmanager
def _checked(
    checks: health.Health, name: str, door: listener.Listener, reloader: tls.Reloader | None
) -> Iterator[None]:
    checks.add(f"{name}-open", lambda: "stopping" if door.stopping else None)
    if reloader is not None:
        checks.add(f"{name}-certificate", reloader.failure)
        checks.warn(f"{name}-files", reloader.warning)
    try:
        yield
    finally:
        for suffix in ("open", "certificate", "files"):
            checks.remove(f"{name}-{suffix}")


def _site(sock: socket.socket, scheme: str) -> Site:
    host, port = sock.getsockname()[:2]
    return Site(url=f"{scheme}://{_reachable(host)}:{port}", port=port)


def _refusals(registry: metrics.Registry, name: str) -> connections.Tally:
    return registry.counter(
        "koord_server_refused_connections_total",
        "Connections closed at once: all others were busy, or they came from elsewhere.",
        ["server"],
    ).labels(name)


def _cuts(registry: metrics.Registry, name: str) -> connections.Tally:
    return registry.counter(
        "koord_server_cut_connections_total",
        "Silent or incomplete connections cut off, because places or memory had run out.",
        ["server"],
    ).labels(name)


def _show(
    registry: metrics.Registry,
    name: str,
    accepted: connections.Connections,
    reloader: tls.Reloader | None,
) -> None:
    registry.gauge("koord_server_connections", "Open connections.", ["server"]).labels(
        name
    ).set_function(lambda: len(accepted))
    if reloader is None:
        return
    registry.gauge(
        "koord_server_certificate_end_seconds",
        "End of the certificate in use, in seconds since the epoch.",
        ["server"],
    ).labels(name).set_function(lambda: reloader.not_after)
    registry.gauge(
        "koord_server_certificate_rejected",
        "1 while the newest certificate files are not good enough to be used.",
        ["server"],
    ).labels(name).set_function(lambda: float(reloader.problem is not None))


def _reachable(host: str) -> str:
    """Return an address a client on this machine can dial, fit for a URL."""
    dialled = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not a bind
    return f"[{dialled}]" if ":" in dialled else dialled
