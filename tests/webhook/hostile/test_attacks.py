"""Whoever attacks the webhook from one address, reviews from another are answered in time."""

import asyncio
import contextlib
import dataclasses
import functools
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs import issue
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.processes import children
from tests import patience
from tests.planes.processes import forking

ROOT = Path(__file__).parents[3]
API_SERVER, ATTACKER, MANAGER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
BLOCKS = {"callerBlocks": [f"{API_SERVER}/32"]}
SECONDS = 1.0
BODY = 7 << 20
FEW = 128
# The webhook's modules take most of a second to import: once, and not for each test.
FORKING = forking.Server("tests.webhook.hostile.besieged")
pytestmark = pytest.mark.timeout(120)


def memory_limit() -> int:
    """Return the memory that the chart allows, in bytes."""
    values = yaml.safe_load((ROOT / "deploy/helm/koord/values.yaml").read_text())
    text = values["webhook"]["resources"]["limits"]["memory"]
    found = re.fullmatch(r"(\d+)Mi", text)
    assert found is not None
    return int(found[1]) << 20


def review_body() -> bytes:
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "object": {
            "metadata": {"name": "p", "labels": {"colocate": "yes"}},
            "spec": {"containers": []},
        },
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()


def head_of(size: int) -> bytes:
    return (
        "POST /mutate-pod?timeout=2s HTTP/1.1\r\nHost: koord-webhook\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


@dataclasses.dataclass
class Webhook:
    """A webhook in a process of its own."""

    process: children.Child
    answers: asyncio.StreamReader
    questions: asyncio.StreamWriter
    port: int
    trust: ssl.SSLContext
    writers: list[asyncio.StreamWriter]

    async def dial(
        self, source: str, *, secured: bool = True
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            local_addr=(source, 0),
            ssl=self.trust if secured else None,
            server_hostname="localhost" if secured else None,
        )
        self.writers.append(opened[1])
        return opened

    async def review(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, Any]:
        body = review_body()
        writer.write(head_of(len(body)) + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer: dict[str, Any] = json.loads(await reader.readexactly(size))
        response: dict[str, Any] = answer["response"]
        return response

    async def figures(self) -> dict[str, float]:
        self.questions.write(b"\n")
        found: dict[str, float] = json.loads(await self.answers.readline())
        return found

    @contextlib.asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Fail when the block takes too long, besides waits for processors that others use."""
        started, queued = time.monotonic(), self._queued()
        async with asyncio.timeout(patience.SECONDS):
            yield
        assert time.monotonic() - started - (self._queued() - queued) < SECONDS

    def _queued(self) -> float:
        """Return how long both processes were runnable and did not run, in seconds."""
        found = (Path(f"/proc/{one}/schedstat") for one in ("self", self.process.pid))
        return sum(int(one.read_text().split()[1]) for one in found if one.exists()) / 1e9

    def peak(self) -> int:
        """Return the most memory that it ever had, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) << 10


@contextlib.asynccontextmanager
async def besieged(folder: Path, **changes: object) -> AsyncIterator[Webhook]:
    now = clocks.SystemClock().now()
    authority = issue.authority("koord test", now)
    pair = issue.leaf(authority, issue.Subject("site", dns=("localhost",)), now)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    talking: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    talk = str(folder / "talk")
    listening = await asyncio.start_unix_server(lambda *both: talking.put_nowait(both), talk)
    # Not waited for, since that may take until what it accepted is closed.
    with contextlib.closing(listening):
        command = ["tests.webhook.hostile.besieged", str(folder), json.dumps(changes)]
        process = FORKING.start("besieged", command, folder, talk)
        answers, questions = await asyncio.wait_for(talking.get(), patience.SECONDS)
    writers: list[asyncio.StreamWriter] = [questions]
    try:
        port = int(await answers.readline())
        yield Webhook(process, answers, questions, port, trust, writers)
    finally:
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(one.wait_closed() for one in writers), return_exceptions=True)
        await process.kill()


Attack = Callable[[Webhook], Awaitable[None]]


async def idle(webhook: Webhook, count: int = 1024) -> None:
    """Clients that asked once and keep their connection."""
    for _ in range(count // 16):
        opened = await asyncio.gather(*(webhook.dial(ATTACKER) for _ in range(16)))
        for _reader, writer in opened:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")


async def silent(webhook: Webhook) -> None:
    """1,100 clients that never say a word, not even of TLS."""
    for _ in range(1100):
        await webhook.dial(ATTACKER, secured=False)


async def half_sent(webhook: Webhook) -> None:
    """75 bodies of 7 MiB, all but the last byte, which go on and on."""

    async def send() -> None:
        _, writer = await webhook.dial(ATTACKER)
        writer.write(head_of(BODY) + b" " * (BODY - 1))
        with contextlib.suppress(OSError):
            await writer.drain()

    for _ in range(15):
        await asyncio.gather(*(send() for _ in range(5)))


async def half_sent_otherwise(webhook: Webhook) -> None:
    """The same in chunks, which take the long way."""
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    async def send() -> None:
        _, writer = await webhook.dial(ATTACKER)
        writer.write(
            b"POST /mutate-pod HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunk * (BODY // 65_536 - 1)
        )
        with contextlib.suppress(OSError):
            await writer.drain()

    for _ in range(15):
        await asyncio.gather(*(send() for _ in range(5)))


async def slow(webhook: Webhook) -> None:
    """240 clients that send the head of a request byte by byte."""
    opened = []
    for _ in range(16):
        opened += await asyncio.gather(*(webhook.dial(ATTACKER) for _ in range(15)))
    for byte in (b"P", b"O", b"S", b"T"):
        for _reader, writer in opened:
            if not writer.is_closing():
                writer.write(byte)
        await asyncio.sleep(0)


ATTACKS = {
    "idle": idle,
    "handshakes": silent,
    "bodies": half_sent,
    "chunked bodies": half_sent_otherwise,
    "slow heads": slow,
}


@pytest.mark.parametrize(
    ("attack", "changes"),
    [
        *(pytest.param(attack, {}, id=name) for name, attack in ATTACKS.items()),
        pytest.param(
            functools.partial(idle, count=FEW),
            BLOCKS | {"maxConnections": FEW},
            id="idle, API servers named",
        ),
    ],
)
async def test_reviews_from_another_address_are_answered_in_time(
    tmp_path: Path, attack: Attack, changes: dict[str, Any]
) -> None:
    async with (
        besieged(tmp_path, **changes) as webhook,
        supervise.Supervisor("attack") as supervisor,
    ):
        kept = await webhook.dial(API_SERVER)
        assert (await webhook.review(*kept))["uid"] == "u-1"
        attacking = supervisor.spawn("attack", attack(webhook))
        reviewed = 0
        while not attacking.done() or reviewed < 5:
            # One on a connection that was there before, one on a connection of its own.
            async with webhook.in_time():
                assert (await webhook.review(*kept))["uid"] == "u-1"
            async with webhook.in_time():
                reader, writer = await webhook.dial(API_SERVER)
                assert (await webhook.review(reader, writer))["uid"] == "u-1"
                writer.transport.abort()
            reviewed += 1
            await asyncio.sleep(0.05)
        await attacking
        assert webhook.peak() < memory_limit()
        found = await webhook.figures()
        assert found["connections"] <= changes.get("maxConnections", 1024)


async def test_many_idle_connections_give_way_to_whoever_comes(tmp_path: Path) -> None:
    async with besieged(tmp_path, maxConnections=20, maxConnectionsByAddress=16) as webhook:
        for _ in range(40):
            await webhook.dial(ATTACKER)
        for _ in range(6):
            assert (await webhook.review(*await webhook.dial(API_SERVER)))["uid"] == "u-1"
        found = await webhook.figures()
        # Sixteen of one address, then two more give way to the other one.
        assert found["cut_connections_total"] == 40 - 16 + 2
        assert (found["connections"], found["refused_connections_total"]) == (20, 0)


async def test_whoever_is_not_named_is_refused_before_the_handshake(tmp_path: Path) -> None:
    async with besieged(tmp_path, **BLOCKS, refuseOthers=True) as webhook:
        reader, _writer = await webhook.dial(ATTACKER, secured=False)
        # Without a word of TLS from either side.
        assert await asyncio.wait_for(reader.read(), patience.SECONDS) == b""
        with pytest.raises((ssl.SSLError, OSError)):
            await webhook.dial(ATTACKER)
        assert (await webhook.review(*await webhook.dial(API_SERVER)))["uid"] == "u-1"
        found = await webhook.figures()
        assert (found["connections"], found["refused_connections_total"]) == (1, 2)


async def test_others_are_served_and_not_kept_for_long(tmp_path: Path) -> None:
    """The leader of the managers asks as an API server does, from the address of its pod."""
    async with besieged(tmp_path, **BLOCKS, otherIdleSeconds=0.3) as webhook:
        kept = await webhook.dial(API_SERVER)
        manager = await webhook.dial(MANAGER)
        assert (await webhook.review(*manager))["uid"] == "u-1"
        assert await asyncio.wait_for(manager[0].read(), patience.SECONDS) == b""
        assert (await webhook.review(*kept))["uid"] == "u-1"
