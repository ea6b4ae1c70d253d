"""The pods of this node, from its kubelet."""

import asyncio
from pathlib import Path
from typing import Any, Final

import aiohttp
import yarl

from agent.informers import kubelet_trust as trusts
from agent.model import pod_lists
from api.kubernetes import core

SUMMARY: Final = "stats/summary"
"""What the kubelet counted of its pods and its node; takes the permission `nodes/stats`."""
MOST_BYTES = 64 * 1024 * 1024
# A kubelet that just started lists nothing for a moment; a node without pods goes on doing so.
EMPTY_ANSWERS_BELIEVED = 3


class KubeletError(Exception):
    """The kubelet gave no usable answer; the text says why."""


_FAILURES: Final = (
    aiohttp.ClientError, TimeoutError, OSError, ValueError, KubeletError, trusts.TrustError,
)  # fmt: skip


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
        self._base = yarl.URL(url.rstrip("/"))
        self._url = self._base / "pods"
        self._token_file = token_file
        self._trust = trust
        self._empty = 0
        self.pods: tuple[core.Pod, ...] = ()
        self.problem = "not asked yet"

    def adopt(self, pods: tuple[core.Pod, ...]) -> None:
        """Take a list from another source for the last good one."""
        self.pods, self._empty = pod_lists.unchanged_kept(self.pods, pods), 0

    async def refresh(self) -> bool:
        """Ask once; on failure the last list stays and `problem` says why."""
        try:
            answer = await self._ask()
        except _FAILURES as error:
            self.problem = _why(error)
            return False
        pods = answer.pods
        self._empty = 0 if pods else self._empty + 1
        if not pods and self.pods and self._empty < EMPTY_ANSWERS_BELIEVED:
            self.problem = f"empty answer {self._empty} of {EMPTY_ANSWERS_BELIEVED}, not believed"
            return False
        self.pods = pod_lists.unchanged_kept(self.pods, pods)
        self.problem = "; ".join(filter(None, (answer.problem, self._trust.problem)))
        return True

    async def get(self, path: str) -> bytes:
        """Return what the kubelet answers to a question; raises KubeletError if it does not."""
        try:
            return await self._got(self._base / path)
        except _FAILURES as error:
            raise KubeletError(_why(error)) from error

    async def _ask(self) -> pod_lists.PodList:
        body = await self._got(self._url)
        try:
            return pod_lists.read(body)
        except pod_lists.ListError as error:
            raise KubeletError(f"{self._url} answered no list of pods: {error}") from error

    async def _got(self, url: yarl.URL) -> bytes:
        if url.scheme != "https":
            return await self._answer(url, proof=False, secret=self._trust.tells_anybody)
        peer = trusts.Peer(str(url.host), url.port or 443, self._session.timeout.total or 3.0)
        proof = await self._trust.proof(peer)
        try:
            return await self._answer(url, proof=proof, secret=True)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch):
            await self._trust.meet(peer)
        return await self._answer(url, proof=await self._trust.proof(peer), secret=True)

    async def _answer(self, url: yarl.URL, *, proof: Any, secret: bool) -> bytes:
        headers = {}
        if secret and self._token_file is not None:
            # Read each time: kubelets rotate the tokens that they mount.
            token = await asyncio.to_thread(self._token_file.read_text, "ascii")
            headers["Authorization"] = f"Bearer {token.strip()}"
        async with self._session.get(
            url, headers=headers, ssl=proof, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise KubeletError(f"{url} answered {response.status}{self._hint(headers)}")
            return await _bounded(response)

    def _hint(self, headers: dict[str, str]) -> str:
        if headers or self._token_file is None:
            return ""
        return "; over plain HTTP it is sent no token, unless kubelet.verify is off"


def _why(error: Exception) -> str:
    name, certificate = type(error).__name__, aiohttp.ClientConnectorCertificateError
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, certificate):
        # Its own text shows objects by where they lie in memory, so that it differs every time.
        return f"{name}: {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return f"{name}: {error}".rstrip(": ")


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        parts += part
        if len(parts) > MOST_BYTES:
            raise KubeletError(f"the answer is larger than {MOST_BYTES} bytes")
    return bytes(parts)
