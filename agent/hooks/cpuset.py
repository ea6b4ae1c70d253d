"""On which cpus containers run: their own, those of the system, or those that nobody has alone."""

from collections.abc import Iterable, Iterator

import msgspec

from agent import edits, placements, pools, state
from api.koordinator.metadata import qos
from domain.cpus import cpulists

_EXCLUSIVE = frozenset({qos.QoS.LSE, qos.QoS.LSR})


class Known(msgspec.Struct, frozen=True):
    """What containers share, what belongs to the system, and who else hands out cpus."""

    pools: pools.Pools
    system: frozenset[int] = frozenset()
    """Where SYSTEM pods run; empty where nobody said."""
    static_cpu_manager: bool = False
    managed: bool = False
    """Whether best effort that was placed on NUMA nodes stays there."""
    whole: bool = False
    """Whether the shared cpus are all there are, so that nobody needs to be told."""


def known(picture: state.NodeState, *, managed: bool = False) -> Known:
    """Return what the containers of a node share."""
    there, reserved = pools.of(picture), picture.reserved
    return Known(
        there,
        system=reserved.system_qos.cpus if reserved.system_qos else frozenset(),
        static_cpu_manager=reserved.static_cpu_manager,
        managed=managed,
        whole=len(there.of()) == len(picture.processors),
    )


def of_container(
    named: qos.QoS, kubernetes_qos: str, placed: placements.Placement, there: Known | None
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
    # Until the kubelet has said how it hands out cpus, none of them may be called shared.
    there = known(picture, managed=managed) if picture.kubelet is not None else None
    wanted: list[edits.Edit] = []
    problems: list[str] = []
    bound = 0
    for pod in picture.pods:
        if not pod.active or pod.pod.spec.runtime_class_name == "kata":
            continue
        said, problem = placements.of_pod(pod.pod.metadata.annotations)
        if problem:
            problems.append(f"{pod.pod.metadata.key}: {problem}")
        # Cpus that the annotation claims count only as far as the claim holds.
        placed = placements.Placement(cpulists.text(pod.cpus), said.nodes)
        bound += bool(placed.cpuset)
        wanted += _pod(pod, placed, there)
        if placed.cpuset and not keep_quota:
            wanted += _unlimited(pod)
    if there is not None:
        wanted += _applications(picture.host_applications, there)
    shared = 0 if there is None else len(there.pools.of())
    reason = f"{bound} pods have cpus of their own, {shared} cpus are shared"
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


def _pod(
    pod: state.PodState, placed: placements.Placement, there: Known | None
) -> list[edits.Edit]:
    confined = there is not None and pod.qos is qos.QoS.SYSTEM and bool(there.system)
    whole = there is not None and there.whole
    if whole and not placed.cpuset and not placed.nodes and not confined:
        # All cpus are shared: a new group has them anyway.
        return []
    cpus = of_container(pod.qos, pod.kubernetes_qos, placed, there)
    if not cpus:
        return []
    reason = "cpus that nobody has alone"
    if placed.cpuset:
        reason = "cpus that the scheduler bound"
    elif confined:
        reason = "cpus of the system"
    groups = [container.group for container in pod.containers] + [pod.sandbox]
    return [edits.Edit(edits.Role.CPUSET, group, cpus, reason) for group in groups if group]


def _unlimited(pod: state.PodState) -> list[edits.Edit]:
    """A pod with cpus of its own is held by them; a quota would only throttle it."""
    if pod.qos not in _EXCLUSIVE and pod.qos is not qos.QoS.NONE:
        return []
    groups = [pod.group, *(container.group for container in pod.containers)]
    reason = "a pod with cpus of its own needs no quota"
    return [edits.Edit(edits.Role.CPU_QUOTA, group, "-1", reason) for group in groups if group]
