"""Where the API server is and how to prove who we are."""

import dataclasses
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from kube.client import errors

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class TokenSource(Protocol):
    """Something that knows the present credential."""

    async def authorization(self) -> str:
        """Return the value of the Authorization header for the next request."""

    async def renew(self) -> None:
        """Fetch the credential anew because the API server refused the present one."""


@dataclasses.dataclass(frozen=True, slots=True)
class StaticToken:
    """A bearer token that never changes."""

    token: str = dataclasses.field(repr=False)

    async def authorization(self) -> str:
        """Return the bearer header."""
        return f"Bearer {self.token}"

    async def renew(self) -> None:
        """Do nothing: there is no other token."""


class TokenFile:
    """A bearer token in a file that another process rotates, as in every pod."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, int, int] | None = None
        self._token = ""

    async def authorization(self) -> str:
        """Return the bearer header, from the file whenever the file changed."""
        try:
            status = self._path.stat()
            mark = (status.st_ino, status.st_mtime_ns, status.st_size)
            if mark != self._mark:
                token = self._path.read_text(encoding="utf-8").strip()
                if not (token.isascii() and token.isprintable()):
                    raise ValueError("it has characters that no header can carry")
                self._token, self._mark = token, mark
        except (OSError, ValueError) as error:
            # During a rotation the link may dangle for a moment; the old token still serves.
            if not self._token:
                raise errors.AccessError(
                    f"the token file {self._path} cannot be read ({error}); "
                    "mount a service account token there"
                ) from error
            logger.warning("token file is unreadable path=%s error=%s", self._path, error)
        return f"Bearer {self._token}"

    async def renew(self) -> None:
        """Forget what was read, so that the next request reads the file."""
        self._mark = None


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """One API server and the means to enter it."""

    server: str
    ca_data: bytes | None = dataclasses.field(default=None, repr=False)
    tokens: TokenSource | None = dataclasses.field(default=None, repr=False)
    client_certificate: tuple[Path, Path] | None = None
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    impersonate: str = ""
    """The user as whom every request is made; empty: as who we are."""
    request_seconds: float | None = None
    """The longest that one request may take, where a person has said so."""

    def headers(self) -> dict[str, str]:
        """Return the headers of every request that say as whom it is made."""
        if not (self.impersonate.isascii() and self.impersonate.isprintable()):
            raise errors.AccessError("--as: a user has printable ASCII characters alone")
        return {"Impersonate-User": self.impersonate} if self.impersonate else {}

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return what a connection has to verify and present, None for plain HTTP."""
        if not self.server.startswith("https"):
            return None
        try:
            context = ssl.create_default_context(
                cadata=self.ca_data.decode("ascii") if self.ca_data else None
            )
            # Newer Pythons ask for key identifiers that many cluster CAs lack.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.client_certificate:
                context.load_cert_chain(*self.client_certificate)
        except (OSError, ValueError) as error:
            raise errors.AccessError(
                f"the certificates for {self.server} cannot be used: {error}"
            ) from error
        return context


def in_cluster(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Access:
    """Return the access that Kubernetes gives to every pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise errors.AccessError(
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod; "
            "name a kubeconfig"
        )
    ca_file = folder / "ca.crt"
    try:
        ca_data = ca_file.read_bytes()
    except OSError as error:
        raise errors.AccessError(
            f"the CA file {ca_file} cannot be read ({error}); "
            "set automountServiceAccountToken for this pod"
        ) from error
    # An IPv6 address needs brackets in a URL.
    host = f"[{host}]" if ":" in host else host
    return Access(
        server=f"https://{host}:{port}", ca_data=ca_data, tokens=TokenFile(folder / "token")
    )
