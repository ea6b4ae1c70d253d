"""What a pod means to its quota, read once for pods that are alike."""

import msgspec

from api import names
from domain.quota import model
from extender.framework import views

LABELS = (names.LABEL_QUOTA_NAME, names.LABEL_QUOTA_PREEMPTIBLE)
"""Labels of pods that are read."""


Claimed = tuple[views.PodRequirements, str, bool]
"""What counts of a claim: what its pod asks for, the namespace, and whether it is a nomination."""


class Counted(msgspec.Struct, frozen=True, cache_hash=True):
    """How a claim changes the sums of its quota: what is taken out of them, and what comes in."""

    before: model.PodUse | None
    after: model.PodUse


@views.PodRequirements.remembered(8192)
def waiting(requirements: views.PodRequirements, namespace: str) -> model.PodUse:
    """Return the use of a pod without a node: it is requested, not used."""
    inputs = dict(requirements.inputs)
    return model.PodUse(
        uid="",
        quota=inputs.get(names.LABEL_QUOTA_NAME, ""),
        namespace=namespace,
        requests=requirements.requests,
        assigned=False,
        preemptible=inputs.get(names.LABEL_QUOTA_PREEMPTIBLE) != "false",
    )


@views.PodRequirements.remembered(8192)
def firm(requirements: views.PodRequirements, namespace: str) -> Counted:
    """Return how a bound or assumed pod counts: as requested and as used."""
    use = waiting(requirements, namespace)
    return Counted(None, msgspec.structs.replace(use, assigned=True))


@views.PodRequirements.remembered(8192)
def nominated(requirements: views.PodRequirements, namespace: str) -> Counted:
    """Return how a nomination counts: as used, since the pod it is for is requested by itself."""
    use = waiting(requirements, namespace)
    return Counted(use, msgspec.structs.replace(use, assigned=True))


def counted(claimed: Claimed) -> Counted:
    """Return how a claim counts."""
    requirements, namespace, is_nominated = claimed
    return (nominated if is_nominated else firm)(requirements, namespace)
