"""The ledger: what watches tell and what binds assume become claims, each pod counted once.

A pod counts where the watch says it is, else where a bind has assumed it. An assumption ends with
the echo of the watch, when it is forgotten, or - after it expired and the pod was read back - when
it turns out that nothing was written. A pod that is neither bound nor assumed may be nominated.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence

import msgspec

from domain.usage import load
from extender.state import (
    allocations,
    claims,
    cluster_state,
    deltas,
    gang_facts,
    lending,
    nominations,
    records,
    unscheduled,
)
from extender.state.reservations import known, reservation_claims


class Assumption(msgspec.Struct, frozen=True, gc=False):
    """A place given to a pod, counted until the watch confirms it."""

    claim: claims.Claim
    made_at: float
    """On the monotonic clock."""
    uncertain: bool = False
    """Whether the write ended without an answer, so that its result is unknown yet."""
    changes: Sequence[deltas.Delta] = ()
    """What else was changed for it, to be undone in reverse when it is forgotten."""

    @property
    def placed(self) -> records.PodRecord:
        """Return the pod as it is counted."""
        return self.claim.pod


class Ledger:
    """Feeds the state of the cluster from watches and from our own binds."""

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self.cluster = cluster
        self.unscheduled = unscheduled.UnscheduledPods(cluster)
        self._assumed: dict[str, Assumption] = {}
        self._nominations = nominations.Nominations()
        self.reservations = known.Reservations(cluster)

    @property
    def assumptions(self) -> Mapping[str, Assumption]:
        """Assumptions that the watch has not confirmed, by pod uid."""
        return self._assumed

    @property
    def nominations(self) -> Mapping[str, claims.Claim]:
        """What is kept for pods, by pod uid, counted unless the pod is bound or assumed."""
        return self._nominations.by_uid

    # -- from the watches ------------------------------------------------------------------

    def pod(self, old: records.PodRecord | None, new: records.PodRecord | None, now: float) -> None:
        """Take in what the watch says of one pod; `now` is the wall clock."""
        if old is not None and (new is None or new.uid != old.uid):
            self._end(old.uid, now)
            old = None
        if new is None:
            return
        if new.node:
            self._assumed.pop(new.uid, None)
            self.unscheduled.remove(new.uid)
            self._nominations.end(new.uid)
            self._bound(new, now)
            return
        if new.uid not in self._assumed:
            self._count(new.uid, None)
        self.waits(new)
        is_nominated = new.nominated or self._nominations.by_uid
        if is_nominated and self._nominations.hear(old, new, self.cluster.claims_on, now):
            self._show_nomination(new.uid)

    def waits(self, pod: records.PodRecord) -> None:
        """Take in that the watch shows a pod without a node."""
        self.unscheduled.seen(pod, assumed=pod.uid in self._assumed)

    def _end(self, uid: str, now: float) -> None:
        self.unscheduled.remove(uid)
        self.forget(uid)
        self._nominations.end(uid)
        placed = self.cluster.placed(uid)
        if placed is not None:
            self._nominations.left(placed, now)
            if placed.offers is not None:
                self._count(claims.reservation(uid), None)
        for ident in (uid, claims.nominated(uid)):
            self._count(ident, None)

    def _bound(self, pod: records.PodRecord, now: float) -> None:
        dated = self._dated(pod, now)
        present = self.cluster.claim(pod.uid)
        if pod.offers is not None or (present is not None and present.pod.offers is not None):
            self._count(claims.reservation(pod.uid), reservation_claims.operating(pod))
        if present is None:
            self._place(_firm(claims.ClaimKind.BOUND, dated))
        elif present.kind is not claims.ClaimKind.BOUND or present.pod != dated:
            self._count(pod.uid, _firm(claims.ClaimKind.BOUND, dated))

    def _dated(self, pod: records.PodRecord, now: float) -> records.PodRecord:
        """Give a pod that does not say when it was scheduled the moment it was first seen."""
        if pod.assigned_at >= 0:
            return pod
        present = self.cluster.placed(pod.uid)
        since = present.assigned_at if present is not None and present.node == pod.node else now
        return msgspec.structs.replace(pod, assigned_at=since)

    def node(self, old: records.NodeRecord | None, new: records.NodeRecord | None) -> None:
        """Take in what the watch says of one node."""
        named = new or old
        if named is not None:
            present = self.cluster.node(named.name)
            self.cluster.apply(deltas.NodeDelta(named.name, present, new))
            self.report(named.name, self.cluster.report(named.name))

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

    # -- nominations -----------------------------------------------------------------------

    def nominate(
        self,
        pod: records.PodRecord,
        node: str,
        *,
        evidence: str,
        expires_at: float = math.inf,
        granted: allocations.Allocations = allocations.NONE,
    ) -> None:
        """Keep capacity of a node for a pod until it is placed or the nomination ends."""
        self._nominations.keep(
            nominations.nomination(
                pod, node, evidence=evidence, expires_at=expires_at, granted=granted
            )
        )
        self._show_nomination(pod.uid)

    def withdraw(self, uid: str) -> None:
        """End a nomination; what it has replaced, and still stands, is kept again."""
        self._nominations.withdraw(uid)
        self._show_nomination(uid)

    def expire(self, now: float) -> list[claims.Claim]:
        """End nominations that are over by the wall clock; return them."""
        over = self._nominations.over(now)
        for claim in over:
            self.withdraw(claim.usable_by)
        self.reservations.expire(now)
        return over

    def _show_nomination(self, uid: str) -> None:
        """Count a nomination, but not beside the pod itself."""
        firm = self.cluster.claim(uid) is not None
        self._count(claims.nominated(uid), None if firm else self._nominations.by_uid.get(uid))

    # -- from binding ----------------------------------------------------------------------

    def assume(
        self,
        pod: records.PodRecord,
        node: str,
        now: float,
        made_at: float,
        granted: allocations.Allocations = allocations.NONE,
        changes: Sequence[deltas.Delta] = (),
    ) -> None:
        """Count a waiting pod on a node from now on, with what plug-ins have allocated to it.

        Other changes are made with it, all or none; StaleError says that one cannot be made.
        """
        # In whole seconds, as the API server will write it: then its echo mostly changes nothing.
        placed = msgspec.structs.replace(
            pod,
            node=node,
            assigned_at=float(math.floor(now)),
            fence="",
            nominated="",
            preemption="",
            allocations=granted,
            gang=gang_facts.placed(pod.gang),
        )
        claim = _firm(claims.ClaimKind.ASSUMED, placed)
        _apply_all(self.cluster, changes)
        self.unscheduled.hide(pod.uid)
        self._place(claim)
        self._assumed[pod.uid] = Assumption(claim, made_at, changes=tuple(changes))

    def forget(self, uid: str) -> None:
        """Take an assumption back; nothing happens if the watch has already confirmed it."""
        assumed = self._assumed.pop(uid, None)
        if assumed is None:
            return
        self._count(uid, None)
        self.unscheduled.show(uid)
        if uid in self._nominations.by_uid:
            self._show_nomination(uid)
        _take_back(self.cluster, assumed.changes)

    def mark_uncertain(self, uid: str) -> None:
        """Note that the write behind an assumption ended without an answer."""
        assumed = self._assumed.get(uid)
        if assumed is not None:
            self._assumed[uid] = msgspec.structs.replace(assumed, uncertain=True)

    def renew(self, uid: str, made_at: float) -> None:
        """Let an assumption that was found written wait for its echo again."""
        assumed = self._assumed.get(uid)
        if assumed is not None:
            self._assumed[uid] = msgspec.structs.replace(assumed, made_at=made_at, uncertain=False)

    def defer(self, uid: str) -> None:
        """Let an assumption that could not be looked up come after all others."""
        assumed = self._assumed.pop(uid, None)
        if assumed is not None:
            self._assumed[uid] = assumed

    def expired(self, before: float) -> list[Assumption]:
        """Return the assumptions that are uncertain or older than a moment of the clock."""
        return [
            assumed
            for assumed in self._assumed.values()
            if assumed.uncertain or assumed.made_at < before
        ]

    def _place(self, claim: claims.Claim) -> None:
        """Count a pod on its node, and no longer what was kept for it.

        What plug-ins allocated to a nomination ends with it, unless the pod holds just that now:
        others may take it meanwhile, so it could not be given back.
        """
        kept = self._nominations.by_uid.get(claim.id)
        if kept is not None and kept.allocations and not _same_place(kept, claim):
            self._nominations.end(claim.id)
        self._count(claim.id, claim)
        if self.cluster.is_nominated():
            self._count(claims.nominated(claim.id), None)

    def _count(self, ident: str, after: claims.Claim | None) -> None:
        present = self.cluster.claim(ident)
        if present != after:
            self.cluster.apply(deltas.ClaimDelta(ident, present, after))


def _firm(kind: claims.ClaimKind, pod: records.PodRecord) -> claims.Claim:
    granted = pod.allocations
    consumes = allocations.consumed(granted) if granted else ""
    return claims.Claim(pod.uid, kind, pod.node, pod, granted, consumes=consumes)


def _same_place(one: claims.Claim, other: claims.Claim) -> bool:
    return one.node == other.node and one.allocations == other.allocations


def _apply_all(cluster: cluster_state.ClusterState, changes: Sequence[deltas.Delta]) -> None:
    """Make several changes, all or none."""
    for count, delta in enumerate(changes):
        try:
            cluster.apply(delta)
        except deltas.StaleError:
            cluster.undo(changes[:count])
            raise


def _take_back(cluster: cluster_state.ClusterState, done: Sequence[deltas.Delta]) -> None:
    """Take changes back, the last one first, but for what a watch has told anew since."""
    for delta in reversed(done):
        # What a watch tells is the truth, and knows nothing of what was assumed.
        with contextlib.suppress(deltas.StaleError):
            cluster.apply(deltas.inverse(delta))
