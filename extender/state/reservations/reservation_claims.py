"""The claim of a Reservation: what it holds on its node, as a pod of its template would. Pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from api.koordinator import scheduling
from api.kubernetes import core
from api.wire import base
from domain.pods import resources
from domain.reservations import model
from extender.state import bounds, claims, records

NAME: Final = "Reservation"
"""The plug-in, and the key of `model.Reservation` among what is allocated to the claim."""
PRIORITY: Final = (1 << 31) - 1
"""Of the claim: pods that are placed on a node never make a Reservation leave it."""


def claim(written: scheduling.Reservation, projector: records.Projector) -> claims.Claim | None:
    """Return what a Reservation holds, None where it holds nothing: it is not Available.

    Its annotations say which CPUs and devices, as those of a pod do, and are bounded alike by what
    it requests.
    """
    offered = _offered(written)
    if offered is None:
        return None
    pod, notes = written.pod, written.metadata.annotations
    shape = msgspec.structs.replace(
        pod,
        metadata=core.ObjectMeta(
            labels={**pod.metadata.labels, **written.metadata.labels},
            annotations={**pod.metadata.annotations, **notes},
        ),
    )
    requirements = msgspec.structs.replace(
        projector.requirements(shape),
        requests=bounds.pairs(offered.allocatable),
        priority=PRIORITY,
    )
    granted, unreadable = projector.granted(notes, requirements)
    namespace = pod.metadata.namespace or "default"
    held = records.PodRecord(
        key=f"{namespace}/{offered.name}",
        uid=offered.uid,
        node=offered.node,
        requirements=requirements,
        allocations={**granted, NAME: offered},
        unreadable=unreadable,
    )
    return claims.Claim(
        claims.reservation(offered.uid),
        claims.ClaimKind.RESERVATION,
        offered.node,
        held,
        held.allocations,
        evidence=claims.SHOWN,
    )


def operating(pod: records.PodRecord) -> claims.Claim | None:
    """Return what a pod in operating mode offers, None where it offers nothing.

    It holds nothing of its node: the pod itself does, also in kube-scheduler's sums.
    """
    found = pod.offers
    if found is None:
        return None
    nothing = records.PodRequirements((), (), pod.requirements.band, priority=PRIORITY)
    held = records.PodRecord(pod.key, pod.uid, pod.node, nothing, allocations={NAME: found})
    ident, kind = claims.reservation(pod.uid), claims.ClaimKind.RESERVATION
    return claims.Claim(ident, kind, pod.node, held, held.allocations, evidence=claims.SHOWN)


def _offered(written: scheduling.Reservation) -> model.Reservation | None:
    """Return what it offers; one whose annotations cannot be read keeps it and offers nothing."""
    try:
        return model.read(written)
    except base.ReadError:
        bare = written.metadata.model_copy(update={"annotations": {}})
        found = model.read(written.model_copy(update={"metadata": bare}))
        return None if found is None else msgspec.structs.replace(found, owners=())


def offered(held: claims.Claim) -> model.Reservation | None:
    """Return the Reservation behind a claim, None where it is none."""
    if held.kind is not claims.ClaimKind.RESERVATION:
        return None
    found = held.allocations.get(NAME)
    return found if isinstance(found, model.Reservation) else None


def amounts(held: claims.Claim) -> Mapping[str, int]:
    """Return what a pod or a Reservation requests, with the pod slot that it takes."""
    return resources.add(dict(held.pod.requirements.requests), {model.PODS: 1})
