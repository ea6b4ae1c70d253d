"""Pods of which every filter says the same, as long as none of them is being moved. Pure.

150,000 pods are some thousand kinds, so that filters are asked some thousand times.
"""

import operator
from typing import Final

from api import names
from descheduler.model import podinfo

ANNOTATIONS: Final = (
    names.ANNOTATION_EXEMPT,
    names.ANNOTATION_FORCE_EVICT,
    names.ANNOTATION_PREFER_NO_EVICTION,
    names.ANNOTATION_EVICTION_COST,
)
"""Those that filters read. Deletion costs are not among them: hardly two pods share theirs."""
_PLAIN: Final = (
    *("phase", "priority", "scheduler_name", "is_mirror"),
    *("has_local_storage", "has_resource_claims", "gang", "flaw"),
)
FIELDS: Final = frozenset(
    {*_PLAIN, "key", "labels", "annotations", "owners", "leaves_at", "claims", "node"}
)
"""Fields of pods that filters may read, beside those of which they say that they vary."""

Kind = tuple[object, ...]
_plain: Final = operator.attrgetter(*_PLAIN)


def of(pod: podinfo.Pod) -> Kind:
    """Return what filters go by.

    Labels and owners are compared by identity, since the pods of one template share theirs: a kind
    is only known while its pods are.
    """
    notes = pod.annotations
    return (
        pod.key.partition("/")[0],
        id(pod.labels),
        id(pod.owners),
        tuple([notes.get(name) for name in ANNOTATIONS]) if notes else None,
        pod.leaves_at < 0,
        not pod.claims,
        not pod.node,
        _plain(pod),
    )
