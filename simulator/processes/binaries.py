"""A real control plane out of binaries: etcd, kube-apiserver, controllers and schedulers.

Everything listens on loopback with ports of its own, keeps its state in one folder, and ends
with the process that started it.
"""

import contextlib
import dataclasses
import json
import pathlib
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp

from process.configuration import explained_error
from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children, command_lines, credentials

ADMIN = "admin"
SCHEDULER = "system:kube-scheduler"
CONTROLLERS = "system:kube-controller-manager"
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=2)

SYSTEM_USERS = (
    credentials.User(ADMIN, ("system:masters",)),
    credentials.User(SCHEDULER),
    credentials.User(CONTROLLERS),
)


class BinariesError(explained_error.ExplainedError):
    """The folder or the arguments cannot make a control plane; says what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a caller may change about the control plane."""

    users: Sequence[credentials.User] = ()
    node_lifecycle: bool = False
    """Taint nodes that do not heartbeat; off when nodes are only API objects."""
    audit: bool = False
    """Write down who called what, in `Plane.audit_log`."""
    service_routing: bool = False
    """Call webhooks that are named by Service at the Service's own endpoints."""
    apiserver_flags: Sequence[str] = ()
    controllers_flags: Sequence[str] = ()
    scheduler_flags: Sequence[str] = ()
    with_controllers: bool = True
    """Run the controllers; without them only the clients write."""


class Plane:
    """A running control plane."""

    def __init__(
        self, folder: pathlib.Path, workdir: pathlib.Path, options: Options, clock: clocks.Clock
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._ports = dict(
            zip(command_lines.PORTS, ports.take(len(command_lines.PORTS)), strict=True)
        )
        self._layout = command_lines.Layout(workdir, self._ports)
        self._switches = command_lines.Switches(
            options.node_lifecycle,
            options.audit,
            options.service_routing,
            options.apiserver_flags,
            options.controllers_flags,
        )
        self._with_controllers = options.with_controllers
        self._scheduler_flags = tuple(options.scheduler_flags)
        self._programs: dict[str, command_lines.Program] = {}
        self._children: dict[str, children.Child] = {}
        self._users = (*SYSTEM_USERS, *options.users)
        self.workdir = workdir
        self.tokens: Mapping[str, str] = {
            user.name: secrets.token_urlsafe(24) for user in self._users
        }

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._layout.url("kube-apiserver")

    @property
    def ca(self) -> bytes:
        """The certificates to trust, PEM."""
        return (self._layout.certificates / "apiserver.crt").read_bytes()

    @property
    def token(self) -> str:
        """The token of an administrator."""
        return self.tokens[ADMIN]

    @property
    def etcd_url(self) -> str:
        """Where etcd serves clients."""
        return self._layout.url("etcd", "http")

    @property
    def audit_log(self) -> pathlib.Path:
        """The calls that the API server wrote down, where `Options.audit` asked for it."""
        return self._layout.audit_log

    def pids(self) -> dict[str, int]:
        """The process ids by program."""
        return {name: child.pid for name, child in self._children.items() if child.alive}

    def url(self, name: str) -> str:
        """Where a program serves its health and metrics."""
        return self._layout.url(name)

    def log(self, name: str) -> str:
        """The end of one program's log."""
        return self._child(name).tail()

    def write_kubeconfig(
        self, path: pathlib.Path, user: str = ADMIN, *, token: str = ""
    ) -> pathlib.Path:
        """Write a kubeconfig for one of the users or for a token, readable by its owner only."""
        path.touch(mode=0o600)
        config = credentials.kubeconfig(self.server, self.ca, token or self.tokens[user])
        path.write_text(json.dumps(config, indent=1))
        return path

    async def start_scheduler(
        self,
        config: Mapping[str, Any],
        *,
        name: str = "kube-scheduler",
        token: str = "",
        binary: str = "kube-scheduler",
    ) -> None:
        """Start a scheduler with this configuration, or restart it with another one.

        Several run side by side under names of their own; a token replaces the built-in account.
        A binary elsewhere is named by its whole path.
        """
        await self.stop_scheduler(name)
        if name not in self._ports:
            (self._ports[name],) = ports.take(1)
        login = self.workdir / f"{name}-kubeconfig.json"
        self.write_kubeconfig(login, SCHEDULER, token=token)
        connection = {**config.get("clientConnection", {}), "kubeconfig": str(login)}
        path = self.workdir / f"{name}.json"
        path.write_text(json.dumps({**config, "clientConnection": connection}, indent=1))
        made = command_lines.scheduler(self._layout, name, path, binary)
        arguments = (*made.arguments, *self._scheduler_flags)
        await self._run(dataclasses.replace(made, arguments=arguments))

    async def stop_scheduler(self, name: str = "kube-scheduler") -> None:
        """Stop a scheduler if it runs."""
        child = self._children.pop(name, None)
        if child is not None:
            await child.stop()

    async def kill(self, name: str) -> None:
        """End a program at once, as a power cut would."""
        await self._child(name).kill()

    def pause(self, name: str) -> None:
        """Let a program hang: it keeps its connections and answers nothing."""
        self._child(name).pause()

    def resume(self, name: str) -> None:
        """Let a paused program go on."""
        self._child(name).resume()

    async def restart(self, name: str) -> None:
        """Start a program again at the same address, killing it first where it runs."""
        await self.kill(name)
        await self._run(self._programs[name])

    async def stop_apiserver(self) -> None:
        """Kill the API server."""
        await self.kill("kube-apiserver")

    async def restart_apiserver(self) -> None:
        """Start the API server again at the same address, killing it first where it runs."""
        await self.restart("kube-apiserver")

    async def start(self) -> None:
        """Start everything but the schedulers, each when what it needs is ready."""
        layout = self._layout
        layout.certificates.mkdir()
        credentials.write_signing_key(layout.signing_key, layout.verifying_key)
        credentials.write_tokens(layout.tokens, self._users, self.tokens)
        layout.audit_policy.write_text(json.dumps(command_lines.AUDIT_POLICY))
        await self._run(command_lines.etcd(layout))
        await self._run(command_lines.apiserver(layout, self._switches))
        if self._with_controllers:
            await self._start_controllers()

    async def _start_controllers(self) -> None:
        layout = self._layout
        login = self.write_kubeconfig(self.workdir / "controllers-kubeconfig.json", CONTROLLERS)
        child = await self._run(command_lines.controllers(layout, self._switches, login))
        # A pod is refused until its namespace has a service account.
        account = (f"{self.server}/api/v1/namespaces/default/serviceaccounts/default",)
        await children.ready(child, lambda: self._says_ok(account), clock=self._clock)

    async def stop(self) -> None:
        """Stop everything, what was started last first."""
        for child in reversed(self._children.values()):
            await child.stop()

    def _child(self, name: str) -> children.Child:
        if name not in self._children:
            raise BinariesError(f"{name} never ran here; there are {', '.join(self._children)}")
        return self._children[name]

    async def _run(self, program: command_lines.Program) -> children.Child:
        command = (str(self._folder / program.binary), *program.arguments)
        child = await children.start(program.name, command, self.workdir)
        self._programs[program.name] = program
        self._children[program.name] = child
        await children.ready(child, lambda: self._says_ok(program.ready), clock=self._clock)
        return child

    async def _says_ok(self, urls: Sequence[str]) -> bool:
        headers = {"Authorization": f"Bearer {self.token}"} if urls[0].startswith("https") else {}
        for url in urls:
            status = await _status(url, headers)
            if status != 404:
                return status == 200
        return False


@contextlib.asynccontextmanager
async def running(
    folder: pathlib.Path,
    workdir: pathlib.Path,
    *,
    options: Options | None = None,
    clock: clocks.Clock | None = None,
) -> AsyncIterator[Plane]:
    """Run the binaries of `folder` with their state and logs in the empty folder `workdir`."""
    _check_folders(folder, workdir)
    plane = Plane(folder, workdir, options or Options(), clock or clocks.SystemClock())
    try:
        await plane.start()
        yield plane
    finally:
        await plane.stop()


def _check_folders(folder: pathlib.Path, workdir: pathlib.Path) -> None:
    missing = [name for name in command_lines.NAMES if not (folder / name).is_file()]
    if missing:
        raise BinariesError(
            f"{folder} lacks {', '.join(missing)}; "
            f"name a folder that holds {', '.join(command_lines.NAMES)}"
        )
    workdir.mkdir(parents=True, exist_ok=True)
    if any(workdir.iterdir()):
        raise BinariesError(f"{workdir} is not empty; remove it or name another folder")


async def _status(url: str, headers: Mapping[str, str]) -> int:
    """The answer to a readiness probe; 0 where there is none."""
    # Only for readiness on loopback, where certificates are still being written.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=context)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=PROBE_TIMEOUT) as session,
            session.get(url, headers=headers) as response,
        ):
            return response.status
    except (aiohttp.ClientError, TimeoutError):
        return 0
