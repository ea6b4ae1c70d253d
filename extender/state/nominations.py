"""What is kept for waiting pods: nominations by kube-scheduler and, before them, ours. Pure."""

import math
from collections.abc import Callable, Iterable

import msgspec

from extender.state import allocations, claims, records, status_nominations


def nomination(
    pod: records.PodRecord,
    node: str,
    *,
    evidence: str,
    expires_at: float = math.inf,
    granted: allocations.Allocations = allocations.NONE,
) -> claims.Claim:
    """Return the claim that keeps capacity of a node for a pod."""
    held = msgspec.structs.replace(
        pod, node=node, fence="", nominated="", allocations=granted, gang=None
    )
    return claims.Claim(
        id=claims.nominated(pod.uid),
        kind=claims.ClaimKind.NOMINATED,
        node=node,
        pod=held,
        allocations=granted,
        usable_by=pod.uid,
        consumes=allocations.consumed(granted) if granted else "",
        expires_at=expires_at,
        evidence=evidence,
    )


def _is_status(claim: claims.Claim | None) -> bool:
    """Whether a nomination is one that kube-scheduler has written."""
    return claim is not None and claim.evidence in status_nominations.ALL


class Nominations:
    """One nomination for each pod; one of ours replaces kube-scheduler's until it ends."""

    def __init__(self) -> None:
        self.by_uid: dict[str, claims.Claim] = {}
        """What is kept now, by pod uid; for others to read alone."""
        self._replaced: dict[str, claims.Claim] = {}
        self._departures = status_nominations.Departures()

    def keep(self, claim: claims.Claim) -> None:
        """Keep a place from now on instead of what was kept for the pod."""
        uid = claim.usable_by
        present = self.by_uid.get(uid)
        if present is not None and _is_status(present) and not _is_status(claim):
            self._replaced[uid] = present
        self.by_uid[uid] = claim

    def withdraw(self, uid: str) -> None:
        """End a nomination; what it has replaced, and still stands, is kept again."""
        self.by_uid.pop(uid, None)
        replaced = self._replaced.pop(uid, None)
        if replaced is None:
            return
        if replaced.evidence == status_nominations.STATUS:
            # Who ends a nomination of ours clears that of the same node as well, and for good.
            replaced = msgspec.structs.replace(replaced, evidence=status_nominations.STOOD)
        self.by_uid[uid] = replaced

    def end(self, uid: str) -> None:
        """Forget all that is kept for a pod: it has a place, or is gone."""
        if self.by_uid:
            self.by_uid.pop(uid, None)
            self._replaced.pop(uid, None)

    def left(self, pod: records.PodRecord, now: float) -> None:
        """Take in that a pod has left its node."""
        self._departures.add(pod.node, pod.requirements.priority, now)

    def hear(
        self,
        old: records.PodRecord | None,
        pod: records.PodRecord,
        on_node: Callable[[str], Iterable[claims.Claim]],
        now: float,
    ) -> bool:
        """Follow the status of a waiting pod; return whether something else is kept now.

        What we keep for it ourselves does not depend on the status.
        """
        uid = pod.uid
        own = self.by_uid.get(uid)
        is_own = own is not None and not _is_status(own)
        present = self._replaced.get(uid) if is_own else own
        if is_own and present is None:
            return False
        there = on_node(present.node) if present is not None else ()
        # Beside a nomination of ours, one that is new may be our own hint to kube-scheduler.
        kept = self._departures.kept(pod if is_own else old, pod, present, there, now)
        found = None
        if kept is not None:
            if present is not None and kept.is_what(present):
                return False
            found = nomination(pod, kept.node, evidence=kept.evidence, expires_at=kept.expires_at)
        if is_own:
            self._replace(uid, present, found)
        elif found is None:
            self.withdraw(uid)
        else:
            self.keep(found)
        return not is_own

    def _replace(self, uid: str, present: claims.Claim | None, found: claims.Claim | None) -> None:
        """Take in what the status says of a pod by now for which a nomination of ours stands."""
        # Another node than before may well be one that we have written there ourselves.
        if found is not None and present is not None and found.node == present.node:
            self._replaced[uid] = found
        else:
            self._replaced.pop(uid, None)

    def over(self, now: float) -> list[claims.Claim]:
        """Return nominations that are over by the wall clock."""
        return [one for one in self.by_uid.values() if status_nominations.is_over(one, now)]
