"""Which cpus pods have to themselves: of what `resource-status` claims, what a node grants. Pure.

A scheduler writes the annotation, and anyone who may patch a pod could have. So a claim counts only
as far as a scheduler could have granted it: to a class that owns cpus, no more of them than the pod
requests, none that another pod has.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from agent.model import state
from agent.model.cpus import reserved_cpus
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations, quantity
from domain import wording
from domain.cpus import cpulists
from domain.pods import resources

_OWNERS: Final = frozenset({qos.QoS.LSE, qos.QoS.LSR})
_BOUND_BY_NODE: Final = frozenset({qos.QoS.LSE, qos.QoS.LSR, qos.QoS.LS, qos.QoS.NONE})
_NODE_POLICIES: Final = frozenset({"FullPCPUsOnly", "SpreadByPCPUs"})
_NEVER: Final = float("inf")
Changes = Mapping[str, int]
"""Pods whose claim changed while they ran, by uid; later changes have larger numbers."""


class Site(msgspec.Struct, frozen=True):
    """What of a node limits claims."""

    node: core.Node | None = None
    processors: Sequence[state.Processor] = ()
    reserved: state.Reserved = state.Reserved()
    kubelet: state.KubeletCpus | None = None

    def taken(self, uid: str) -> dict[int, str]:
        """Return who has cpus that a pod cannot claim, by cpu."""
        found: dict[int, str] = {}
        for cpus, owner in (
            (self.reserved.cpus, "is reserved on this node"),
            (self.reserved.system_cpus, "belongs to the system"),
        ):
            found |= dict.fromkeys(cpus, owner)
        if self.kubelet is not None:
            found |= dict.fromkeys(self.kubelet.reserved, "is reserved by the kubelet")
            for given in self.kubelet.given:
                if given.uid != uid:
                    owner = f"was given to pod {given.namespace}/{given.name} by the kubelet"
                    found |= dict.fromkeys(given.cpus, owner)
        return found


class Bindings(msgspec.Struct, frozen=True):
    """Who has which cpus."""

    cpus: Mapping[str, frozenset[int]] = {}
    """The cpus of pods, by uid."""
    refused: tuple[state.RefusedCpus, ...] = ()


def granted(pods: Sequence[core.Pod], site: Site, changed: Changes | None = None) -> Bindings:
    """Return which claims hold; of two pods that claim one cpu, that which was bound first has it.

    A claim that changed while its pod ran ranks behind all that did not.
    """
    later = changed or {}
    claims = [pod for pod in pods if not pod.finished and _written(pod)]
    claims.sort(key=lambda pod: (later.get(pod.metadata.uid, 0), bound_at(pod), pod.metadata.uid))
    found: dict[str, frozenset[int]] = {}
    refused: list[state.RefusedCpus] = []
    owners: dict[int, str] = {}
    for pod in claims:
        meta = pod.metadata
        cpus, why = _judged(pod, site)
        if not why:
            why = _clash(cpus, owners) or _clash(cpus, site.taken(meta.uid))
        if why:
            refused.append(
                state.RefusedCpus(meta.uid, meta.namespace, meta.name, _written(pod), why)
            )
        elif cpus:
            found[meta.uid] = cpus
            owners |= dict.fromkeys(cpus, f"belongs to pod {meta.key}, which was bound before")
    return Bindings(found, tuple(refused))


def _judged(pod: core.Pod, site: Site) -> tuple[frozenset[int], str]:
    """Return what a pod claims and why it cannot have it, whatever other pods claim."""
    cpus, problem = reserved_cpus.claimed_cpus(pod)
    if problem or not cpus:
        return cpus, problem
    named = qos.qos_of(pod.metadata.labels)
    if named not in _entitled(site.node):
        return cpus, f"class {named.value or 'none'} has no cpus of its own"
    try:
        whole = requested_milli(pod) // 1000
    except quantity.QuantityError as error:
        return cpus, str(error)
    if len(cpus) > whole:
        given = wording.count(len(cpus), "cpu is", "cpus are")
        asked = wording.count(whole, "whole cpu", "whole cpus")
        return cpus, f"{given} more than the {asked} that it requests"
    there = {one.cpu for one in site.processors}
    if there and not cpus <= there:
        return cpus, f"cpus {cpulists.text(cpus - there)[:80]} are not online"
    return cpus, ""


def _entitled(node: core.Node | None) -> frozenset[qos.QoS]:
    """Return the classes whose pods may be bound: more of them where the node's label says so."""
    policy = node.metadata.labels.get(names.LABEL_CPU_BIND_POLICY) if node is not None else None
    return _BOUND_BY_NODE if policy in _NODE_POLICIES else _OWNERS


def _clash(cpus: frozenset[int], owners: Mapping[int, str]) -> str:
    cpu = min((cpu for cpu in cpus if cpu in owners), default=None)
    return "" if cpu is None else f"cpu {cpu} {owners[cpu]}"


def requested_milli(pod: core.Pod) -> int:
    """Return the cpu that a pod requests and was allocated.

    A resize in place raises the spec at once, whether or not the node can ever allocate it.
    """
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    allocated = {
        one.name: one.allocated_resources[names.CPU]
        for one in statuses
        if names.CPU in one.allocated_resources
    }
    if allocated:
        spec = msgspec.structs.replace(
            pod.spec,
            containers=tuple(_lowered(one, allocated) for one in pod.spec.containers),
            init_containers=tuple(_lowered(one, allocated) for one in pod.spec.init_containers),
        )
        pod = msgspec.structs.replace(pod, spec=spec)
    return resources.pod_requests(pod).get(names.CPU, 0)


def _lowered(container: core.Container, allocated: Mapping[str, core.Quantity]) -> core.Container:
    asked = container.resources.requests.get(names.CPU)
    given = allocated.get(container.name)
    if asked is None or given is None or quantity.milli(given) >= quantity.milli(asked):
        return container
    requests = {**container.resources.requests, names.CPU: given}
    lowered = msgspec.structs.replace(container.resources, requests=requests)
    return msgspec.structs.replace(container, resources=lowered)


def bound_at(pod: core.Pod) -> float:
    """Return when a pod was bound to its node, else when it was started or made."""
    scheduled = pod.status.condition("PodScheduled")
    for moment in (
        scheduled.last_transition_time if scheduled is not None else None,
        pod.status.start_time,
        pod.metadata.creation_timestamp,
    ):
        try:
            if moment:
                return durations.timestamp(moment)
        except ValueError:
            # The next moment is nearly as good.
            continue
    return _NEVER


def _written(pod: core.Pod) -> str:
    return pod.metadata.annotations.get(names.ANNOTATION_RESOURCE_STATUS, "")
