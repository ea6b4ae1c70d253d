"""An index of owners: which of many lists of owners a pod is in, without a look at most of them."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from domain import persistent
from domain.reservations import owners

Owners = tuple[owners.Owner, ...]
"""The owners of a Reservation: a pod that is one of them may use it."""
Key = tuple[str, ...]
_ANY: Final[Key] = ("",)
"""Under which owners stand that no single word of a pod names."""


_MOST_BYTES: Final = 8 << 20
"""What the owners take together whose names are remembered, written out."""


class _Names:
    """Short names of owners; these may be as long as an object, so their length is bounded."""

    def __init__(self) -> None:
        self._known: dict[Owners, str] = {}
        self._room = _MOST_BYTES

    def of(self, listed: Owners) -> str:
        """Return the name, found once as long as it is remembered."""
        name = self._known.get(listed)
        if name is None:
            text = repr(listed).encode()
            name = hashlib.blake2b(text, digest_size=12).hexdigest()
            if self._room < len(text):
                self._known.clear()
                self._room = _MOST_BYTES
            self._room -= len(text)
            self._known[listed] = name
        return name


_NAMES: Final = _Names()


def name_of(listed: Owners) -> str:
    """Return a short name that is the same for equal owners."""
    return _NAMES.of(listed)


class Uses(msgspec.Struct, frozen=True):
    """Equal owners, and how many Reservations on which nodes they may use."""

    owners: Owners
    nodes: Mapping[str, int]


_NO_USES: Final[persistent.Map[str, Uses]] = persistent.Map()
_NO_KEYS: Final[persistent.Map[Key, frozenset[str]]] = persistent.Map()


class OwnerIndex(msgspec.Struct, frozen=True):
    """The owners of all Reservations; a value that is never changed."""

    uses: persistent.Map[str, Uses] = _NO_USES
    """By the name of the owners."""
    keys: persistent.Map[Key, frozenset[str]] = _NO_KEYS
    """The names of owners by a word of which a pod has to have at least one."""

    def changed(self, listed: Owners, node: str, by: int) -> "OwnerIndex":
        """Return the index with one more (1) or one less (-1) Reservation of a node."""
        if not listed:
            return self
        name = name_of(listed)
        known = self.uses.get(name)
        nodes = dict(known.nodes) if known is not None else {}
        nodes[node] = nodes.get(node, 0) + by
        if not nodes[node]:
            del nodes[node]
        uses = self.uses.replaced(name, Uses(listed, nodes) if nodes else None)
        keys = self.keys
        if (known is None) is not (not nodes):
            keys = _with(keys, listed, name, present=bool(nodes))
        return OwnerIndex(uses, keys)

    def of(self, pod: owners.Pod) -> tuple[str, ...]:
        """Return the names of the owners that a pod is one of, sorted."""
        if not self.uses:
            return ()
        names: set[str] = set()
        for key in _words(pod):
            if found := self.keys.get(key):
                names |= found
        return tuple(
            sorted(
                name for name in names if any(one.matches(pod) for one in self.uses[name].owners)
            )
        )


def _with(
    keys: persistent.Map[Key, frozenset[str]], listed: Owners, name: str, *, present: bool
) -> persistent.Map[Key, frozenset[str]]:
    changes: dict[Key, frozenset[str] | None] = {}
    only = frozenset((name,))
    for key in {key for one in listed for key in _keys(one)}:
        names = keys.get(key)
        if present:
            changes[key] = only if names is None else names | only
        else:
            changes[key] = None if names is None else names - only or None
    return keys.updated(changes)


def _keys(one: owners.Owner) -> Iterable[Key]:
    """Return words of which a pod has at least one if it is this owner."""
    if one.within:
        return [("namespace", one.within)]
    if one.object is not None and (one.object.uid or one.object.name):
        return [("uid", one.object.uid)] if one.object.uid else [("name", one.object.name)]
    if one.controller is not None and (one.controller.uid or one.controller.name):
        by_uid = bool(one.controller.uid)
        word = one.controller.uid if by_uid else one.controller.name
        return [("owner uid" if by_uid else "owner", word)]
    for requirement in one.selector.requirements if one.selector is not None else ():
        if requirement.operator == "In" and requirement.values:
            return [("label", requirement.key, value) for value in requirement.values]
    return [_ANY]


def _words(pod: owners.Pod) -> Iterable[Key]:
    yield _ANY
    yield ("uid", pod.uid)
    yield ("name", pod.name)
    yield ("namespace", pod.namespace)
    for reference in pod.references:
        yield ("owner uid", reference.uid)
        yield ("owner", reference.name)
    for key, value in pod.labels.items():
        yield ("label", key, value)
