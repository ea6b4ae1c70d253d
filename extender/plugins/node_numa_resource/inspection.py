"""CPUs and NUMA nodes of a node for people; in the shape of Koordinator's page."""

from collections.abc import Mapping
from typing import Any

from api.wire import quantity
from domain import wording
from domain.cpus import cpu_topology, cpulists
from domain.numa import hint_merge
from extender.framework import verdicts, views
from extender.plugins.node_numa_resource import allocation, tracker


def _list(mask: int) -> str:
    return cpulists.text(cpu_topology.cpus_of(mask))


def shown(info: views.NodeInfo) -> dict[str, Any]:
    """Return the CPUs of a node, what is free of its NUMA nodes, and who holds what."""
    found = tracker.read(info)
    nodes = found.nodes
    free = {
        node: {name: nodes.free(node, name) for name in amounts}
        for node, amounts in nodes.zones.items()
    }
    held = {claim.pod.key: one for claim in info.claims if (one := tracker.held_by(claim))}
    return {
        "name": info.node.name,
        "reservedCPUs": _list(nodes.reserved),
        "maxRefCount": nodes.max_ref_count,
        "numaTopologyPolicy": policy_name(found.policy),
        "cpuBindPolicy": found.bind.value,
        "amplificationRatios": {"cpu": found.ratio / 100},
        "availableCPUs": _list(nodes.available),
        "allocatedCPUs": {str(cpu): _cpu(found, cpu) for cpu in cpu_topology.cpus_of(_held(found))},
        "numaNodeResources": _amounts(nodes.zones),
        "allocatedNUMANodeResources": _amounts(nodes.allocated),
        "remainingNUMANodeResources": _amounts(free),
        "allocatedPods": {
            key: {"cpuset": one.cpuset, "numaNodeResources": _amounts(dict_of(one))}
            for key, one in sorted(held.items())
        },
    }


def dict_of(one: allocation.CpuAllocation) -> dict[int, dict[str, int]]:
    """Return amounts by NUMA node."""
    return {node: dict(amounts) for node, amounts in one.zones}


def _amounts(zones: Mapping[int, Mapping[str, int]]) -> list[dict[str, Any]]:
    return [
        {"node": node, "resources": quantity.texts(dict(amounts))}
        for node, amounts in sorted(zones.items())
    ]


def _held(found: tracker.NodeNuma) -> int:
    return found.nodes.usage.held() & found.nodes.topology.mask


def _cpu(found: tracker.NodeNuma, cpu: int) -> dict[str, Any]:
    core = found.nodes.topology.core_of[cpu]
    return {
        "cpuID": cpu,
        "coreID": core.id,
        "nodeID": core.node,
        "socketID": core.socket,
        "refCount": found.nodes.usage.count(1 << cpu),
    }


def policy_name(policy: hint_merge.Policy) -> str:
    """Return the name of a policy on labels; empty where there is none."""
    return next((name for name, one in allocation.POLICIES.items() if one is policy), "")


def diagnosis(
    found: tracker.NodeNuma, prepared: allocation.Wanted, node: str
) -> verdicts.Diagnosis:
    """Return the figures behind a refusal."""
    nodes = found.nodes
    total, free = nodes.topology.mask.bit_count(), nodes.available.bit_count()
    if not total:
        help_ = f"the agent on {node}, which reports the CPU topology"
        return verdicts.Diagnosis("the node reports no CPU topology", (help_,))
    count = prepared.cpu // 1000
    held, reserved = _held(found).bit_count(), nodes.reserved.bit_count()
    whole = nodes.topology.whole_cores(nodes.available).bit_count()
    text = (
        f"asks {wording.count(count, 'CPU', 'CPUs')}; of {total}, "
        f"{wording.count(free, 'is', 'are')} free, {whole} of them in whole cores, "
        f"{held} held by pods, {reserved} reserved"
    )
    if nodes.zones and (found.policy is not hint_merge.Policy.NONE):
        parts = ", ".join(
            f"{node_id}: {quantity.text('cpu', nodes.free(node_id, 'cpu'))}"
            for node_id in nodes.zones
        )
        text += f"; policy {policy_name(found.policy)}, CPU free by NUMA node {parts}"
    if count <= free:
        return verdicts.Diagnosis(text)
    more = wording.count(count - free, "CPU", "CPUs")
    return verdicts.Diagnosis(text, (f"{more} given back by pods of {node}",))
