"""Composition root of the webhook."""

import contextlib
import random
from collections.abc import AsyncIterator

from aiohttp import web

from kube import access as accesses
from kube import caches, client
from process import clock as clocks
from process import features, health, metrics, server, supervise
from process import settings as process_settings
from webhook import handlers, installer, pictures, registry
from webhook import settings as webhook_settings


class App:
    """A running webhook."""

    def __init__(
        self,
        url: str,
        health_url: str,
        checks: health.Health,
        figures: metrics.Registry,
        supervisor: supervise.Supervisor,
    ) -> None:
        self.url = url
        self.health_url = health_url
        self.health = checks
        self.registry = figures
        self._supervisor = supervisor

    async def stopped(self) -> None:
        """Wait until a task fails and raise its error."""
        await self._supervisor.stopped()


@contextlib.asynccontextmanager
async def running(
    settings: webhook_settings.Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the webhook; yields when it listens, drains and stops on exit."""
    gates = features.Gates(registry.GATES, settings.feature_gates)
    on = frozenset(gate.name for gate, enabled in gates.describe() if enabled)
    figures, checks = metrics.Registry(), health.Health()
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            client.Client(access, clock=clock, user_agent="koord-webhook", registry=figures)
        )
        supervisor = await stack.enter_async_context(supervise.Supervisor("webhook"))
        watched = caches.Caches(kube, clock)
        seen = pictures.Pictures(watched, on, random.Random())
        checks.add("caches", watched.health)
        watched.start(supervisor)
        keeper = installer.Installer(
            kube, clock, settings.namespace, settings.certificates, settings.registration
        )
        checks.warn("registration", lambda: keeper.problem)
        health_site = await stack.enter_async_context(
            server.running_site(
                server.health_routes(web.Application(), checks, figures),
                settings.health,
                name="health",
                registry=figures,
            )
        )
        await keeper.first()
        reviews = handlers.Admission(seen.present, figures, observe=settings.mode == "observe")
        application = web.Application(client_max_size=settings.server.max_body_bytes)
        application.add_routes(reviews.routes())
        site = await stack.enter_async_context(
            server.running_site(
                application,
                _with_tls(settings),
                clock=clock,
                name="server",
                checks=checks,
                registry=figures,
            )
        )
        supervisor.start("install", lambda: keeper.run(site.url))
        yield App(site.url, health_site.url, checks, figures, supervisor)


def _with_tls(settings: webhook_settings.Settings) -> process_settings.ServerSettings:
    if settings.server.tls is not None:
        return settings.server
    folder = settings.certificates.folder
    tls = process_settings.TlsSettings(
        cert_file=folder / installer.CERTIFICATE_FILE, key_file=folder / installer.KEY_FILE
    )
    return settings.server.model_copy(update={"tls": tls})
