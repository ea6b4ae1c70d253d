"""Composition root of the webhook."""

import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence

from aiohttp import web

from api import names
from api.kubernetes import core
from api.kubernetes.webhooks import webhook_configuration
from kube.client import access as accesses
from kube.client import client, transport
from kube.informers import informer_set, reflector, store
from process.configuration import features, switches
from process.configuration import settings as process_settings
from process.http import fast_path, health, running_process, server
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from webhook import answered, conversion, handlers, registry, review
from webhook import settings as webhook_settings
from webhook.informers import lease_holder, lookups, pictures
from webhook.quota import quota_charges
from webhook.registration import configurations, installer

SWITCH = "webhook"
"""Key among the live switches."""
QUOTA_GATES = "quota-gates"
"""Key among the live switches of those who open the gates of quotas."""
GANGS = "gangs"
"""Key among the live switches: whether members of gangs get a gate."""
_PATIENCE = 0.8
"""Share of the time that the API server waits for a review, for charging a quota."""


@contextlib.asynccontextmanager
async def running(
    settings: webhook_settings.Settings, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[running_process.RunningProcess]:
    """Start the webhook; yields when it listens, drains and stops on exit."""
    gates = features.Gates(registry.GATES, settings.feature_gates)
    on = frozenset(gate.name for gate, enabled in gates.describe() if enabled)
    figures, checks = metrics.Registry(interpreter=True), health.Health()
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(_client(access, settings.reads, clock, figures))
        supervisor = await stack.enter_async_context(supervise.Supervisor("webhook"))
        watched, helpful = (informer_set.InformerSet(kube, clock) for _ in range(2))
        quotas, gangs = switches.Switches(QUOTA_GATES), switches.Switches(GANGS)
        opened = _opened(settings, helpful, clock, quotas, gangs)
        seen = pictures.Pictures(watched, _fixed(settings, on), helpful=helpful, opened=opened)
        _check_caches(checks, watched, helpful)
        live = switches.Switches(SWITCH, switches.Mode(settings.mode))
        kept = answered.Answers(clock)
        keeper = installer.Installer(
            kube, clock, settings.namespace, settings.certificates, settings.registration
        )
        keeper.answering = lambda: webhook_configuration.Answering(live.mode, tuple(sorted(on)))
        _follow(helpful, settings.namespace, (live, quotas, gangs), keeper)
        watched.start(supervisor)
        helpful.start(supervisor)
        checks.warn("registration", lambda: keeper.problem)
        probes = kept.routes(server.health_routes(web.Application(), checks, figures))
        health_site = await stack.enter_async_context(
            server.running_site(probes, settings.health, name="health", registry=figures)
        )
        reads = _lookups(settings, kube, clock, supervisor, figures)
        lenient = settings.registration.failure_policy == "Ignore"
        reviews = handlers.Admission(
            seen.present, figures, live, lenient=lenient, reads=reads, kept=kept
        )
        await keeper.first()
        site = await stack.enter_async_context(
            server.running_site(
                _application(settings, reviews, figures),
                _with_tls(settings),
                clock=clock,
                name="server",
                checks=checks,
                registry=figures,
            )
        )
        supervisor.start("install", lambda: keeper.run(site.url))
        yield running_process.RunningProcess(site.url, health_site.url, checks, figures, supervisor)


def _opened(
    settings: webhook_settings.Settings,
    helpful: informer_set.InformerSet,
    clock: clocks.Clock,
    quotas: switches.Switches,
    gangs: switches.Switches,
) -> Callable[[], pictures.Opened]:
    """Return how to tell which gates are opened at present, and so may be added."""
    opener, backlog = lease_holder.LeaseHolder(clock), lease_holder.LeaseHolder(clock)
    if settings.quota.admission == "gate":
        opener.watch(helpful, settings.namespace, settings.quota.opener)
    adds = settings.gang.admission == "gate"
    if adds:
        backlog.watch(helpful, settings.namespace, names.LEASE_GANG_BACKLOG)
    return lambda: pictures.Opened(
        quotas.enforces and opener.is_there, adds and gangs.enforces, backlog.is_there
    )


def _check_caches(
    checks: health.Health, watched: informer_set.InformerSet, helpful: informer_set.InformerSet
) -> None:
    checks.add("caches", watched.unlisted)
    # Old profiles are better than none: not to answer would let every pod pass unchanged.
    checks.warn("stale-caches", watched.stale)
    checks.warn("definitions", watched.missing)
    checks.warn("helpful-caches", helpful.health)


def _client(
    access: accesses.Access,
    reads: webhook_settings.ReadSettings,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> client.Client:
    return client.Client(
        access, clock=clock, user_agent="koord-webhook", registry=figures, limits=limits(reads)
    )


def limits(reads: webhook_settings.ReadSettings) -> transport.Limits:
    """Return how the client of the API server reads."""
    return transport.Limits(
        request_seconds=reads.seconds, in_flight=reads.in_flight, attempts=reads.attempts
    )


def _application(
    settings: webhook_settings.Settings, reviews: handlers.Admission, figures: metrics.Registry
) -> web.Application:
    application = web.Application(client_max_size=settings.server.max_body_bytes)
    application.add_routes(reviews.routes())
    application[fast_path.ROUTES] = reviews.short_way()
    application.add_routes(conversion.Conversion(figures).routes())
    return application


def _lookups(
    settings: webhook_settings.Settings,
    kube: client.Client,
    clock: clocks.Clock,
    supervisor: supervise.Supervisor,
    figures: metrics.Registry,
) -> lookups.Lookups:
    """Return what reads, and charges quotas, for reviews."""
    # A late word is no word: the API server lets a pod pass whose review takes too long.
    waits = configurations.share(settings.registration.timeout_seconds, mutating=False)
    charges = quota_charges.Charges(
        kube, clock, supervisor.spawn, figures, seconds=_PATIENCE * waits
    )
    return lookups.Lookups(kube, charges.charge)


def _fixed(settings: webhook_settings.Settings, on: frozenset[str]) -> review.Picture:
    """Return what of the picture does not change while the process runs."""
    rng, binding = random.Random(), settings.binding
    return review.Picture(
        (),
        {},
        {},
        draw=lambda _: rng.randrange(100),
        gates=on,
        namespace=settings.namespace,
        names_required=settings.settings_names_required,
        charges_quotas=settings.quota.admission == "deny",
        binding=review.Binding(
            binding.users,
            binding.namespaces,
            binding.excluded_namespaces,
            binding.bypass_labels,
            binding.bypass_annotations,
        ),
        writers=review.Writers(
            frozenset(settings.protection.accounts), frozenset(settings.protection.groups)
        ),
    )


def _follow(
    watched: informer_set.InformerSet,
    namespace: str,
    live: Sequence[switches.Switches],
    keeper: installer.Installer,
) -> None:
    """Follow what makes it better at once, and must not keep it from serving when unreadable."""
    keeper.watch(watched)
    projection = reflector.config_map(names.CONFIG_MAP_SWITCHES, namespace)

    def changed(change: store.Change[core.ConfigMap]) -> None:
        for one in live:
            one.take(change.new.data if change.new else None)
        keeper.wake()

    watched.add(projection).listen(changed)


def _with_tls(settings: webhook_settings.Settings) -> process_settings.ServerSettings:
    if settings.server.tls is not None:
        return settings.server
    folder = settings.certificates.folder
    tls = process_settings.TlsSettings(
        cert_file=folder / installer.CERTIFICATE_FILE,
        key_file=folder / installer.KEY_FILE,
        reload_seconds=min(10.0, settings.certificates.look_seconds),
    )
    return settings.server.model_copy(update={"tls": tls})
