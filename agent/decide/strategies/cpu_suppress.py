"""Shrink best-effort CPU when the node is busy, so that node usage stays at its threshold."""

import itertools
import math
from collections.abc import Sequence

import msgspec

from agent.model import edits, state
from agent.model.cpus import resource_status, shared_pools
from api.koordinator.metadata import qos
from domain.cpus import cpulists

PERIOD_US = 100_000
LEAST_CPUS = 2
LEAST_QUOTA_US = 2000
GROWTH = 0.1
CONTAINER_DEPTH = 2
SMALLEST_CHANGE = 0.01
QUOTA_POLICY = "cfsQuota"
ROLES = edits.Role.CPUSET, edits.Role.CPU_QUOTA
"""What limits best effort."""


class Decision(msgspec.Struct, frozen=True):
    """What best-effort work may use now, why, and the edits that make it so."""

    allowed_milli: int | None
    """None while nothing is decided."""
    reason: str
    wanted: tuple[edits.Edit, ...] = ()


def may_hold(role: edits.Role, group: str) -> bool:
    """Tell whether a property is of those that limit best effort."""
    return role in ROLES and state.BEST_EFFORT.lower() in group


def decide(picture: state.NodeState, *, managed: bool = False) -> Decision:
    """Return the edits of this tick; none while something needed is unknown.

    Where another program manages the cpus of best effort they are only kept from exclusive ones.
    """
    thresholds = picture.thresholds
    if thresholds is None:
        return Decision(None, "no NodeSLO of this node has been seen")
    if not thresholds.enable:
        reason = "suppression is switched off"
        free = unsuppressed(picture, reason, managed=managed)
        return Decision(None, reason, free + put_back_quota(picture, reason))
    if managed:
        reason = "the cpus of best effort are managed by NUMA node"
        return Decision(None, reason, by_manager(picture, reason))
    if missing := _missing(picture):
        return Decision(None, f"waiting for {missing}")
    allowed = allowed_milli(picture, thresholds)
    reason = _sentence(picture, thresholds, allowed)
    if thresholds.cpu_suppress_policy == QUOTA_POLICY:
        return Decision(allowed, reason, by_quota(picture, allowed, reason))
    if not _has_cpus(picture):
        # Which cpus there are may be known again in a moment: those of best effort stay its own.
        kept = _present(picture, reason)
        return Decision(allowed, reason, (*_quota(picture, allowed, reason), *kept))
    found = by_cpuset(picture, allowed, reason)
    return Decision(allowed, reason, (*found, *_of_few(picture, found, reason)))


def allowed_milli(picture: state.NodeState, thresholds: state.Thresholds) -> int:
    """Return the milli-cores left for best effort under the threshold; may be negative."""
    capacity = picture.capacity_milli
    apps = picture.host_applications
    all_pods = picture.lost_pods_cpu + sum(pod.usage.cpu or 0.0 for pod in picture.pods)
    all_apps = sum(app.cpu or 0.0 for app in apps)
    system = max((picture.usage.cpu or 0.0) - all_pods - all_apps, 0.0)
    system = max(system, picture.reserved.milli_cpu / 1000)
    online = picture.lost_pods_cpu + sum(
        pod.usage.cpu or 0.0 for pod in picture.pods if not pod.best_effort
    )
    online_apps = sum(app.cpu or 0.0 for app in apps if not app.best_effort)
    allowed = capacity * thresholds.cpu_suppress_percent // 100
    allowed -= int(online * 1000) + int(online_apps * 1000) + int(system * 1000)
    if thresholds.cpu_suppress_min_percent is not None:
        allowed = max(allowed, capacity * thresholds.cpu_suppress_min_percent // 100)
    return allowed


def full_set(picture: state.NodeState) -> frozenset[int]:
    """Return every cpu that belongs to no exclusive pod, be it the kubelet's, nor to the system."""
    kept = picture.reserved.cpus | picture.reserved.system_cpus | picture.reserved.kubelet_cpus
    for pod in picture.pods:
        if pod.cpus and pod.qos is qos.QoS.LSE:
            kept |= pod.cpus
    return frozenset(processor.cpu for processor in picture.processors) - kept


def next_cpus(picture: state.NodeState, allowed: int, before: int) -> frozenset[int]:
    """Return the cpus for best effort, empty where none can be chosen; `before` is how many now."""
    wanted = max(math.ceil(allowed / 1000), LEAST_CPUS)
    step = math.ceil(GROWTH * len(picture.processors))
    wanted = min(wanted, before + step) if wanted > before else wanted
    bound, shared = _pools(picture)
    if not bound and not shared:
        return frozenset()
    from_bound = wanted * len(bound) // (len(bound) + len(shared))
    return frozenset(choose(bound, from_bound) + choose(shared, wanted - from_bound))


def next_quota(allowed: int, current: int, capacity_milli: int) -> int | None:
    """Return the next quota in microseconds, or None where the change is too small to matter."""
    wanted = max(allowed * PERIOD_US // 1000, LEAST_QUOTA_US)
    whole = math.ceil(capacity_milli / 1000) * PERIOD_US
    if abs(wanted - current) < SMALLEST_CHANGE * whole and wanted != LEAST_QUOTA_US:
        return None
    if current != -1 and wanted - current > GROWTH * whole:
        return current + int(GROWTH * whole)
    return wanted


def choose(processors: Sequence[state.Processor], count: int) -> list[int]:
    """Pick cpus, whole cores first and spread over the zones; nothing where there are too few."""
    if count <= 0 or len(processors) < count:
        return []
    zones: dict[tuple[int, int], list[state.Processor]] = {}
    for processor in processors:
        zones.setdefault((processor.node, processor.socket), []).append(processor)
    order = [sorted(zone, key=lambda p: (p.core, p.cpu)) for zone in zones.values()]
    order.sort(key=lambda zone: (-len(zone), zone[0].cpu))
    chosen: list[int] = []
    turn = picked = 0
    while count - len(chosen) >= 2:
        pair = _take_core(order[turn])
        chosen += pair
        picked += len(pair)
        turn = (turn + 1) % len(order)
        if turn == 0:
            if not picked:
                break
            picked = 0
    while len(chosen) < count:
        if order[turn]:
            chosen.append(order[turn].pop(0).cpu)
        turn = (turn + 1) % len(order)
    return chosen


def _take_core(zone: list[state.Processor]) -> list[int]:
    """Take the first two neighbours of one core out of a zone, nothing where there are none."""
    for position, (one, other) in enumerate(itertools.pairwise(zone)):
        if one.core == other.core:
            del zone[position : position + 2]
            return [one.cpu, other.cpu]
    return []


def _missing(picture: state.NodeState) -> str:
    """Name what a decision still needs; empty when nothing is missing."""
    best_effort = picture.best_effort
    needed = {
        "the Node object": picture.capacity_milli > 0,
        "a usage figure of the node": picture.usage.cpu is not None,
        "a pod on this node": bool(picture.pods),
        "the group of best-effort pods": best_effort is not None and bool(best_effort.groups),
        "a file to limit it by": best_effort is not None
        and (_has_cpus(picture) or best_effort.quota_us is not None),
    }
    return next((what for what, there in needed.items() if not there), "")


def _has_cpus(picture: state.NodeState) -> bool:
    """Whether cpus can be handed out: the kernel has the files and the machine is known."""
    best_effort = picture.best_effort
    return best_effort is not None and best_effort.cpus is not None and bool(picture.processors)


def by_cpuset(picture: state.NodeState, allowed: int, reason: str) -> tuple[edits.Edit, ...]:
    """Return the cpus of every group of best effort, and let go of its quota."""
    best_effort = picture.best_effort
    if best_effort is None or best_effort.cpus is None:
        return ()
    back = put_back_quota(picture, reason)
    full = full_set(picture)
    chosen = next_cpus(picture, allowed, len(best_effort.cpus))
    static = picture.reserved.static_cpu_manager
    wanted = []
    for group in best_effort.groups:
        # A kubelet with a static policy keeps the upper levels itself and would fight us there.
        cpus = full if static and group.depth < CONTAINER_DEPTH else chosen
        if cpus:
            wanted.append(edits.Edit(edits.Role.CPUSET, group.path, cpulists.text(cpus), reason))
    return (*wanted, *back)


def _of_few(
    picture: state.NodeState, found: tuple[edits.Edit, ...], reason: str
) -> tuple[edits.Edit, ...]:
    """Return the cpus of best effort where too few are left to choose from.

    Without any it would run on all cpus, those that others have alone included.
    """
    full, best_effort = full_set(picture), picture.best_effort
    if not full or best_effort is None or best_effort.cpus is None:
        return ()
    if any(edit.role is edits.Role.CPUSET and edit.value is not None for edit in found):
        return ()
    cpus = cpulists.text(best_effort.cpus & full or full)
    return tuple(
        edits.Edit(edits.Role.CPUSET, group.path, cpus, reason) for group in best_effort.groups
    )


def by_manager(picture: state.NodeState, reason: str) -> tuple[edits.Edit, ...]:
    """Return every cpu that best effort may use, but for containers that have a place of theirs."""
    best_effort, full = picture.best_effort, cpulists.text(full_set(picture))
    if best_effort is None or best_effort.cpus is None or not full:
        return put_back_quota(picture, reason)
    placed = _placed(picture)
    wanted = (
        edits.Edit(edits.Role.CPUSET, group.path, full, reason)
        for group in best_effort.groups
        if _container(group) not in placed
    )
    return (*wanted, *put_back_quota(picture, reason))


def _container(group: state.Group) -> str:
    """Return the group of the container that a group lies in, or the group itself above those."""
    return group.path.rsplit("/", max(group.depth - CONTAINER_DEPTH, 0))[0]


def _placed(picture: state.NodeState) -> set[str]:
    """Return the groups that the cpuset strategy keeps on the NUMA nodes of their pods."""
    there = shared_pools.of(picture)
    return {
        group
        for pod in picture.pods
        if there.of(resource_status.of_pod(pod.pod.metadata.annotations)[0].nodes, batch=True)
        for group in (*(container.group for container in pod.containers), pod.sandbox)
    }


def by_quota(picture: state.NodeState, allowed: int, reason: str) -> tuple[edits.Edit, ...]:
    """Return the quota of all best effort together, and let go of the cpus that it may have."""
    quota = _quota(picture, allowed, reason)
    return (*quota, *unsuppressed(picture, reason)) if quota else ()


def _quota(picture: state.NodeState, allowed: int, reason: str) -> tuple[edits.Edit, ...]:
    best_effort = picture.best_effort
    if best_effort is None or best_effort.quota_us is None:
        return ()
    root = best_effort.groups[0].path
    quota = next_quota(allowed, best_effort.quota_us, picture.capacity_milli)
    value = best_effort.quota_us if quota is None else quota
    return (edits.Edit(edits.Role.CPU_QUOTA, root, str(value), reason),)


def _present(picture: state.NodeState, reason: str) -> tuple[edits.Edit, ...]:
    """Return the cpus that every group of best effort has."""
    groups = picture.best_effort.groups if picture.best_effort else ()
    return tuple(
        edits.Edit(edits.Role.CPUSET, group.path, cpulists.text(group.cpus), reason)
        for group in groups
        if group.cpus
    )


def unsuppressed(
    picture: state.NodeState, reason: str, *, managed: bool = False
) -> tuple[edits.Edit, ...]:
    """Return the cpus of best effort that no cpuset suppresses: all but those that are exclusive.

    Where nothing is exclusive its groups get back what they had before us. Containers that the
    cpuset strategy manages by NUMA node are left alone.
    """
    full, best_effort = full_set(picture), picture.best_effort
    if len(full) == len(picture.processors) or not full or best_effort is None:
        return put_back_cpus(picture, reason)
    if best_effort.cpus is None:
        return ()
    cpus, placed = cpulists.text(full), _placed(picture) if managed else set()
    return tuple(
        edits.Edit(edits.Role.CPUSET, group.path, cpus, reason)
        for group in best_effort.groups
        if _container(group) not in placed
    )


def put_back_cpus(picture: state.NodeState, reason: str) -> tuple[edits.Edit, ...]:
    """Ask for the cpus that the groups had before us."""
    groups = picture.best_effort.groups if picture.best_effort else ()
    return tuple(edits.Edit(edits.Role.CPUSET, group.path, None, reason) for group in groups)


def put_back_quota(picture: state.NodeState, reason: str) -> tuple[edits.Edit, ...]:
    """Ask for the quota that best-effort work had before us."""
    groups = picture.best_effort.groups if picture.best_effort else ()
    return tuple(edits.Edit(edits.Role.CPU_QUOTA, g.path, None, reason) for g in groups[:1])


def _pools(
    picture: state.NodeState,
) -> tuple[list[state.Processor], list[state.Processor]]:
    """Split the cpus that best effort may use into those of bound pods and the shared ones."""
    owners = {cpu: pod.qos for pod in picture.pods for cpu in pod.cpus}
    usable = full_set(picture)
    shared_pools: tuple[list[state.Processor], list[state.Processor]] = ([], [])
    for processor in picture.processors:
        if processor.cpu in usable:
            shared_pools[owners.get(processor.cpu) is not qos.QoS.LSR].append(processor)
    return shared_pools


def _sentence(picture: state.NodeState, thresholds: state.Thresholds, allowed: int) -> str:
    used = picture.usage.cpu or 0.0
    best_effort = sum(pod.usage.cpu or 0.0 for pod in picture.pods if pod.best_effort)
    return (
        f"best effort may use {allowed / 1000:.2f} cores: the node uses {used:.2f} of "
        f"{picture.capacity_milli / 1000:g}, best effort {best_effort:.2f}, "
        f"threshold {thresholds.cpu_suppress_percent} %"
    )
