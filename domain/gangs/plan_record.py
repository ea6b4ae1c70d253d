"""The record of a gang's plan on a member: an annotation that the patch of its gate writes. Pure.

An extender that starts later keeps the places for the members from it. It is bounded, and it is
obeyed no further than an allocation of a plug-in: what the codec reads, a Binding could have
granted. A Binding writes it where the member has none of that plan: without a gate nothing was
written before, and another extender may have written its own since. It lists other members, so that
those that still wait are known by what was bound, whatever their own records say.
"""

import bisect
import hashlib
from collections.abc import Iterable
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
"""Members of a plan up to which each record lists all others."""
_NEXT_LISTED: Final = 16
"""Members that a record of a larger plan lists: the next ones, the first coming after the last."""
_DIGEST_BYTES: Final = 4


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
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
    """Members that are bound together with this one, as `digest` writes their uids: of a small plan
    all others, of a large one those that come next."""
    count: int = 0
    """Members that are bound together; 0: not known."""
    v: int = msgspec.field(default_factory=lambda: VERSION)
    """Written in any case."""

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


def digests(uids: Iterable[str]) -> tuple[str, ...]:
    """Return members as records list them, in the order in which each has its next ones."""
    return tuple(sorted(map(digest, uids)))


def others(members: tuple[str, ...], uid: str) -> tuple[str, ...]:
    """Return what the record of one member lists of all, as `digests` returns them.

    Of members of which not all are bound, one that is bound comes before one that is not. So its
    record tells of that, unless all that it lists were deleted meanwhile.
    """
    own = digest(uid)
    most = len(members) - 1 if len(members) <= MOST_LISTED else _NEXT_LISTED
    start = bisect.bisect_right(members, own)
    return (*members[start:], *members[:start])[: max(most, 0)]


def renewed(text: str, plan: Record, node: str, uid: str) -> Record | None:
    """Return what a Binding to a node writes of a plan; None where the member has it already.

    `text` is what the member has, and `plan` a record that lists all members. A record of this very
    plan keeps its node: by it is known which members have exchanged their places.
    """
    found = read(text)
    is_same = found is not None and found.generation == plan.generation
    if found is not None and is_same and found.origin == plan.origin and found.members:
        return None
    noted = found.node if found is not None and is_same else node
    return msgspec.structs.replace(plan, node=noted, members=others(plan.members, uid))


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
