"""Bytes of lists and watches into typed objects; no I/O."""

import re
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from kube.client import errors
from kube.informers import store

T = TypeVar("T")

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_DELETED: Final = "DELETED"
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", _DELETED})
# A string may lack its end, so that none is looked at again from each quote inside it.
_TOKENS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)
_OPENING: Final = b"[{"
_CLOSING: Final = b"]}"
_DEEPEST: Final = 128
# Nothing that the API server stores holds this text, since a name of ours is in it.
_CUT: Final = b'"koord.sh/nested-too-deep"'
_TOO_DEEP: Final = f"nested more than {_DEEPEST} levels deep"
_FRAME: Final = b"\n"
"""What an event in protobuf begins with: the key of its type. No line of JSON does."""
_LENGTH: Final = 4
_LONGEST_FRAME: Final = 64 << 20


class ListMeta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """What a list says about itself."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], gc=False, frozen=True):
    """One page of a list."""

    metadata: ListMeta
    items: list[T] | None = None


class _ObjectMeta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Envelope(msgspec.Struct, gc=False, frozen=True):
    metadata: _ObjectMeta


class _RawEvent(msgspec.Struct, gc=False, frozen=True):
    type: str
    object: msgspec.Raw


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
RAW_PAGE: Final = msgspec.json.Decoder(Page[msgspec.Raw])
_RAW_EVENT: Final = msgspec.json.Decoder(_RawEvent)
_STATUS: Final = msgspec.json.Decoder(dict[str, Any])
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""What decoding raises; a text that is not UTF-8 is no DecodeError."""


class _Event(msgspec.Struct, Generic[T], gc=False, frozen=True):
    type: str
    object: T


class Bookmark(NamedTuple):
    """Everything up to this version has been told; perhaps the end of the initial events."""

    version: str
    ends_initial: bool


class Item(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One object: its identity, its projection, and why it could not be read if it could not."""

    meta: store.Meta
    value: T | None
    flaw: str = ""


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One object that was added, modified or deleted; of a deleted one only the identity."""

    item: Item[T]
    deleted: bool


class Told(msgspec.Struct, frozen=True, gc=False):
    """One event in protobuf."""

    type: str
    object: Any
    """A message."""


class BinaryEvents(Protocol):
    """Reads events of one kind in protobuf."""

    def event(self, frame: bytes) -> Told:
        """Read the envelope of an event; what cannot be read is Malformed."""

    def plain(self, told: Any) -> dict[str, Any]:
        """Return an object as its JSON says it."""


def number(version: str) -> int:
    """Return a resource version as a number that grows, 0 when it is none."""
    # Longer than any number of 64 bits, and from some length on Python refuses to read it.
    is_number = len(version) <= 20 and version.isascii() and version.isdecimal()
    return int(version) if is_number else 0


def shallow(data: bytes) -> bytes:
    """Put a mark in the place of whatever is nested too deep in a JSON text to be decoded."""
    parts, depth, kept = list[bytes](), 0, 0
    for token in _TOKENS.finditer(data):
        first = data[token.start()]
        if first in _OPENING:
            depth += 1
            if depth == _DEEPEST + 1:
                parts.append(data[kept : token.start()])
                kept = len(data)
        elif first in _CLOSING:
            if depth == _DEEPEST + 1:
                parts.append(_CUT)
                kept = token.end()
            depth -= 1
    parts.append(data[kept:])
    return b"".join(parts)


def page(data: bytes) -> tuple[Page[msgspec.Raw], bool]:
    """Cut one page of a list into objects, and tell whether the text was made shallow for that."""
    try:
        try:
            return RAW_PAGE.decode(data), False
        except RecursionError:
            # One object that is nested too deep must not hide all others of its list.
            return RAW_PAGE.decode(shallow(data)), True
    except msgspec.ValidationError as error:
        raise errors.Malformed(f"an answer is not a list: {error}") from error
    except _NOT_JSON as error:
        raise errors.Malformed(f"a list is not JSON: {error}") from error


def objects(data: bytes) -> tuple[ListMeta, Iterator[tuple[msgspec.Raw, bool]]]:
    """Cut one page of a list into objects, each with whether it is whole.

    Of one that is nested too deep to be decoded a mark stands for what is deepest.
    """
    found, is_shallow = page(data)
    items = found.items or ()
    return found.metadata, ((raw, not (is_shallow and _is_cut(raw))) for raw in items)


def _is_cut(raw: msgspec.Raw) -> bool:
    return _CUT in bytes(raw)


def _meta(name: str, namespace: str, uid: str, version: str) -> store.Meta:
    return store.Meta(f"{namespace}/{name}" if namespace else name, uid, number(version))


def _meta_of_struct(decoded: Any) -> store.Meta:
    metadata = decoded.metadata
    return _meta(metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)


def _meta_of_message(message: Any) -> store.Meta:
    metadata = message.metadata
    return _meta(metadata.name, metadata.namespace, metadata.uid, metadata.resourceVersion)


def _meta_of_dict(raw: dict[str, Any]) -> store.Meta:
    metadata = raw["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    return store.Meta(
        f"{namespace}/{name}" if namespace else name,
        metadata.get("uid", ""),
        number(metadata.get("resourceVersion", "")),
    )


class Reader(Generic[T]):
    """Decodes the pages and watch lines of one projection.

    An object that does not have the expected shape counts as one of no interest and says so;
    it must not keep all others from being seen.
    """

    def __init__(
        self,
        kind: type[Any],
        project: Callable[[Any], T | None],
        binary: BinaryEvents | None = None,
    ) -> None:
        """`binary` reads what comes in protobuf."""
        self._project, self._kind, self._binary = project, kind, binary
        self._meta = _meta_of_dict if kind is dict else _meta_of_struct
        self._object = msgspec.json.Decoder(kind)
        # A GenericAlias, because the type is known at run time only.
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            types.GenericAlias(_Event, (kind,))
        )

    def page(self, data: bytes) -> tuple[ListMeta, list[Item[T]]]:
        """Decode one page of a list."""
        meta, items = self.piecemeal(data)
        return meta, list(items)

    def piecemeal(self, data: bytes) -> tuple[ListMeta, Iterator[Item[T]]]:
        """Cut one page of a list into objects, which are read one by one as they are taken."""
        found, is_cut = page(data)
        read = self._item_of_cut if is_cut else self._item_of_raw
        return found.metadata, map(read, found.items or ())

    def event(self, line: bytes) -> Event[T] | Bookmark:
        """Decode one line or frame of a watch; an ERROR event is raised as what it stands for."""
        if self._binary is not None and line.startswith(_FRAME):
            return self._binary_event(self._binary, line)
        try:
            event = self._event.decode(line)
        except RecursionError:
            return self._odd_event(shallow(line), self._item_of_cut)
        except _NOT_JSON:
            return self._odd_event(line, self._item_of_raw)
        if event.type not in _CHANGES:
            return self._odd_event(line, self._item_of_raw)
        if event.type == _DELETED:
            return _deletion(self._identity(event.object))
        return Event(self._item(event.object), deleted=False)

    def _binary_event(self, binary: BinaryEvents, frame: bytes) -> Event[T] | Bookmark:
        told = binary.event(frame)
        if told.type == _DELETED:
            return _deletion(_meta_of_message(told.object))
        if told.type in _CHANGES:
            return Event(self._item_of_message(binary, told.object), deleted=False)
        if told.type == "ERROR":
            raise errors.from_status(binary.plain(told.object))
        if told.type != "BOOKMARK":
            raise errors.Malformed(f"a watch event has the unknown type {told.type!r}")
        metadata = binary.plain(told.object.metadata)
        notes = metadata.get("annotations", {})
        return Bookmark(
            metadata.get("resourceVersion", ""), notes.get(INITIAL_EVENTS_END) == "true"
        )

    def _item_of_message(self, binary: BinaryEvents, message: Any) -> Item[T]:
        try:
            plain = binary.plain(message)
            return self._item(msgspec.convert(plain, self._kind))
        except store.UNREADABLE as error:
            return Item(_meta_of_message(message), None, str(error))

    def _identity(self, decoded: Any) -> store.Meta:
        try:
            return self._meta(decoded)
        except store.UNREADABLE as error:
            raise errors.Malformed(f"an object has no name: {error!r}") from error

    def _item(self, decoded: Any) -> Item[T]:
        meta = self._identity(decoded)
        try:
            return Item(meta, self._project(decoded))
        except store.PartlyUnreadableError as partly:
            return Item(meta, partly.value, str(partly))
        except store.UNREADABLE as error:
            return Item(meta, None, f"{type(error).__name__}: {error}")

    def _item_of_raw(self, raw: msgspec.Raw) -> Item[T]:
        try:
            return self._item(self._object.decode(raw))
        except store.UNREADABLE as error:
            return self._flawed(raw, str(error))

    def _item_of_cut(self, raw: msgspec.Raw) -> Item[T]:
        """Read an object out of a text that was made shallow."""
        return self._flawed(raw, _TOO_DEEP) if _is_cut(raw) else self._item_of_raw(raw)

    @staticmethod
    def _flawed(raw: msgspec.Raw, flaw: str) -> Item[T]:
        try:
            meta = _meta_of_struct(_ENVELOPE.decode(raw))
        except store.UNREADABLE as error:
            raise errors.Malformed(f"an object has no name: {error}") from error
        return Item(meta, None, flaw)

    def _odd_event(
        self, line: bytes, item_of: Callable[[msgspec.Raw], Item[T]]
    ) -> Event[T] | Bookmark:
        try:
            event = _RAW_EVENT.decode(line)
            if event.type == "ERROR":
                raise errors.from_status(_STATUS.decode(event.object))
            if event.type in _CHANGES:
                return Event(item_of(event.object), event.type == _DELETED)
            metadata = _ENVELOPE.decode(event.object).metadata
        except _NOT_JSON as error:
            raise errors.Malformed(f"a watch line is no event: {error}") from error
        if event.type != "BOOKMARK":
            raise errors.Malformed(f"a watch event has the unknown type {event.type!r}")
        ends_initial = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
        return Bookmark(metadata.resource_version, ends_initial)


def _deletion(meta: store.Meta) -> Event[T]:
    return Event(Item(meta, None), deleted=True)


class Frames:
    """Cuts a stream of chunks into frames, each of which begins with its length in four bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take in a chunk and return the frames it completes; an absurd length is Malformed."""
        data = self._rest + chunk if self._rest else chunk
        found, at, most = list[bytes](), 0, len(data)
        while most - at >= _LENGTH:
            size = int.from_bytes(data[at : at + _LENGTH], "big")
            if size > _LONGEST_FRAME:
                raise errors.Malformed(f"a frame of a watch has {size} bytes")
            end = at + _LENGTH + size
            if end > most:
                break
            found.append(data[at + _LENGTH : end])
            at = end
        self._rest = data[at:]
        return found


class Lines:
    """Cuts a stream of chunks into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take in a chunk and return the lines it completes."""
        if b"\n" not in chunk:
            self._rest += chunk
            return []
        first, *others = chunk.split(b"\n")
        lines = [bytes(self._rest + first), *others]
        self._rest = bytearray(lines.pop())
        return [line for line in lines if line.strip()]
