"""The record of a preemption on the pod that preempts: an annotation. Pure.

It is written before the first eviction. An extender that starts later keeps the place for the pod
from it, and evicts no pod because of it: a plan is made anew, in which leaving pods count as gone.
"""

from typing import Final

import msgspec

from api.kubernetes import dns
from api.wire import untrusted

VERSION: Final = 1
_BOUNDS: Final = untrusted.Bounds(bytes=4 << 10, depth=4, parts=128)
_MOST: Final = 64
_LONGEST_UID: Final = 128


class Record(msgspec.Struct, frozen=True, omit_defaults=False):
    """Who leaves for a pod, and until when its place is kept."""

    id: str
    node: str
    victims: tuple[str, ...] = ()
    """Uids of the pods that are evicted or waited for."""
    at: float = 0.0
    """On the wall clock, in seconds since the epoch."""
    until: float = 0.0
    """When the place is given up at the latest."""
    granted: dict[str, str] = msgspec.field(default_factory=dict)
    """What plug-ins allocate to the pod, as the annotations that bind will write."""
    v: int = VERSION


def encode(record: Record) -> str:
    """Write the annotation."""
    return msgspec.json.encode(record).decode()


def decode(text: str, now: float, longest: float) -> Record | None:
    """Read the annotation; None where there is none that counts now.

    It keeps a place for no longer than `longest` seconds from now.
    """
    if not text:
        return None
    try:
        found = untrusted.decode(text, Record, "annotation", bounds=_BOUNDS)
    except untrusted.ReadError:
        return None
    if found.v != VERSION or not dns.is_subdomain(found.node) or len(found.victims) > _MOST:
        return None
    if any(len(uid) > _LONGEST_UID for uid in (found.id, *found.victims)):
        return None
    if not found.at <= now + longest or not now < found.until <= now + longest:
        return None
    return found
