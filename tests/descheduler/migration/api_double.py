"""An API server in a few dicts: versions, preconditions, watches that lag, and writes that are cut.

Nothing in it waits, so that a reconcile of the real controller runs to its end in one step.
"""

import copy
import itertools
from typing import Any

from api import resources
from api.wire import durations
from kube.client import errors
from kube.informers import store

JOBS, PODS, KEPT = resources.POD_MIGRATION_JOBS, resources.PODS, resources.RESERVATIONS


class Killed(BaseException):
    """The process was killed at this write."""


def key_of(resource, name, namespace=""):
    return resource.plural, f"{namespace}/{name}" if namespace else name


def key_in(raw):
    metadata = raw["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


class ApiDouble:
    """What the controller calls, and what a cluster does by itself."""

    def __init__(self, now):
        self.now = now
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.versions, self.serial = itertools.count(1), itertools.count(1)
        self.watches: list[Watch] = []
        self.fuse: tuple[int, str] | None = None
        """After how many writes the process is killed or the answer is lost, and how."""
        self.refuses_evictions = False
        self.evictions: list[tuple[str, str]] = []
        """Name and uid of every pod that was evicted."""
        self.on_evict = lambda namespace, name, uid: None
        self.on_patch = lambda before, after: None

    # -- what the controller calls ---------------------------------------------------------

    async def get(self, resource, name, namespace=""):
        found = self.objects.get(key_of(resource, name, namespace))
        if found is None:
            raise errors.NotFound(404)
        return copy.deepcopy(found)

    async def create(self, resource, body, namespace="", **_):
        return self._cut(lambda: self._create(resource, body, namespace))

    async def patch(self, resource, name, body, *, namespace="", subresource="", **_):
        return self._cut(lambda: self._patch(resource, name, body, namespace, subresource))

    async def delete(self, resource, name, namespace="", uid="", grace_seconds=None, **_):
        self._cut(lambda: self._delete(resource, name, namespace, uid, grace_seconds))

    async def evict(self, namespace, name, uid="", grace_seconds=None, dry_run=False, **_):
        def do():
            if self.refuses_evictions:
                raise errors.TooManyRequests(429, message="Cannot evict pod")
            self._found(PODS, name, namespace, uid)
            if dry_run:
                return
            self.on_evict(namespace, name, uid)
            self.evictions.append((name, uid))
            self._delete(PODS, name, namespace, uid, grace_seconds)

        self._cut(do)

    def _cut(self, do):
        """Do a write, unless the process is killed before it; or kill it before the answer."""
        if self.fuse is None:
            return do()
        left, how = self.fuse
        if left > 0:
            self.fuse = left - 1, how
            return do()
        self.fuse = None
        if how == "killed before":
            raise Killed
        if how == "not sent":
            raise errors.Unreachable("no connection")
        answer = do()
        if how == "killed after":
            raise Killed
        raise errors.Unreachable(f"the answer {bool(answer)} was lost")

    # -- what is stored --------------------------------------------------------------------

    def _create(self, resource, body, namespace=""):
        raw = copy.deepcopy(dict(body))
        metadata = raw["metadata"]
        if namespace:
            metadata["namespace"] = namespace
        key = key_of(resource, metadata["name"], namespace)
        if key in self.objects:
            raise errors.AlreadyExists(409)
        metadata |= {
            "uid": f"u{next(self.serial)}",
            "creationTimestamp": durations.moment(self.now),
        }
        return self._store(key, raw)

    def _store(self, key, raw):
        raw["metadata"]["resourceVersion"] = str(next(self.versions))
        self.objects[key] = raw
        self._tell(key, raw, gone=False)
        return copy.deepcopy(raw)

    def _found(self, resource, name, namespace="", uid="", version=""):
        found = self.objects.get(key_of(resource, name, namespace))
        if found is None:
            raise errors.NotFound(404)
        metadata = found["metadata"]
        if uid not in ("", None, metadata["uid"]):
            raise errors.Conflict(409)
        if version not in ("", None, metadata["resourceVersion"]):
            raise errors.Conflict(409)
        return found

    def _patch(self, resource, name, body, namespace="", subresource=""):
        guard = body.get("metadata", {})
        found = self._found(
            resource, name, namespace, guard.get("uid", ""), guard.get("resourceVersion", "")
        )
        parts = {"status": body.get("status", {})} if subresource == "status" else dict(body)
        if subresource != "status":
            parts.pop("status", None)
        after = _merged(found, parts)
        self.on_patch(found, after)
        return self._store(key_of(resource, name, namespace), after)

    def _delete(self, resource, name, namespace="", uid="", grace=None):
        found = self._found(resource, name, namespace, uid)
        key = key_of(resource, name, namespace)
        seconds = found.get("spec", {}).get("terminationGracePeriodSeconds", 0)
        seconds = seconds if grace is None else grace
        if resource == PODS and seconds > 0:
            if not found["metadata"].get("deletionTimestamp"):
                raw = copy.deepcopy(found)
                raw["metadata"]["deletionTimestamp"] = durations.moment(self.now + seconds)
                self._store(key, raw)
            return
        self.remove(key)

    def remove(self, key):
        """Let an object be gone at once."""
        raw = self.objects.pop(key)
        next(self.versions)
        self._tell(key, raw, gone=True)

    def _tell(self, key, raw, *, gone):
        version = next(self.versions) if gone else int(raw["metadata"]["resourceVersion"])
        for one in self.watches:
            one.tell(key, copy.deepcopy(raw), version, gone=gone)

    # -- what a cluster does by itself -----------------------------------------------------

    def listed(self, resource):
        return [raw for (plural, _), raw in self.objects.items() if plural == resource.plural]

    def collect_garbage(self):
        """Delete what a job owned that is gone."""
        there = {raw["metadata"]["uid"] for raw in self.listed(JOBS)}
        for raw in self.listed(KEPT):
            owners = raw["metadata"].get("ownerReferences", ())
            if owners and not any(one["uid"] in there for one in owners):
                self.remove(key_of(KEPT, raw["metadata"]["name"]))


class Watch:
    """One store of a process, told of changes when the test delivers them."""

    def __init__(self, api, resource, project):
        self.resource, self.project = resource, project
        self.store: store.Store[Any] = store.Store()
        self.late: list[tuple[str, dict, int, bool]] = []
        for raw in api.listed(resource):
            self._put(raw)
        api.watches.append(self)

    def tell(self, key, raw, version, *, gone):
        plural, name = key
        if plural == self.resource.plural:
            self.late.append((name, raw, version, gone))

    def deliver(self, count, *, twice=False):
        """Take in so many of the changes that are on their way, maybe each of them twice."""
        for name, raw, version, gone in self.late[:count]:
            for _ in range(1 + twice):
                if gone:
                    self.store.remove(name, version)
                else:
                    self._put(raw)
        del self.late[:count]

    def _put(self, raw):
        metadata = raw["metadata"]
        meta = store.Meta(key_in(raw), metadata["uid"], int(metadata["resourceVersion"]))
        self.store.put(meta, self.project(copy.deepcopy(raw)))


def _merged(before, changes):
    """Apply a JSON merge patch; uid and version in it are preconditions, no changes."""
    after = copy.deepcopy(before)
    for name, value in changes.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            inner = after.get(name)
            after[name] = _merged(inner if isinstance(inner, dict) else {}, value)
        else:
            after[name] = copy.deepcopy(value)
    return after
