"""Silence of a response that lasts, and readers who are slower than their server."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from kube.client.connections import streams

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class ManualLoop:
    """The clock and the alarms of an event loop, moved by a test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        self.create_future = asyncio.get_running_loop().create_future

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, alarm: Callable[[], None]) -> "Alarm":
        entry = self.now + delay, alarm
        self.alarms.append(entry)
        return Alarm(self, entry)

    def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [entry for entry in self.alarms if entry[0] <= end]:
            first = min(due, key=lambda entry: entry[0])
            self.alarms.remove(first)
            self.now = first[0]
            first[1]()
        self.now = end


class Alarm:
    """One alarm that may be taken back."""

    def __init__(self, loop: ManualLoop, entry: tuple[float, Callable[[], None]]) -> None:
        self._loop, self._entry = loop, entry

    def cancel(self) -> None:
        if self._entry in self._loop.alarms:
            self._loop.alarms.remove(self._entry)


class Wire(asyncio.Transport):
    """A connection that only notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.socket = socket.socket()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else default

    def write(self, data: Any) -> None:
        self.asked.append("write")

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")

    def abort(self) -> None:
        self.asked.append("abort")


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.socket.close()


async def opened(wire: Wire, silence: float) -> tuple[streams.Stream, ManualLoop]:
    loop = ManualLoop()
    stream = streams.Stream(silence, cast("asyncio.AbstractEventLoop", loop))
    stream.connection_made(wire)
    stream.data_received(HEAD)
    assert await stream.begin(b"GET /x HTTP/1.1\r\n\r\n") is None
    return stream, loop


async def test_silence_is_an_error_and_every_byte_breaks_it(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    for _ in range(4):
        loop.pass_(9.9)
        stream.data_received(chunk(b"one\n"))
        assert await stream.readany() == b"one\n"
    loop.pass_(9.9)
    assert wire.asked == ["write"]
    loop.pass_(0.2)
    assert wire.asked == ["write", "abort"]
    with pytest.raises(TimeoutError):
        await stream.readany()


async def test_who_does_not_read_lets_the_server_wait_and_finds_no_silence(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    part = chunk(b"x" * (600 << 10))
    stream.data_received(part)
    assert "pause" not in wire.asked
    stream.data_received(part)
    stream.data_received(part)
    assert wire.asked.count("pause") == 1
    loop.pass_(100.0)
    assert len(await stream.readany()) == 3 * (600 << 10)
    assert wire.asked == ["write", "pause", "resume"]
    loop.pass_(9.9)
    assert "abort" not in wire.asked
    loop.pass_(20.0)
    with pytest.raises(TimeoutError):
        await stream.readany()


async def test_silence_after_the_end_is_none(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    stream.data_received(chunk(b"one\n") + b"0\r\n\r\n")
    loop.pass_(100.0)
    assert not loop.alarms
    assert wire.asked == ["write"]
    assert await stream.readany() == b"one\n"
    assert await stream.readany() == b""
