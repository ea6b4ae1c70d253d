"""Projections of objects by key, true to list and watch; no I/O.

The newest resource version of a key wins whatever order events arrive in. Deletions are
remembered until a bookmark or a list says that nothing older can still come.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

_MOST_TOMBSTONES: Final = 65_536

UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, RecursionError),
)
"""What a reader of an object raises when that does not have the shape it expects."""


class PartlyUnreadableError(ValueError):
    """Some of what is wanted of an object could not be read; `value` is what could."""

    def __init__(self, value: Any, flaw: str) -> None:
        super().__init__(flaw)
        self.value = value


class Change(NamedTuple, Generic[T]):
    """What happened to one key: added (no old), changed, or deleted (no new)."""

    key: str
    old: T | None
    new: T | None


class Meta(NamedTuple):
    """The identity of one object at one version; version 0 is unknown and always counts as new."""

    key: str
    uid: str
    version: int


class _Entry(msgspec.Struct, Generic[T], gc=False):
    uid: str
    version: int
    value: T


Listener = Callable[[Change[T]], None]
Fault = Callable[[str, Exception], None]
"""Called when a listener failed on the object under a key."""


class Store(Generic[T]):
    """The present projections of one resource; changed by its reflector alone.

    Where faults are asked for, an object on which a listener fails is left out, for all
    listeners, and the others go on; elsewhere the failure is raised.
    """

    def __init__(self) -> None:
        self.faults: Fault | None = None
        self._entries: dict[str, _Entry[T]] = {}
        self._tombstones: dict[str, int] = {}
        self._listeners: list[Listener[T]] = []
        self._floor = 0
        self._version = 0
        self._synced = False

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        return self.values()

    @property
    def synced(self) -> bool:
        """Whether a complete list has been seen."""
        return self._synced

    @property
    def version(self) -> int:
        """The newest resource version seen, of any object, list or bookmark."""
        return self._version

    def get(self, key: str) -> T | None:
        """Return the projection of one object, by ``name`` or ``namespace/name``."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def version_of(self, key: str) -> int:
        """Return the resource version at which an object was seen last; 0 if it is not known."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.version

    def known_to(self, key: str) -> int:
        """Return the resource version up to which everything about a key has been told."""
        return self._known(key, self._entries.get(key))

    def keys(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._entries)

    def values(self) -> Iterator[T]:
        """Iterate over the projections."""
        return (entry.value for entry in self._entries.values())

    def items(self) -> Iterator[tuple[str, T]]:
        """Iterate over keys and projections."""
        return ((key, entry.value) for key, entry in self._entries.items())

    def listen(self, listener: Listener[T]) -> Callable[[], None]:
        """Tell a listener what is here now and every change from now on; return how to stop."""
        for key, value in list(self.items()):
            self._tell((listener,), Change(key, None, value))
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def put(self, meta: Meta, value: T | None) -> bool:
        """Take in an added or modified object; None means that it is of no interest.

        Return whether this was news; an old or repeated version is ignored.
        """
        self._version = max(self._version, meta.version)
        entry = self._entries.get(meta.key)
        if meta.version and meta.version <= self._known(meta.key, entry):
            return False
        self._set(meta, entry, value)
        return True

    def remove(self, key: str, version: int) -> bool:
        """Take in a deletion; return whether this was news."""
        self._version = max(self._version, version)
        entry = self._entries.get(key)
        # A deletion may carry the version of the object's last state.
        if version and version < self._known(key, entry) + (entry is None):
            return False
        self._drop(key, version)
        return True

    def bookmark(self, version: int) -> None:
        """Take in that everything up to this version has been told."""
        self._version = max(self._version, version)
        if version > self._floor:
            self._floor = version
            self._tombstones = {
                key: died for key, died in self._tombstones.items() if died > version
            }

    def accept(self, meta: Meta, value: T | None) -> None:
        """Take in an object of a list; the list is the truth wherever it differs.

        The caller makes sure that the list is not older than what was delivered before. Versions
        are not compared, since they start lower in a cluster that was restored from a backup.
        """
        entry = self._entries.get(meta.key)
        if entry is None or not meta.version or (entry.uid, entry.version) != meta[1:]:
            self._set(meta, entry, value)

    def absent(self, seen: Container[str], count: int) -> Iterator[list[str]]:
        """Yield the keys that a list did not hold, looking at so many of the present ones a time.

        Between two parts the caller may forget what it was given, but must not add anything.
        """
        keys = list(self._entries)
        for start in range(0, len(keys), count):
            yield [key for key in keys[start : start + count] if key not in seen]

    def forget(self, key: str, version: int) -> None:
        """Drop what a list at this version did not hold."""
        self._drop(key, version)

    def finished(self, version: int) -> None:
        """End a list at its version; what it did not hold has been forgotten."""
        self._tombstones.clear()
        self._floor = self._version = version
        self._synced = True

    def finish(self, seen: Container[str], version: int) -> int:
        """Do all of that in one go; return how many went."""
        gone = [key for part in self.absent(seen, len(self._entries) or 1) for key in part]
        for key in gone:
            self.forget(key, version)
        self.finished(version)
        return len(gone)

    def _known(self, key: str, entry: _Entry[T] | None) -> int:
        if entry is not None:
            return entry.version
        return max(self._tombstones.get(key, 0), self._floor)

    def _set(self, meta: Meta, entry: _Entry[T] | None, value: T | None) -> None:
        if entry is not None and entry.uid != meta.uid:
            # Another object under the same name: listeners that count must see the first one leave.
            del self._entries[meta.key]
            self._emit(Change(meta.key, entry.value, None))
            entry = None
        if value is None:
            self._drop(meta.key, meta.version)
            return
        self._tombstones.pop(meta.key, None)
        self._entries[meta.key] = _Entry(meta.uid, meta.version, value)
        told = True
        if entry is None:
            told = self._emit(Change(meta.key, None, value))
        elif entry.value != value:
            told = self._emit(Change(meta.key, entry.value, value))
        if not told:
            self._drop(meta.key, meta.version)

    def _drop(self, key: str, version: int) -> None:
        self._tombstones.pop(key, None)
        self._tombstones[key] = version
        if len(self._tombstones) > _MOST_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._emit(Change(key, entry.value, None))

    def _emit(self, change: Change[T]) -> bool:
        """Tell every listener; return whether all of them took it in."""
        return self._tell(tuple(self._listeners), change)

    def _tell(self, listeners: Iterable[Listener[T]], change: Change[T]) -> bool:
        told = True
        for listener in listeners:
            try:
                listener(change)
            except UNREADABLE as error:
                if self.faults is None:
                    raise
                self.faults(change.key, error)
                told = False
        return told


class Index(Generic[T]):
    """The keys of a store by a word that each projection yields, such as pods by node."""

    def __init__(self, store: Store[T], words: Callable[[T], Iterable[str]]) -> None:
        self._words = words
        self._keys: dict[str, set[str]] = {}
        store.listen(self._follow)

    def keys(self, word: str) -> frozenset[str]:
        """Return the keys of the objects that yield this word."""
        return frozenset(self._keys.get(word, ()))

    def _follow(self, change: Change[T]) -> None:
        before = set(self._words(change.old)) if change.old is not None else set()
        after = set(self._words(change.new)) if change.new is not None else set()
        for word in before - after:
            keys = self._keys[word]
            keys.discard(change.key)
            if not keys:
                del self._keys[word]
        for word in after - before:
            self._keys.setdefault(word, set()).add(change.key)
