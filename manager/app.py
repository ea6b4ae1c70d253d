"""Composition root of the manager."""

import contextlib
import dataclasses
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from kube import access as accesses
from kube import caches, client, recorder
from manager import apply, leadership, term
from manager.settings import CONTROLLERS, Settings
from process import clock as clocks
from process import features, health, metrics, server, supervise

GATES: Final[tuple[features.Gate, ...]] = ()
"""Features that can be switched; there are none yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class App:
    """The running manager."""

    url: str
    health_url: str
    health: health.Health
    registry: metrics.Registry
    supervisor: supervise.Supervisor
    leadership: leadership.Leadership

    async def stopped(self) -> None:
        """Wait until a supervised task fails and raise its error."""
        await self.supervisor.stopped()


@contextlib.asynccontextmanager
async def running(
    settings: Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the manager; yields when listening, drains and stops on exit."""
    features.Gates(GATES, settings.feature_gates)
    identity = settings.leader_election.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
    duties = term.Duties(
        settings.config_namespace,
        settings.config_name,
        tuple(name for name in CONTROLLERS if settings.is_on(name)),
        settings.workers,
    )
    figures = metrics.Registry(interpreter=True)
    checks = health.Health()
    async with (
        client.Client(access, clock=clock, user_agent="koord-manager", registry=figures) as api,
        supervise.Supervisor("manager") as supervisor,
    ):
        members = caches.Caches(api, clock)
        watched = term.Watched(members, duties)
        checks.add("caches", members.health)

        async def work(writes: client.Client) -> None:
            await members.synced()
            async with supervise.Supervisor("term") as tasks:
                events = recorder.Recorder(writes, "koord-manager", clock, instance=identity)
                events.start(tasks)
                writer = apply.Writer(writes, events, clock, figures)
                working = term.Term(duties, watched, writer, clock, figures)
                tasks.start("controllers", working.run)
                await tasks.stopped()

        members.start(supervisor)
        leading = leadership.of(settings.leader_election, identity, access, clock, figures)
        checks.warn("leader", lambda: None if leading.leading else "another replica leads")
        supervisor.start("lead", lambda: leading.run(api, work))
        site = server.running_site(
            server.health_routes(web.Application(), checks, figures),
            settings.health,
            clock=clock,
            name="health",
            checks=checks,
            registry=figures,
        )
        async with site as listening:
            yield App("", listening.url, checks, figures, supervisor, leading)
