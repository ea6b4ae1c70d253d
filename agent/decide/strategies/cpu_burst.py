"""Let throttled online containers exceed their cpu limit while the node has room."""

import enum
import math
from collections.abc import Iterable, Mapping

import msgspec

from agent.decide import burst_limiter
from agent.hooks.cpu import cpu_burst as bursts
from agent.model import edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from domain.pods import resources

SCALE_UP, SCALE_DOWN = 1.2, 0.8
COOLING = 0.9
_EXCLUSIVE = frozenset({qos.QoS.LSE, qos.QoS.LSR})


class Load(enum.Enum):
    """Whether the cpus that online pods share have room."""

    IDLE = "idle"
    COOLING = "cooling"
    OVERLOAD = "overload"
    UNKNOWN = "unknown"


class Step(enum.Enum):
    """What becomes of a quota."""

    UP = "up"
    DOWN = "down"
    REMAIN = "remain"
    RESET = "reset"


class Averages(msgspec.Struct, frozen=True):
    """Cores used over the last seconds, by pod uid; None without a figure of the node."""

    node: float | None = None
    pods: Mapping[str, float] = msgspec.field(default_factory=dict)


class Change(msgspec.Struct, frozen=True, gc=False):
    """What one container or pod shall have; None where nothing is known or to be done."""

    group: str
    burst_us: int | None
    quota_us: int | None
    step: Step = Step.REMAIN
    limit_us: int | None = None
    """The quota that its limit stands for, None for no limit."""
    standing_us: int | None = None
    """The quota that it has at present, -1 for no limit, None while that is unknown."""


class Plan(msgspec.Struct, frozen=True):
    """What all containers and pods shall have, and the buckets for the next look."""

    load: Load
    changes: tuple[Change, ...]
    buckets: Mapping[str, burst_limiter.Bucket]


def decide(
    picture: state.NodeState,
    settings: strategy_settings.NodeBurst,
    averages: Averages,
    buckets: Mapping[str, burst_limiter.Bucket],
    now: float,
) -> tuple[edits.Decision, Mapping[str, burst_limiter.Bucket]]:
    """Return the edits of this look and the buckets for the next one."""
    asking = [pod for pod in picture.pods if bursts.of_pod(settings, pod).policy in bursts.POLICIES]
    if not asking:
        return edits.switched_off("bursting is on neither for the node nor for a pod"), {}
    planned = plan(picture, settings, averages, buckets, now, asking)
    reason = f"the shared cpus are {planned.load.value}"
    texts = {step: f"quota goes {step.value}: {reason}" for step in Step}
    kernel, for_a_moment = picture.kernel, "bursting for a moment is allowed"
    of_burst, of_quota = edits.Role.CPU_BURST, edits.Role.CPU_QUOTA
    wanted: list[edits.Edit] = []
    for change in planned.changes:
        group, quota_us, step = change.group, change.quota_us, change.step
        if change.burst_us and (
            burst_us := bursts.bounded(change.burst_us, kernel, change.limit_us, change.standing_us)
        ):
            wanted.append(edits.Edit(of_burst, group, str(burst_us), for_a_moment))
        # What is not scaled is put back by wanting nothing: the limit of a pod is its kubelet's.
        if quota_us is not None and step is not Step.RESET:
            wanted.append(edits.Edit(of_quota, group, str(quota_us), texts[step]))
    steps = [change.step for change in planned.changes]
    figures = {step.value: float(steps.count(step)) for step in Step}
    return edits.Decision(reason, tuple(wanted), figures=figures), planned.buckets


def plan(
    picture: state.NodeState,
    settings: strategy_settings.NodeBurst,
    averages: Averages,
    buckets: Mapping[str, burst_limiter.Bucket],
    now: float,
    pods: Iterable[state.PodState] | None = None,
) -> Plan:
    """Return what every container shall have, of some pods or of all."""
    load = node_load(picture, settings.share_pool_percent, averages)
    changes: list[Change] = []
    kept: dict[str, burst_limiter.Bucket] = {}
    for pod in picture.pods if pods is None else pods:
        if pod.qos in bursts.WITHOUT or not pod.active:
            continue
        burst = bursts.of_pod(settings, pod)
        ratio = bursts.ratio(settings, pod)
        changes += _pod(pod, burst, load, _Buckets(buckets, kept, now, ratio))
    return Plan(load, tuple(changes), kept)


class _Buckets(msgspec.Struct, frozen=True):
    before: Mapping[str, burst_limiter.Bucket]
    after: dict[str, burst_limiter.Bucket]
    now: float
    ratio: float | None
    """How much less than its limit a container is given, because the cpus are fast."""

    def base(self, limit: int) -> int:
        return bursts.base(limit, self.ratio)

    def allow(
        self, container: state.ContainerState, burst: strategy_settings.Burst, limit: int
    ) -> bool:
        used = container.usage.cpu
        percent = 100 if used is None else int(100 * used / (limit / 1000))
        allowed, bucket = burst_limiter.look(
            self.before.get(container.group),
            burst.quota_period_seconds,
            burst.quota_percent,
            percent,
            self.now,
        )
        if bucket is not None:
            self.after[container.group] = bucket
        return allowed


def node_load(picture: state.NodeState, percent: int, averages: Averages) -> Load:
    """Judge the cpus that are left to pods without cpus of their own."""
    if averages.node is None or not picture.processors:
        return Load.UNKNOWN
    used, total = averages.node, float(len(picture.processors))
    for pod in picture.pods:
        named = pod.qos
        if named not in bursts.WITHOUT:
            continue
        used -= averages.pods.get(pod.pod.metadata.uid, 0.0)
        if named in _EXCLUSIVE:
            total -= resources.pod_requests(pod.pod).get(names.CPU, 0) / 1000
    ratio = used / total if total > 0 else 1.0
    threshold = percent / 100
    if ratio >= threshold:
        return Load.OVERLOAD
    return Load.COOLING if ratio >= threshold * COOLING else Load.IDLE


def _pod(
    pod: state.PodState, burst: strategy_settings.Burst, load: Load, buckets: _Buckets
) -> list[Change]:
    changes, moved = [], 0
    for container in pod.inside:
        if not container.lasts:
            continue
        change = _container(container, burst, load, buckets)
        if change.quota_us is not None and container.quota_us is not None:
            moved += change.quota_us - container.quota_us
        changes.append(change)
    if not changes:
        return []
    quota = pod.quota_us
    limits = [change.limit_us for change in changes]
    whole = Change(
        group=pod.group,
        burst_us=sum(change.burst_us or 0 for change in changes),
        quota_us=quota + moved if quota is not None and quota > 0 else None,
        step=_common({change.step for change in changes if change.quota_us is not None}),
        limit_us=None if None in limits else sum(limit or 0 for limit in limits),
        standing_us=quota,
    )
    return [*changes, whole]


def _container(
    container: state.ContainerState, burst: strategy_settings.Burst, load: Load, buckets: _Buckets
) -> Change:
    limit = state.core_amount(container.container.resources.limits, names.CPU)
    if limit <= 0:
        return Change(container.group, 0, None)
    burst_us = bursts.microseconds(burst, limit)
    base = buckets.base(limit)
    standing = container.quota_us
    if not container.running or standing is None:
        return Change(container.group, burst_us, None, limit_us=base, standing_us=standing)
    step = _step(burst, load, container, buckets.allow(container, burst, limit))
    target = _target(standing, base, burst.quota_percent, step)
    return Change(container.group, burst_us, target, step, base, standing)


def _common(steps: set[Step]) -> Step:
    """Return what becomes of a pod's quota: what becomes of any container that moves."""
    if steps <= {Step.RESET}:
        return Step.RESET
    return next((step for step in (Step.UP, Step.DOWN) if step in steps), Step.REMAIN)


def _step(
    burst: strategy_settings.Burst, load: Load, container: state.ContainerState, allowed: bool
) -> Step:
    if burst.policy not in bursts.SCALES:
        return Step.RESET
    if not allowed:
        return Step.DOWN
    step = Step.UP if container.throttled and container.throttled > 0 else Step.REMAIN
    if load is Load.OVERLOAD:
        return Step.DOWN
    return Step.REMAIN if load is not Load.IDLE else step


def _target(current: int, base: int, percent: int | None, step: Step) -> int:
    if step is Step.RESET:
        return base
    most = (
        base * percent // 100
        if percent is not None and percent > burst_limiter.LEAST_PERCENT
        else base
    )
    wanted = current
    if step is Step.UP:
        wanted = math.trunc(current * SCALE_UP)
    elif step is Step.DOWN:
        wanted = math.trunc(current * SCALE_DOWN)
    return max(base, min(most, wanted))
