"""Preemption by kube-scheduler itself (PostFilter): while it evicts for a pod, nobody else does."""

import collections
from typing import Final

from extender.framework import views
from extender.requeue import unschedulable_pods
from extender.state import records, status_nominations

_SENT_SECONDS: Final = 5.0
"""After so long kube-scheduler has evicted those whom it was allowed to, or never will."""
_MOST_KEPT: Final = 4096


class InTree:
    """For which pods kube-scheduler was last seen to preempt; bounded memory."""

    def __init__(self) -> None:
        self._seen: collections.OrderedDict[str, float] = collections.OrderedDict()

    def evicts(
        self,
        pod: records.PodRecord,
        waiter: unschedulable_pods.UnschedulablePod,
        confirmed: unschedulable_pods.Preemptor | None,
        view: views.View,
        now: float,
    ) -> bool:
        """Whether kube-scheduler's own preemption evicts for a pod at this moment.

        As that one itself looks at it: pods of lower priority are leaving the nominated node.
        Before the first of them does, the victims have been confirmed by the preempt verb. After
        the last one has left, the scheduler may still count it: it does not ask about the node
        then, and the pod has its place there with the next attempt.
        """
        row = view.rows.get(pod.nominated)
        if _confirmed(pod, confirmed, now) or (row is not None and _leaves(pod, view, row)):
            self._note(pod.uid, now)
            return True
        lag = status_nominations.LAG_SECONDS
        lately = now - self._seen.get(pod.uid, -lag) < lag
        return lately and row is not None and not waiter.asks(row)

    def forget(self, uid: str) -> None:
        """Forget a pod that found its place or is gone."""
        self._seen.pop(uid, None)

    def _note(self, uid: str, now: float) -> None:
        self._seen[uid] = now
        self._seen.move_to_end(uid)
        if len(self._seen) > _MOST_KEPT:
            self._seen.popitem(last=False)


def _confirmed(
    pod: records.PodRecord, confirmed: unschedulable_pods.Preemptor | None, now: float
) -> bool:
    return confirmed is not None and confirmed.uid == pod.uid and confirmed.at > now - _SENT_SECONDS


def _leaves(pod: records.PodRecord, view: views.View, row: int) -> bool:
    return any(
        claim.pod.leaves_at >= 0 and claim.pod.requirements.priority < pod.requirements.priority
        for claim in view.node(row).claims
    )
