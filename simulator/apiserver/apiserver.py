"""The embedded API server: real HTTPS, or plain HTTP, in front of the store.

Everybody who is known may do everything, unless an authorizer says otherwise; RBAC objects are
stored and not evaluated. Rules in CEL are stored and not evaluated.
"""

import contextlib
import secrets
import ssl
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from api import resources
from certs import issue
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.apiserver import handlers, services
from simulator.apiserver.admission import webhooks
from simulator.apiserver.http import requests
from simulator.apiserver.registry import crds, defaults, kinds
from simulator.apiserver.storage import lifecycle, object_store
from simulator.controllers import disruption_budgets, garbage_collector, service_accounts

TICK_SECONDS = 1.0
EVENT_SECONDS = 3600.0
"""How long events are kept."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Options:
    """How an API server is started."""

    host: str = "127.0.0.1"
    port: int = 0
    tokens: Mapping[str, requests.User] | None = None
    """Who is let in; by default one administrator with a fresh token."""
    authorizer: requests.Authorizer = field(default_factory=requests.AlwaysAllow)
    """What they may do."""
    faults: requests.Faults = field(default_factory=requests.NoFaults)
    services: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """Where the services that webhooks name listen, by namespace and name. Read at each call."""
    authority: issue.Pair | None = None
    """Who signs the serving certificate; by default a fresh authority."""
    encrypted: bool = True
    """Serve HTTPS. Without it tests spare the handshakes of each watch of each process."""


@dataclass(frozen=True, slots=True)
class State:
    """What outlives a server: the store and what is served of it."""

    objects: object_store.Objects
    registry: kinds.Registry
    budgets: disruption_budgets.Budgets


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running API server."""

    url: str
    ca: bytes
    token: str
    state: State

    @property
    def objects(self) -> object_store.Objects:
        """The store behind it, for what runs in the same process."""
        return self.state.objects


def new_state(
    clock: clocks.Clock, *, history: int = 20_000, with_controllers: bool = True
) -> State:
    """Return the state every cluster starts with; without controllers nothing follows a write."""
    store = object_store.Objects(
        now=clock.now,
        uid=lambda: str(uuid.uuid4()),
        suffix=lambda: "".join(secrets.choice(_SUFFIX) for _ in range(5)),
        history=history,
    )
    registry = kinds.Registry(kinds.BUILT_IN)
    crds.Definitions(store, registry)
    budgets = disruption_budgets.Budgets(store)
    if with_controllers:
        service_accounts.Accounts(store)
        budgets.start()
        garbage_collector.Garbage(store)
    state = State(store, registry, budgets)
    defaults.seeded(store)
    return state


@contextlib.asynccontextmanager
async def running(
    *,
    clock: clocks.Clock,
    state: State | None = None,
    options: Options | None = None,
) -> AsyncIterator[ApiServer]:
    """Serve a state; one that is kept survives the restart of its server."""
    chosen = options or Options()
    state = state or new_state(clock)
    tokens = chosen.tokens
    if tokens is None:
        administrator = requests.User("admin", ("system:masters", "system:authenticated"))
        tokens = {secrets.token_urlsafe(24): administrator}
    # Clients check certificates against real time, whatever clock rules in here.
    real = clocks.SystemClock().now()
    authority = chosen.authority or issue.authority("koord-simulator", real)
    async with contextlib.AsyncExitStack() as stack:
        parts = services.Services(
            store=state.objects,
            registry=state.registry,
            clock=clock,
            webhooks=webhooks.Webhooks(state.objects, lambda: str(uuid.uuid4()), chosen.services),
            budgets=state.budgets,
            faults=chosen.faults,
            tokens=tokens,
            authorizer=chosen.authorizer,
        )
        await parts.webhooks.open()
        stack.push_async_callback(parts.webhooks.close)
        supervisor = await stack.enter_async_context(supervise.Supervisor("apiserver"))
        supervisor.start("ticker", lambda: _ticking(parts))
        context = _context(authority, chosen.host, real) if chosen.encrypted else None
        parts.address = await stack.enter_async_context(_listening(parts, chosen, context))
        url = f"{'https' if chosen.encrypted else 'http'}://{parts.address}"
        yield ApiServer(url, authority.certificate, next(iter(tokens), ""), state)


@contextlib.asynccontextmanager
async def _listening(
    parts: services.Services, options: Options, context: ssl.SSLContext | None
) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handlers.handle(parts, request)

    app = web.Application(client_max_size=handlers.MAX_BODY_BYTES)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=3600.0,
        shutdown_timeout=1.0,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        yield f"{options.host}:{port}"
    finally:
        parts.closing = True
        parts.wake()
        await runner.cleanup()


async def _ticking(parts: services.Services) -> None:
    """Let watches look at the clock, and forget old events."""
    while True:
        await parts.clock.sleep(TICK_SECONDS)
        parts.wake()
        limit = lifecycle.timestamp(parts.clock.now() - EVENT_SECONDS)
        for event in parts.store.list(resources.CORE_EVENTS).items:
            if event["metadata"]["creationTimestamp"] < limit:
                meta = event["metadata"]
                parts.store.delete(resources.CORE_EVENTS, meta["name"], meta["namespace"])


def _context(authority: issue.Pair, host: str, now: float) -> ssl.SSLContext:
    subject = issue.Subject("kube-apiserver", dns=("localhost", "kubernetes"), ips=(host,))
    pair = issue.leaf(authority, subject, now)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads certificates from files only.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pair.pem")
        file.touch(mode=0o600)
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    return context
