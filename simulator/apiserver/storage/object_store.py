"""Versioned object store with watch fan-out; no I/O.

One counter numbers all writes, as in etcd. Stored objects never change: a write stores a new
dict, so what `get`, `list` and events hand out may be kept but must not be edited (`modify`
gives its callback a private copy). In-process users write here directly; the checks of the HTTP
layer (schemas, admission, existing namespaces) are theirs to keep.
"""

import bisect
import collections
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from simulator.apiserver.http import api_errors
from simulator.apiserver.storage import lifecycle

Object = dict[str, Any]
Part = lifecycle.Part


class Sort(Protocol):
    """What names a collection of objects; `api.resources.Resource` is one."""

    @property
    def group(self) -> str:
        """API group, empty for the core."""

    @property
    def plural(self) -> str:
        """Resource name in paths."""


class Collection(NamedTuple):
    """The smallest `Sort`."""

    group: str
    plural: str


PODS = Collection("", "pods")
NAMESPACES = Collection("", "namespaces")


class Key(NamedTuple):
    """Identity of an object; cluster-scoped objects have an empty namespace."""

    group: str
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """How an object is deleted."""

    grace: int | None = None
    """Seconds; without, a pod on a node gets the period that its spec asks for."""
    uid: str = ""
    """Precondition, as is the version."""
    version: str = ""
    policy: str = ""
    """What becomes of dependents: Background, Foreground or Orphan."""


_PLAIN = Deletion()


@dataclass(frozen=True, slots=True)
class Event:
    """One write. `previous` lets a selecting watcher see objects enter and leave its selection."""

    type: str
    version: int
    key: Key
    object: Object
    previous: Object | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A collection as it was at one version, ordered by namespace and name."""

    items: tuple[Object, ...]
    version: int


Listener = Callable[[Event], None]


class Objects:
    """All objects of the control plane and a bounded history of their writes."""

    def __init__(
        self,
        *,
        now: Callable[[], float],
        uid: Callable[[], str],
        suffix: Callable[[], str],
        history: int = 20_000,
    ) -> None:
        """`suffix` ends generated names; `history` is how many events a late watcher may miss."""
        self._now = now
        self._uid = uid
        self._suffix = suffix
        self._history = history
        self._version = 1
        self._compacted = 1
        self._log: list[Event] = []
        self._items: dict[tuple[str, str], dict[Key, Object]] = collections.defaultdict(dict)
        self._listeners: list[tuple[tuple[str, str] | None, Listener]] = []
        self._undelivered: collections.deque[Event] = collections.deque()
        self._delivering = False

    @property
    def version(self) -> int:
        """The number of the newest write."""
        return self._version

    @property
    def compacted(self) -> int:
        """The oldest version from which the history is complete."""
        return self._compacted

    # Reading

    def find(self, sort: Sort, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None."""
        key = Key(sort.group, sort.plural, namespace, name)
        return self._items[sort.group, sort.plural].get(key)

    def get(self, sort: Sort, name: str, namespace: str = "") -> Object:
        """Return an object that has to exist."""
        found = self.find(sort, name, namespace)
        if found is None:
            raise api_errors.not_found(sort.group, sort.plural, name)
        return found

    def list(self, sort: Sort, namespace: str = "", *, at: int | None = None) -> Listing:
        """Return a collection (of one namespace) as it is, or as it was at a kept version."""
        items = self._items[sort.group, sort.plural]
        if at is not None and at != self._version:
            items = self._rewound(sort, at)
        chosen = [key for key in items if not namespace or key.namespace == namespace]
        return Listing(tuple(items[key] for key in sorted(chosen)), at or self._version)

    def everything(self) -> Iterator[tuple[Key, Object]]:
        """Yield every object with its key."""
        for items in list(self._items.values()):
            yield from list(items.items())

    def since(self, sort: Sort, version: int) -> tuple[Event, ...]:
        """Return the events of a collection after a version; Gone when some were forgotten."""
        if version < self._compacted:
            raise api_errors.gone(version, self._compacted)
        start = bisect.bisect_right(self._log, version, key=_version_of)
        wanted = (sort.group, sort.plural)
        return tuple(e for e in self._log[start:] if (e.key.group, e.key.plural) == wanted)

    def subscribe(self, listener: Listener, sort: Sort | None = None) -> Callable[[], None]:
        """Call back after every write (of a collection); the answer ends the subscription.

        Listeners may write; what they write is delivered after the event at hand, so that
        everybody sees the same order.
        """
        entry = (None if sort is None else (sort.group, sort.plural), listener)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry) if entry in self._listeners else None

    # Writing

    def create(self, sort: Sort, body: Mapping[str, Any], namespace: str = "") -> Object:
        """Store a new object; metadata that the server owns is filled in."""
        stored = lifecycle.copied(body)
        meta = stored.setdefault("metadata", {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName'][:58]}{self._suffix()}"
        if namespace:
            meta["namespace"] = namespace
        key = Key(sort.group, sort.plural, meta.get("namespace", ""), meta.get("name", ""))
        if key in self._items[sort.group, sort.plural]:
            raise api_errors.already_exists(sort.group, sort.plural, key.name)
        for owned in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            meta.pop(owned, None)
        meta["uid"] = self._uid()
        meta["creationTimestamp"] = lifecycle.timestamp(self._now())
        if (sort.group, sort.plural) not in lifecycle.UNCOUNTED:
            meta["generation"] = 1
        return self._commit("ADDED", key, stored, None)

    def update(
        self,
        sort: Sort,
        body: Mapping[str, Any],
        part: Part = Part.WHOLE,
        *,
        counted: bool = True,
    ) -> Object:
        """Replace an object; a resourceVersion or uid in the body is a precondition.

        A write that is not `counted` leaves the generation, as a binding does.

        Nothing is written when nothing differs. An object whose last finalizer goes while it is
        being deleted is removed.
        """
        meta = body.get("metadata", {})
        name, namespace = meta.get("name", ""), meta.get("namespace", "")
        old = self.get(sort, name, namespace)
        require(sort, old, uid=meta.get("uid", ""), version=meta.get("resourceVersion", ""))
        key = Key(sort.group, sort.plural, namespace, name)
        new = lifecycle.combined(old, body, part)
        steady = lifecycle.UNCOUNTED | lifecycle.STEADY
        grows = counted and (sort.group, sort.plural) not in steady
        if grows and lifecycle.grown((sort.group, sort.plural), old, new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if new == old:
            return old
        if lifecycle.may_go(new):
            return self._remove(key, new)
        return self._commit("MODIFIED", key, new, old)

    def modify(
        self, sort: Sort, name: str, namespace: str, change: Callable[[Object], None]
    ) -> Object:
        """Edit a private copy of an object and store it."""
        new = lifecycle.copied(self.get(sort, name, namespace))
        change(new)
        return self.update(sort, new)

    def delete(self, sort: Sort, name: str, namespace: str = "", how: Deletion = _PLAIN) -> Object:
        """Delete an object, or mark it while finalizers or a grace period keep it.

        Returns the object as it was left or as it went. A namespace takes its contents along and
        goes when it is empty.
        """
        key = Key(sort.group, sort.plural, namespace, name)
        old = self.get(sort, name, namespace)
        require(sort, old, uid=how.uid, version=how.version, precondition=True)
        seconds = lifecycle.grace_period((key.group, key.plural), old, how.grace)
        policy = lifecycle.policy_of((key.group, key.plural), how.policy)
        marked = lifecycle.marked(old, self._now(), seconds, policy)
        if key[:2] == NAMESPACES:
            return self._delete_namespace(key, marked, old)
        if lifecycle.may_go(marked):
            return self._remove(key, marked)
        return old if marked == old else self._commit("MODIFIED", key, marked, old)

    def compact(self, version: int | None = None) -> None:
        """Forget the history up to a version, by default all of it."""
        self._compacted = max(self._compacted, self._version if version is None else version)
        start = bisect.bisect_right(self._log, self._compacted, key=_version_of)
        del self._log[:start]

    def scratch(self) -> "Objects":
        """Return a copy without listeners or history, for writes that must leave no trace."""
        copy = Objects(now=self._now, uid=self._uid, suffix=self._suffix, history=self._history)
        copy._version = copy._compacted = self._version
        for place, items in self._items.items():
            copy._items[place] = dict(items)
        return copy

    # Inside

    def _rewound(self, sort: Sort, version: int) -> dict[Key, Object]:
        if version > self._version:
            raise api_errors.too_large(version, self._version)
        items = dict(self._items[sort.group, sort.plural])
        for event in reversed(self.since(sort, version)):
            if event.previous is None:
                items.pop(event.key, None)
            else:
                items[event.key] = event.previous
        return items

    def _commit(self, kind: str, key: Key, stored: Object, previous: Object | None) -> Object:
        self._version += 1
        stored["metadata"]["resourceVersion"] = str(self._version)
        items = self._items[key.group, key.plural]
        if kind == "DELETED":
            items.pop(key, None)
        else:
            items[key] = stored
        event = Event(kind, self._version, key, stored, previous)
        self._log.append(event)
        if len(self._log) > self._history:
            # Cut a tenth at once: shortening a long list costs the same however much is cut.
            self.compact(self._log[len(self._log) // 10].version)
        self._deliver(event)
        return stored

    def _remove(self, key: Key, marked: Object) -> Object:
        previous = self._items[key.group, key.plural][key]
        # Watches see the object as it last was; its deleter sees that it was marked.
        gone = self._commit("DELETED", key, lifecycle.copied(previous), previous)
        if key.namespace:
            self._close_namespace(key.namespace)
        marked["metadata"]["resourceVersion"] = gone["metadata"]["resourceVersion"]
        return marked

    def _delete_namespace(self, key: Key, marked: Object, old: Object) -> Object:
        marked["status"] = {**marked.get("status", {}), "phase": "Terminating"}
        if marked != old:
            marked = self._commit("MODIFIED", key, marked, old)
        for inner, _ in self.everything():
            # A listener may have removed it meanwhile, as a garbage collector does.
            if inner.namespace == key.name and inner in self._items[inner.group, inner.plural]:
                self.delete(Collection(inner.group, inner.plural), inner.name, inner.namespace)
        self._close_namespace(key.name)
        return marked

    def _close_namespace(self, name: str) -> None:
        """Remove a namespace that is being deleted once nothing is left in it."""
        key = Key(*NAMESPACES, "", name)
        namespace = self._items[NAMESPACES].get(key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        left = any(inner.namespace == name for items in self._items.values() for inner in items)
        if not left and not namespace["metadata"].get("finalizers"):
            self._commit("DELETED", key, lifecycle.copied(namespace), namespace)

    def _deliver(self, event: Event) -> None:
        self._undelivered.append(event)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                self._notify(self._undelivered.popleft())
        finally:
            self._delivering = False

    def _notify(self, event: Event) -> None:
        for sort, listener in list(self._listeners):
            if sort is None or sort == (event.key.group, event.key.plural):
                listener(event)


def _version_of(event: Event) -> int:
    return event.version


def require(sort: Sort, old: Object, *, uid: str, version: str, precondition: bool = False) -> None:
    """Refuse a write that was meant for another object or for another version of it."""
    meta = old["metadata"]
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise api_errors.conflict(sort.group, sort.plural, meta["name"], why)
    if version and version != meta["resourceVersion"]:
        if not precondition:
            raise api_errors.stale(sort.group, sort.plural, meta["name"])
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {meta['resourceVersion']}"
        )
        raise api_errors.conflict(sort.group, sort.plural, meta["name"], why)
