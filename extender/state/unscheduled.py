"""Pods without a node: part of the cluster state where a plug-in wants them."""

from extender.state import cluster_state, deltas, records


class UnscheduledPods:
    """The pods that the watch shows without a node; those that are assumed are left out.

    Nothing is kept or passed on until a plug-in wants it.
    """

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self.wanted = False
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
        if self.wanted:
            self._seen[pod.uid] = pod
            self._tell(pod.uid, None if assumed else pod)

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
