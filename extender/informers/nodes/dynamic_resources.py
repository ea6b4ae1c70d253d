"""Devices that Dynamic Resource Allocation gave away: they reach the state with their node.

Without the two calls of this module the extender knows nothing of ResourceClaims. A cluster that
does not serve ``resource.k8s.io/v1`` has none.
"""

import dataclasses

from api import resources
from api.kubernetes import dynamic_resources as dra
from domain.devices import dynamic_resources
from extender.state import deltas, ledger
from kube.informers import informer_set, reflector, store


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """The stores of slices and claims."""

    slices: store.Store[dynamic_resources.Slice] = dataclasses.field(default_factory=store.Store)
    claims: store.Store[tuple[dynamic_resources.Ref, ...]] = dataclasses.field(
        default_factory=store.Store
    )


def add(members: informer_set.InformerSet) -> Watched:
    """Watch ResourceSlices, and ResourceClaims that were given something."""
    return Watched(
        members.add(
            reflector.Projection(
                resources.RESOURCE_SLICES,
                dra.ResourceSlice,
                dynamic_resources.read_slice,
                optional=True,
            )
        ),
        members.add(
            reflector.Projection(
                resources.RESOURCE_CLAIMS,
                dra.ResourceClaim,
                lambda claim: dynamic_resources.given(claim) or None,
                optional=True,
            )
        ),
    )


def connect(watched: Watched, books: ledger.Ledger) -> None:
    """Apply to the cluster state what claims hold of each node, whenever it changes."""
    index = dynamic_resources.Index()
    told: dict[str, dynamic_resources.Elsewhere] = {}

    def apply(nodes: frozenset[str]) -> None:
        for node in sorted(nodes):
            before, after = told.get(node), index.held(node)
            if before == after:
                continue
            if after is None:
                del told[node]
            else:
                told[node] = after
            books.cluster.apply(
                deltas.ObjectDelta(deltas.DEVICES_ELSEWHERE, node, before, after, node=node)
            )

    watched.slices.listen(lambda change: apply(index.slice_changed(change.key, change.new)))
    watched.claims.listen(lambda change: apply(index.claim_changed(change.key, change.new or ())))
