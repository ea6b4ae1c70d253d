"""Quotas of online pods on a node whose cpus are faster than the standard."""

import math
from collections.abc import Mapping

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import cgroup_properties, edits, state
from api import names
from api.koordinator.metadata import qos
from domain.pods import resources

_CLASSES = frozenset({qos.QoS.LS, qos.QoS.NONE})


class RatioError(ValueError):
    """A ratio of cpu speeds that cannot be used; the text says where it is and what is wrong."""


def ratio(annotations: Mapping[str, str]) -> float | None:
    """Return how much faster a node's cpus are, None where unknown."""
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
    found = reconciliation.of_pods(picture.pods, HOOK.bind(by))
    return edits.Decision(_reason(by), tuple(found.wanted))


def adjust(subject: subjects.Subject, by: float) -> adjustments.Adjustment:
    """Return the quota of a pod or container that shares cpus."""
    if not applies(subject.pod) or subject.in_guest:
        return adjustments.NOTHING
    if subject.level is subjects.Level.SANDBOX:
        return adjustments.NOTHING
    quota_us = _quota(subject)
    if quota_us is None or quota_us <= 0:
        return adjustments.NOTHING
    return adjustments.values({edits.Role.CPU_QUOTA: scaled(quota_us, by)}, _reason(by))


HOOK = adjustments.Hook("CPUNormalization", adjust)


def _reason(by: float) -> str:
    return f"the cpus are {by:g} times as fast as the standard"


def _quota(subject: subjects.Subject) -> int | None:
    """Return the quota on standard cpus: of the spec, else what the runtime was asked for."""
    if not subject.spec_known:
        return subject.requested_quota_us
    if subject.container is not None:
        limits = subject.container.container.resources.limits
        return cgroup_properties.quota(state.core_amount(limits, names.CPU))
    pod = subject.pod.pod
    limited = resources.is_limited(pod.spec, names.CPU)
    whole = resources.pod_limits(pod).get(names.CPU, 0) if limited else 0
    return cgroup_properties.quota(whole)
