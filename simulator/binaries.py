"""A real control plane out of binaries: etcd, kube-apiserver, controllers and scheduler.

Everything listens on loopback with ports of its own, keeps its state in one folder, and ends
with the process that started it.
"""

import base64
import contextlib
import dataclasses
import json
import pathlib
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from process import clock as clocks
from process import explained
from simulator import children

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ADMIN = "admin"
PORTS = ("etcd", "peer", "apiserver", "controllers", "scheduler")
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=2)


class BinariesError(explained.ExplainedError):
    """The folder or the arguments cannot make a control plane; says what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Somebody who may log in with a token of its own."""

    name: str
    groups: tuple[str, ...] = ()


SYSTEM_USERS = (
    User(ADMIN, ("system:masters",)),
    User("system:kube-scheduler"),
    User("system:kube-controller-manager"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a caller may change about the control plane."""

    users: Sequence[User] = ()
    node_lifecycle: bool = False
    """Taint nodes that do not heartbeat; off when nodes are only API objects."""
    apiserver_flags: Sequence[str] = ()


class Plane:
    """A running control plane."""

    def __init__(
        self, folder: pathlib.Path, workdir: pathlib.Path, options: Options, clock: clocks.Clock
    ) -> None:
        self._folder = folder
        self._options = options
        self._clock = clock
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self._children: dict[str, children.Child] = {}
        self.workdir = workdir
        users = (*SYSTEM_USERS, *options.users)
        self.tokens: Mapping[str, str] = {user.name: secrets.token_urlsafe(24) for user in users}

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self._ports['apiserver']}"

    @property
    def ca(self) -> bytes:
        """The certificates to trust, PEM."""
        return self._certificate.read_bytes()

    @property
    def token(self) -> str:
        """The token of an administrator."""
        return self.tokens[ADMIN]

    @property
    def etcd_url(self) -> str:
        """Where etcd serves clients."""
        return f"http://127.0.0.1:{self._ports['etcd']}"

    @property
    def _certificate(self) -> pathlib.Path:
        return self.workdir / "certificates" / "apiserver.crt"

    def pids(self) -> dict[str, int]:
        """The process ids by program."""
        return {name: child.pid for name, child in self._children.items() if child.alive}

    def log(self, name: str) -> str:
        """The end of one program's log."""
        return self._children[name].tail()

    def write_kubeconfig(self, path: pathlib.Path, user: str = ADMIN) -> pathlib.Path:
        """Write a kubeconfig for one of the users, readable by its owner only."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(kubeconfig(self.server, self.ca, self.tokens[user]), indent=1))
        return path

    async def start_scheduler(self, config: Mapping[str, Any]) -> None:
        """Start kube-scheduler with this configuration, or restart it with another one."""
        await self.stop_scheduler()
        name = "kube-scheduler"
        connection = {
            **config.get("clientConnection", {}),
            "kubeconfig": str(self._login("system:kube-scheduler")),
        }
        path = self.workdir / "scheduler.json"
        path.write_text(json.dumps({**config, "clientConnection": connection}, indent=1))
        port = self._ports["scheduler"]
        child = await self._start(
            name,
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.workdir / 'scheduler-certificates'}",
        )
        await children.ready(child, lambda: self._says_ok(port, "/readyz"), clock=self._clock)

    async def stop_scheduler(self) -> None:
        """Stop kube-scheduler if it runs."""
        child = self._children.pop("kube-scheduler", None)
        if child is not None:
            await child.stop()

    async def stop_apiserver(self) -> None:
        """Kill the API server, as a power cut would."""
        await self._children["kube-apiserver"].kill()

    async def restart_apiserver(self) -> None:
        """Start the API server again at the same address, killing it first where it runs."""
        await self.stop_apiserver()
        await self._start_apiserver()

    async def start(self) -> None:
        """Start everything but the scheduler, each when what it needs is ready."""
        certificates = self.workdir / "certificates"
        certificates.mkdir()
        _write_signing_key(certificates)
        self._write_tokens(certificates / "tokens.csv")
        await self._start_etcd()
        await self._start_apiserver()
        await self._start_controllers()

    async def stop(self) -> None:
        """Stop everything, what was started last first."""
        for child in reversed(self._children.values()):
            await child.stop()

    async def _start_etcd(self) -> None:
        client = self.etcd_url
        peer = f"http://127.0.0.1:{self._ports['peer']}"
        child = await self._start(
            "etcd",
            f"--data-dir={self.workdir / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        await children.ready(child, lambda: _answers(f"{client}/health", {}), clock=self._clock)

    async def _start_apiserver(self) -> None:
        folder = self.workdir / "certificates"
        child = await self._start(
            "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['apiserver']}",
            f"--cert-dir={folder}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'signing.pub'}",
            f"--service-account-signing-key-file={folder / 'signing.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1500",
            *self._admission(),
            *self._options.apiserver_flags,
        )
        port = self._ports["apiserver"]
        await children.ready(child, lambda: self._says_ok(port, "/readyz"), clock=self._clock)

    def _admission(self) -> list[str]:
        # Without a node-lifecycle controller nobody would ever remove a new node's taint.
        plugins = [] if self._options.node_lifecycle else ["TaintNodesByCondition"]
        return [f"--disable-admission-plugins={','.join(plugins)}"] if plugins else []

    async def _start_controllers(self) -> None:
        folder = self.workdir / "certificates"
        off = ["node-ipam-controller"]
        if not self._options.node_lifecycle:
            off.append("node-lifecycle-controller")
        port = self._ports["controllers"]
        child = await self._start(
            "kube-controller-manager",
            f"--kubeconfig={self._login('system:kube-controller-manager')}",
            f"--service-account-private-key-file={folder / 'signing.key'}",
            f"--root-ca-file={self._certificate}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            f"--controllers=*,{','.join(f'-{name}' for name in off)}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.workdir / 'controller-certificates'}",
        )
        await children.ready(child, lambda: self._says_ok(port, "/healthz"), clock=self._clock)
        # A pod is refused until its namespace has a service account.
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        port = self._ports["apiserver"]
        await children.ready(child, lambda: self._says_ok(port, path), clock=self._clock)

    async def _start(self, name: str, *arguments: str) -> children.Child:
        child = await children.start(name, (str(self._folder / name), *arguments), self.workdir)
        self._children[name] = child
        return child

    async def _says_ok(self, port: int, path: str) -> bool:
        headers = {"Authorization": f"Bearer {self.token}"}
        return await _answers(f"https://127.0.0.1:{port}{path}", headers)

    def _login(self, user: str) -> pathlib.Path:
        return self.write_kubeconfig(self.workdir / f"{user.replace(':', '-')}.json", user)

    def _write_tokens(self, path: pathlib.Path) -> None:
        path.touch(mode=0o600)
        users = (*SYSTEM_USERS, *self._options.users)
        lines = [
            f'{self.tokens[user.name]},{user.name},{number},"{",".join(user.groups)}"'
            for number, user in enumerate(users)
        ]
        path.write_text("\n".join(lines) + "\n")


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
    missing = [name for name in NAMES if not (folder / name).is_file()]
    if missing:
        raise BinariesError(
            f"{folder} lacks {', '.join(missing)}; name a folder that holds {', '.join(NAMES)}"
        )
    workdir.mkdir(parents=True, exist_ok=True)
    if any(workdir.iterdir()):
        raise BinariesError(f"{workdir} is not empty; remove it or name another folder")


def kubeconfig(server: str, ca: bytes, token: str) -> dict[str, Any]:
    """Return a kubeconfig with one context called koord."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "koord", "cluster": cluster}],
        "users": [{"name": "koord", "user": {"token": token}}],
        "contexts": [{"name": "koord", "context": {"cluster": "koord", "user": "koord"}}],
        "current-context": "koord",
    }


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listened on a moment ago."""
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(socket.socket()) for _ in range(count)]
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [int(holder.getsockname()[1]) for holder in holders]


async def _answers(url: str, headers: Mapping[str, str]) -> bool:
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
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


def _write_signing_key(folder: pathlib.Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = folder / "signing.key"
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    (folder / "signing.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
