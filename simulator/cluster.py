"""The embedded control plane put together: API server, scheduler, kubelets and workloads."""

import contextlib
import dataclasses
import errno
import json
import pathlib
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from api.kubernetes import scheduler_config
from certs import issue
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import faults, link
from simulator.apiserver import apiserver
from simulator.apiserver.http import requests
from simulator.apiserver.storage import object_store
from simulator.controllers import workloads
from simulator.kubelet import kubelet
from simulator.processes import credentials
from simulator.scheduler import scheduler

ADMIN = requests.User("admin", ("system:masters", "system:authenticated"))


class ClusterError(explained_error.ExplainedError):
    """The embedded control plane cannot start; says what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How an embedded control plane is put together."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port of the API server; 0 takes any free one."""
    kubelet_port: int = 0
    """Port where all kubelets serve their pods; 0 takes any free one."""
    users: Sequence[str] = ()
    """Further users, each with a token of its own."""
    machines: Sequence[kubelet.Machine] = ()
    """Nodes that exist from the start."""
    hooks: kubelet.Hooks = dataclasses.field(default_factory=kubelet.Hooks)
    services: Mapping[tuple[str, str], tuple[str, int]] = dataclasses.field(default_factory=dict)
    """Where the services that webhooks name listen; read at each call."""
    with_kubelets: bool = True
    with_workloads: bool = True
    encrypted: bool = True
    """The API server serves HTTPS, as everywhere but in tests of many connections."""


class Plane:
    """A running embedded control plane."""

    def __init__(self, options: Options, clock: clocks.Clock) -> None:
        self._options = options
        self._clock = clock
        self._state = apiserver.new_state(clock)
        # Clients judge certificates by the time of the machine, whatever clock runs in here.
        self._authority = issue.authority("koord-simulator", clocks.SystemClock().now())
        self._serving = contextlib.AsyncExitStack()
        self._scheduling = contextlib.AsyncExitStack()
        self._port = options.port
        self._kubelets: kubelet.Kubelets | None = None
        self.faults = faults.Faults(clock)
        self.scheduler: scheduler.Scheduler | None = None
        self.server = ""
        names = (ADMIN.name, *options.users)
        self.tokens: Mapping[str, str] = {name: secrets.token_urlsafe(24) for name in names}

    @property
    def ca(self) -> bytes:
        """The certificates to trust, PEM."""
        return self._authority.certificate

    @property
    def token(self) -> str:
        """The token of an administrator."""
        return self.tokens[ADMIN.name]

    @property
    def objects(self) -> object_store.Objects:
        """The store behind the API server."""
        return self._state.objects

    @property
    def kubelets(self) -> kubelet.Kubelets:
        """The simulated nodes."""
        if self._kubelets is None:
            raise ClusterError("this control plane has no kubelets; set with_kubelets")
        return self._kubelets

    def write_kubeconfig(self, path: pathlib.Path, user: str = ADMIN.name) -> pathlib.Path:
        """Write a kubeconfig for one of the users, readable by its owner only."""
        path.touch(mode=0o600)
        config = credentials.kubeconfig(self.server, self.ca, self.tokens[user])
        path.write_text(json.dumps(config, indent=1))
        return path

    async def start_scheduler(self, options: scheduler_config.Options) -> None:
        """Start the scheduler, or restart it with another configuration."""
        await self.stop_scheduler()
        self.scheduler = await self._scheduling.enter_async_context(
            scheduler.running(self.objects, options, self._clock)
        )

    async def stop_scheduler(self) -> None:
        """Stop the scheduler if it runs."""
        self.scheduler = None
        await self._scheduling.aclose()

    async def start_apiserver(self) -> None:
        """Serve the state, at the same address as before."""
        administrators = {self.token: ADMIN}
        others = {
            self.tokens[name]: requests.User(name, ("system:authenticated",))
            for name in self._options.users
        }
        options = apiserver.Options(
            host=self._options.host,
            port=self._port,
            tokens={**administrators, **others},
            faults=self.faults,
            services=self._options.services,
            authority=self._authority,
            encrypted=self._options.encrypted,
        )
        started = await self._serving.enter_async_context(
            apiserver.running(clock=self._clock, state=self._state, options=options)
        )
        self.server = started.url
        self._port = int(started.url.rpartition(":")[2])

    async def stop_apiserver(self) -> None:
        """Stop serving; the state stays."""
        await self._serving.aclose()

    async def restart_apiserver(self) -> None:
        """Stop serving and serve again."""
        await self.stop_apiserver()
        await self.start_apiserver()

    def forget_history(self) -> None:
        """Make every watch that resumes from before now answer 410."""
        self.objects.compact()

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """Run the kubelets and the workload controllers."""
        async with contextlib.AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(supervise.Supervisor("cluster"))
            if self._options.with_workloads:
                client = await stack.enter_async_context(self._linked("koord-workloads"))
                supervisor.start("workloads", workloads.Workloads(client, self._clock).run)
            if self._options.with_kubelets:
                await self._start_kubelets(stack)
            yield

    async def _start_kubelets(self, stack: contextlib.AsyncExitStack) -> None:
        client = await stack.enter_async_context(self._linked("koord-kubelet"))
        options = kubelet.Options(
            host=self._options.host,
            port=self._options.kubelet_port,
            tokens=frozenset(self.tokens.values()),
        )
        with named(self._options.kubelet_port, "kubelet_port"):
            self._kubelets = await stack.enter_async_context(
                kubelet.running(client, options, self._options.hooks, self._clock)
            )
        for machine in self._options.machines:
            await self._kubelets.add(machine)

    def _linked(self, agent: str) -> contextlib.AbstractAsyncContextManager[link.Link]:
        return link.connected(self.server, self.ca, self.token, clock=self._clock, agent=agent)


@contextlib.asynccontextmanager
async def running(
    options: Options | None = None, *, clock: clocks.Clock | None = None
) -> AsyncIterator[Plane]:
    """Run an embedded control plane; its scheduler starts on demand, once extenders listen."""
    chosen = options or Options()
    plane = Plane(chosen, clock or clocks.SystemClock())
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(plane.stop_apiserver)
        with named(chosen.port, "port"):
            await plane.start_apiserver()
        await stack.enter_async_context(plane.life())
        stack.push_async_callback(plane.stop_scheduler)
        yield plane


@contextlib.contextmanager
def named(port: int, setting: str) -> Iterator[None]:
    """Say which port is taken and what to do about it."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ClusterError(
            f"{setting} {port} is in use; stop the program that has it,"
            f" or set {setting} to a free one (0 lets the system choose)"
        ) from error
