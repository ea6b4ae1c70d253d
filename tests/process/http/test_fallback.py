"""A handler may leave a request to the routes of the application."""

import asyncio

import pytest

from process.http import fast_path

LIMITS = (1024, 4096)
HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:9211\r\nContent-Length: 3\r\n\r\n"


class Sink(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False


async def test_it_gets_all_that_is_left_byte_for_byte() -> None:
    def leave(_body: bytes, _connected: fast_path.Caller) -> bytes:
        raise fast_path.Fallback

    routes = {"/now": lambda body, connected: body[::-1], "/left": leave}
    way = fast_path.FastPath(routes, LIMITS, lambda *_: pytest.fail("no task"))
    sink = Sink()
    lane = fast_path.Connection(way, sink)
    now, left = HEAD % b"/now" + b"123", HEAD % b"/left" + b"abc"
    # What follows waits for its turn behind it, so all of it goes the same way.
    assert lane.take(now + left + now) == left + now
    assert lane.take(left[:-2]) == b""
    assert lane.busy
    assert lane.take(left[-2:]) == left
    assert not lane.busy
    assert lane.take(now) == b""
    assert [text[-3:] for text in sink.written] == [b"321", b"321"]
