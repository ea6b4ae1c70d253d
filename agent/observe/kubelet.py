"""The pods of this node, from its kubelet."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from api import core
from process import clock as clocks

MOST_BYTES = 64 * 1024 * 1024
# A kubelet that just started lists nothing for a moment; a node without pods goes on doing so.
EMPTY_ANSWERS_BELIEVED = 3


class KubeletError(Exception):
    """The kubelet gave no usable list; the text says why."""


class Kubelet:
    """Asks for the pods and remembers the last good answer."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        clock: clocks.Clock,
        *,
        token_file: Path | None = None,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        self._session = session
        self._url = f"{url.rstrip('/')}/pods"
        self._clock = clock
        self._token_file = token_file
        self._tls = tls
        self._empty = 0
        self._answered: float | None = None
        self.pods: tuple[core.Pod, ...] = ()
        self.problem = "not asked yet"

    @property
    def age(self) -> float | None:
        """Seconds since the list was true, None before the first answer."""
        return None if self._answered is None else self._clock.monotonic() - self._answered

    async def refresh(self) -> bool:
        """Ask once; on failure the last list stays and `problem` says why."""
        try:
            pods = await self._ask()
        except (aiohttp.ClientError, TimeoutError, OSError, KubeletError) as error:
            self.problem = f"{type(error).__name__}: {error}".rstrip(": ")
            return False
        self._empty = 0 if pods else self._empty + 1
        if not pods and self.pods and self._empty < EMPTY_ANSWERS_BELIEVED:
            self.problem = f"empty answer {self._empty} of {EMPTY_ANSWERS_BELIEVED}, not believed"
            return False
        self.pods, self.problem = pods, ""
        self._answered = self._clock.monotonic()
        return True

    async def _ask(self) -> tuple[core.Pod, ...]:
        headers = {}
        if self._token_file is not None:
            # Read each time: kubelets rotate the tokens that they mount.
            token = await asyncio.to_thread(self._token_file.read_text, "ascii")
            headers["Authorization"] = f"Bearer {token.strip()}"
        options: dict[str, Any] = {"headers": headers, "ssl": self._tls}
        async with self._session.get(self._url, **options) as response:
            if response.status != 200:
                raise KubeletError(f"{self._url} answered {response.status}")
            body = await _bounded(response)
        try:
            return msgspec.json.decode(body, type=_Answer).items or ()
        except msgspec.MsgspecError as error:
            raise KubeletError(f"{self._url} answered no list of pods: {error}") from error


class _Answer(msgspec.Struct, frozen=True):
    # The list of an empty node is null.
    items: tuple[core.Pod, ...] | None = None


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        parts += part
        if len(parts) > MOST_BYTES:
            raise KubeletError(f"the list of pods is larger than {MOST_BYTES} bytes")
    return bytes(parts)
