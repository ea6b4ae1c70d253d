"""Composition root of the CRI proxy."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web

from process.configuration import explained_error
from process.http import health, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from runtimeproxy import connection, interceptor, unary
from runtimeproxy import settings as proxy_settings
from runtimeproxy.hooks import folder as folders
from runtimeproxy.hooks import servers

_BACKLOG: Final = 128
_RESTORE_SECONDS: Final = 1.0
_logger = logging.getLogger(__name__)


class ListenError(explained_error.ExplainedError):
    """The socket for the kubelet cannot be made."""


class App:
    """A running proxy."""

    def __init__(
        self, url: str, figures: metrics.Registry, supervisor: supervise.Supervisor, proxy: "Proxy"
    ) -> None:
        self.url = url
        self.registry = figures
        self.proxy = proxy
        self._supervisor = supervisor

    async def stopped(self) -> None:
        """Wait until a task fails and raise its error."""
        await self._supervisor.stopped()


class Proxy:
    """Takes connections of the kubelet and joins each with one of the runtime."""

    def __init__(
        self,
        path: str,
        calls: interceptor.Interceptor,
        supervisor: supervise.Supervisor,
        clock: clocks.Clock,
        figures: metrics.Registry,
    ) -> None:
        self.problem: str | None = "the runtime was not reached yet"
        """Why the latest connection was not joined, None where it was."""
        self.restored = False
        """Whether the runtime told which pods and containers exist."""
        self._path, self._interceptor = path, calls
        self._supervisor, self._clock = supervisor, clock
        self._open = figures.gauge(
            "koord_runtimeproxy_connections", "Connections of the kubelet with the runtime"
        )

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        try:
            runtime = await asyncio.open_unix_connection(self._path)
        except OSError as error:
            self._unreached(f"runtime {self._path}: {error.strerror or error}")
            writer.close()
            return
        joined = connection.Connection((reader, writer), runtime, self._interceptor)
        self._open.inc()
        try:
            if not self.restored:
                # Otherwise the first calls would be about pods that are not known.
                await self._ask()
            self.problem = None
            await joined.run(self._supervisor)
        finally:
            joined.close()
            self._open.dec()
            if joined.problem:
                _logger.warning("connection passed unread reason=%s", joined.problem)

    async def restore(self) -> None:
        """Ask the runtime what exists, until it tells."""
        while not self.restored:
            await self._ask()
            if not self.restored:
                await self._clock.sleep(_RESTORE_SECONDS)
        await asyncio.get_running_loop().create_future()

    async def _ask(self) -> None:
        try:
            await self._interceptor.restore()
        except unary.CallError as error:
            self._unreached(f"runtime {self._path}: {error}")
        else:
            self.restored, self.problem = True, None

    def _unreached(self, problem: str) -> None:
        if self.problem != problem:
            _logger.warning("runtime is not reached reason=%s", problem)
        self.problem = problem


async def connect(kubeconfig: Path | None, context: str | None) -> None:
    """Return nothing: the proxy asks no API server."""


@contextlib.asynccontextmanager
async def running(
    settings: proxy_settings.Settings, *, access: None, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the proxy; yields when it listens."""
    del access
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    folder = folders.Folder(settings.hook_server_folder, clock, settings.scan_seconds)
    folder.look()
    async with contextlib.AsyncExitStack() as stack:
        supervisor = await stack.enter_async_context(supervise.Supervisor("runtime-proxy"))
        asked = servers.Servers(folder, clock, settings.hook_seconds, figures)
        stack.callback(asked.close)
        runtime = unary.Target(settings.runtime, clock)
        stack.callback(runtime.close)
        skip = interceptor.Skip(settings.runtime_hook_server_key, settings.runtime_hook_server_val)
        calls = interceptor.Interceptor(asked, runtime, skip, supervisor, figures)
        proxy = Proxy(settings.runtime, calls, supervisor, clock, figures)
        checks.add("runtime", lambda: proxy.problem)
        checks.warn("hook servers", lambda: _told(folder, asked))
        supervisor.start("registrations", folder.run)
        supervisor.start("restore", proxy.restore)
        await stack.enter_async_context(_listening(settings.listen, proxy))
        shown = server.health_routes(web.Application(), checks, figures)
        site = await stack.enter_async_context(
            server.running_site(
                shown, settings.health, clock=clock, name="health", checks=checks, registry=figures
            )
        )
        yield App(site.url, figures, supervisor, proxy)


@contextlib.asynccontextmanager
async def _listening(path: str, proxy: Proxy) -> AsyncIterator[None]:
    listener = _bound(Path(path))
    inode = _inode(path)
    opened = await asyncio.start_unix_server(proxy.accept, sock=listener, backlog=_BACKLOG)
    _logger.info("proxy listens path=%s", path)
    try:
        yield
    finally:
        opened.close()
        # A successor may listen there already.
        if inode is not None and _inode(path) == inode:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108 - a socket in memory, nothing that could block


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - as above
    except FileNotFoundError:
        return None


def _bound(path: Path) -> socket.socket:
    """Return a socket bound to a path, in place of one that a process left there."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if path.is_socket():
            if _answers(path):
                raise ListenError(f"{path}: another process listens there; stop it first")
            path.unlink()
        before = os.umask(0o117)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
    except OSError as error:
        listener.close()
        raise ListenError(f"cannot listen on {path}: {error.strerror or error}") from error
    except ListenError:
        listener.close()
        raise
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(str(path))
        except OSError:
            return False
        return True


def _told(folder: folders.Folder, asked: servers.Servers) -> str | None:
    problems = [f"{name}: {reason}" for name, reason in folder.problems.items()]
    return "; ".join([*problems, *([asked.problem] if asked.problem else [])])[:1000] or None
