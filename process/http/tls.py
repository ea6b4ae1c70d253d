"""The TLS side of a server: build a context from files, exchange it while connections live."""

import dataclasses
import importlib
import logging
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from process.configuration import settings
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)

_WEEK = 7 * 24 * 3600.0


class TlsError(ValueError):
    """Certificate files that cannot be served; the text names the file and the remedy."""


@dataclasses.dataclass(frozen=True, slots=True)
class Material:
    """A context ready to serve and until when its certificate is valid."""

    context: ssl.SSLContext
    not_before: float
    not_after: float


def read(tls: settings.TlsSettings, now: float) -> Material:
    """Build a server context from files, refusing pairs that no client would accept."""
    not_before, not_after = _validity(tls.cert_file)
    if now >= not_after:
        raise TlsError(
            f"tls.certFile {tls.cert_file}: expired {now - not_after:.0f} s ago; renew it"
        )
    if now < not_before:
        raise TlsError(
            f"tls.certFile {tls.cert_file}: not valid for another {not_before - now:.0f} s;"
            " check the clock of this machine"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:
        raise TlsError(
            f"tls.certFile {tls.cert_file} and tls.keyFile {tls.key_file}:"
            f" not a usable pair: {error}"
        ) from error
    if tls.client_ca_file is not None:
        try:
            context.load_verify_locations(tls.client_ca_file)
        except OSError as error:
            raise TlsError(
                f"tls.clientCaFile {tls.client_ca_file}: no usable bundle: {error}"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session would let in a client whose authority is no longer in the bundle.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return Material(context, not_before, not_after)


def is_named(certificate: Mapping[str, Any] | None, names: Sequence[str]) -> bool:
    """Return whether a client's certificate carries one of these DNS names; any will do for none.

    The certificate is what `ssl` tells of a peer that an authority has vouched for.
    """
    shown = (certificate or {}).get("subjectAltName", ())
    return not names or any(kind == "DNS" and name in names for kind, name in shown)


def _validity(file: Path) -> tuple[float, float]:
    # Reading certificates costs 7 MiB that a process without TLS, such as an agent, need not pay.
    x509 = importlib.import_module("cryptography.x509")
    try:
        certificate = x509.load_pem_x509_certificates(file.read_bytes())[0]
    except (OSError, ValueError, x509.InvalidVersion) as error:
        raise TlsError(f"tls.certFile {file}: no PEM certificate: {error}") from error
    return (
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )


class Reloader:
    """Serves the newest good pair of files to every new connection."""

    def __init__(self, tls: settings.TlsSettings, clock: clocks.Clock) -> None:
        """Read the files; raises TlsError when there is nothing good to begin with."""
        self._settings = tls
        self._clock = clock
        self._seen = self._fingerprint()
        self._material = read(tls, clock.now())
        self.problem: str | None = None
        """Why the newest files are not in use."""
        self.context = self._material.context
        # The listener keeps this first context; each handshake is moved to the newest one.
        self.context.sni_callback = self._choose

    @property
    def not_after(self) -> float:
        """When the certificate in use ends, in seconds since the epoch."""
        return self._material.not_after

    def warning(self) -> str | None:
        """Return why the newest files are not in use, or that the end of the pair is near."""
        if self.problem is not None:
            return self.problem
        left = self.not_after - self._clock.now()
        if 0 < left < _WEEK:
            return f"certificate {self._settings.cert_file} ends in {left / 3600:.0f} h"
        return None

    def failure(self) -> str | None:
        """Return that the certificate in use has ended, which no client accepts."""
        if self._clock.now() >= self.not_after:
            return f"certificate {self._settings.cert_file} has ended; put a new pair in its place"
        return None

    async def run(self) -> None:
        """Look at the files again and again; never ends."""
        while True:
            await self._clock.sleep(self._settings.reload_seconds)
            self.poll()

    def poll(self) -> None:
        """Take changed files into use if they are good, keep what is in use otherwise."""
        fingerprint = self._fingerprint()
        if fingerprint == self._seen:
            return
        try:
            material = read(self._settings, self._clock.now())
        except TlsError as error:
            if self.problem != str(error):
                _logger.error("tls files not taken into use reason=%s", error)
            self.problem = str(error)
            # A certificate that is not valid yet, or a half-written pair, may become good as
            # it is, so the files are read again next time.
            return
        self._seen = fingerprint
        self._material = material
        self.problem = None
        _logger.info("tls files reloaded cert=%s", self._settings.cert_file)

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext
    ) -> None:
        connection.context = self._material.context

    def _fingerprint(self) -> tuple[tuple[int, int, int] | None, ...]:
        files = (
            self._settings.cert_file,
            self._settings.key_file,
            self._settings.client_ca_file,
        )
        return tuple(_stamp(file) for file in files if file is not None)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
