"""Writes HTTP/1.1 requests to one server; no I/O."""

import re
import urllib.parse
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

_PLAIN: Final = re.compile(r"[A-Za-z0-9/._~-]*")
_KEPT: Final = "/:@!$&'()*+,;=~-._"
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORTS: Final = {"http": 80, "https": 443}


class Server(NamedTuple):
    """What the URL of a server says."""

    host: str
    port: int
    secured: bool
    prefix: str
    """Path before every path, without a slash at its end."""
    name: str
    """What the Host header says."""


class Media(msgspec.Struct, frozen=True, gc=False):
    """Media types of one exchange."""

    sent: str = "application/json"
    accepted: str = "application/json"


def server(url: str) -> Server:
    """Read the URL of a server; ValueError when it is none."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url} is not the http or https address of a server")
    default = _PORTS[parts.scheme]
    port = parts.port or default
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Server(
        host=parts.hostname,
        port=port,
        secured=parts.scheme == "https",
        prefix=parts.path.rstrip("/"),
        name=host if port == default else f"{host}:{port}",
    )


def target(prefix: str, path: str, query: Mapping[str, str]) -> str:
    """Return what the first line of a request names."""
    path = path.strip("/")
    if not _PLAIN.fullmatch(path):
        path = urllib.parse.quote(path, safe=_KEPT)
    found = f"{prefix}/{path}"
    return f"{found}?{urllib.parse.urlencode(query)}" if query else found


class Writer:
    """Writes requests to one server, with what is the same in all of them made once."""

    def __init__(self, to: Server, user_agent: str, more: Mapping[str, str] | None = None) -> None:
        self._prefix = to.prefix
        headers = {"Host": to.name, "User-Agent": user_agent, **(more or {})}
        self._same = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._authorization = ""
        self._common = self._same

    def write(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None,
        media: Media,
        authorization: str,
    ) -> bytes:
        """Return the bytes of one request; ValueError when the credential cannot be sent."""
        if authorization != self._authorization:
            if _UNFIT.search(authorization) or not authorization.isascii():
                raise ValueError("the credential has characters that no header can carry")
            self._common = f"{self._same}Authorization: {authorization}\r\n"
            self._authorization = authorization
        common = self._common if authorization else self._same
        first = f"{method} {target(self._prefix, path, query)} HTTP/1.1\r\n"
        common = f"{common}Accept: {media.accepted}\r\n"
        if body is None:
            return f"{first}{common}\r\n".encode()
        about = f"Content-Type: {media.sent}\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{first}{common}{about}".encode() + body
