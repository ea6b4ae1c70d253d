"""Composition root of the extender."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable

import numpy.ma  # noqa: F401 - numpy.unique loads it, which would hold up the first call by 20 ms
from aiohttp import web

from api import names
from extender import background, handlers, registry
from extender import parts as plug_ins
from extender.explain import explanations, node_dump, pages, plugin_pages, refusal_events
from extender.gangs import assembly as gangs
from extender.gangs import renominations
from extender.informers import consistency_check, event_handlers, unscheduled_feed, warmup
from extender.informers.configuration import plugin_configuration, plugin_reload
from extender.overlap import controller as overlap
from extender.preemption import assembly as preemption
from extender.requeue import requeue, unschedulable_pods
from extender.scoring import assembly
from extender.settings import SchedulerSettings, Settings
from extender.state import cluster_state, ledger
from extender.verbs import bind, request_codec, verbs
from kube.client import access as accesses
from kube.client import client, token_renewal, transport
from kube.controllers import recorder
from kube.informers import barrier, informer_set, reflector
from process.configuration import switches
from process.http import health, running_process, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

SWITCH = "extender"
"""Key among the live switches."""

_WRITERS = 32
# A page is cut up in one go, so it must not hold too much.
_PAGE = 250


@dataclasses.dataclass(frozen=True, slots=True)
class App(running_process.RunningProcess):
    """The running extender."""

    books: ledger.Ledger
    answers: verbs.Verbs
    feeds: event_handlers.Informers


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """The wired parts of the extender, not running yet."""

    members: informer_set.InformerSet
    watched: event_handlers.Informers
    books: ledger.Ledger
    answers: verbs.Verbs
    binding: bind.Binder
    fresh: consistency_check.ConsistencyCheck
    events: recorder.Recorder
    loading: warmup.Warmup
    beside: background.Background
    overlaps: overlap.OverlapController
    preempting: preemption.Preemption
    gangs: gangs.Gangs
    scoring: assembly.Scoring | None
    plugins: plugin_pages.Parts


def _beside(
    settings: Settings, on: bind.Parts, waits: unschedulable_pods.UnschedulablePods
) -> background.Background:
    assert on.figures is not None
    assert on.events is not None
    parts = requeue.Parts(on.client, on.clock, on.books, on.plugins, waits, on.pods)
    return background.Background(
        parts, settings.explanations, settings.nudges, on.switches, (on.events, on.figures)
    )


def _fresh(
    settings: Settings,
    members: informer_set.InformerSet,
    watched: event_handlers.Informers,
    api: client.Client,
    *,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> consistency_check.ConsistencyCheck:
    pods = members.of(watched.pods)
    own = barrier.Marker(settings.namespace, settings.instance, names.ANNOTATION_BARRIER)
    return consistency_check.ConsistencyCheck(
        [barrier.Barrier(api, pods, own, "koord-extender")],
        [one for one in members.members if one is not pods],
        clock,
        settings.freshness,
        figures,
    )


def _scheduler(settings: Settings) -> SchedulerSettings:
    """Return what is known of the scheduler, with the address at which it calls us."""
    scheme = "https" if settings.server.tls is not None else "http"
    url = settings.scheduler.extender_url or f"{scheme}://127.0.0.1:{settings.server.port}"
    return settings.scheduler.model_copy(update={"extender_url": url})


def _switches(settings: Settings) -> switches.Switches:
    mode = switches.Mode.OBSERVE if settings.observe else switches.Mode.ENFORCE
    return switches.Switches(SWITCH, mode)


def _informers(
    settings: Settings, api: client.Client, clock: clocks.Clock
) -> informer_set.InformerSet:
    trust = settings.freshness
    return informer_set.InformerSet(
        api,
        clock,
        pace=reflector.Pace(silence_seconds=trust.silence_seconds, page=_PAGE),
        stale_seconds=trust.stale_seconds,
    )


def _answers(
    deciding: plug_ins.Deciding,
    reader: request_codec.Reader,
    live: switches.Switches,
    heard: tuple[refusal_events.Notices, unschedulable_pods.UnschedulablePods],
    scoring: assembly.Scoring | None,
    preempting: preemption.Preemption,
) -> verbs.Verbs:
    notices, waits = heard
    return verbs.Verbs(
        deciding.cluster,
        deciding.line,
        reader.projector,
        live,
        explanations.Explanations(),
        notices.tell,
        reader,
        waits=waits,
        decider=scoring.decider if scoring is not None else None,
        preemptions=preempting.preemptions,
    )


def _follow_arguments(
    settings: Settings,
    watched: event_handlers.Informers,
    events: recorder.Recorder,
    deciding: plug_ins.Deciding,
    figures: metrics.Registry,
) -> plugin_configuration.PluginConfiguration:
    configuration = plugin_configuration.PluginConfiguration(
        settings.plugins, events, figures, deciding.reload.want
    )
    watched.arguments.listen(lambda change: configuration.take(change.new))
    return configuration


def _overlaps(
    settings: Settings,
    parts: overlap.Parts,
    watched: event_handlers.Informers,
    figures: metrics.Registry,
) -> overlap.OverlapController:
    overlaps = overlap.OverlapController(parts, settings.overlap, figures)
    overlaps.follow(watched.pods, watched.reserved)
    return overlaps


def _scoring(
    settings: Settings,
    api: client.Client,
    clock: clocks.Clock,
    figures: metrics.Registry,
    cluster: cluster_state.ClusterState,
) -> assembly.Scoring | None:
    stale = settings.freshness.stale_seconds
    scoring = assembly.build(_scheduler(settings), api, clock, figures, stale_seconds=stale)
    if scoring is not None:
        cluster.followers.append(scoring.state.follow)
    return scoring


def _complete(
    reload: plugin_reload.PluginReload, feed: unscheduled_feed.UnscheduledFeed
) -> Callable[[], bool]:
    """Return what lets plug-ins that were prepared answer calls; pods that wait come before."""

    def complete() -> bool:
        told = feed.catch_up(reload.kinds())
        if told:
            reload.finish()
        return told

    # Before the first pod is listed.
    feed.catch_up(reload.kinds())
    return complete


def _warmup(
    deciding: plug_ins.Deciding,
    books: ledger.Ledger,
    members: informer_set.InformerSet,
    watched: event_handlers.Informers,
    clock: clocks.Clock,
) -> warmup.Warmup:
    feed = unscheduled_feed.UnscheduledFeed(books, watched.pods)
    slices = warmup.Warmup(deciding.cluster, members, clock, _complete(deciding.reload, feed))
    slices.follow(watched)
    deciding.reload.followers.append(slices.wake)
    return slices


def _gangs(
    settings: Settings,
    binds: bind.Parts,
    binding: bind.Binder,
    fresh: consistency_check.ConsistencyCheck,
    sampling: renominations.Sampling,
    preempting: preemption.Preemption,
) -> gangs.Gangs:
    planning = gangs.Gangs(
        settings.gangs, binds.client, binds.clock, binds.plugins, binds.books, preempting
    )
    assert binds.figures is not None
    assert binds.events is not None
    planning.connect(
        binds.pods,
        binds.switches,
        doubt=fresh.background_doubt,
        wake=binding.waiting.wake,
        sampling=sampling,
        told=(binds.figures, binds.events),
    )
    if settings.gangs.backlog_members:
        planning.announce(settings.namespace, settings.instance)
    return planning


def _sampling(
    scoring: assembly.Scoring | None,
    cluster: cluster_state.ClusterState,
    waits: unschedulable_pods.UnschedulablePods,
) -> renominations.Sampling:
    """Say at how many nodes kube-scheduler looks, and which pods it could not place."""
    return renominations.Sampling(
        lambda: assembly.looks_at(scoring, cluster.node_count()), waits.get
    )


def _wired(
    settings: Settings,
    api: client.Client,
    clock: clocks.Clock,
    figures: metrics.Registry,
    known: registry.Plugins,
) -> _Parts:
    """Put the parts together; nothing runs and nothing is asked of the API server yet."""
    deciding = plug_ins.build(settings, figures, known)
    line, cluster = deciding.line, deciding.cluster
    scoring = _scoring(settings, api, clock, figures, cluster)
    projector, books = deciding.projector(scoring), ledger.Ledger(cluster)
    live, members = _switches(settings), _informers(settings, api, clock)
    watched = event_handlers.add(members, projector, deciding.reader, settings.namespace)
    event_handlers.connect(watched, books, live, clock)
    slices = _warmup(deciding, books, members, watched, clock)
    events = recorder.Recorder(api, "koord-extender", clock, instance=settings.instance)
    nudges, retried = settings.nudges, requeue.retries(figures)
    waits = unschedulable_pods.UnschedulablePods(nudges.most, retried, wakes=nudges.enabled)
    notices = refusal_events.Notices(figures, events)
    preempting = preemption.Preemption(settings.preemption, api, clock, line, books)
    asked = request_codec.Reader(projector, watched.pods)
    answers = _answers(deciding, asked, live, (notices, waits), scoring, preempting)
    fresh = _fresh(settings, members, watched, api, clock=clock, figures=figures)
    preempting.connect(watched, waits, live, doubt=fresh.doubt, events=events, registry=figures)
    resolver = overlap.Parts(api, clock, cluster, deciding.codecs, projector, events, live)
    binds = bind.Parts(
        books, line, api, watched.pods, projector, clock, live, events, figures, watched.reserved
    )
    binding = bind.Binder(binds, settings.bind)
    sampling = _sampling(scoring, cluster, waits)
    planning = _gangs(settings, binds, binding, fresh, sampling, preempting)
    answers.offers.take = planning.offered
    arguments = _follow_arguments(settings, watched, events, deciding, figures)
    return _Parts(
        members=members,
        watched=watched,
        books=books,
        answers=answers,
        binding=binding,
        fresh=fresh,
        preempting=preempting,
        gangs=planning,
        events=events,
        loading=slices,
        beside=_beside(settings, binds, waits),
        overlaps=_overlaps(settings, resolver, watched, figures),
        scoring=scoring,
        plugins=plugin_pages.Parts(answers, arguments, deciding.reload, notices.recent, clock),
    )


def _check(checks: health.Health, settings: Settings, parts: _Parts) -> None:
    checks.add("caches", parts.members.health)
    checks.warn("definitions", parts.members.missing)
    checks.warn("arguments", parts.plugins.configuration.warning)
    checks.add("picture", parts.loading.health)
    checks.warn("explanations", parts.beside.health)
    checks.warn("preemption", parts.preempting.warning)
    checks.warn("decide", assembly.warning(_scheduler(settings), parts.scoring))


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
    plugin_pages.routes(page, parts.plugins)
    node_dump.routes(page, parts.books)
    async with server.running_site(
        page, settings.health, clock=clock, name="health", registry=figures
    ) as site:
        yield site


def _start(parts: _Parts, supervisor: supervise.Supervisor) -> None:
    parts.members.start(supervisor)
    if parts.scoring is not None:
        parts.scoring.start(supervisor)
    parts.events.start(supervisor)
    supervisor.start("load", parts.loading.run)
    supervisor.start("sweep", parts.binding.outcomes.sweep)
    supervisor.start("captures", parts.binding.captures.sweep)
    parts.beside.start(supervisor, parts.loading.loaded)
    parts.overlaps.start(supervisor)
    parts.preempting.start(supervisor)
    parts.gangs.start(supervisor)


@contextlib.asynccontextmanager
async def running(
    settings: Settings,
    *,
    access: accesses.Access,
    clock: clocks.Clock,
    plugins: registry.Plugins = registry.PLUGINS,
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
        parts = _wired(settings, api, clock, figures, plugins)
        _check(checks, settings, parts)
        routes = handlers.Handlers(
            parts.answers, parts.binding, parts.fresh, checks, clock, figures
        ).application(settings.server.max_body_bytes)
        _start(parts, supervisor)
        _renew_token(settings, api, clock, checks, supervisor)
        async with (
            _health_site(settings, parts, checks, figures, clock) as health_site,
            server.running_site(
                routes, settings.server, clock=clock, checks=checks, registry=figures
            ) as site,
        ):
            urls, told = (site.url, health_site.url), (checks, figures)
            with parts.binding.waiting.open():
                yield App(*urls, *told, supervisor, parts.books, parts.answers, parts.watched)
