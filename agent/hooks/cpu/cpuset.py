"""On which cpus containers run: exclusive ones, those of the system, or shared ones."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import edits, state
from agent.model.cpus import resource_status, shared_pools
from api.koordinator.metadata import qos
from domain import wording
from domain.cpus import cpulists

_EXCLUSIVE = frozenset({qos.QoS.LSE, qos.QoS.LSR})


class Known(msgspec.Struct, frozen=True):
    """What containers share, what belongs to the system, and who else hands out cpus."""

    pools: shared_pools.Pools
    system: frozenset[int] = frozenset()
    """Where SYSTEM pods run; empty where not set."""
    static_cpu_manager: bool = False
    managed: bool = False
    """Whether best effort that was placed on NUMA nodes stays there."""
    whole: bool = False
    """Whether the shared cpus are all there are, so that no cpuset needs to be written."""


def known(picture: state.NodeState, *, managed: bool = False) -> Known:
    """Return what the containers of a node share."""
    there, reserved = shared_pools.of(picture), picture.reserved
    return Known(
        there,
        system=reserved.system_qos.cpus if reserved.system_qos else frozenset(),
        static_cpu_manager=reserved.static_cpu_manager,
        managed=managed,
        whole=len(there.of()) == len(picture.processors),
    )


def of_container(
    named: qos.QoS, kubernetes_qos: str, placed: resource_status.Placement, there: Known | None
) -> str | None:
    """Return the cpus of a container, empty to let go of any, None to leave them alone."""
    if placed.cpuset:
        return placed.cpuset
    if there is None:
        return None
    batch = named is qos.QoS.BE
    if placed.nodes and (there.managed or not batch):
        return cpulists.text(there.pools.of(placed.nodes, batch=batch))
    if named is qos.QoS.SYSTEM and there.system:
        return cpulists.text(there.system)
    if named is qos.QoS.LS:
        return cpulists.text(there.pools.of())
    if batch or kubernetes_qos == state.BEST_EFFORT:
        return ""
    if there.static_cpu_manager:
        return None
    return cpulists.text(there.pools.of())


def reconcile(
    picture: state.NodeState, *, keep_quota: bool = False, managed: bool = False
) -> edits.Decision:
    """Return the cpus of containers, and free those with cpus of their own from a quota."""
    if not picture.processors:
        return edits.undecided("the processors of this machine")
    by = rule(picture, keep_quota=keep_quota, managed=managed)
    there = by.there
    found = reconciliation.of_pods(picture.pods, HOOK.bind(by))
    wanted, problems = found.wanted, list(found.problems)
    bound = sum(bool(pod.cpus) and _applies(pod) for pod in picture.pods)
    if there is not None:
        wanted += _applications(picture.host_applications, there)
    shared = 0 if there is None else len(there.pools.of())
    own = wording.count(bound, "pod has cpus of its own", "pods have cpus of their own")
    reason = f"{own}, {wording.count(shared, 'cpu is', 'cpus are')} shared"
    problems += [f"{one.key}: {one.reason}" for one in picture.refused_cpus]
    if there is None:
        reason += " until the kubelet says how it hands out others"
    if problems:
        reason += f"; no cpus of their own: {'; '.join(problems[:3])}"
    return edits.Decision(reason, tuple(wanted), figures={"shared-cpus": shared})


def _applications(
    applications: Iterable[state.HostApplication], there: Known
) -> Iterator[edits.Edit]:
    cpus = cpulists.text(there.pools.of())
    for app in applications:
        if app.qos == qos.QoS.LS and app.group and cpus and not there.whole:
            reason = f"host application {app.name} runs on the shared cpus"
            yield edits.Edit(edits.Role.CPUSET, app.group, cpus, reason)


class Rule(msgspec.Struct, frozen=True):
    """What a node says of cpus."""

    there: Known | None
    """What containers share; None until the kubelet has said how it hands out cpus."""
    keep_quota: bool = False
    """Whether pods with cpus of their own keep their quota."""


def rule(picture: state.NodeState, *, keep_quota: bool = False, managed: bool = False) -> Rule:
    """Return what a node says of cpus.

    Until the kubelet has said how it hands out cpus, none of them may be called shared.
    """
    there = known(picture, managed=managed) if picture.kubelet is not None else None
    return Rule(there, keep_quota)


def _applies(pod: state.PodState) -> bool:
    return pod.active and pod.pod.spec.runtime_class_name != state.KATA


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return the cpus of a container, and no quota where a pod has cpus of its own."""
    return _by_level(subject.pod, rule).get(subject.level, adjustments.NOTHING)


HOOK = adjustments.Hook("CPUSetAllocator", adjust)


def _levels(pod: state.PodState, rule: Rule) -> Mapping[subjects.Level, adjustments.Adjustment]:
    """Return what each level of a pod shall have."""
    if not _applies(pod):
        return {}
    said, problem = resource_status.of_pod(pod.pod.metadata.annotations)
    # Cpus that the annotation claims count only as far as the claim holds.
    placed = resource_status.Placement(cpulists.text(pod.cpus), said.nodes)
    cpus = _cpus(pod, placed, rule.there)
    quota = _unlimited(pod) if placed.cpuset and not rule.keep_quota else {}
    found = {
        subjects.Level.POD: quota,
        subjects.Level.CONTAINER: cpus | quota,
        subjects.Level.SANDBOX: cpus,
    }
    problems = (problem,) if problem else ()
    return {
        level: adjustments.Adjustment(values, problems=problems)
        for level, values in found.items()
        if values or problem
    }


_by_level = subjects.PerPod(_levels)


def _cpus(
    pod: state.PodState, placed: resource_status.Placement, there: Known | None
) -> dict[edits.Role, adjustments.Value]:
    confined = there is not None and pod.qos is qos.QoS.SYSTEM and bool(there.system)
    whole = there is not None and there.whole
    if whole and not placed.cpuset and not placed.nodes and not confined:
        # All cpus are shared: a new group has them anyway.
        return {}
    cpus = of_container(pod.qos, pod.kubernetes_qos, placed, there)
    if not cpus:
        return {}
    reason = "cpus that no pod has exclusively"
    if placed.cpuset:
        reason = "cpus that the scheduler bound"
    elif confined:
        reason = "cpus of the system"
    return {edits.Role.CPUSET: adjustments.Value(cpus, reason)}


def _unlimited(pod: state.PodState) -> dict[edits.Role, adjustments.Value]:
    """A pod with cpus of its own is held by them; a quota would only throttle it."""
    if pod.qos not in _EXCLUSIVE and pod.qos is not qos.QoS.NONE:
        return {}
    reason = "a pod with cpus of its own needs no quota"
    return {edits.Role.CPU_QUOTA: adjustments.Value("-1", reason)}
