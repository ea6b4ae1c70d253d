"""Whom the agent takes for the kubelet of its node, before it shows its token.

A certificate that a known authority signed is good. One that no known authority has signed, as
kubelets make their own, is remembered when it is first seen; any other one is refused from then on.
No request is sent before that is settled.

A kubelet that renewed its own certificate is told apart from another process at its port by the
Node: a kubelet that cannot listen ends, so a Node that became Ready anew after the other
certificate was first seen has its kubelet behind it.
"""

import asyncio
import hashlib
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import aiohttp
import msgspec

from agent.host import files

_logger = logging.getLogger(__name__)
NAME: Final = "kubelet-certificate"
SIGNED: Final = "signed"
Check = Literal["auto", "signed", "off"]
Ready = Callable[[], Awaitable[float | None]]
_PIN: Final = re.compile(r"sha256 ([0-9a-f]{64})")
_LONGEST: Final = 1024
# What OpenSSL calls certificates whose signer is not among those that are known.
_UNKNOWN_SIGNER: Final = frozenset({18, 19, 20, 21})


class TrustError(Exception):
    """The peer is not who it should be; the text says why and what to do."""


class Peer(msgspec.Struct, frozen=True):
    """Where the kubelet answers."""

    host: str
    port: int
    seconds: float


class Trust:
    """What a connection to the kubelet has to prove."""

    def __init__(
        self, check: Check, authorities: ssl.SSLContext | None, path: Path, *, strict: bool = False
    ) -> None:
        self.problem = ""
        """Why what was seen cannot be remembered; empty when it is."""
        self._check = check
        self._authorities = authorities
        self._strict = strict or check == "signed"
        self._path = path
        self._known = ""
        self._stored = False
        self._fingerprint: aiohttp.Fingerprint | None = None
        self._other: tuple[str, float] | None = None
        self._meeting = asyncio.Lock()
        self.ready: Ready | None = None
        """Says until when the Node was Ready; None where no API server can be asked."""
        self.wall: Callable[[], float] = lambda: 0.0

    @property
    def tells_anybody(self) -> bool:
        """Whether the token may be shown without any proof."""
        return self._check == "off"

    async def proof(self, peer: Peer) -> ssl.SSLContext | aiohttp.Fingerprint | bool:
        """Return what the next connection has to prove, False for nothing."""
        if self._check == "off":
            return False
        if not self._known:
            self._read()
        if not self._known:
            await self.meet(peer)
        if self._known == SIGNED:
            assert self._authorities is not None
            return self._authorities
        assert self._fingerprint is not None
        return self._fingerprint

    async def meet(self, peer: Peer) -> None:
        """Look who is there without saying anything, and remember or refuse it."""
        # Several tasks ask the kubelet; what one of them remembers, the next one finds.
        async with self._meeting:
            await self._meet(peer)

    async def _meet(self, peer: Peer) -> None:
        if self._stored:
            # An administrator may have removed the file, which is how a new certificate is allowed.
            self._read()
        flaw = "no authority that signs kubelets is known"
        if self._authorities is not None:
            try:
                await _shown(peer, self._authorities)
            except ssl.SSLCertVerificationError as error:
                flaw = error.verify_message or str(error)
                if error.verify_code not in _UNKNOWN_SIGNER:
                    raise TrustError(self._refusal(peer, flaw)) from error
            else:
                self._remember(SIGNED)
                return
        if self._strict:
            raise TrustError(self._refusal(peer, flaw))
        found = hashlib.sha256(await _shown(peer, _anybody())).hexdigest()
        if self._known and self._known != found and not await self._renewed(found):
            before = "an authority had signed" if self._known == SIGNED else "was another one"
            raise TrustError(
                f"{peer.host}:{peer.port} shows the certificate sha256 {found}, signed by no known "
                f"authority, and the one seen before {before}: the token is not sent; if the "
                "kubelet's certificate was renewed, the Node's next Ready heartbeat shows it, or "
                f"remove {self._path} on the node"
                + ("" if self._stored else " and start the agent again")
            )
        self._remember(found)

    async def _renewed(self, found: str) -> bool:
        """Tell whether the kubelet itself shows another certificate than before."""
        if self._known == SIGNED or self.ready is None:
            # What an authority signed once is never taken on faith again.
            return False
        if self._other is None or self._other[0] != found:
            self._other = (found, self.wall())
        beat = await self.ready()
        if beat is None or beat <= self._other[1]:
            return False
        _logger.warning("the kubelet renewed its certificate before=%s now=%s", self._known, found)
        self._other = None
        return True

    def _refusal(self, peer: Peer, flaw: str) -> str:
        return (
            f"the certificate of {peer.host}:{peer.port} is refused ({flaw}): the token is not "
            "sent; let the kubelet's certificate be signed for its address by the cluster's "
            "authority, or name the bundle that signs it in kubelet.caFile"
        )

    def _read(self) -> None:
        self._known, self._stored = "", False
        try:
            text = self._path.read_bytes()[:_LONGEST].decode("ascii").strip()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise TrustError(self._damaged(str(error))) from error
        match = _PIN.fullmatch(text)
        if match is None and text != SIGNED:
            raise TrustError(self._damaged("it holds neither a fingerprint nor 'signed'"))
        if match is None and self._authorities is None:
            raise TrustError(
                f"{self._path} says that an authority signs the kubelet's certificate, and none is "
                "known any more: name it in kubelet.caFile, or remove that file on the node"
            )
        self._take(match[1] if match else SIGNED)
        self._stored = True

    def _damaged(self, why: str) -> str:
        return (
            f"{self._path}, which says how the kubelet is known, cannot be used ({why}): the token "
            "is not sent; remove that file on the node"
        )

    def _take(self, known: str) -> None:
        self._known = known
        self._fingerprint = None if known == SIGNED else aiohttp.Fingerprint(bytes.fromhex(known))

    def _remember(self, known: str) -> None:
        if known != self._known:
            _logger.info("kubelet is known by certificate=%s", known)
            self._take(known)
            self._stored = False
        if self._stored:
            return
        text = known if known == SIGNED else f"sha256 {known}"
        try:
            files.replace(self._path, f"{text}\n".encode())
        except OSError as error:
            self.problem = (
                f"{self._path} cannot be written ({error.strerror or error}): the kubelet's "
                "certificate is remembered until the agent ends only"
            )
            return
        self._stored, self.problem = True, ""


def move(before: Path, now: Path) -> None:
    """Take along what an earlier agent noted elsewhere, unless there is a note already."""
    if before == now or now.exists():
        return
    try:
        files.replace(now, before.read_bytes()[:_LONGEST])
    except FileNotFoundError:
        return
    except OSError as error:
        # What cannot be written is reported by the first note that is made.
        _logger.warning("kubelet's certificate not taken along from=%s reason=%s", before, error)


def authorities(bundle: bytes | None) -> ssl.SSLContext | None:
    """Return what checks certificates against a PEM bundle, None without one."""
    if not bundle:
        return None
    context = ssl.create_default_context(cadata=bundle.decode("ascii"))
    # Newer Pythons ask for key identifiers that many cluster CAs lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _anybody() -> ssl.SSLContext:
    # Without the public authorities, which take memory and are not asked here.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _shown(peer: Peer, context: ssl.SSLContext) -> bytes:
    """Shake hands and return the certificate that the other side shows."""
    async with asyncio.timeout(peer.seconds):
        _, writer = await asyncio.open_connection(
            peer.host, peer.port, ssl=context, server_hostname=peer.host
        )
        try:
            shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.transport.abort()
    if shown is None:
        raise TrustError(f"{peer.host}:{peer.port} shows no certificate: the token is not sent")
    return shown
