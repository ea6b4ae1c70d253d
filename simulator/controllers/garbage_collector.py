"""Owners and dependents: what goes when its owner went."""

import collections

from simulator.apiserver.storage import lifecycle, object_store


class Garbage:
    """Deletes objects whose last owner is gone, and ends deletions that wait for dependents."""

    def __init__(self, store: object_store.Objects) -> None:
        """Follow every write to a store; what it holds already is known."""
        self._store = store
        self._places: dict[str, object_store.Key] = {}
        self._dependents: dict[str, set[object_store.Key]] = collections.defaultdict(set)
        for key, value in store.everything():
            self._added(key, value)
        store.subscribe(self._changed)

    def _orphan(self, key: object_store.Key, uid: str) -> None:
        """Cut the references to an owner that is about to go, so that its dependents stay."""
        for dependent in sorted(self._dependents.get(uid, ())):
            value = self._store.get(_sort(dependent), dependent.name, dependent.namespace)
            meta = dict(value["metadata"])
            meta["ownerReferences"] = [r for r in meta["ownerReferences"] if r["uid"] != uid]
            self._store.update(_sort(dependent), {**value, "metadata": meta})
        self._finished(key, lifecycle.ORPHAN)

    def _foreground(self, uid: str) -> None:
        """Delete the dependents first; the owner follows when the last that blocks it is gone."""
        for dependent in sorted(self._dependents.get(uid, ())):
            self._owner_gone(dependent)
        self._maybe_finish(uid)

    def _changed(self, event: object_store.Event) -> None:
        if event.previous is not None:
            for owner in _owners(event.previous):
                self._left(owner, event.key)
        uid = event.object["metadata"]["uid"]
        if event.type != "DELETED":
            self._added(event.key, event.object)
            before = () if event.previous is None else _owners(event.previous)
            if set(_owners(event.object)).difference(before):
                # The owner may have gone while its controller was still making this.
                self._owner_gone(event.key)
            self._deleting(event.key, uid)
            return
        self._places.pop(uid, None)
        for key in sorted(self._dependents.pop(uid, ())):
            self._owner_gone(key)
        for owner in _owners(event.object):
            self._maybe_finish(owner)

    def _left(self, owner: str, key: object_store.Key) -> None:
        known = self._dependents.get(owner)
        if known is not None:
            known.discard(key)
            if not known:
                del self._dependents[owner]

    def _deleting(self, key: object_store.Key, uid: str) -> None:
        """Carry out what the finalizers of an owner ask for that is being deleted."""
        value = self._store.find(_sort(key), key.name, key.namespace)
        if value is None or "deletionTimestamp" not in value["metadata"]:
            return
        finalizers = value["metadata"].get("finalizers") or ()
        if lifecycle.ORPHAN in finalizers:
            self._orphan(key, uid)
        elif lifecycle.FOREGROUND in finalizers:
            self._foreground(uid)

    def _added(self, key: object_store.Key, value: object_store.Object) -> None:
        self._places[value["metadata"]["uid"]] = key
        for owner in _owners(value):
            self._dependents[owner].add(key)

    def _owner_gone(self, key: object_store.Key) -> None:
        """Delete a dependent of which every owner is gone; cut the references to some of them."""
        value = self._store.find(_sort(key), key.name, key.namespace)
        references = _references(value)
        kept = [one for one in references if self._stays(one["uid"])]
        if value is None or len(kept) == len(references):
            return
        if kept:
            meta = {**value["metadata"], "ownerReferences": kept}
            self._store.update(_sort(key), {**value, "metadata": meta})
        else:
            self._delete(key)

    def _stays(self, uid: str) -> bool:
        """Whether an owner exists and does not wait for its dependents to go."""
        key = self._places.get(uid)
        if key is None:
            return False
        value = self._store.find(_sort(key), key.name, key.namespace)
        meta = {} if value is None else value["metadata"]
        waits = lifecycle.FOREGROUND in (meta.get("finalizers") or ())
        return not ("deletionTimestamp" in meta and waits)

    def _is_blocked(self, uid: str) -> bool:
        """Whether a dependent is left that asks its owner to wait for it."""
        return any(
            one["uid"] == uid and one.get("blockOwnerDeletion")
            for key in self._dependents.get(uid, ())
            for one in _references(self._store.find(_sort(key), key.name, key.namespace))
        )

    def _maybe_finish(self, uid: str) -> None:
        key = self._places.get(uid)
        value = None if key is None else self._store.find(_sort(key), key.name, key.namespace)
        if key is None or value is None or self._is_blocked(uid):
            return
        self._finished(key, lifecycle.FOREGROUND)

    def _finished(self, key: object_store.Key, finalizer: str) -> None:
        value = self._store.find(_sort(key), key.name, key.namespace)
        finalizers = (value or {}).get("metadata", {}).get("finalizers") or []
        if value is not None and finalizer in finalizers:
            rest = [name for name in finalizers if name != finalizer]
            meta = {**value["metadata"], "finalizers": rest}
            self._store.update(_sort(key), {**value, "metadata": meta})

    def _delete(self, key: object_store.Key) -> None:
        value = self._store.find(_sort(key), key.name, key.namespace)
        if value is not None and "deletionTimestamp" not in value["metadata"]:
            self._store.delete(_sort(key), key.name, key.namespace)


def _references(value: object_store.Object | None) -> list[object_store.Object]:
    return [] if value is None else value["metadata"].get("ownerReferences") or []


def _owners(value: object_store.Object) -> list[str]:
    return [owner["uid"] for owner in _references(value)]


def _sort(key: object_store.Key) -> object_store.Collection:
    return object_store.Collection(key.group, key.plural)
