"""The file format of a snapshot: gzip around one JSON document that names its version. Pure.

The document holds ``kind``, ``version``, ``takenAt`` (RFC 3339), ``product``, ``redaction``,
``objects`` (objects of the API by ``plural.group``) and ``unread`` (why a resource is missing). A
reader skips members and resources that it does not know; the version grows only where an older
reader would misunderstand the file.
"""

import gzip
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from api import resources
from api.wire import durations
from domain import wording

Raw = dict[str, Any]

KIND: Final = "KoordSnapshot"
VERSION: Final = 1
NOT_INSTALLED: Final = "not installed"
"""Why a resource is missing that the API server does not serve."""


class Bounds(NamedTuple):
    """What a file may be at most; 150,000 pods take some 60 MiB of JSON."""

    packed: int = 256 << 20
    """Bytes of the file."""
    plain: int = 1 << 30
    """Bytes of its JSON."""
    objects: int = 1_000_000
    """Objects of all resources together."""


class SnapshotError(ValueError):
    """A file that is no snapshot, or none that can be read; says why."""


class Snapshot(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a cluster at one moment, reduced to what decisions are made of."""

    taken_at: str
    """RFC 3339, UTC."""
    objects: Mapping[str, tuple[Raw, ...]] = {}
    """Objects by the name of their resource: ``pods``, ``elasticquotas.koordinator.sh``."""
    unread: Mapping[str, str] = {}
    """Resources that could not be read or are not installed, and why."""
    unreadable: tuple[str, ...] = ()
    """Objects of an unexpected shape, which are left out."""
    product: str = ""
    """The release that took it."""
    redaction: str = "fields"
    """``fields``: secrets, environments and foreign annotations are left out; ``names``: names
    are replaced, too."""

    def of(self, resource: resources.Resource) -> tuple[Raw, ...]:
        """Return the objects of a resource."""
        return self.objects.get(resource.review_name(), ())

    def lacks(self, resource: resources.Resource) -> bool:
        """Whether the release that took it did not read such a resource yet."""
        name = resource.review_name()
        return name not in self.objects and name not in self.unread


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""
    version: int = 0


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    taken_at: str
    objects: dict[str, list[msgspec.Raw]] = {}
    unread: dict[str, str] = {}
    unreadable: tuple[str, ...] = ()
    product: str = ""
    redaction: str = "fields"


def encode(snapshot: Snapshot) -> bytes:
    """Return the bytes of a file; the same snapshot gives the same bytes."""
    members = msgspec.to_builtins(snapshot)
    return gzip.compress(
        orjson.dumps({"kind": KIND, "version": VERSION, **members}), compresslevel=6, mtime=0
    )


def decode(data: bytes, bounds: Bounds = Bounds()) -> Snapshot:  # noqa: B008 - immutable
    """Read the bytes of a file; an object that cannot be read is named and left out."""
    text = _plain(data, bounds)
    document = _document(text)
    count = sum(map(len, document.objects.values()))
    if count > bounds.objects:
        held = wording.count(count, "object", "objects")
        raise SnapshotError(f"it holds {held}, more than the {bounds.objects} accepted")
    found: dict[str, tuple[Raw, ...]] = {}
    odd = list(document.unreadable)
    for name, items in document.objects.items():
        read = [_object(raw) for raw in items]
        found[name] = tuple(one for one in read if one is not None)
        odd += [f"{name} {i}" for i, one in enumerate(read) if one is None]
    return Snapshot(
        document.taken_at,
        found,
        document.unread,
        tuple(odd),
        document.product,
        document.redaction,
    )


def _plain(data: bytes, bounds: Bounds) -> bytes:
    """Decompress within bounds: a small file may stand for an endless one."""
    if len(data) > bounds.packed:
        raise SnapshotError(f"it is larger than the {bounds.packed >> 20} MiB that are accepted")
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(data, bounds.plain)
    except zlib.error as error:
        raise SnapshotError(f"it is no gzip file ({error})") from error
    if unpacking.unconsumed_tail:
        raise SnapshotError(f"unpacked it is larger than {bounds.plain >> 20} MiB")
    if not unpacking.eof:
        raise SnapshotError("it ends early: take it again, or copy it again")
    if unpacking.unused_data:
        raise SnapshotError("bytes follow its end")
    return text


def _document(text: bytes) -> _Document:
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise SnapshotError(f"it holds no JSON document of a snapshot ({error})") from error
    if head.kind != KIND:
        raise SnapshotError(f"its kind is {head.kind[:80]!r}, not {KIND}")
    if not 1 <= head.version <= VERSION:
        raise SnapshotError(
            f"it has format version {head.version}; this release reads versions 1 to {VERSION}: "
            "use the release that wrote it, or a newer one"
        )
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise SnapshotError(f"it does not have the shape of a snapshot ({error})") from error
    try:
        durations.timestamp(document.taken_at)
    except ValueError as error:
        raise SnapshotError(f"takenAt: {error}") from error
    return document


def _object(raw: msgspec.Raw) -> Raw | None:
    """Return an object, None for anything else, also where no reader could do with its parts."""
    try:
        found = orjson.loads(bytes(raw))
    except ValueError:
        return None
    if not isinstance(found, dict) or not _named(found.get("metadata")):
        return None
    data = found.get("data") or {}
    whole = all(isinstance(found.get(part) or {}, dict) for part in ("spec", "status", "data"))
    return found if whole and all(isinstance(text, str) for text in data.values()) else None


def _named(metadata: Any) -> bool:
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return isinstance(name, str) and bool(name)
