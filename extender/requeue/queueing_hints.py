"""Which waiting pods a change lets fit, and whether they may be woken."""

from collections.abc import Hashable, Iterator

import numpy as np

from extender.framework import pipeline, views
from extender.requeue import unschedulable_pods
from extender.state import cluster_state

_LONGEST_PAUSE = 60.0


class Looks:
    """Asks for many pods whether some node would take them; pods that are alike are asked once.

    Valid as long as the view is: until the next await.
    """

    def __init__(self, plugins: pipeline.Pipeline, view: views.View, now: float) -> None:
        self._plugins = plugins
        self._view = view
        self._now = now
        self._attempt = unschedulable_pods.attempt_on(view)
        self._rows = np.flatnonzero(view.known)
        self._nominated = {claim.pod.uid for held in view.nominated.values() for claim in held}
        self._passing: dict[Hashable, unschedulable_pods.Bits] = {}

    def node_for(self, waiter: unschedulable_pods.UnschedulablePod) -> str:
        """Return a node that would take it, among those that the scheduler would have taken."""
        passing = self._passes(waiter.request)
        ever = self._attempt.still(waiter.ever, waiter.asked_at)
        width = min(passing.size, ever.size)
        both = passing[:width] & ever[:width]
        if not both.any():
            return ""
        return self._view.names[int(np.unpackbits(both).argmax())]

    def _passes(self, pod: views.PodInfo) -> unschedulable_pods.Bits:
        asked = self._plugins.cycle(pod, self._view)
        # Everything that a verdict depends on besides the view: what PreFilter made of the pod,
        # and which nominated claims stand in its way.
        own = pod.uid if pod.uid in self._nominated else ""
        key = asked.key, pod.requirements.priority, own
        found = self._passing.get(key)
        if found is None:
            outcome = self._plugins.filter(asked, self._view, self._rows, self._now)
            passes = np.zeros(self._view.known.size, dtype=np.bool_)
            passes[self._rows] = outcome.codes == 0
            found = np.packbits(passes)
            self._passing[key] = found
        return found


def is_due(waiter: unschedulable_pods.UnschedulablePod, pause: float, now: float) -> bool:
    """Whether a pod that fits is to be woken: once after each attempt, ever later if in vain."""
    longer = min(pause * 2 ** min(waiter.wakings, 10), max(_LONGEST_PAUSE, pause))
    rested = now - waiter.tried_at >= pause and now - waiter.woken_at >= longer
    return not waiter.woken() and rested


def freed(
    waits: unschedulable_pods.UnschedulablePods, cluster: cluster_state.ClusterState
) -> Iterator[tuple[str, str, str]]:
    """Yield key and uid of preemptors all of whose victims have left a node, and that node."""
    for key, preemptor in tuple(waits.preemptors.items()):
        for node, victims in preemptor.victims.items():
            if not any(_is_on(cluster, uid, node) for uid in victims):
                yield key, preemptor.uid, node
                break


def _is_on(cluster: cluster_state.ClusterState, uid: str, node: str) -> bool:
    placed = cluster.placed(uid)
    return placed is not None and placed.node == node
