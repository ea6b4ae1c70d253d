"""Where a server listens, as the configuration writes it: host and port."""

import ipaddress
from typing import Final, NamedTuple

from api.kubernetes import dns

DEFAULT_PORT: Final = 10251
_ANY: Final = "0.0.0.0"  # noqa: S104 - what an empty host means
_REMEDY: Final = "write host:port, such as 0.0.0.0:10251"


class Address(NamedTuple):
    """A host and a port."""

    host: str = _ANY
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        """Return `host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """Read an address; a ValueError says what one looks like."""
    if not text:
        return Address()
    if _is_ip(text):
        return Address(host=text)
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError(f"has no port; {_REMEDY}")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535):
        raise ValueError(f"has no port between 0 and 65535; {_REMEDY}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare:
        return Address(port=int(port))
    if not (_is_ip(bare) or dns.is_subdomain(bare)):
        raise ValueError(f"names no host; {_REMEDY}")
    return Address(bare, int(port))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
