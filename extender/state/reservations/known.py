"""Reservations of the cluster: as the watch shows them, else as they were assumed."""

import math

import msgspec

from extender.state import claims, cluster_state, deltas


class Reservations:
    """Counts the claims of Reservations; what the watch shows counts before what was assumed."""

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self._cluster = cluster
        self._assumed: dict[str, claims.Claim] = {}
        """Those that the watch has not shown, by id."""

    def watched(self, old: claims.Claim | None, new: claims.Claim | None) -> None:
        """Take in what the watch says of one Reservation: the claim that it makes, if any."""
        if old is not None and (new is None or new.id != old.id):
            self._assumed.pop(old.id, None)
            self._count(old.id, None)
        if new is not None:
            self._assumed.pop(new.id, None)
            self._count(new.id, new)

    def assume(self, claim: claims.Claim, expires_at: float = math.inf) -> None:
        """Count a Reservation that is about to become Available, until the watch shows it.

        No pod may use it before. It ends unconfirmed when it expires on the wall clock. The
        caller forgets the pod that stood in for it in the same step.
        """
        self._hold(msgspec.structs.replace(claim, evidence="", expires_at=expires_at))

    def placed(self, claim: claims.Claim, expires_at: float) -> None:
        """Count a Reservation as the API server has answered a write, until the watch shows it.

        Pods may use it at once: kube-scheduler tries those that wait as soon as the bind call
        ends, which the watch may follow.
        """
        self._hold(msgspec.structs.replace(claim, evidence=claims.SHOWN, expires_at=expires_at))

    def _hold(self, held: claims.Claim) -> None:
        if held.id in self._assumed or self._cluster.claim(held.id) is None:
            self._assumed[held.id] = held
            self._count(held.id, held)

    def forget(self, ident: str) -> None:
        """Take an assumed Reservation back; nothing happens if the watch has shown it."""
        if self._assumed.pop(ident, None) is not None:
            self._count(ident, None)

    def expire(self, now: float) -> None:
        """End those that were assumed and are over by the wall clock."""
        for claim in tuple(self._assumed.values()):
            if claim.expires_at <= now:
                self.forget(claim.id)

    def _count(self, ident: str, after: claims.Claim | None) -> None:
        present = self._cluster.claim(ident)
        if present != after:
            self._cluster.apply(deltas.ClaimDelta(ident, present, after))
