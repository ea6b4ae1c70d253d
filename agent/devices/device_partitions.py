"""Which devices belong together, from the links that they name. Pure."""

import json
from collections.abc import Iterable
from typing import Final

import msgspec

SCORE: Final = 1
MOST_PEERS: Final = 256


class Link(msgspec.Struct, frozen=True):
    """A link between one device and others."""

    minor: int
    peers: str
    """Indices of the others, with commas between them."""
    type: str


def partitions(links: Iterable[Link]) -> dict[str, list[dict[str, object]]]:
    """Return every set of linked devices once, by its size, the first type that names it counts.

    A link without a peer, a type or an index is none.
    """
    types: dict[frozenset[int], str] = {}
    for link in links:
        others = peers(link.peers)
        if others and link.type:
            types.setdefault(frozenset({link.minor, *others}), link.type)
    found: dict[str, list[dict[str, object]]] = {}
    for minors in sorted(types, key=lambda one: (len(one), sorted(one))):
        entry = {
            "minors": sorted(minors),
            "gpuLinkType": types[minors],
            "allocationScore": SCORE,
        }
        found.setdefault(str(len(minors)), []).append(entry)
    return found


def text(links: Iterable[Link]) -> str:
    """Return the sets as the annotation of a Device holds them, empty for none."""
    found = partitions(links)
    return json.dumps(found, separators=(",", ":")) if found else ""


def peers(written: str) -> frozenset[int] | None:
    """Read indices with commas between them, None where one of them is no index."""
    parts = [part.strip() for part in written.split(",")]
    if len(parts) > MOST_PEERS or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    if any(len(part) > 6 for part in parts):
        return None
    return frozenset(map(int, parts))
