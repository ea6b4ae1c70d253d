"""On which cpus the containers of online pods run: their own, or those that nobody has alone."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import msgspec

from agent import edits, state
from api import core, names, qos, quantity
from domain import cpulists

_EXCLUSIVE = frozenset({qos.QoS.LSE, qos.QoS.LSR})


class StatusError(ValueError):
    """An annotation that cannot be honoured; the text names it and what is wrong."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pools:
    """The cpus that nobody has alone, by NUMA node, and what belongs to the system."""

    shared: Mapping[int, frozenset[int]]
    system: frozenset[int] = frozenset()
    static_cpu_manager: bool = False
    whole: bool = False
    """Whether the shared cpus are all there are, so that nobody needs to be told."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """What the scheduler decided for one pod."""

    cpuset: str = ""
    nodes: tuple[int, ...] = ()
    """NUMA nodes on which it was given cpu."""


class _NumaResources(msgspec.Struct, frozen=True):
    node: int = 0
    resources: core.ResourceList = {}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    cpuset: str = ""
    numa_node_resources: list[_NumaResources] | None = None


def pools(picture: state.NodeState) -> Pools:
    """Return the cpus that online pods share."""
    bound = frozenset[int]().union(*(pod.cpus for pod in picture.pods))
    reserved = picture.reserved
    taken = bound | reserved.cpus | reserved.system_cpus | reserved.kubelet_cpus
    shared: dict[int, set[int]] = {}
    for processor in picture.processors:
        if processor.cpu not in taken:
            shared.setdefault(processor.node, set()).add(processor.cpu)
    return Pools(
        shared={node: frozenset(cpus) for node, cpus in sorted(shared.items())},
        system=reserved.system_cpus,
        static_cpu_manager=reserved.static_cpu_manager,
        whole=not taken & {processor.cpu for processor in picture.processors},
    )


@functools.lru_cache(maxsize=1024)
def placement(written: str | None) -> Placement:
    """Read what the scheduler wrote on a pod."""
    try:
        status = msgspec.json.decode(written or "{}", type=_Status)
        cpulists.parse(status.cpuset)
        found = [
            one.node
            for one in status.numa_node_resources or ()
            if any(
                quantity.amount(name, one.resources[name]) > 0
                for name in (names.CPU, names.BATCH_CPU)
                if name in one.resources
            )
        ]
    except (msgspec.MsgspecError, ValueError) as error:
        key = names.ANNOTATION_RESOURCE_STATUS
        raise StatusError(f"annotation {key}: {error}") from error
    return Placement(status.cpuset, tuple(found))


def of_container(
    named: qos.QoS, kubernetes_qos: str, placed: Placement, known: Pools | None
) -> str | None:
    """Return the cpus of a container, empty to let go of any, None to leave them alone."""
    if placed.cpuset:
        return placed.cpuset
    if known is None:
        return None
    if placed.nodes and named is not qos.QoS.BE:
        return _joined(known.shared.get(node, frozenset()) for node in placed.nodes)
    if named is qos.QoS.SYSTEM and known.system:
        return cpulists.text(known.system)
    if named is qos.QoS.LS:
        return _joined(known.shared.values())
    if kubernetes_qos == state.BEST_EFFORT:
        return ""
    if known.static_cpu_manager:
        return None
    return _joined(known.shared.values())


def _joined(parts: Iterable[frozenset[int]]) -> str:
    return cpulists.text(frozenset[int]().union(*parts))


def reconcile(picture: state.NodeState, *, keep_quota: bool = False) -> edits.Decision:
    """Return the cpus of every online container, and free those with their own from a quota."""
    if not picture.processors:
        return edits.undecided("the processors of this machine")
    known = pools(picture)
    wanted: list[edits.Edit] = []
    problems: list[str] = []
    bound = 0
    for pod in picture.pods:
        if not pod.active or pod.pod.spec.runtime_class_name == "kata":
            continue
        try:
            placed = placement(pod.pod.metadata.annotations.get(names.ANNOTATION_RESOURCE_STATUS))
        except StatusError as error:
            problems.append(f"{pod.pod.metadata.key}: {error}")
            continue
        bound += bool(placed.cpuset)
        wanted += _pod(pod, placed, known)
        if placed.cpuset and not keep_quota:
            wanted += _unlimited(pod)
    for app in picture.host_applications:
        if app.qos == qos.QoS.LS and app.group and not known.whole:
            cpus = _joined(known.shared.values())
            reason = f"host application {app.name} runs on the shared cpus"
            wanted.append(edits.Edit(edits.Role.CPUSET, app.group, cpus, reason))
    shared = sum(len(cpus) for cpus in known.shared.values())
    reason = f"{bound} pods have cpus of their own, {shared} cpus are shared"
    if problems:
        reason += f"; left alone: {'; '.join(problems[:3])}"
    return edits.Decision(reason, tuple(wanted), figures={"shared-cpus": shared})


def _pod(pod: state.PodState, placed: Placement, known: Pools) -> list[edits.Edit]:
    if known.whole and not placed.cpuset and not placed.nodes:
        # All cpus are shared: a new group has them anyway.
        return []
    cpus = of_container(pod.qos, pod.kubernetes_qos, placed, known)
    if not cpus:
        return []
    reason = "cpus that the scheduler bound" if placed.cpuset else "cpus that nobody has alone"
    groups = [container.group for container in pod.containers] + [pod.sandbox]
    return [edits.Edit(edits.Role.CPUSET, group, cpus, reason) for group in groups if group]


def _unlimited(pod: state.PodState) -> list[edits.Edit]:
    """A pod with cpus of its own is held by them; a quota would only throttle it."""
    if pod.qos not in _EXCLUSIVE and pod.qos is not qos.QoS.NONE:
        return []
    groups = [pod.group, *(container.group for container in pod.containers)]
    reason = "a pod with cpus of its own needs no quota"
    return [edits.Edit(edits.Role.CPU_QUOTA, group, "-1", reason) for group in groups if group]
