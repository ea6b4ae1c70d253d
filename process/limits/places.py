"""Which connection gives way when a listener has no place or no memory left.

Places are shared by source address, so that the holder of most of them loses first. Callers from
named address blocks come before everybody else.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST_BITS: Final = 64
"""Prefix of an IPv6 address that one host may fill on its own."""


class Guest(Protocol):
    """A connection, its handshake included."""

    source: "Source"
    held: int
    """Bytes of a request that is not answered yet."""

    @property
    def handling(self) -> bool:
        """Whether a complete request waits for its answer."""


class Source(NamedTuple):
    """Where connections come from, as far as their places are concerned."""

    name: str
    """An IPv4 address, or the network of an IPv6 address."""
    named: bool
    """Whether it is in one of the named address blocks."""


G = TypeVar("G", bound=Guest)


def network(text: str) -> Network:
    """Read an address block such as 10.0.0.0/8; a single address counts as one."""
    return ipaddress.ip_network(text, strict=False)


def source(address: str, blocks: Sequence[Network]) -> Source:
    """Return to whom an address counts."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return Source(address, named=False)
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            named = any(found in block for block in blocks)
            return Source(str(ipaddress.ip_network((found, _HOST_BITS), strict=False)), named)
        found = found.ipv4_mapped
    return Source(str(found), any(found in block for block in blocks))


class Places(Generic[G]):
    """The connections of one listener by source, each source's longest silent one first."""

    def __init__(self, places: int, by_source: int) -> None:
        self._places = places
        self._by_source = min(by_source, places)
        self._guests: dict[Source, dict[G, None]] = {}
        self._count = 0
        self.held = 0
        """Bytes of unanswered requests, of all connections together."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[G]:
        return (guest for group in self._guests.values() for guest in group)

    def add(self, guest: G) -> None:
        """Give a place to a connection."""
        self._guests.setdefault(guest.source, {})[guest] = None
        self._count += 1

    def drop(self, guest: G) -> None:
        """Take back the place of a connection; one that has none is passed over."""
        group = self._guests.get(guest.source, {})
        if guest not in group:
            return
        del group[guest]
        self._count -= 1
        self.hold(guest, 0)
        if not group:
            del self._guests[guest.source]

    def touch(self, guest: G) -> None:
        """Note that a connection has said something."""
        group = self._guests.get(guest.source, {})
        if guest in group:
            del group[guest]
            group[guest] = None

    def hold(self, guest: G, size: int) -> None:
        """Note how many bytes of an unanswered request a connection holds."""
        self.held += size - guest.held
        guest.held = size

    def lacks(self, newcomer: Source) -> bool:
        """Return whether a holder has to give way to a newcomer."""
        own = self._guests.get(newcomer, ())
        is_capped = not newcomer.named and len(own) >= self._by_source
        return is_capped or self._count >= self._places

    def gives_way(self, newcomer: Source) -> G | None:
        """Return the connection that gives way to a newcomer; None where none may."""
        own = self._guests.get(newcomer, {})
        if not newcomer.named and len(own) >= self._by_source:
            return _silent(own)
        largest = sorted(self._guests, key=self._claim, reverse=True)
        for found in largest:
            if found.named and not newcomer.named:
                break
            if found != newcomer and len(self._guests[found]) <= len(own) and not newcomer.named:
                # A holder of as much as any other takes from its own.
                break
            if (guest := _silent(self._guests[found])) is not None:
                return guest
        return _silent(own)

    def _claim(self, found: Source) -> tuple[bool, int]:
        return not found.named, len(self._guests[found])

    def heaviest(self) -> G | None:
        """Return the connection that gives way when memory runs out."""
        sums = {found: sum(guest.held for guest in group) for found, group in self._guests.items()}
        held = [found for found, size in sums.items() if size]
        if not held:
            return None
        most = max(held, key=lambda found: (not found.named, sums[found]))
        return max(self._guests[most], key=lambda guest: guest.held)


def _silent(group: Iterable[G]) -> G | None:
    return next((guest for guest in group if not guest.handling), None)
