"""The rendered files of the in-place mode, on the real scheduler: mutual TLS holds both ways."""

import contextlib
import pathlib
import re
import shutil
import ssl

import aiohttp
import pytest
import pytest_asyncio
import yaml

from api import names, resources
from cli import main
from cli.install import apply, in_place_files
from extender import app as extenders
from extender import settings as extender_settings
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import login
from process.configuration import settings
from process.http import ports
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.install import plain
from tests.planes.processes import accounts

PATIENCE = 60.0
NODE = "node/etc/kubernetes"
MANIFESTS = pathlib.Path(__file__).parents[3] / "deploy" / "manifests" / "in-place"
LEASE = resources.LEASES.path("kube-system", "kube-scheduler")


class Installed:
    """What one run of the command wrote, as it lies on a node."""

    def __init__(self, folder, server, ca, token):
        (self.port,) = ports.take(1)
        self.url = f"https://127.0.0.1:{self.port}"
        arguments = ("--image", "x:1", "--server", server, "--extender-url", self.url)
        written = main.main(["render", "in-place", "--to", str(folder), *arguments])
        assert written == 0
        self.extender = folder / NODE / "koord" / "extender"
        self.scheduler = folder / NODE / "koord" / "scheduler"
        (self.extender / in_place_files.CLUSTER_CA).write_bytes(ca)
        login = folder / NODE / "koord" / "login"
        login.mkdir()
        (login / in_place_files.TOKEN).write_text(token)
        # The files name their places in the container and on the node.
        for file in self.extender.iterdir():
            self._move(file, in_place_files.INSIDE, self.extender)
            self._move(file, in_place_files.LOGIN_INSIDE, login)
        self._move(
            self.scheduler / "config.yaml", f"{in_place_files.FOLDER}/scheduler", self.scheduler
        )

    @staticmethod
    def _move(file: pathlib.Path, before, after):
        if file.suffix not in (".crt", ".key"):
            file.write_text(file.read_text().replace(f"{before}/", f"{after}/"))

    def config(self):
        return yaml.safe_load((self.scheduler / "config.yaml").read_text())

    def settings(self):
        flags = ("--health.port=0", "--server.tls.reload_seconds=0.2", "--server.linger_seconds=0")
        model, file = extender_settings.Settings, self.extender / "settings.yaml"
        return settings.load(model, file=file, environ={}, prefix="EXTENDER", flags=flags)

    async def access(self):
        return await login.from_kubeconfig(self.extender / "kubeconfig")

    def context(self, *, cert="", key=""):
        """The TLS of a caller that trusts this installation and shows this pair."""
        context = ssl.create_default_context(cafile=str(self.scheduler / "ca.crt"))
        if cert:
            context.load_cert_chain(cert, key)
        return context

    def mine(self):
        return {
            "cert": str(self.scheduler / "client.crt"),
            "key": str(self.scheduler / "client.key"),
        }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def token(real_plane, tmp_path_factory):
    """What the steps make once per cluster: the account, what it may do, and its token."""
    folder = tmp_path_factory.mktemp("once")
    Installed(folder, real_plane.server, real_plane.ca, "")
    roles = yaml.safe_load_all((MANIFESTS / "scheduler.yaml").read_text())
    secret = yaml.safe_load((folder / "cluster" / "login.yaml").read_text())
    meta = secret["metadata"]
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        namespace = {"metadata": {"name": names.NAMESPACE}}
        await api.call("POST", resources.NAMESPACES.path(), namespace)
        async with contextlib.AsyncExitStack() as stack:
            for document in (*roles, secret):
                path = await created(api, document)
                stack.push_async_callback(api.call, "DELETE", path)
            account = extender_settings.TokenSettings().account
            yield await accounts.token(api, meta["namespace"], account, secret=meta["name"])


async def created(api, document):
    """Create an object of a manifest; returns its path."""
    plural = plain.PLURALS.get(document["kind"], f"{document['kind'].lower()}s")
    version = document["apiVersion"]
    prefix = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace = document["metadata"].get("namespace")
    place = f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}"
    answer = await api.call("POST", place, document)
    assert answer.status in (201, 409), answer.message
    return f"{place}/{document['metadata']['name']}"


@pytest.fixture(scope="module")
def installed(real_plane, token, tmp_path_factory):
    folder = tmp_path_factory.mktemp("in-place")
    return Installed(folder, real_plane.server, real_plane.ca, token)


@pytest.fixture(scope="module")
def foreign(real_plane, token, tmp_path_factory):
    """The files of another installation, with an authority of its own."""
    folder = tmp_path_factory.mktemp("foreign")
    return Installed(folder, real_plane.server, real_plane.ca, token)


@contextlib.asynccontextmanager
async def extending(installed):
    """The extender with the rendered settings and login."""
    access = await installed.access()
    clock = clocks.SystemClock()
    async with extenders.running(installed.settings(), access=access, clock=clock) as app:

        async def ready():
            return app.health.ready

        await raw.eventually(ready, PATIENCE)
        yield app


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving(real_plane, installed):
    """The extender of the first installation."""
    token = accesses.StaticToken(real_plane.token)
    admin = accesses.Access(real_plane.server, real_plane.ca, token)
    clock = clocks.SystemClock()
    async with clients.Client(admin, clock=clock, user_agent="user") as client:
        await apply.definitions(client, clock)
    async with extending(installed) as app:
        assert app.url == installed.url
        yield app


@contextlib.asynccontextmanager
async def scheduling(plane, api, config):
    await api.call("DELETE", LEASE)
    await plane.binaries.start_scheduler(config)
    try:
        yield
    finally:
        await plane.stop_scheduler()
        await api.call("DELETE", LEASE)


async def filtered(url, context):
    """The status of a call with no node to filter."""
    body = {"Pod": {"metadata": {"name": "x", "namespace": "y", "uid": "z"}}, "NodeNames": []}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/filter", json=body, ssl=context) as answer,
    ):
        return answer.status


async def test_pods_are_bound_over_mutual_tls(plane, api, here, installed, serving):
    await here.node("a")
    async with scheduling(plane, api, installed.config()):
        await here.pod("web")
        pod = await here.bound("web", PATIENCE)
    assert names.PLACEMENT in pod["metadata"]["annotations"]
    # With the token of its account, which may do no more than the shipped roles say.
    told = serving.registry.exposition()[0].decode()
    assert re.search(r'koord_kube_requests_total\{[^}]*code="201"[^}]*verb="bind"', told)
    assert not re.search(r'koord_kube_requests_total\{[^}]*code="403"', told)


async def test_only_the_scheduler_is_let_in(installed, foreign, serving):
    url = installed.url
    assert await filtered(url, installed.context(**installed.mine())) == 200
    with pytest.raises(aiohttp.ClientError, match=r"(?i)certificate|alert|reset|disconnected"):
        await filtered(url, installed.context())
    with pytest.raises(aiohttp.ClientError, match=r"(?i)unknown ca|alert|reset|disconnected"):
        await filtered(url, installed.context(**foreign.mine()))
    with pytest.raises(aiohttp.ClientError):
        await filtered(url.replace("https", "http"), True)
    # The pair of the server is for serving: it does not open the door.
    server = {
        "cert": str(installed.extender / "tls.crt"),
        "key": str(installed.extender / "tls.key"),
    }
    with pytest.raises(aiohttp.ClientError):
        await filtered(url, installed.context(**server))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("authority", "x509: certificate signed by unknown authority"),
        # The extender closes the door without a word: EOF, or a reset.
        ("pair", "/filter"),
        ("no pair", "/filter"),
    ],
)
async def test_a_pair_that_does_not_trust_each_other_places_nothing(
    plane, api, here, installed, foreign, serving, wrong, sentence
):
    config = installed.config()
    for entry in config["extenders"]:
        tls = entry["tlsConfig"]
        if wrong == "authority":
            tls["caFile"] = str(foreign.scheduler / "ca.crt")
        elif wrong == "pair":
            tls["certFile"] = str(foreign.scheduler / "client.crt")
            tls["keyFile"] = str(foreign.scheduler / "client.key")
        else:
            del tls["certFile"], tls["keyFile"]
    await here.node("a")
    async with scheduling(plane, api, config):
        await here.pod("web")
        await here.refused("web", sentence, reason="SchedulerError", timeout=PATIENCE)
    pod = await api.get(here.path("pods", "web"))
    assert "nodeName" not in pod["spec"]


async def test_the_scheduler_shows_its_new_pair_without_a_restart(
    plane, api, here, token, foreign, serving, tmp_path
):
    renewed = Installed(tmp_path / "renewed", plane.server, plane.ca, token)
    # Old and new authority overlap in what the scheduler trusts.
    both = b"".join((one.scheduler / "ca.crt").read_bytes() for one in (renewed, foreign))
    (renewed.scheduler / "ca.crt").write_bytes(both)
    await here.node("a")
    async with contextlib.AsyncExitStack() as stack:
        async with extending(renewed):
            await stack.enter_async_context(scheduling(plane, api, renewed.config()))
            await here.pod("before")
            await here.bound("before", PATIENCE)
        for name in ("client.crt", "client.key"):
            shutil.copy(foreign.scheduler / name, renewed.scheduler / name)
        for name in ("tls.crt", "tls.key", in_place_files.CLIENT_CA):
            shutil.copy(foreign.extender / name, renewed.extender / name)
        # Every connection is new, and only the new pair opens the door.
        async with extending(renewed):
            await here.pod("after")
            await here.bound("after", PATIENCE)
