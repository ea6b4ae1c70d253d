"""Kubeconfigs of every kind, over TLS where that matters."""

import asyncio
import base64
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes_asyncio.config import kube_config

from api import resources
from certs import issue
from kube.client import access, client, connect, errors, login, transport
from process.runtime import clock as clocks

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a kubeconfig with two contexts; the second is broken on purpose."""

    def kubeconfig(server: str, user: dict[str, Any], **cluster: Any) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "good",
            "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [
                {"name": "good", "context": {"cluster": "c", "user": "u"}},
                {"name": "bad", "context": {"cluster": "elsewhere", "user": "u"}},
            ],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        return path

    return kubeconfig


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, Any]:
    """A credential plug-in that hands out another token each time."""
    script = tmp_path / "plugin.sh"
    script.write_text(
        f"""#!/bin/sh
echo x >> {tmp_path}/runs
n=$(wc -l < {tmp_path}/runs)
echo "{{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",\
\\"status\\":{{\\"token\\":\\"token-$n\\"}}}}"
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(script),
            "interactiveMode": "Never",
        }
    }


async def header(found: access.Access) -> str:
    assert found.tokens is not None
    return await found.tokens.authorization()


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
    ],
    ids=["token", "password"],
)
async def test_credentials(write: Write, user: dict[str, Any], expected: str) -> None:
    found = await connect.connect(write("http://127.0.0.1:1", user))
    assert found.server == "http://127.0.0.1:1"
    assert await header(found) == expected


async def test_plugin_is_run_again_after_a_refusal(
    server: Any, clock: clocks.ManualClock, write: Write, plugin: dict[str, Any]
) -> None:
    path = "/api/v1/nodes/n"
    server.on("GET", path, server.refuse(401), server.json({"metadata": {"name": "n"}}))
    entry = await login.from_kubeconfig(write(server.url, plugin))
    async with client.Client(entry, clock=clock) as api:
        await api.get(resources.NODES, "n")
        await api.get(resources.NODES, "n")
    tokens = [seen.headers["Authorization"] for seen in server.seen]
    assert tokens == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]


async def test_plugin_is_run_once_for_all_who_were_refused(
    write: Write, plugin: dict[str, Any]
) -> None:
    found = await login.from_kubeconfig(write("http://127.0.0.1:1", plugin))
    assert found.tokens is not None
    await asyncio.gather(*(found.tokens.renew() for _ in range(5)))
    assert await header(found) == "Bearer token-2"


async def test_changed_kubeconfig_is_read_again_after_a_refusal(write: Write) -> None:
    found = await login.from_kubeconfig(write("http://127.0.0.1:1", {"token": "old"}))
    write("http://127.0.0.1:1", {"token": "new"})
    assert await header(found) == "Bearer old"
    assert found.tokens is not None
    await found.tokens.renew()
    assert await header(found) == "Bearer new"


@pytest.mark.parametrize(
    ("change", "context", "message"),
    [
        ({}, "nowhere", "context nowhere"),
        ({}, "bad", "context bad"),
        ({"users": [{"name": "u", "user": {"exec": {"command": "/no/such"}}}]}, None, "exec"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, None, "a field is missing"),
        ({"clusters": [{"name": "c", "cluster": {"server": "ftp://x"}}]}, None, "no server"),
    ],
    ids=["context unknown", "cluster unknown", "plug-in without version", "no server", "scheme"],
)
async def test_unusable_kubeconfig_is_named(
    write: Write, change: dict[str, Any], context: str | None, message: str
) -> None:
    path = write("http://127.0.0.1:1", {"token": "abc"})
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(errors.AccessError, match=message):
        await login.from_kubeconfig(path, context)


async def test_nobody_is_logged_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(errors.AccessError, match="set KUBECONFIG"):
        await connect.connect()


async def test_an_empty_variable_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write: Write
) -> None:
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(errors.AccessError, match=r"there is no kubeconfig ~/\.kube/config; "):
        await connect.connect()
    (tmp_path / ".kube").mkdir()
    write("http://127.0.0.1:1", {"token": "abc"}).rename(tmp_path / ".kube" / "config")
    assert (await connect.connect()).server == "http://127.0.0.1:1"


async def test_file_that_is_no_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{: nonsense")
    with pytest.raises(errors.AccessError, match="kubectl config view"):
        await login.from_kubeconfig(path)


class Secured:
    """An HTTPS server that shows who called; its certificate names a host, not an address."""

    def __init__(self) -> None:
        now = clocks.SystemClock().now()
        self.authority = issue.authority("test", now)
        self.server = issue.leaf(
            self.authority, issue.Subject("apiserver", dns=("apiserver.test",)), now
        )
        self.caller = issue.leaf(self.authority, issue.Subject("me", dns=("me",), client=True), now)
        self.url = ""
        self.callers: list[Any] = []

    async def handle(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.callers.append(request.transport.get_extra_info("peercert"))
        return web.json_response({"metadata": {"name": "n"}})


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    made = Secured()
    files = tmp_path / "server.crt", tmp_path / "server.key"
    files[0].write_bytes(made.server.certificate)
    files[1].write_bytes(made.server.key)
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=made.authority.certificate.decode()
    )
    context.load_cert_chain(*files)
    context.verify_mode = ssl.CERT_OPTIONAL
    app = web.Application()
    app.router.add_get("/api/v1/nodes/n", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_client_certificate_authority_and_server_name(
    secured: Secured, clock: clocks.ManualClock, write: Write
) -> None:
    user = {
        "client-certificate-data": encoded(secured.caller.certificate),
        "client-key-data": encoded(secured.caller.key),
    }
    authority = {"certificate-authority-data": encoded(secured.authority.certificate)}
    path = write(secured.url, user, **authority, **{"tls-server-name": "apiserver.test"})
    entry = await login.from_kubeconfig(path)
    assert entry.tokens is None
    async with client.Client(entry, clock=clock) as api:
        await api.get(resources.NODES, "n")
    (caller,) = secured.callers
    assert caller["subject"] == ((("commonName", "me"),),)


@pytest.mark.parametrize("insecure", [False, True], ids=["unknown authority", "not verified"])
async def test_unknown_authority(
    secured: Secured, clock: clocks.ManualClock, write: Write, insecure: bool
) -> None:
    path = write(secured.url, {"token": "abc"}, **{"insecure-skip-tls-verify": insecure})
    entry = await login.from_kubeconfig(path)
    limits = transport.Limits(attempts=1)
    async with client.Client(entry, clock=clock, limits=limits) as api:
        if insecure:
            await api.get(resources.NODES, "n")
        else:
            with pytest.raises(errors.Unreachable, match=r"(?i)certificate"):
                await api.get(resources.NODES, "n")
    assert len(secured.callers) == insecure
