"""What was promised to pods and not yet seen on the watch, and how the two come together.

A pod counts once: where the watch says it is, else where a bind has promised it a place. A
promise ends with the echo of the watch, when it is withdrawn, or - after it expired and the pod
was read back - when it turns out not to have been kept.
"""

import dataclasses
import math
from collections.abc import Mapping

import msgspec

from domain.usage import load
from extender.state import cluster_state, deltas, lending, records


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """A place given to a pod, counted until the watch confirms it."""

    placed: records.PodRecord
    made_at: float
    """On the monotonic clock."""
    doubtful: bool = False
    """Whether the write ended without an answer, so that nobody knows yet."""


class Ledger:
    """Feeds the picture of the cluster from watches and from our own promises."""

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self.cluster = cluster
        self._promises: dict[str, Promise] = {}

    @property
    def promises(self) -> Mapping[str, Promise]:
        """Promises that the watch has not confirmed, by pod uid."""
        return self._promises

    # -- from the watches ------------------------------------------------------------------

    def pod(self, old: records.PodRecord | None, new: records.PodRecord | None, now: float) -> None:
        """Take in what the watch says of one pod; `now` is the wall clock."""
        if old is not None and (new is None or new.uid != old.uid):
            self._promises.pop(old.uid, None)
            self._count(old.uid, None)
        if new is None:
            return
        if new.node:
            self._promises.pop(new.uid, None)
            self._count(new.uid, self._dated(new, now))
        elif new.uid not in self._promises:
            self._count(new.uid, None)

    def _dated(self, pod: records.PodRecord, now: float) -> records.PodRecord:
        """Give a pod that does not say when it was scheduled the moment it was first seen."""
        if pod.assigned_at >= 0:
            return pod
        present = self.cluster.placed(pod.uid)
        since = present.assigned_at if present is not None and present.node == pod.node else now
        return msgspec.structs.replace(pod, assigned_at=since)

    def node(self, old: records.NodeRecord | None, new: records.NodeRecord | None) -> None:
        """Take in what the watch says of one node."""
        known = new or old
        if known is not None:
            present = self.cluster.node(known.name)
            self.cluster.apply(deltas.NodeDelta(known.name, present, new))
            self.report(known.name, self.cluster.report(known.name))

    def report(self, name: str, new: load.Report | None) -> None:
        """Take in what the watch says of one node's load report.

        A report from before the node was registered is of an earlier machine of that name.
        """
        node, present = self.cluster.node(name), self.cluster.report(name)
        if new is not None and node is not None and not node.owns(new):
            new = None
        if new is not present:
            self.cluster.apply(deltas.ReportDelta(name, present, new))

    def lending(self, rules: lending.LendingRules) -> None:
        """Take in new rules for lending."""
        self.cluster.apply(deltas.LendingDelta(self.cluster.rules(), rules))

    # -- from binding ----------------------------------------------------------------------

    def promise(self, pod: records.PodRecord, node: str, now: float, made_at: float) -> None:
        """Count a waiting pod on a node from now on."""
        # In whole seconds, as the API server will write it: then its echo mostly changes nothing.
        placed = msgspec.structs.replace(pod, node=node, assigned_at=float(math.floor(now)))
        self._count(pod.uid, placed)
        self._promises[pod.uid] = Promise(placed, made_at)

    def withdraw(self, uid: str) -> None:
        """Take a promise back; nothing happens if the watch has confirmed it meanwhile."""
        if self._promises.pop(uid, None) is not None:
            self._count(uid, None)

    def doubt(self, uid: str) -> None:
        """Note that the write behind a promise ended without an answer."""
        promise = self._promises.get(uid)
        if promise is not None:
            self._promises[uid] = dataclasses.replace(promise, doubtful=True)

    def renew(self, uid: str, made_at: float) -> None:
        """Let a promise that was found kept wait for its echo anew."""
        promise = self._promises.get(uid)
        if promise is not None:
            self._promises[uid] = Promise(promise.placed, made_at)

    def expired(self, before: float) -> list[Promise]:
        """Return the promises made before a moment of the monotonic clock."""
        return [promise for promise in self._promises.values() if promise.made_at < before]

    def _count(self, uid: str, placed: records.PodRecord | None) -> None:
        present = self.cluster.placed(uid)
        if present != placed:
            self.cluster.apply(deltas.PodDelta(uid, present, placed))
