"""Pods without a node: part of the cluster state where a plug-in wants them."""

from typing import Final

from extender.state import cluster_state, deltas, records

NOBODY: Final[frozenset[str]] = frozenset()
KINDS: Final = frozenset({deltas.UNSCHEDULED_POD, deltas.UNSCHEDULED_MEMBER})


class UnscheduledPods:
    """The pods that the watch shows without a node; those that are assumed are left out.

    Nothing is kept or passed on until a plug-in wants it. Members of gangs may be wanted alone:
    they are few, and a plug-in that wants the others as well pays for every pod.
    """

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self.wanted = NOBODY
        """Of all pods, of members of gangs, or of none, by `KINDS`."""
        self._cluster = cluster
        self._seen: dict[str, records.PodRecord] = {}

    def __len__(self) -> int:
        """Return how many the watch shows."""
        return len(self._seen)

    def uids(self) -> list[str]:
        """Return the uids of all that the watch shows."""
        return list(self._seen)

    def seen(self, pod: records.PodRecord, *, assumed: bool) -> None:
        """Take in that the watch shows a pod without a node."""
        if self.wanted and self.wants(pod):
            self._seen[pod.uid] = pod
            self._tell(pod.uid, None if assumed else pod)
        elif self._seen:
            # It may have left its gang.
            self.remove(pod.uid)

    def wants(self, pod: records.PodRecord) -> bool:
        """Whether a plug-in wants to know of this one."""
        return deltas.UNSCHEDULED_POD in self.wanted or (
            deltas.UNSCHEDULED_MEMBER in self.wanted and pod.gang is not None
        )

    def known(self, uid: str) -> records.PodRecord | None:
        """Return what the watch shows of a pod without a node."""
        return self._seen.get(uid)

    def remove(self, uid: str) -> None:
        """Take in that a pod has a node, or is gone."""
        if self._seen.pop(uid, None) is not None:
            self._tell(uid, None)

    def hide(self, uid: str) -> None:
        """Take in that a pod is assumed on a node."""
        if uid in self._seen:
            self._tell(uid, None)

    def show(self, uid: str) -> None:
        """Take in that a pod is no longer assumed; nothing happens if it does not wait."""
        pod = self._seen.get(uid)
        if pod is not None:
            self._tell(uid, pod)

    def _tell(self, uid: str, after: records.PodRecord | None) -> None:
        told = self._cluster.told(deltas.UNSCHEDULED_POD, uid)
        before = told.after if told is not None else None
        if before is not after and before != after:
            self._cluster.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, uid, before, after))
