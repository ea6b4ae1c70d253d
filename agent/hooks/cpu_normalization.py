"""Quotas of online pods on a node whose cpus are faster than the standard."""

import math
from collections.abc import Mapping

from agent import edits, roles, state
from api import names
from api.koordinator.metadata import qos
from domain.pods import resources

_CLASSES = frozenset({qos.QoS.LS, qos.QoS.NONE})


class RatioError(ValueError):
    """A ratio of cpu speeds that cannot be used; the text says where it is and what is wrong."""


def ratio(annotations: Mapping[str, str]) -> float | None:
    """Return how much faster a node's cpus are, None where nobody says."""
    written = annotations.get(names.ANNOTATION_CPU_NORMALIZATION)
    if written is None:
        return None
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        key = names.ANNOTATION_CPU_NORMALIZATION
        raise RatioError(f"annotation {key}: {written[:40]!r} is no number above 0")
    return value


def scaled(quota_us: int, by: float | None) -> int:
    """Return a quota on cpus that are so much faster; slower ones change nothing."""
    return math.ceil(quota_us / by) if by is not None and by > 1 and quota_us > 0 else quota_us


def applies(pod: state.PodState) -> bool:
    """Tell whether a pod's quota is scaled: pods that share cpus, batch work apart."""
    return pod.qos in _CLASSES and not pod.cpus and pod.active


def reconcile(picture: state.NodeState, by: float | None) -> edits.Decision:
    """Return the quotas of the pods that share cpus."""
    if by is None or by <= 1:
        return edits.switched_off("the cpus of this node are no faster than the standard")
    reason = f"the cpus are {by:g} times as fast as the standard"
    wanted = []
    for pod in picture.pods:
        if not applies(pod):
            continue
        limits = [
            state.core_amount(container.container.resources.limits, names.CPU)
            for container in pod.inside
        ]
        limited = all(
            state.core_amount(container.resources.limits, names.CPU)
            for container in pod.pod.spec.containers
        )
        whole = resources.pod_limits(pod.pod).get(names.CPU, 0) if limited else 0
        pairs = [(pod.group, whole)] + [
            (container.group, limit) for container, limit in zip(pod.inside, limits, strict=True)
        ]
        wanted += [
            edits.Edit(edits.Role.CPU_QUOTA, group, str(scaled(roles.quota(milli), by)), reason)
            for group, milli in pairs
            if group and milli > 0
        ]
    return edits.Decision(reason, tuple(wanted))
