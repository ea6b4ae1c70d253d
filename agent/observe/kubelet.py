"""The pods of this node, from its kubelet."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yarl

from agent import trust as trusts
from api import core

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
        trust: trusts.Trust,
        *,
        token_file: Path | None = None,
    ) -> None:
        self._session = session
        self._url = yarl.URL(f"{url.rstrip('/')}/pods")
        self._token_file = token_file
        self._trust = trust
        self._empty = 0
        self.pods: tuple[core.Pod, ...] = ()
        self.problem = "not asked yet"

    def adopt(self, pods: tuple[core.Pod, ...]) -> None:
        """Take a list of somebody else for the last good one."""
        self.pods, self._empty = pods, 0

    async def refresh(self) -> bool:
        """Ask once; on failure the last list stays and `problem` says why."""
        try:
            pods = await self._ask()
        except (
            aiohttp.ClientError, TimeoutError, OSError, ValueError,
            KubeletError, trusts.TrustError,
        ) as error:  # fmt: skip
            self.problem = f"{type(error).__name__}: {error}".rstrip(": ")
            return False
        self._empty = 0 if pods else self._empty + 1
        if not pods and self.pods and self._empty < EMPTY_ANSWERS_BELIEVED:
            self.problem = f"empty answer {self._empty} of {EMPTY_ANSWERS_BELIEVED}, not believed"
            return False
        self.pods, self.problem = pods, self._trust.problem
        return True

    async def _ask(self) -> tuple[core.Pod, ...]:
        if self._url.scheme != "https":
            return await self._listed(proof=False, secret=self._trust.tells_anybody)
        peer = trusts.Peer(
            str(self._url.host), self._url.port or 443, self._session.timeout.total or 3.0
        )
        proof = await self._trust.proof(peer)
        try:
            return await self._listed(proof=proof, secret=True)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch):
            await self._trust.meet(peer)
        return await self._listed(proof=await self._trust.proof(peer), secret=True)

    async def _listed(self, *, proof: Any, secret: bool) -> tuple[core.Pod, ...]:
        headers = {}
        if secret and self._token_file is not None:
            # Read each time: kubelets rotate the tokens that they mount.
            token = await asyncio.to_thread(self._token_file.read_text, "ascii")
            headers["Authorization"] = f"Bearer {token.strip()}"
        async with self._session.get(
            self._url, headers=headers, ssl=proof, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise KubeletError(f"{self._url} answered {response.status}{self._hint(headers)}")
            body = await _bounded(response)
        try:
            return msgspec.json.decode(body, type=_Answer).items or ()
        except msgspec.MsgspecError as error:
            raise KubeletError(f"{self._url} answered no list of pods: {error}") from error

    def _hint(self, headers: dict[str, str]) -> str:
        if headers or self._token_file is None:
            return ""
        return "; over plain HTTP it is sent no token, unless kubelet.verify is off"


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
