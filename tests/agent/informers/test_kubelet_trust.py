"""Whom the token is shown: what an authority signed, or who was there first; nobody else."""

import asyncio
import contextlib
import json
import ssl

import aiohttp
import pytest
from aiohttp import web

from agent.informers import kubelet_client, kubelet_trust, node_heartbeat
from certs import issue
from process.runtime.clock import SystemClock
from tests import patience

NOW = SystemClock().now()
CLUSTER = issue.authority("cluster", NOW)
STRANGER = issue.authority("kubelet-ca", NOW)
BUNDLE = CLUSTER.certificate
ITEMS = {"items": [{"metadata": {"name": "p", "uid": "u"}}]}


def shown(signer, ip="127.0.0.1"):
    return issue.leaf(signer, issue.Subject("system:node:n", ips=(ip,)), NOW)


SIGNED, OTHER = shown(CLUSTER), shown(STRANGER)
OF_ANOTHER_NODE = shown(CLUSTER, "10.0.0.9")


class Kubelet:
    """A kubelet with the certificate that a test gives it; notes what it was shown."""

    def __init__(self, folder):
        self.folder, self.port, self.tokens = folder, 0, []
        self._runner = None

    async def _answer(self, request):
        self.tokens.append(request.headers.get("Authorization"))
        return web.Response(text=json.dumps(ITEMS))

    async def show(self, pair):
        await self.stop()
        file = self.folder / "serving.pem"
        file.write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        pages = web.Application()
        pages.router.add_get("/pods", self._answer)
        self._runner = web.AppRunner(pages, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self):
        if self._runner is not None:
            await self._runner.cleanup()


class Bench:
    """A kubelet, and agents that ask it one after another."""

    def __init__(self, folder, stack):
        self.kubelet, self.pin, self._stack = (
            Kubelet(folder),
            folder / "state" / kubelet_trust.NAME,
            stack,
        )
        self.token = folder / "token"
        self.token.write_text("secret")

    async def agent(self, check="auto", bundle=BUNDLE, *, strict=False):
        session = await self._stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=patience.SECONDS))
        )
        trusted = kubelet_trust.Trust(
            check, kubelet_trust.authorities(bundle), self.pin, strict=strict
        )
        url = f"https://127.0.0.1:{self.kubelet.port}"
        return kubelet_client.Kubelet(session, url, trusted, token_file=self.token)

    def told(self):
        """Whether anybody was shown the token since the last call."""
        tokens, self.kubelet.tokens = self.kubelet.tokens, []
        return "Bearer secret" in tokens


@pytest.fixture
async def bench(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        bench = Bench(tmp_path, stack)
        yield bench
    await bench.kubelet.stop()


@pytest.mark.parametrize(
    ("pair", "options", "good"),
    [
        (SIGNED, {}, True),
        (OTHER, {}, True),
        (OTHER, {"bundle": None}, True),
        (OTHER, {"check": "off"}, True),
        (SIGNED, {"check": "signed"}, True),
        (OTHER, {"check": "signed"}, False),
        (OTHER, {"strict": True}, False),
        (OF_ANOTHER_NODE, {}, False),
        (OF_ANOTHER_NODE, {"check": "signed"}, False),
    ],
    ids=[
        "signed", "first seen", "no authority known", "unchecked", "signed as asked for",
        "first seen and signed asked for", "not of the named bundle", "another address",
        "another address and signed asked for",
    ],
)  # fmt: skip
async def test_who_is_shown_the_token(bench, pair, options, good):
    await bench.kubelet.show(pair)
    agent = await bench.agent(**options)
    assert await agent.refresh() is good
    assert bench.told() is good
    if not good:
        assert "is refused" in agent.problem
        assert "kubelet.caFile" in agent.problem
        assert not bench.pin.exists()


async def test_another_certificate_is_refused_until_somebody_allows_it(bench):
    await bench.kubelet.show(OTHER)
    agent = await bench.agent()
    assert await agent.refresh()
    assert bench.told()
    await bench.kubelet.show(shown(STRANGER))
    for one in (agent, await bench.agent()):
        assert not await one.refresh()
        assert not bench.told()
        assert f"remove {bench.pin} on the node" in one.problem
        assert [pod.metadata.uid for pod in agent.pods] == ["u"]
    bench.pin.unlink()
    assert await agent.refresh()
    assert bench.told()
    await bench.kubelet.show(SIGNED)
    assert await agent.refresh()
    assert bench.pin.read_text() == "signed\n"
    # What an authority signed once is never taken on faith again.
    await bench.kubelet.show(OTHER)
    for one in (agent, await bench.agent()):
        bench.told()
        assert not await one.refresh()
        assert not bench.told()
        assert "an authority had signed" in one.problem


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"", "neither a fingerprint nor"),
        (b"sha256 12", "neither a fingerprint nor"),
        (b"\xff\xfe", "cannot be used"),
        (b"s" * 100_000, "neither a fingerprint nor"),
        (None, "cannot be used"),
    ],
    ids=["empty", "cut off", "no text", "gigantic", "a folder"],
)
async def test_a_damaged_note_is_named_and_nobody_is_trusted(bench, damage, said):
    bench.pin.parent.mkdir()
    if damage is None:
        bench.pin.mkdir()
    else:
        bench.pin.write_bytes(damage)
    await bench.kubelet.show(OTHER)
    agent = await bench.agent()
    assert not await agent.refresh()
    assert said in agent.problem
    assert "remove that file" in agent.problem
    assert not bench.told()


async def test_an_authority_that_is_gone_is_missed(bench):
    await bench.kubelet.show(SIGNED)
    assert await (await bench.agent()).refresh()
    bench.told()
    agent = await bench.agent(bundle=None)
    assert not await agent.refresh()
    assert "name it in kubelet.caFile" in agent.problem
    assert not bench.told()


async def test_what_cannot_be_noted_holds_until_the_agent_ends(bench):
    bench.pin.parent.write_text("no folder")
    await bench.kubelet.show(OTHER)
    agent = await bench.agent()
    assert not await agent.refresh()
    bench.pin.parent.unlink()
    bench.pin.parent.mkdir()
    # A folder where the file is written first stands for a disk that takes nothing.
    blocked = bench.pin.with_name(f"{kubelet_trust.NAME}.tmp")
    blocked.mkdir()
    assert await agent.refresh()
    assert "until the agent ends only" in agent.problem
    bench.told()
    await bench.kubelet.show(shown(STRANGER))
    assert not await agent.refresh()
    assert not bench.told()
    assert "start the agent again" in agent.problem


async def test_who_talks_no_tls_is_shown_nothing(bench):
    heard = bytearray()

    async def take(reader, writer):
        heard.extend(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    bench.kubelet.port = server.sockets[0].getsockname()[1]
    agent = await bench.agent()
    assert not await agent.refresh()
    server.close()
    await server.wait_closed()
    assert b"secret" not in heard
    assert agent.problem


class Ready:
    """What the API server says of the Node, and the time on this host."""

    def __init__(self):
        self.now, self.beat = 1000.0, 990.0

    async def __call__(self):
        return self.beat


async def renewing(bench, ready, **options):
    agent = await bench.agent(**options)
    agent._trust.ready, agent._trust.wall = ready, lambda: ready.now
    return agent


async def test_a_renewed_certificate_is_taken_once_the_node_is_ready_with_it(bench):
    """A kubelet that cannot listen at its port ends, and its Node is not Ready any more."""
    ready = Ready()
    await bench.kubelet.show(OTHER)
    agent = await renewing(bench, ready)
    assert await agent.refresh()
    assert bench.told()
    await bench.kubelet.show(shown(STRANGER))
    for ready.now, ready.beat in ((1010.0, 990.0), (1020.0, 1009.0), (1030.0, None)):
        assert not await agent.refresh()
        assert not bench.told()
        assert "the Node's next Ready heartbeat shows it" in agent.problem
    # Another one yet begins anew.
    await bench.kubelet.show(shown(STRANGER))
    ready.now, ready.beat = 1040.0, 1035.0
    assert not await agent.refresh()
    ready.now, ready.beat = 1400.0, 1300.0
    assert await agent.refresh()
    assert bench.told()
    assert agent.problem == ""
    # It is remembered by the next agent as well.
    assert await (await bench.agent()).refresh()


async def test_tasks_that_ask_at_once_all_meet_the_renewed_certificate(bench):
    """One asks for pods, others for the kubelet's configuration."""

    class Slow(Ready):
        async def __call__(self):
            _, writer = await asyncio.open_connection("127.0.0.1", bench.kubelet.port)
            writer.close()
            return self.beat

    ready = Slow()
    await bench.kubelet.show(OTHER)
    agent = await renewing(bench, ready)
    assert await agent.refresh()
    await bench.kubelet.show(shown(STRANGER))
    assert not await agent.refresh()
    ready.now, ready.beat = 1400.0, 1300.0
    answers = await asyncio.gather(*(agent.get("pods") for _ in range(3)), agent.refresh())
    assert [json.loads(one) for one in answers[:3]] == [ITEMS] * 3
    assert answers[3], agent.problem


@pytest.mark.parametrize("options", [{"check": "signed"}, {"strict": True}, {}], ids=str)
async def test_no_heartbeat_stands_in_for_an_authority(bench, options):
    ready = Ready()
    await bench.kubelet.show(SIGNED)
    agent = await renewing(bench, ready, **options)
    assert await agent.refresh()
    bench.told()
    await bench.kubelet.show(OTHER)
    for ready.now in (1010.0, 1020.0):
        ready.beat = ready.now + 500
        assert not await agent.refresh()
        assert not bench.told()


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (
            [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}],
            1767225610.0,
        ),
        (
            [{"type": "Ready", "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}],
            None,
        ),
        ([{"type": "Ready", "status": "True", "lastHeartbeatTime": "soon"}], None),
        ([{"type": "Ready", "status": "True"}], None),
        ([{"type": "DiskPressure", "status": "True"}], None),
        (["Ready"], None),
        ("Ready", None),
        (None, None),
    ],
    ids=["ready", "not ready", "no time", "none", "another", "a word", "a text", "nothing"],
)
def test_until_when_a_node_was_ready(conditions, expected):
    assert node_heartbeat.heartbeat({"status": {"conditions": conditions}}) == expected


async def test_what_an_earlier_agent_noted_elsewhere_is_taken_along_and_outlives_a_reboot(bench):
    """The folder of the state is empty after a boot; the lasting one is not."""
    await bench.kubelet.show(OTHER)
    agent = await bench.agent()
    assert await agent.refresh()
    lasting = bench.pin.parent / "lasting" / kubelet_trust.NAME
    lasting.parent.mkdir()
    kubelet_trust.move(bench.pin, lasting)
    assert lasting.read_text() == bench.pin.read_text()
    # What lies there already wins.
    bench.pin.write_text(f"sha256 {'0' * 64}\n")
    kubelet_trust.move(bench.pin, lasting)
    assert "0" * 64 not in lasting.read_text()
    bench.pin.unlink()
    bench.pin = lasting
    await bench.kubelet.show(shown(STRANGER))
    assert not await (await bench.agent()).refresh()


def test_nothing_is_taken_along_where_nothing_was_noted(tmp_path):
    kubelet_trust.move(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    (tmp_path / "c").touch()
    kubelet_trust.move(tmp_path / "a", tmp_path / "c" / "d")
    assert not (tmp_path / "c").is_dir()
