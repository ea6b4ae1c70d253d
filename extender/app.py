"""Composition root of the extender."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence

from aiohttp import web

from extender import (
    beside,
    binder,
    explain,
    feeds,
    framework,
    freshness,
    handlers,
    ledger,
    loading,
    notices,
    nudges,
    pages,
    picture,
    questions,
    records,
    registry,
    reports,
    state,
    verbs,
    waiting,
)
from extender.plugins import load_aware
from extender.settings import Settings
from kube import access as accesses
from kube import caches, client, recorder, reflector, token_renewal, transport
from process import clock as clocks
from process import health, metrics, server, supervise, switches

SWITCH = "extender"
"""Key among the live switches."""

COUNTED = (
    "cpu",
    "memory",
    "kubernetes.io/batch-cpu",
    "kubernetes.io/batch-memory",
    "kubernetes.io/mid-cpu",
    "kubernetes.io/mid-memory",
)
"""Resources that have a column of their own."""

_WRITERS = 12
# A page is cut up in one go, so it must not hold too much.
_PAGE = 250


@dataclasses.dataclass(frozen=True, slots=True)
class App:
    """The running extender."""

    url: str
    health_url: str
    health: health.Health
    registry: metrics.Registry
    books: ledger.Ledger
    answers: verbs.Verbs
    feeds: feeds.Feeds
    supervisor: supervise.Supervisor

    async def stopped(self) -> None:
        """Wait until a supervised task fails and raise its error."""
        await self.supervisor.stopped()


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """The wired parts of the extender, not running yet."""

    members: caches.Caches
    watched: feeds.Feeds
    books: ledger.Ledger
    answers: verbs.Verbs
    binding: binder.Binder
    fresh: freshness.Freshness
    events: recorder.Recorder
    loading: loading.Loading
    beside: beside.Beside


def _universe(plugins: Sequence[framework.Plugin]) -> tuple[str, ...]:
    """Return the resources that load reports are read for."""
    return next((p.universe for p in plugins if isinstance(p, load_aware.LoadAware)), ())


def _beside(settings: Settings, parts: nudges.Parts, figures: metrics.Registry) -> beside.Beside:
    return beside.Beside(parts, settings.explanations, settings.nudges, figures)


def _wired(
    settings: Settings, api: client.Client, clock: clocks.Clock, figures: metrics.Registry
) -> _Parts:
    """Put the parts together; nothing runs and nothing is asked of the API server yet."""
    plugins = registry.build(settings.plugins)
    line = registry.assemble(plugins, settings.plugins.weights)
    projector = records.Projector()
    reader = reports.Reader(_universe(plugins))
    cluster = state.ClusterState(registry.summarizers(plugins), COUNTED)
    books = ledger.Ledger(cluster)
    live = switches.Switches(
        SWITCH, switches.Mode.OBSERVE if settings.observe else switches.Mode.ENFORCE
    )
    trust = settings.freshness
    members = caches.Caches(
        api,
        clock,
        pace=reflector.Pace(silence_seconds=trust.silence_seconds, page=_PAGE),
        stale_seconds=trust.stale_seconds,
    )
    watched = feeds.add(members, projector, reader, settings.namespace)
    feeds.connect(watched, books, live, clock)
    slices = loading.Loading(cluster, members, clock)
    slices.follow(watched)
    events = recorder.Recorder(api, "koord-extender", clock, instance=settings.instance)
    waits = waiting.Waiting(settings.nudges.most, nudges.retries(figures))
    return _Parts(
        members=members,
        watched=watched,
        books=books,
        answers=verbs.Verbs(
            cluster,
            line,
            projector,
            live,
            explain.Explanations(),
            notices.Notices(figures, events).tell,
            questions.Reader(projector),
            waits=waits,
        ),
        binding=binder.Binder(
            binder.Parts(books, line, api, watched.pods, projector, clock, live), settings.bind
        ),
        fresh=freshness.Freshness(api, watched.pods, clock, settings.freshness),
        events=events,
        loading=slices,
        beside=_beside(
            settings, nudges.Parts(api, clock, books, line, waits, watched.pods), figures
        ),
    )


def _renew_token(
    settings: Settings,
    api: client.Client,
    clock: clocks.Clock,
    checks: health.Health,
    supervisor: supervise.Supervisor,
) -> None:
    chosen = settings.token
    if chosen.file is None:
        return
    wanted = token_renewal.Wanted(settings.namespace, chosen.account, chosen.secret, chosen.seconds)
    renewal = token_renewal.TokenRenewal(api, clock, chosen.file, wanted)
    checks.warn("token", renewal.warning)
    supervisor.start("token", renewal.run)


@contextlib.asynccontextmanager
async def _health_site(
    settings: Settings,
    parts: _Parts,
    checks: health.Health,
    figures: metrics.Registry,
    clock: clocks.Clock,
) -> AsyncIterator[server.Site]:
    page = server.health_routes(web.Application(), checks, figures)
    pages.routes(page, parts.answers, clock)
    picture.routes(page, parts.books)
    async with server.running_site(
        page, settings.health, clock=clock, name="health", registry=figures
    ) as site:
        yield site


@contextlib.asynccontextmanager
async def running(
    settings: Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[App]:
    """Start the extender; yields when listening, drains and stops on exit."""
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    # Few connections that are always warm: every new one costs both sides a handshake.
    limits = transport.Limits(request_seconds=settings.bind.write_seconds, in_flight=_WRITERS)
    async with (
        client.Client(
            access, clock=clock, user_agent="koord-extender", limits=limits, registry=figures
        ) as api,
        supervise.Supervisor("extender") as supervisor,
    ):
        parts = _wired(settings, api, clock, figures)
        checks.add("caches", parts.members.health)
        checks.warn("definitions", parts.members.missing)
        checks.add("picture", parts.loading.health)
        checks.warn("explanations", parts.beside.health)
        routes = handlers.Handlers(
            parts.answers, parts.binding, parts.fresh, checks, clock, figures
        ).application(settings.server.max_body_bytes)
        parts.members.start(supervisor)
        parts.events.start(supervisor)
        supervisor.start("load", parts.loading.run)
        supervisor.start("sweep", parts.binding.sweep)
        parts.beside.start(supervisor)
        _renew_token(settings, api, clock, checks, supervisor)
        async with (
            _health_site(settings, parts, checks, figures, clock) as health_site,
            server.running_site(
                routes, settings.server, clock=clock, checks=checks, registry=figures
            ) as site,
        ):
            yield App(
                url=site.url,
                health_url=health_site.url,
                health=checks,
                registry=figures,
                books=parts.books,
                answers=parts.answers,
                feeds=parts.watched,
                supervisor=supervisor,
            )
