"""Pods that are being moved: by open PodMigrationJobs, and by what a round has decided. Pure."""

import collections
from collections.abc import Collection, Iterable, Iterator

from descheduler.model import objects, picture, podinfo


class OpenJobs:
    """An index of the jobs that count, by pod, node, namespace and workload.

    A job names its pod by uid, and by namespace and name: of a StatefulSet the pod that replaces
    the moved one has the name that the job waits for. Implements `protocols.Migrating`.
    """

    __slots__ = ("_by_controller", "_by_node", "_in", "_jobs", "_keys", "_total", "_uids")

    def __init__(self, seen: picture.Picture, jobs: Iterable[objects.Job]) -> None:
        self._uids: set[str] = set()
        self._keys: collections.Counter[str] = collections.Counter()
        self._in: collections.Counter[str] = collections.Counter()
        self._by_node: dict[str, dict[str, podinfo.Pod]] = {}
        self._by_controller: dict[str, dict[str, podinfo.Pod]] = {}
        self._total = 0
        counting = list(jobs)
        for job in counting:
            self._uids.add(job.spec.pod_ref.uid)
            self._keys[job.pod_key] += 1
            self._in[job.spec.pod_ref.namespace] += 1
            self._total += 1
        self._uids.discard("")
        for pod in _pods(seen, counting):
            self._place(pod)

    def add(self, pod: podinfo.Pod) -> None:
        """Let a pod be moved from here on, by a job that does not exist yet."""
        self._uids.add(pod.uid)
        self._keys[pod.key] += 1
        self._in[pod.namespace] += 1
        self._total += 1
        self._place(pod)

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
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.uid] = pod
        controller = pod.controller
        if controller is not None:
            self._by_controller.setdefault(controller.uid, {})[pod.uid] = pod


def of(seen: picture.Picture) -> OpenJobs:
    """Return the index of all jobs of a picture that are open."""
    return OpenJobs(seen, (job for job in seen.jobs.values() if job.is_open))


def _pods(seen: picture.Picture, jobs: Iterable[objects.Job]) -> Iterator[podinfo.Pod]:
    """Yield the pods that jobs name and that exist, by uid or else by name."""
    named = set()
    for job in jobs:
        pod = seen.pods.get(job.spec.pod_ref.uid)
        if pod is not None:
            yield pod
        else:
            named.add(job.pod_key)
    if named:
        yield from (pod for pod in seen.pods.values() if pod.key in named)
