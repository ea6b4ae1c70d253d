"""The record of a gang's plan on a member: an annotation that the patch of its gate writes. Pure.

An extender that starts later keeps the places for the members from it. It is bounded, and it is
obeyed no further than an allocation of a plug-in: what the codec reads, a Binding could have
granted. Members of small gangs that have no gate get it with their Binding instead, and it lists
all members, since nothing is written on those that still wait.
"""

import hashlib
from typing import Final

import msgspec

from api.kubernetes import dns
from api.wire import untrusted

VERSION: Final = 1
_BOUNDS: Final = untrusted.Bounds(bytes=16 << 10, depth=4, parts=128)
_LONGEST_GROUP: Final = 1024
_LONGEST_ID: Final = 128
_MOST_TEXTS: Final = 32
MOST_LISTED: Final = 32
"""Members of a plan up to which the record that a Binding writes lists all of them."""
_DIGEST_BYTES: Final = 4


class Record(msgspec.Struct, frozen=True, omit_defaults=False):
    """The place of one member in the plan of its gang group."""

    group: str
    """As `group_text` writes it."""
    generation: str
    """The same of all members that were planned together."""
    node: str
    until: float = 0.0
    """When the place is given up at the latest, in seconds since the epoch."""
    granted: dict[str, str] = msgspec.field(default_factory=dict)
    """What plug-ins allocate to the member, as the annotations that bind will write."""
    completes: str = ""
    """The generation by which other members are bound, where an interruption kept this one back."""
    members: tuple[str, ...] = ()
    """All members that are bound together, as `digest` writes their uids, where none but those that
    are bound has a record."""
    count: int = 0
    """Members that are bound together; 0: not known."""
    v: int = VERSION

    @property
    def origin(self) -> str:
        """Return the generation whose members are bound together, however often it was resumed."""
        return self.completes or self.generation


def group_text(ident: str) -> str:
    """Return the id of a gang group, or a digest of one that is too long for an annotation."""
    if len(ident) <= _LONGEST_GROUP:
        return ident
    return f"sha256-{hashlib.sha256(ident.encode()).hexdigest()}"


def digest(uid: str) -> str:
    """Return the few letters by which a record lists a member."""
    return hashlib.blake2b(uid.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def encode(record: Record) -> str:
    """Write the annotation."""
    return msgspec.json.encode(record).decode()


def read(text: str) -> Record | None:
    """Read the annotation, whether it still counts or not; None where it is no record."""
    if not text:
        return None
    try:
        found = untrusted.decode(text, Record, "annotation", bounds=_BOUNDS)
    except untrusted.ReadError:
        return None
    if found.v != VERSION or not dns.is_subdomain(found.node) or not found.generation:
        return None
    if len(found.group) > _LONGEST_GROUP or len(found.generation + found.completes) > _LONGEST_ID:
        return None
    if len(found.members) > MOST_LISTED:
        return None
    return found if len(found.granted) <= _MOST_TEXTS else None


def decode(text: str, now: float, longest: float) -> Record | None:
    """Read the annotation; None where there is none that counts now.

    It keeps a place for no longer than `longest` seconds from now.
    """
    found = read(text)
    return found if found is not None and now < found.until <= now + longest else None
