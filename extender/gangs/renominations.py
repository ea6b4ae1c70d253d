"""Members that have lost their nomination are nominated anew, a bounded number of times.

kube-scheduler takes `status.nominatedNodeName` off a pod after every failed attempt, such as a
Binding that the API server refused for a moment. Where it looks at a part of all nodes it would
then try the member on others, and its plan allows none of them.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from domain.gangs import plan_record
from extender.framework import views
from extender.gangs import rounds
from extender.requeue import unschedulable_pods
from extender.state import cluster_state, records
from kube.informers import store
from process.runtime import clock as clocks

MOST: Final = 4
"""How often a member is nominated anew at most for one plan."""
_FIRST_PAUSE: Final = 1.0
"""Seconds between the first two of these; twice as many before each later one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sampling:
    """The part of all nodes at which kube-scheduler looks."""

    looks_at: Callable[[], int | None]
    """At how many nodes of those that fit it looks, where these may not be all."""
    refused: Callable[[str], unschedulable_pods.UnschedulablePod | None]
    """Returns the last attempt for a pod in which filter left no node, by namespace/name."""

    def happens(self) -> bool:
        """Whether it may leave the planned node out."""
        return self.looks_at() is not None


@dataclasses.dataclass(frozen=True, slots=True)
class _Tries:
    count: int
    at: float
    """When the last one was made, on the wall clock."""


class Renominations:
    """Decides which members are nominated anew, and when."""

    def __init__(
        self,
        cluster: cluster_state.ClusterState,
        pods: store.Store[records.PodRecord],
        sampling: Sampling,
        clock: clocks.Clock,
    ) -> None:
        self._cluster, self._pods = cluster, pods
        self._sampling, self._clock = sampling, clock
        self._tries: dict[str, _Tries] = {}
        """By uid of a member."""

    def __len__(self) -> int:
        """Return for how many members tries are counted."""
        return len(self._tries)

    def excuses(self, slot: rounds.Slot) -> bool:
        """Whether kube-scheduler found no node because it did not look at the planned one.

        What it says of others then does not end the plan, as long as tries are left.
        """
        attempt = self._left_out(slot)
        if attempt is None:
            return False
        tries = self._tries.get(slot.pod.uid)
        return tries is None or tries.count < MOST or attempt.tried_at <= tries.at

    def due(self, one: rounds.Round, uids: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Yield which of the members that wait are nominated now, and whether each is nudged.

        kube-scheduler tries a pod again by itself after an error, and one that no node took only
        after the pod has changed.
        """
        if not self._sampling.happens():
            return
        for uid in uids:
            slot = one.slots[uid]
            is_left_out = self._left_out(slot) is not None
            if not (is_left_out or uid in one.nominated or uid in self._tries):
                continue
            if self._is_due(uid) and self._is_without(one, slot):
                yield uid, is_left_out

    def tried(self, uid: str) -> None:
        """Note that a member was nominated again."""
        before = self._tries.get(uid)
        count = before.count + 1 if before is not None else 1
        self._tries[uid] = _Tries(count, self._clock.now())

    def forget(self, uids: Iterable[str]) -> None:
        """Forget the members of a plan that has ended."""
        for uid in uids:
            self._tries.pop(uid, None)

    def _is_due(self, uid: str) -> bool:
        tries = self._tries.get(uid)
        if tries is None:
            return True
        pause = _FIRST_PAUSE * 2.0 ** (tries.count - 1)
        return tries.count < MOST and self._clock.now() - tries.at >= pause

    def _is_without(self, one: rounds.Round, slot: rounds.Slot) -> bool:
        """Whether the watch shows a member of a plan that is not nominated to its place.

        The record of the plan was written after the nomination, where there was one. A member that
        has no record was not nominated either.
        """
        pod = self._pods.get(slot.pod.key)
        if pod is None or pod.uid != slot.pod.uid or pod.nominated == slot.node:
            return False
        if pod.gang is None or pod.gang.gated:
            return False
        if slot.pod.uid in one.unwritten:
            return True
        record = plan_record.read(pod.gang.plan)
        return record is not None and record.generation == one.generation

    def _left_out(self, slot: rounds.Slot) -> unschedulable_pods.UnschedulablePod | None:
        """Return the last attempt, if it did not come to the planned node for want of a nomination.

        Of a pod that is nominated kube-scheduler looks at that node in any case.
        """
        attempt = self._sampling.refused(slot.pod.key)
        if attempt is None or attempt.request.uid != slot.pod.uid or attempt.nominated == slot.node:
            return None
        if not self._sampling.happens():
            return None
        view: views.View = self._cluster.view(slot.node)
        return None if attempt.asks(view.rows.get(slot.node, -1)) else attempt
