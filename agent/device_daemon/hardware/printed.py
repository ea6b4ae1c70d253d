"""What the tools of vendors print, as lines `name : value`. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agent.devices import device_inventory, vendor_records
from agent.host import files

MOST: Final = 256
"""Devices that a tool may list."""
_ADDRESS = re.compile(
    r"(?<![0-9A-Fa-f])([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])"
)
_NUMBER = re.compile(r"\d{1,12}")
Fields = tuple[tuple[str, str], ...]


def fields(text: str) -> Fields:
    """Return names and values of all lines with a colon, without the space around them."""
    found = []
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.append((name.strip(), value.strip()))
    return tuple(found)


def blocks(found: Fields, first: str) -> Iterator[Fields]:
    """Yield the parts that each begin with a line of that name."""
    part: list[tuple[str, str]] = []
    for name, value in found:
        if name == first:
            if part:
                yield tuple(part)
            part = []
        if part or name == first:
            part.append((name, value))
    if part:
        yield tuple(part)


def value_of(found: Iterable[tuple[str, str]], name: str, tool: str) -> str:
    """Return the first value of that name; a tool that does not print it has failed."""
    for known, value in found:
        if known == name and value:
            return value
    raise files.ReadingError(f"{tool} prints no {name}")


def whole(text: str, tool: str) -> int:
    """Return the number that a value begins with."""
    match = _NUMBER.match(text)
    if match is None:
        raise files.ReadingError(f"{tool}: {text[:40]!r} is no number")
    return int(match[0])


def sum_of(found: Iterable[tuple[str, str]], names: tuple[str, ...], tool: str) -> int:
    """Return the sum of all values whose name begins so."""
    return sum(whole(value, tool) for name, value in found if name.startswith(names))


def address(text: str) -> str:
    """Return the first PCI address in a text as the kernel writes it, empty where there is none."""
    match = _ADDRESS.search(text)
    return (
        "" if match is None else f"{int(match[1], 16):04x}:{match[2]}:{match[3]}.{match[4]}".lower()
    )


def topology(place: device_inventory.Place | None, bus: str) -> vendor_records.Topology | None:
    """Return where a device is plugged in, as a record says it."""
    if place is not None:
        return vendor_records.Topology(
            socket=str(place.socket), node=str(place.node), pcie=place.pcie, bus=place.bus
        )
    return vendor_records.Topology(socket="-1", node="0", bus=bus) if bus else None


def paired(addresses: list[str], plugged: list[str]) -> list[str]:
    """Return an address for each device: what its tool says, else by position where that is sure.

    Positions are sure where no tool says any address and as many are plugged in as are listed.
    """
    if not any(addresses) and len(addresses) == len(plugged):
        return sorted(plugged)
    return addresses
