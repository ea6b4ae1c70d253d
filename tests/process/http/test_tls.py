"""Certificates are exchanged under load, bad ones stay out, strangers are turned away."""

import asyncio
import collections
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509

from certs import issue
from process.configuration.settings import ServerSettings, TlsSettings
from process.http import health, server, tls
from process.runtime import metrics
from process.runtime.clock import ManualClock
from tests import patience

Serve = Callable[..., AbstractAsyncContextManager[server.Site]]
SERVER = {"server": "server"}


@pytest.fixture
def checks() -> health.Health:
    return health.Health()


@pytest.fixture
def registry() -> metrics.Registry:
    return metrics.Registry()


@pytest.fixture
def serve(
    laid: Any, clock: ManualClock, checks: health.Health, registry: metrics.Registry
) -> Serve:
    @asynccontextmanager
    async def run(chosen: TlsSettings | None = None) -> AsyncIterator[server.Site]:
        async def echo(request: web.Request) -> web.Response:
            assert request.transport is not None
            peer = request.transport.get_extra_info("peername")
            return web.Response(body=await request.read(), headers={"X-Peer": f"{peer[1]}"})

        app = server.health_routes(web.Application(), checks, registry)
        app.router.add_post("/echo", echo)
        limits = ServerSettings(tls=chosen or laid.tls, linger_seconds=0)
        async with server.running_site(
            app, limits, clock=clock, checks=checks, registry=registry
        ) as site:
            yield site

    return run


async def presented(site: server.Site, context: ssl.SSLContext) -> int:
    """Dial and return the serial number of the certificate the server shows."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"200" in await reader.readline()
        await reader.read()
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    return x509.load_der_x509_certificate(shown).serial_number


def serial(pair: issue.Pair) -> int:
    return issue.read(pair.certificate).serial_number


async def test_new_pair_serves_new_connections_and_old_ones_live_on(
    serve: Serve, laid: Any, clock: ManualClock
) -> None:
    connector = aiohttp.TCPConnector(ssl=laid.client(), limit=1)
    async with serve() as site, aiohttp.ClientSession(connector=connector) as session:
        async with session.post(f"{site.url}/echo", data=b"1") as answer:
            peer = answer.headers["X-Peer"]
        fresh = laid.pair()
        laid.put(fresh)
        assert await presented(site, laid.client()) != serial(fresh)
        await clock.advance(10)
        assert await presented(site, laid.client()) == serial(fresh)
        async with session.post(f"{site.url}/echo", data=b"2") as answer:
            assert await answer.read() == b"2"
            assert answer.headers["X-Peer"] == peer


async def test_rotation_under_load_fails_no_request(
    serve: Serve, laid: Any, clock: ManualClock
) -> None:
    seen: collections.Counter[str] = collections.Counter()
    going = [True]

    async def load(site: server.Site, *, keep: bool) -> None:
        connector = aiohttp.TCPConnector(ssl=laid.client(), force_close=not keep)
        async with aiohttp.ClientSession(connector=connector) as session:
            while going[0]:
                async with session.post(f"{site.url}/echo", data=b"x") as answer:
                    assert await answer.read() == b"x"
                    seen["kept" if keep else "dialled"] += 1

    async with serve() as site, asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(load(site, keep=number % 2 == 0))
        serials = set()
        for _ in range(5):
            fresh = laid.pair()
            laid.write("tls.crt", fresh.certificate)
            await clock.advance(10)
            laid.write("tls.key", fresh.key)
            await clock.advance(10)
            serials.add(await presented(site, laid.client()))
        going[0] = False
    assert len(serials) == 5
    assert seen["kept"] > 50
    assert seen["dialled"] > 20


async def test_mismatched_pair_stays_out_and_is_reported(
    serve: Serve, laid: Any, clock: ManualClock, checks: health.Health, registry: metrics.Registry
) -> None:
    async with serve() as site:
        first = await presented(site, laid.client())
        fresh = laid.pair()
        laid.write("tls.crt", fresh.certificate)
        await clock.advance(10)
        assert await presented(site, laid.client()) == first
        assert checks.ready
        assert "not a usable pair" in checks.warnings()["server-files"]
        assert registry.value("koord_server_certificate_rejected", SERVER) == 1.0
        laid.write("tls.key", fresh.key)
        await clock.advance(10)
        assert await presented(site, laid.client()) == serial(fresh)
        assert checks.warnings() == {}
        assert registry.value("koord_server_certificate_rejected", SERVER) == 0.0


def of_no_version(pair: issue.Pair) -> bytes:
    """Return a certificate that claims a version of X.509 that does not exist."""
    der = ssl.PEM_cert_to_DER_cert(pair.certificate.decode())
    third, eighth = bytes.fromhex("a003020102"), bytes.fromhex("a003020107")
    assert third in der
    return ssl.DER_cert_to_PEM_cert(der.replace(third, eighth, 1)).encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda laid: laid.put(laid.pair(seconds=5)), "expired", id="expired"),
        pytest.param(
            lambda laid: laid.write("tls.crt", of_no_version(laid.pair())), "no PEM", id="version"
        ),
        pytest.param(
            lambda laid: laid.put(laid.pair(begins=2 * issue.SKEW_SECONDS)), "not valid", id="early"
        ),
        pytest.param(
            lambda laid: laid.write("tls.crt", b"garbage"), "no PEM certificate", id="garbage"
        ),
        pytest.param(lambda laid: (laid.folder / "tls.crt").unlink(), "no PEM", id="missing"),
        pytest.param(lambda laid: laid.write("tls.key", b""), "not a usable pair", id="empty key"),
    ],
)
async def test_bad_files_never_replace_good_ones(
    serve: Serve,
    laid: Any,
    clock: ManualClock,
    checks: health.Health,
    change: Callable[[Any], object],
    reason: str,
) -> None:
    async with serve() as site:
        first = await presented(site, laid.client())
        change(laid)
        await clock.advance(10)
        assert await presented(site, laid.client()) == first
        assert reason in checks.warnings()["server-files"]
        assert checks.ready


async def test_certificate_that_was_too_early_is_taken_when_its_time_comes(
    serve: Serve, laid: Any, clock: ManualClock, checks: health.Health
) -> None:
    async with serve():
        laid.put(laid.pair(begins=issue.SKEW_SECONDS + 60))
        await clock.advance(10)
        assert checks.warnings() != {}
        await clock.advance(60)
        assert checks.warnings() == {}


async def test_end_of_the_certificate_is_told_a_week_before_and_makes_unready(
    serve: Serve, laid: Any, clock: ManualClock, checks: health.Health, registry: metrics.Registry
) -> None:
    async with serve():
        end = registry.value("koord_server_certificate_end_seconds", SERVER)
        assert end == pytest.approx(clock.now() + issue.LEAF_SECONDS, abs=2)
        clock.jump(issue.LEAF_SECONDS - 8 * issue.DAY)
        assert checks.warnings() == {}
        clock.jump(issue.DAY + 60)
        assert "ends in 168 h" in checks.warnings()["server-files"]
        assert checks.ready
        clock.jump(7 * issue.DAY)
        assert "has ended" in checks.failing()["server-certificate"]


async def test_start_needs_a_good_pair(serve: Serve, laid: Any) -> None:
    (laid.folder / "tls.key").unlink()
    with pytest.raises(server.ServerError, match=r"server\.tls\.certFile .* not a usable pair"):
        async with serve():
            raise AssertionError("serving without a key")


async def test_only_modern_tls_and_http_1_1(serve: Serve, laid: Any) -> None:
    async with serve() as site:
        context = laid.client()
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=context)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        old = laid.client()
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = ssl.TLSVersion.TLSv1_1
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await presented(site, old)


async def test_handshake_that_never_ends_is_dropped(laid: Any, clock: ManualClock) -> None:
    limits = ServerSettings(tls=laid.tls, linger_seconds=0, header_seconds=0.2)
    async with server.running_site(web.Application(), limits, clock=clock) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"\x16\x03\x01")
        assert await asyncio.wait_for(reader.read(), patience.SECONDS) == b""
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.fixture
def mutual(laid: Any) -> TlsSettings:
    bundle = laid.write("clients.crt", laid.authority.certificate)
    chosen: TlsSettings = laid.tls.model_copy(update={"client_ca_file": bundle})
    return chosen


async def refused(site: server.Site, context: ssl.SSLContext) -> bool:
    try:
        await presented(site, context)
    except (ssl.SSLError, ConnectionError, AssertionError):
        # With TLS 1.3 a client learns of the refusal only when it reads the answer.
        return True
    return False


async def test_only_known_clients_are_let_in(
    serve: Serve, laid: Any, mutual: TlsSettings, clock: ManualClock
) -> None:
    foreign = issue.authority("foreign", clock.now())
    stranger = issue.leaf(foreign, issue.Subject("x", dns=("x",), client=True), clock.now())
    async with serve(mutual) as site:
        assert not await refused(site, laid.client(laid.pair()))
        assert await refused(site, laid.client())
        assert await refused(site, laid.client(stranger))


@pytest.mark.parametrize(
    ("names", "let_in"),
    [
        pytest.param(("kube-scheduler",), False, id="another name"),
        pytest.param(("kube-scheduler", "localhost"), True, id="one of them"),
        pytest.param((), True, id="any name"),
    ],
)
async def test_only_clients_with_a_name_that_is_named_are_let_in(
    serve: Serve, laid: Any, mutual: TlsSettings, names: tuple[str, ...], let_in: bool
) -> None:
    """Whatever else the authority has signed stays out, and others are served meanwhile."""
    chosen = mutual.model_copy(update={"client_names": names})
    async with serve(chosen) as site:
        for _ in range(3):
            assert await refused(site, laid.client(laid.pair())) is not let_in


def test_names_of_clients_need_an_authority(laid: Any) -> None:
    files = {"cert_file": laid.tls.cert_file, "key_file": laid.tls.key_file}
    with pytest.raises(ValueError, match="clientNames needs clientCaFile"):
        TlsSettings(**files, client_names=("x",))


async def test_change_of_the_client_bundle_lets_in_the_new_and_keeps_out_the_old(
    serve: Serve, laid: Any, mutual: TlsSettings, clock: ManualClock
) -> None:
    other = issue.authority("other", clock.now())
    newcomer = issue.leaf(other, issue.Subject("x", dns=("x",), client=True), clock.now())
    old_client, new_client = laid.client(laid.pair()), laid.client(newcomer)
    async with serve(mutual) as site:
        assert not await refused(site, old_client)
        assert await refused(site, new_client)
        laid.write("clients.crt", laid.authority.certificate + other.certificate)
        await clock.advance(10)
        assert not await refused(site, old_client)
        assert not await refused(site, new_client)
        laid.write("clients.crt", other.certificate)
        await clock.advance(10)
        assert await refused(site, old_client)
        assert not await refused(site, new_client)


def test_unusable_client_bundle_is_named(
    laid: Any, mutual: TlsSettings, clock: ManualClock
) -> None:
    laid.write("clients.crt", b"nothing")
    with pytest.raises(tls.TlsError, match=r"tls\.clientCaFile .*no usable bundle"):
        tls.Reloader(mutual, clock)
