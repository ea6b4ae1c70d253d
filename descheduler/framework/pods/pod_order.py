"""The order in which pods leave a node: the least important and cheapest to move first. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from api.koordinator.metadata import annotations, qos
from descheduler.model import podinfo

_BANDS: Final = {
    band: place
    for place, band in enumerate(
        (qos.Band.FREE, qos.Band.BATCH, qos.Band.MID, qos.Band.PROD, qos.Band.NONE)
    )
}
_KUBERNETES: Final = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}
_QOS: Final = {
    qos.QoS.BE: 0,
    qos.QoS.LS: 1,
    qos.QoS.LSR: 2,
    qos.QoS.LSE: 3,
    qos.QoS.SYSTEM: 3,
    qos.QoS.NONE: 4,
}
_LAST: Final = 9

Key = tuple[int, int, int, int, int, int, tuple[bool, float], float, str]
_UNSCORED: Final = (False, 0.0)


def key(pod: podinfo.Pod, usage: tuple[bool, float] = _UNSCORED) -> Key:
    """Return what pods are sorted by; the one with the least leaves first.

    Priority class (`importance`), priority, QoS class of Kubernetes and of Koordinator (derived
    from the former where no label names it), deletion cost, eviction cost, what its usage says,
    age. Names break ties, so that the order is the same every time.
    """
    notes = pod.annotations
    return (
        _BANDS[pod.importance],
        pod.priority or 0,
        _KUBERNETES.get(pod.kubernetes_qos, _LAST),
        _QOS[pod.qos or qos.qos_with_default(pod.labels, pod.kubernetes_qos)],
        annotations.deletion_cost(notes) if notes else 0,
        annotations.eviction_cost(notes) if notes else 0,
        usage,
        -pod.created,
        pod.key,
    )


def by_usage(score: float | None) -> tuple[bool, float]:
    """Return the part of the key that says how well leaving helps; pods without a score go last."""
    return (True, 0.0) if score is None else (False, -score)


def ordered(
    pods: Iterable[podinfo.Pod], scores: Mapping[str, float] | None = None
) -> list[podinfo.Pod]:
    """Sort pods, the first to leave first; scores are by uid."""
    if scores is None:
        return sorted(pods, key=key)
    return sorted(pods, key=lambda pod: key(pod, by_usage(scores.get(pod.uid))))
