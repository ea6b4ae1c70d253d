"""Nominations that kube-scheduler writes into `status.nominatedNodeName`, and clears too early.

kube-scheduler often hears that the last victim has left some milliseconds before this process. It
tries the preemptor then, is refused by a view that still counts the victim, and clears the
nomination. The next pod that it tries would take what others have left for the preemptor, so the
place is kept for some seconds more: until kube-scheduler has tried the preemptor again. Another
client that writes this field gains nothing by clearing it: left in place, it keeps no less.
"""

import collections
import math
from collections.abc import Iterable
from typing import Final

import msgspec

from extender.state import claims, records

STATUS: Final = "status"
"""Evidence of a nomination that the scheduler wrote into the pod's status."""
STOOD: Final = "status, as it stood"
"""Evidence of one that was there when a claim of ours for the pod ended; not kept once cleared."""
CLEARED: Final = "status, cleared"
"""Evidence of one that the scheduler cleared after pods had left for it."""
ALL: Final = (STATUS, STOOD, CLEARED)
LAG_SECONDS: Final = 12.0
"""How long after its last victim has left a pod may wait to be tried there: kube-scheduler and this
process may hear of that at different moments, and the longest back-off is 10 s."""
_MOST_KEPT: Final = 4096


class Kept(msgspec.Struct, frozen=True):
    """Where a place is kept for a pod."""

    node: str
    evidence: str = STATUS
    expires_at: float = math.inf

    def is_what(self, claim: claims.Claim) -> bool:
        """Whether a claim keeps just this."""
        return self == Kept(claim.node, claim.evidence, claim.expires_at)


class Departures:
    """Pods that have left nodes lately; bounded memory. All times are on the wall clock."""

    def __init__(self) -> None:
        self._left: collections.deque[tuple[float, str, int]] = collections.deque(maxlen=_MOST_KEPT)

    def add(self, node: str, priority: int, now: float) -> None:
        """Take in that a pod has left a node."""
        self._left.append((now, node, priority))

    def waited_until(self, node: str, below: int, now: float) -> float:
        """Return how long to wait for a pod for which others of lower priority left a node."""
        return max(
            (
                min(at, now) + LAG_SECONDS
                for at, name, priority in self._left
                # The clock may have been set back since.
                if name == node and priority < below and abs(now - at) < LAG_SECONDS
            ),
            default=now,
        )

    def kept(
        self,
        old: records.PodRecord | None,
        pod: records.PodRecord,
        present: claims.Claim | None,
        on_node: Iterable[claims.Claim],
        now: float,
    ) -> Kept | None:
        """Return what is kept for a waiting pod by what the watch says of it now.

        `present` is what was kept so far, and `on_node` are the claims on its node.
        """
        if pod.nominated:
            if (
                present is not None
                and present.node == pod.nominated
                and present.evidence != CLEARED
            ):
                return Kept(present.node, present.evidence)
            changed = old is None or old.nominated != pod.nominated
            return Kept(pod.nominated, STATUS if changed else STOOD)
        if present is None or present.evidence == STOOD:
            return None
        if present.evidence == CLEARED:
            return Kept(present.node, CLEARED, present.expires_at)
        below = pod.requirements.priority
        until = self.waited_until(present.node, below, now)
        if any(one.pod.leaves_at >= 0 and one.pod.requirements.priority < below for one in on_node):
            until = now + LAG_SECONDS
        return Kept(present.node, CLEARED, until) if until > now else None


def is_cleared(claim: claims.Claim) -> bool:
    """Whether the scheduler has cleared a nomination whose place is kept."""
    return claim.evidence == CLEARED


def is_by_scheduler(claim: claims.Claim) -> bool:
    """Whether the scheduler has nominated a pod, also where it has cleared that lately."""
    return claim.evidence in (STATUS, CLEARED)


def is_over(claim: claims.Claim, now: float) -> bool:
    """Whether a nomination has ended by the wall clock, which may have been set back since."""
    too_far = is_cleared(claim) and claim.expires_at > now + LAG_SECONDS
    return claim.expires_at <= now or too_far
