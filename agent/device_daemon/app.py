"""Composition root of the device daemon."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from aiohttp import web

from agent.device_daemon import daemon as daemons
from agent.device_daemon import looks, node_labels, tools
from agent.device_daemon import settings as daemon_settings
from agent.device_daemon.hardware import findings, registry
from agent.devices import nvml
from kube.client import access as accesses
from kube.client import client
from kube.client import connect as connections
from process.configuration import explained_error
from process.http import health, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

Access = Callable[[], Awaitable[accesses.Access]]
"""Finds the API server; asked only where a Node is labelled."""


class UnwrittenError(explained_error.ExplainedError):
    """The only look could not write what it found."""


class App:
    """A running device daemon."""

    def __init__(
        self,
        daemon: daemons.Daemon,
        figures: metrics.Registry,
        supervisor: supervise.Supervisor | None = None,
        url: str = "",
    ) -> None:
        self.daemon = daemon
        self.registry = figures
        self.url = url
        self._supervisor = supervisor

    async def stopped(self) -> None:
        """Return at once after the only look, else wait until a task fails and raise its error."""
        if self._supervisor is not None:
            await self._supervisor.stopped()
        elif self.daemon.unwritten is not None:
            raise UnwrittenError(self.daemon.unwritten)


async def connect(kubeconfig: Path | None, context: str | None) -> Access:
    """Return what finds the API server, which is done only where a Node is labelled."""

    async def found() -> accesses.Access:
        return await connections.connect(kubeconfig, context)

    return found


@contextlib.asynccontextmanager
async def running(
    settings: daemon_settings.Settings, *, access: Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the device daemon; with `oneshot` yields when the only look is done."""
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    asked = settings.tools
    kept = tools.Tools(asked.path, asked.root, asked.seconds, asked.most_bytes)
    host = findings.Host(str(settings.sys), str(settings.dev), kept.run, nvml.load)
    managers = [
        looks.Manager(name, discover, settings.look_seconds, clock)
        for name, discover in registry.HARDWARE.items()
        if name in settings.hardware
    ]
    daemon = daemons.Daemon(settings, managers, host, clock, figures)
    async with contextlib.AsyncExitStack() as stack:
        if settings.node_name:
            kube = await stack.enter_async_context(
                client.Client(
                    await access(), clock=clock, user_agent=node_labels.MANAGER, registry=figures
                )
            )
            daemon.node = node_labels.NodeLabels(kube, settings.node_name)
        if settings.oneshot:
            await daemon.step()
            yield App(daemon, figures)
            return
        checks.add("look", lambda: None if daemon.looked else "nothing was looked at yet")
        checks.warn("problems", lambda: _told(daemon.problems))
        stack.callback(daemon.remove_files)
        supervisor = await stack.enter_async_context(supervise.Supervisor("device-daemon"))
        supervisor.start("looks", daemon.run)
        shown = server.health_routes(web.Application(), checks, figures)
        site = await stack.enter_async_context(
            server.running_site(
                shown, settings.health, clock=clock, name="health", checks=checks, registry=figures
            )
        )
        yield App(daemon, figures, supervisor, site.url)


def _told(problems: dict[str, str]) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in problems.items())[:1000] or None
