"""Certificates on disk, as an operator would lay them out, and a way to wait for sockets."""

import asyncio
import dataclasses
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from certs import issue
from process.configuration import settings
from process.runtime.clock import ManualClock, SystemClock

SUBJECT = issue.Subject("site", dns=("localhost",), ips=("127.0.0.1",), client=True)


@dataclasses.dataclass
class Laid:
    """A folder with a serving pair, and the authority that signed it."""

    folder: Path
    authority: issue.Pair
    clock: ManualClock
    stamps: int = 0

    @property
    def tls(self) -> settings.TlsSettings:
        """Settings that name the files."""
        return settings.TlsSettings(
            cert_file=self.folder / "tls.crt", key_file=self.folder / "tls.key"
        )

    def pair(self, *, seconds: float = issue.LEAF_SECONDS, begins: float = 0.0) -> issue.Pair:
        """Make a new pair of the same authority, valid from now or from a moment later."""
        return issue.leaf(self.authority, SUBJECT, self.clock.now() + begins, seconds=seconds)

    def put(self, pair: issue.Pair) -> None:
        """Replace both files, the certificate first."""
        self.write("tls.crt", pair.certificate)
        self.write("tls.key", pair.key)

    def write(self, name: str, content: bytes) -> Path:
        """Replace a file in one step and give it a time of change of its own."""
        self.stamps += 1
        fresh = self.folder / f"{name}.new"
        fresh.write_bytes(content)
        os.utime(fresh, ns=(self.stamps * 10**9, self.stamps * 10**9))
        return fresh.replace(self.folder / name)

    def client(self, pair: issue.Pair | None = None) -> ssl.SSLContext:
        """Make a client that trusts the authority and may present a pair of its own."""
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        if pair is not None:
            certificate = self.write("client.crt", pair.certificate)
            context.load_cert_chain(certificate, self.write("client.key", pair.key))
        return context


@pytest.fixture
def clock() -> ManualClock:
    """Virtual time that begins now, so that real TLS clients accept what is issued in it."""
    return ManualClock(SystemClock().now())


@pytest.fixture
def laid(tmp_path: Path, clock: ManualClock) -> Laid:
    """A folder with a good pair."""
    laid = Laid(tmp_path, issue.authority("koord test", clock.now()), clock)
    laid.put(laid.pair())
    return laid


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Let the event loop run until a condition holds; the test's time limit is the limit."""

    async def wait(condition: Callable[[], bool]) -> None:
        for _ in range(1_000_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("the condition never held")

    return wait
