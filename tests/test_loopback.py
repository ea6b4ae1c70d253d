"""Virtual time waits for what is on its way between sockets, and not for what lies there."""

import asyncio
import contextlib
import os

import pytest

from process.runtime import supervise
from tests import loopback


class Reader(asyncio.Protocol):
    """Keeps what it reads, as soon as it is let."""

    def __init__(self):
        self.read = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.read += data


@contextlib.asynccontextmanager
async def connected():
    loop, accepted = asyncio.get_running_loop(), []

    def accept():
        accepted.append(Reader())
        return accepted[-1]

    server = await loop.create_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    near, _ = await loop.create_connection(Reader, "127.0.0.1", port)
    clock = loopback.LoopbackClock()
    try:
        while not (accepted and hasattr(accepted[0], "transport")):  # noqa: ASYNC110 - its accept
            await asyncio.sleep(0)
        yield clock, near, accepted[0]
    finally:
        near.close()
        for one in accepted:
            one.transport.close()
        server.close()


async def test_an_instant_ends_only_after_all_has_been_read():
    async with connected() as (clock, near, far):
        far.transport.pause_reading()
        near.write(b"late")
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, far.transport.resume_reading)
        await clock.advance(1.0)
        assert far.read == b"late"
        assert not loopback.under_way()


async def test_what_nobody_means_to_read_holds_up_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loopback, "_MOST_LOOKS", 3)
    async with connected() as (clock, near, far):
        far.transport.pause_reading()
        near.write(b"left")
        await clock.advance(1.0)
        assert (far.read, clock.monotonic()) == (b"", 1.0)
        assert loopback.under_way()


async def test_bytes_that_come_without_end_hold_up_nothing_for_ever(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(loopback, "_MOST_LOOKS", 20)
    async with connected() as (clock, near, far):
        far.transport.pause_reading()

        async def send():
            while True:
                near.write(b"more")
                await asyncio.sleep(0)

        async with supervise.Supervisor("traffic") as supervisor:
            supervisor.start("send", send)
            await clock.advance(1.0)
        assert clock.monotonic() == 1.0


async def test_the_number_of_a_closed_connection_may_be_that_of_another_file(tmp_path):
    full = tmp_path / "full"
    full.write_bytes(b"bytes that nobody reads")
    async with connected() as (clock, near, _):
        number = near.get_extra_info("socket").fileno()
        near.close()
        await clock.advance(1.0)
        opened = os.open(full, os.O_RDONLY)
        os.dup2(opened, number)
        try:
            assert near in asyncio.get_running_loop()._transports.values()
            assert not loopback.under_way()
        finally:
            for descriptor in {opened, number}:
                os.close(descriptor)
