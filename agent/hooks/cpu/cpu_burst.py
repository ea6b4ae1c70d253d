"""How far containers may exceed their CPU limit for a moment, and who may: the CFS burst. Pure."""

import math
from typing import Final

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import subject as subjects
from agent.model import annotations, cgroup_properties, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources

BURSTS: Final = ("auto", "cpuBurstOnly")
SCALES: Final = ("auto", "cfsQuotaBurstOnly")
POLICIES: Final = frozenset({*BURSTS, *SCALES})
WITHOUT: Final = frozenset({qos.QoS.LSE, qos.QoS.LSR, qos.QoS.BE})
"""Classes without bursting."""
_SCALED = frozenset({qos.QoS.LS, qos.QoS.NONE})


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    policy: str | None = None
    cpu_burst_percent: annotations.Int64 | None = None
    cfs_quota_burst_percent: annotations.Int64 | None = None
    cfs_quota_burst_period_seconds: annotations.Int64 | None = None


def microseconds(burst: strategy_settings.Burst, limit_milli: int) -> int:
    """Return the burst of a container with a CPU limit, 0 where its policy has none."""
    if burst.policy not in BURSTS:
        return 0
    # In floating point, and cut to whole microseconds, as the field has always been filled.
    share = (burst.cpu_percent or 0) / 100
    return int(limit_milli / 1000 * share * cgroup_properties.PERIOD_US)


def base(limit_milli: int, faster: float | None) -> int:
    """Return the quota of a CPU limit, less on CPUs that are so much faster."""
    quota = cgroup_properties.quota(limit_milli)
    return math.ceil(quota / faster) if faster and faster > 1 else quota


def ratio(settings: strategy_settings.NodeBurst, pod: state.PodState) -> float | None:
    """Return how much less than its limit a pod is given, because the CPUs are fast."""
    return settings.ratio if pod.qos in _SCALED and not pod.cpus else None


def bounded(
    burst_us: int | None, kernel: state.Kernel, limit_us: int | None, standing_us: int | None
) -> int:
    """Return the burst to write: a mainline kernel takes no more than the quota itself.

    It takes neither a burst above the quota that stands, nor a quota below the burst that stands:
    while a pod is resized in place the lower of both counts, so that neither write fails.
    """
    wanted = max(burst_us or 0, 0)
    if edits.Role.CPU_IDENTITY in kernel.roles:
        return wanted
    quotas = (limit_us, standing_us)
    return min([wanted, *(quota for quota in quotas if quota is not None and quota > 0)])


class Rule(msgspec.Struct, frozen=True):
    """The settings of bursting, and what the kernel takes."""

    settings: strategy_settings.NodeBurst
    kernel: state.Kernel


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return the burst of a container, or of a pod: that of all its containers."""
    pod = subject.pod
    if not subject.spec_known or not pod.active or pod.qos in WITHOUT:
        return adjustments.NOTHING
    burst = of_pod(rule.settings, pod)
    if burst.policy not in POLICIES or subject.level is subjects.Level.SANDBOX or subject.in_guest:
        return adjustments.NOTHING
    faster = ratio(rule.settings, pod)
    if subject.container is not None:
        if not subject.container.lasts:
            return adjustments.NOTHING
        listed: tuple[core.Container, ...] = (subject.container.container,)
        limit = state.core_amount(listed[0].resources.limits, names.CPU)
        standing = subject.container.quota_us
    else:
        spec, standing = pod.pod.spec, pod.quota_us
        listed = resources.lasting(spec)
        limited = resources.is_limited(spec, names.CPU)
        limit = resources.pod_limits(pod.pod).get(names.CPU, 0) if limited else 0
    quota = base(limit, faster) if limit > 0 else None
    limits = (state.core_amount(one.resources.limits, names.CPU) for one in listed)
    whole = sum(microseconds(burst, one) for one in limits if one > 0)
    found = bounded(whole, rule.kernel, quota, standing)
    if not found:
        return adjustments.NOTHING
    reason = "bursting for a moment is allowed"
    return adjustments.values({edits.Role.CPU_BURST: found}, reason)


HOOK = adjustments.Hook("CPUBurst", adjust)


def overridden(every: strategy_settings.Burst, pod: state.PodState) -> strategy_settings.Burst:
    """Return what holds for one pod: its annotation over the node's settings."""
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_CPU_BURST)
    own = _REMEMBERED.if_readable(written) if written else None
    if own is None:
        return every
    return strategy_settings.Burst(
        policy=every.policy if own.policy is None else own.policy,
        cpu_percent=_first(own.cpu_burst_percent, every.cpu_percent),
        quota_percent=_first(own.cfs_quota_burst_percent, every.quota_percent),
        quota_period_seconds=_first(own.cfs_quota_burst_period_seconds, every.quota_period_seconds),
    )


def of_pod(settings: strategy_settings.NodeBurst, pod: state.PodState) -> strategy_settings.Burst:
    """Return what holds for one pod: its annotation as far as the node's ceiling lets it loosen."""
    every, most = settings.every, settings.most
    own = overridden(every, pod)
    if most is None or own is every:
        return own
    return strategy_settings.Burst(
        own.policy,
        _at_most(own.cpu_percent, every.cpu_percent, most.cpu_percent),
        _at_most(own.quota_percent, every.quota_percent, most.quota_percent),
        _no_longer(own.quota_period_seconds, every.quota_period_seconds, most.quota_period_seconds),
    )


def _at_most(own: int | None, every: int | None, most: int | None) -> int | None:
    return None if own is None else max(0, min(own, max(every or 0, most or 0)))


def _no_longer(own: int | None, every: int | None, most: int | None) -> int | None:
    """Return a period within a bound; a negative one, or none at all, has no end."""
    bounds = [limit for limit in (every, most) if limit is not None]
    if not bounds or min(bounds) < 0:
        return own
    longest = max(bounds)
    return longest if own is None or own < 0 else min(own, longest)


def _first(own: int | None, every: int | None) -> int | None:
    return every if own is None else own


_REMEMBERED = annotations.Reader(names.ANNOTATION_CPU_BURST, _Override, lambda own: own)
