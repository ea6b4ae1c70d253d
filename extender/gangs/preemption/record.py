"""The record of a preemption for a gang, on one of its members: an annotation. Pure.

It is written before the first eviction and names every place and every victim, so there is the
whole of it or nothing. An extender that starts later keeps the places, and evicts no pod because of
it: a search is made anew, in which pods that are leaving count as gone.
"""

from typing import Final

import msgspec

from api.kubernetes import dns
from api.wire import untrusted
from extender.gangs.preemption import candidates
from extender.state import gang_facts

VERSION: Final = 2
"""Version 1 is the record of a single pod that preempts."""
MOST_PLACES: Final = 1024
_BOUNDS: Final = untrusted.Bounds(bytes=gang_facts.LONGEST_NOTE, depth=4, parts=4096)
_LONGEST_UID: Final = 64


class Record(msgspec.Struct, frozen=True, omit_defaults=False):
    """Who leaves for a gang group, and which places are kept for it until when."""

    id: str
    group: str
    places: dict[str, str] = msgspec.field(default_factory=dict)
    """Node by the uid of a member."""
    victims: tuple[str, ...] = ()
    """Uids of the pods that are evicted or waited for."""
    at: float = 0.0
    """On the wall clock, in seconds since the epoch."""
    until: float = 0.0
    """When the places are given up at the latest."""
    v: int = VERSION


def fits(record: Record) -> bool:
    """Whether a record can be read again: a gang may have more members than it has room for."""
    within = len(record.places) <= MOST_PLACES and len(record.victims) <= candidates.MOST_VICTIMS
    return within and len(encode(record)) <= gang_facts.LONGEST_NOTE


def encode(record: Record) -> str:
    """Write the annotation."""
    return msgspec.json.encode(record).decode()


def decode(text: str, now: float, longest: float) -> Record | None:
    """Read the annotation; None where there is none that counts now.

    It keeps places for no longer than `longest` seconds from now.
    """
    if not text:
        return None
    try:
        found = untrusted.decode(text, Record, "annotation", bounds=_BOUNDS)
    except untrusted.ReadError:
        return None
    if found.v != VERSION or len(found.places) > MOST_PLACES:
        return None
    if len(found.victims) > candidates.MOST_VICTIMS:
        return None
    if any(len(uid) > _LONGEST_UID for uid in (found.id, *found.places, *found.victims)):
        return None
    if not all(dns.is_subdomain(node) for node in found.places.values()):
        return None
    if not found.at <= now + longest or not now < found.until <= now + longest:
        return None
    return found
