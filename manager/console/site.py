"""Composition of the console: its stores, its reviews and its listener."""

import contextlib
from collections.abc import AsyncIterator

from kube.client import client as clients
from kube.informers import informer_set
from manager.console import agent_days, http, informers, pages
from manager.console.access import reviews, session
from manager.settings import ConsoleSettings
from process.http import health, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Console:
    """The console on every replica; nothing else waits for it."""

    def __init__(
        self,
        api: clients.Client,
        shared: informers.Shared,
        settings: ConsoleSettings,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._registry = registry
        self.watched = informers.Watched(informer_set.InformerSet(api, clock), shared)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        self.watched.members.start(supervisor)

    @contextlib.asynccontextmanager
    async def serving(self, config: tuple[str, str], checks: health.Health) -> AsyncIterator[str]:
        """Serve the console until the end of the block; yields its address.

        `config` is the namespace and name of the configuration map of the cluster.
        """
        pace = reviews.Pace(
            self._settings.reviews_per_second,
            self._settings.reviews_burst,
            self._settings.remember_seconds,
        )
        reviewer = reviews.Reviewer(self._api, pace, self._clock, self._registry)
        sessions = session.Sessions(reviewer, self._settings.viewer)
        days = agent_days.AgentDays(self._api, config[0], self._clock)
        shown = pages.Pages(self.watched, config, days, self._clock)
        site = http.application(shown.by_path(), sessions)
        async with server.running_site(
            site,
            self._settings.server,
            clock=self._clock,
            name="console",
            checks=checks,
            registry=self._registry,
        ) as listening:
            yield listening.url
