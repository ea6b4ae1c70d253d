"""Cpu shares, quota and memory limit of best-effort pods, from the batch resources they ask for."""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import annotations, cgroup_properties, edits, state
from api import names
from api.koordinator import resource_names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain import wording
from domain.pods import resources

QUOTA_ABOVE = -1
_BATCH: Final = frozenset(names.BATCH_RESOURCES)


class Rule(msgspec.Struct, frozen=True):
    """What the node says about quotas of batch work."""

    limited_above: bool = False
    """Whether all best effort together is held by a quota, so that pods need none of their own."""
    ratio: float | None = None
    """How much faster this node's cpus are than the standard; None where unknown."""


class Values(msgspec.Struct, frozen=True):
    """What a group shall have; None leaves a property alone."""

    shares: int | None = None
    quota_us: int | None = None
    memory_bytes: int | None = None


class Native(msgspec.Struct, frozen=True):
    """Limits of plain cpu in milli and memory in bytes, which nothing exceeds; 0 for none."""

    cpu: int = 0
    memory: int = 0


class Batch(msgspec.Struct, frozen=True):
    """The batch resources of one container: cpu in milli, memory in bytes; 0 for none."""

    cpu_request: int = 0
    cpu_limit: int = 0
    memory_limit: int = 0
    native: Native = Native()

    @property
    def most_cpu(self) -> int:
        """The cpu that it may use by either limit."""
        return _lower(self.cpu_limit, self.native.cpu)

    @property
    def most_memory(self) -> int:
        """The memory that it may use by either limit."""
        return _lower(self.memory_limit, self.native.memory)


class Asked(msgspec.Struct, frozen=True):
    """What a pod asks for."""

    counted: Mapping[str, Batch]
    """The containers that make up the pod's own values."""
    containers: Mapping[str, Batch]
    """Every container of which anything is known."""
    native: Native = Native()
    """Limits of the pod as a whole."""
    plain: Mapping[str, Native] = {}
    """Plain limits of each container that has any."""


class _Resources(msgspec.Struct, frozen=True):
    requests: core.ResourceList = {}
    limits: core.ResourceList = {}


class _Spec(msgspec.Struct, frozen=True):
    containers: dict[str, _Resources] | None = None


def extended(pod: core.Pod, *, from_spec: bool = True) -> Asked | None:
    """Return what the containers ask for, as the spec says; None where it says nothing.

    A runtime hook sees no spec and reads the annotation instead, which anyone who may patch a pod
    can change: where there is a spec, it says nothing.
    """
    if not from_spec:
        written = pod.metadata.annotations.get(names.ANNOTATION_EXTENDED_RESOURCE_SPEC, "")
        remembered = _REMEMBERED.if_readable(written)
        return None if remembered is None else Asked(remembered, remembered)
    native = _native(pod)
    spec = pod.spec
    listed = {c.name: _of_spec(c, native) for c in spec.containers if _has_batch(c)}
    if not listed:
        return None
    # Containers with plain limits alone are inside the pod as well, and so are sidecars.
    beside = {
        c.name: _of_spec(c, native)
        for c in resources.lasting(spec)
        if c.name not in listed and not _has_batch(c) and native.get(c.name)
    }
    level = spec.resources.limits if spec.resources is not None else {}
    return Asked({**listed, **beside}, listed, _limits(level), native)


def _of_spec(container: core.Container, native: Mapping[str, Native]) -> Batch:
    limits = native.get(container.name, Native())
    return msgspec.structs.replace(_batch(container.resources), native=limits)


def _native(pod: core.Pod) -> Mapping[str, Native]:
    """Return the plain limits of containers that have any: what they run with, else the spec's.

    The spec is raised by a resize in place that may never come true, and lowered before the
    kubelet has made room for it.
    """
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    real = {one.name: one.resources.limits for one in statuses if one.resources is not None}
    found = {
        container.name: _limits(real.get(container.name) or container.resources.limits)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
    }
    return {name: limits for name, limits in found.items() if limits != Native()}


def _limits(written: core.ResourceList) -> Native:
    return Native(state.core_amount(written, names.CPU), state.core_amount(written, names.MEMORY))


def _lower(one: int, other: int) -> int:
    """Return the lower of two limits; none is no limit."""
    given = [limit for limit in (one, other) if limit > 0]
    return min(given, default=0)


def _by_name(spec: _Spec) -> Mapping[str, Batch] | None:
    if spec.containers is None:
        return None
    return {name: _batch(asked) for name, asked in spec.containers.items()}


_REMEMBERED = annotations.Reader(names.ANNOTATION_EXTENDED_RESOURCE_SPEC, _Spec, _by_name)


def _has_batch(container: core.Container) -> bool:
    asked = container.resources
    sides = map(resource_names.current, (asked.requests, asked.limits))
    return any(not _BATCH.isdisjoint(side) for side in sides)


def _batch(asked: _Resources | core.ResourceRequirements) -> Batch:
    return Batch(
        state.core_amount(asked.requests, names.BATCH_CPU),
        state.core_amount(asked.limits, names.BATCH_CPU),
        state.core_amount(asked.limits, names.BATCH_MEMORY),
    )


def of_pod(asked: Asked, rule: Rule) -> Values:
    """Return the values of a pod: unlimited as soon as one of its containers is."""
    every = asked.counted.values()
    cpus = [one.most_cpu for one in every]
    memory = [one.most_memory for one in every]
    plain = [one.native.cpu for one in every]
    bound = _lower(sum(memory) if all(memory) else 0, asked.native.memory)
    native = _lower(sum(plain) if all(plain) else 0, asked.native.cpu)
    return Values(
        cgroup_properties.shares(sum(max(one.cpu_request, 0) for one in every)),
        _bounded(quota(sum(cpus) if all(cpus) else 0, rule), native),
        bound or -1,
    )


def of_container(batch: Batch, rule: Rule) -> Values:
    """Return the values of a container."""
    return Values(
        cgroup_properties.shares(batch.cpu_request),
        _bounded(quota(batch.cpu_limit, rule), batch.native.cpu),
        batch.most_memory or -1,
    )


def _bounded(quota_us: int, native_milli: int) -> int:
    """Keep a quota within that of a plain limit."""
    most = cgroup_properties.quota(native_milli)
    if most < 0:
        return quota_us
    return most if quota_us < 0 else min(quota_us, most)


def quota(milli: int, rule: Rule) -> int:
    """Return the quota of an amount of cpu, less on faster cpus."""
    if rule.limited_above:
        return QUOTA_ABOVE
    amount = cgroup_properties.quota(milli)
    if rule.ratio is not None and rule.ratio > 1 and amount > 0:
        return math.ceil(amount / rule.ratio)
    return amount


def reconcile(picture: state.NodeState, rule: Rule) -> edits.Decision:
    """Return the values of every best-effort pod and of its containers."""
    found = reconciliation.of_pods(picture.pods, HOOK.bind(rule))
    pods = wording.count(found.adjusted, "pod", "pods")
    return edits.Decision(f"batch resources of {pods}", tuple(found.wanted))


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return the values of a best-effort pod or of one of its containers."""
    pod = subject.pod
    if pod.qos is not qos.QoS.BE or not pod.active:
        return adjustments.NOTHING
    known = _of_spec_by(pod, rule) if subject.spec_known else _whole(pod, rule, from_spec=False)
    if known is None:
        return adjustments.NOTHING
    asked, whole = known
    if subject.level is subjects.Level.POD:
        return _adjustment(whole)
    container = subject.container
    if container is None or subject.in_guest:
        return adjustments.NOTHING
    batch = _of_container(container, asked)
    if batch is None:
        return adjustments.NOTHING
    own = of_container(batch, rule)
    return _adjustment(_within(own, whole) if container.initial else own)


HOOK = adjustments.Hook("BatchResource", adjust)


def _whole(pod: state.PodState, rule: Rule, *, from_spec: bool) -> tuple[Asked, Values] | None:
    asked = extended(pod.pod, from_spec=from_spec)
    return None if asked is None else (asked, of_pod(asked, rule))


_of_spec_by: subjects.PerPod[Rule, tuple[Asked, Values] | None] = subjects.PerPod(
    lambda pod, rule: _whole(pod, rule, from_spec=True)
)


def _of_container(container: state.ContainerState, asked: Asked) -> Batch | None:
    """Return what a container asks for; one that was there first (a sidecar) says so itself."""
    if container.initial:
        spec = container.container
        return _of_spec(spec, asked.plain) if _has_batch(spec) else None
    return asked.containers.get(container.name)


def _within(own: Values, whole: Values) -> Values:
    """Keep the quota of a container that its pod does not count within that of the pod."""
    if own.quota_us is None or whole.quota_us is None or whole.quota_us < 0:
        return own
    bound = whole.quota_us if own.quota_us < 0 else min(own.quota_us, whole.quota_us)
    return msgspec.structs.replace(own, quota_us=bound)


def _adjustment(values: Values) -> adjustments.Adjustment:
    return adjustments.values(
        {
            edits.Role.CPU_SHARES: values.shares,
            edits.Role.CPU_QUOTA: values.quota_us,
            edits.Role.MEMORY_LIMIT: values.memory_bytes,
        },
        "batch resources of the pod",
    )
