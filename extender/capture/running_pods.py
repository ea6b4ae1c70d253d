"""The running pods over which a Reservation is placed, as the ledger counts them. Pure."""

from collections.abc import Sequence
from typing import Final

from extender.capture import plan
from extender.state import claims, cluster_state
from extender.state.reservations import reservation_claims

CHANGED: Final = "the pods over which the Reservation was to be placed have changed"


def found(
    cluster: cluster_state.ClusterState, over: Sequence[str], node: str
) -> tuple[plan.RunningPod, ...] | str:
    """Return the pods with these uids, or why a Reservation cannot be placed over them.

    All of them run on the node, use no Reservation, and no other Reservation waits for them: what
    they hold is promised once.
    """
    present = []
    for uid in over:
        claim = cluster.claim(uid)
        if claim is None or claim.kind is not claims.ClaimKind.BOUND or claim.node != node:
            return f"{CHANGED}: one of them does not run on {node} any more"
        if claim.consumes:
            return f"{CHANGED}: {claim.pod.key} uses a Reservation"
        requests = dict(claim.pod.requirements.requests)
        present.append(plan.RunningPod(uid, claim.pod.namespace, claim.pod.name, requests))
    if present:
        for claim in cluster.claims_on(node):
            offered = reservation_claims.offered(claim)
            if offered is not None and not offered.over.isdisjoint(over):
                return f"{CHANGED}: Reservation {offered.name} waits for one of them"
    return tuple(present)
