"""Pods that are being moved: by open PodMigrationJobs, and by what a round has decided. Pure."""

import collections
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping

from descheduler.model import objects, picture, podinfo


class OpenJobs:
    """An index of the jobs that count, by pod, node, namespace and workload.

    A job names its pod by uid, and by namespace and name: of a StatefulSet the pod that replaces
    the moved one has the name that the job waits for. Implements `protocols.Migrating`.
    """

    __slots__ = (
        "_by_controller",
        "_by_node",
        "_in",
        "_keys",
        "_placed",
        "_seen",
        "_total",
        "_uids",
    )

    def __init__(self, seen: picture.Picture, jobs: Iterable[objects.Job]) -> None:
        self._seen = seen
        self._uids: collections.Counter[str] = collections.Counter()
        self._keys: collections.Counter[str] = collections.Counter()
        self._in: collections.Counter[str] = collections.Counter()
        self._by_node: dict[str, dict[str, podinfo.Pod]] = {}
        self._by_controller: dict[str, dict[str, podinfo.Pod]] = {}
        self._placed: collections.Counter[str] = collections.Counter()
        self._total = 0
        for job in jobs:
            self.put(job)

    def put(self, job: objects.Job) -> None:
        """Count a job from here on."""
        ref = job.spec.pod_ref
        self._count(ref.uid, job.pod_key, ref.namespace, _pod(self._seen, job))

    def add(self, pod: podinfo.Pod) -> None:
        """Let a pod be moved from here on, by a job that does not exist yet."""
        self._count(pod.uid, pod.key, pod.namespace, pod)

    @contextlib.contextmanager
    def changed(
        self, more: Iterable[objects.Job] = (), fewer: Iterable[objects.Job] = ()
    ) -> Iterator[None]:
        """Count some jobs as well, and others of those that count not, for a moment."""
        for job in more:
            self.put(job)
        for job in fewer:
            self._take(job)
        yield
        for job in fewer:
            self.put(job)
        for job in more:
            self._take(job)

    def _count(self, uid: str, key: str, namespace: str, pod: podinfo.Pod | None) -> None:
        if uid:
            self._uids[uid] += 1
        self._keys[key] += 1
        self._in[namespace] += 1
        self._total += 1
        if pod is not None:
            self._place(pod)

    def _take(self, job: objects.Job) -> None:
        ref = job.spec.pod_ref
        if ref.uid:
            _less(self._uids, ref.uid)
        _less(self._keys, job.pod_key)
        _less(self._in, ref.namespace)
        self._total -= 1
        pod = _pod(self._seen, job)
        if pod is not None and not _less(self._placed, pod.uid):
            _without(self._by_node, pod.node, pod.uid)
            controller = pod.controller
            _without(self._by_controller, controller.uid if controller is not None else "", pod.uid)

    def holds(self, pod: podinfo.Pod) -> bool:
        """Whether the pod itself is being moved."""
        return pod.uid in self._uids or pod.key in self._keys

    def concerns(self, pod: podinfo.Pod) -> bool:
        """Whether the pod itself is being moved, or another one of its node."""
        return bool(self._total) and (pod.node in self._by_node or self.holds(pod))

    def count(self, but: podinfo.Pod) -> int:
        """Return how many jobs are open, without that of a pod."""
        return self._total - self._own(but)

    def count_on(self, node: str, but: podinfo.Pod) -> int:
        """Return how many pods of a node are being moved, without a pod."""
        found = self._by_node.get(node)
        return len(found) - (but.uid in found) if found else 0

    def count_in(self, namespace: str, but: podinfo.Pod) -> int:
        """Return how many jobs of a namespace are open, without that of a pod."""
        own = self._own(but) if but.namespace == namespace else 0
        return self._in.get(namespace, 0) - own

    def pods_of(self, controller: str, but: podinfo.Pod) -> Collection[podinfo.Pod]:
        """Return the pods of a controller, by its uid, that are being moved, without a pod."""
        found = self._by_controller.get(controller)
        if not found:
            return ()
        return [pod for uid, pod in found.items() if uid != but.uid]

    def _own(self, pod: podinfo.Pod) -> int:
        return self._keys.get(pod.key, 0) if self._keys else 0

    def _place(self, pod: podinfo.Pod) -> None:
        self._placed[pod.uid] += 1
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.uid] = pod
        controller = pod.controller
        if controller is not None:
            self._by_controller.setdefault(controller.uid, {})[pod.uid] = pod


def of(seen: picture.Picture) -> OpenJobs:
    """Return the index of all jobs of a picture that are open."""
    return OpenJobs(seen, (job for job in seen.jobs.values() if job.is_open))


def _pod(seen: picture.Picture, job: objects.Job) -> podinfo.Pod | None:
    """Return the pod that a job names, by uid or else by name."""
    pod = seen.pods.get(job.spec.pod_ref.uid)
    if pod is not None:
        return pod
    by_key: Mapping[str, podinfo.Pod] | None = seen.memo.get(__name__)
    if by_key is None:
        by_key = seen.memo[__name__] = {one.key: one for one in seen.pods.values()}
    return by_key.get(job.pod_key)


def _less(counts: collections.Counter[str], key: str) -> int:
    """Count one less and return how many are left."""
    counts[key] -= 1
    left = counts[key]
    if not left:
        del counts[key]
    return left


def _without(found: dict[str, dict[str, podinfo.Pod]], key: str, uid: str) -> None:
    pods = found.get(key)
    if pods is not None:
        pods.pop(uid, None)
        if not pods:
            del found[key]
