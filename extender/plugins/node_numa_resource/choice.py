"""Which CPUs and NUMA nodes a pod was given and why not others, for the record on the pod."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from api import names
from api.wire import quantity
from domain.cpus import cpu_topology
from domain.numa import hint_merge, numa_allocation
from extender.plugins.node_numa_resource import allocation, inspection, tracker

_LONGEST: Final = 1024
"""Characters of one text; resources have names that people choose."""


class Asked(NamedTuple):
    """What a pod asked of the node."""

    request: numa_allocation.NumaRequest
    policy: hint_merge.Policy
    scoring: numa_allocation.Scoring


def told(found: tracker.NodeNuma, asked: Asked, taken: allocation.CpuAllocation) -> dict[str, str]:
    """Return the choice in words, by topic; found is the node without the pod."""
    texts = {
        "cpuset": taken.cpuset,
        "numaNodes": ", ".join(f"{node} ({_amounts(amounts)})" for node, amounts in taken.zones),
        "policy": inspection.policy_name(asked.policy),
        "others": "; ".join(_others(found, asked, taken)),
    }
    return {topic: text[:_LONGEST] for topic, text in texts.items() if text}


def _others(
    found: tracker.NodeNuma, asked: Asked, taken: allocation.CpuAllocation
) -> Iterator[str]:
    """Yield why each of the other NUMA nodes was not chosen."""
    nodes = found.nodes
    cpus = allocation.mask(taken.cpuset)
    chosen = {node for node, mask in nodes.topology.nodes.items() if mask & cpus}
    chosen |= {node for node, _ in taken.zones}
    present = sorted({*nodes.topology.nodes, *nodes.zones} - chosen)
    for node in present[: numa_allocation.MOST_ZONES]:
        yield f"{node}: {_lacking(found, asked, node) or _second(found, asked, node, chosen)}"


def _lacking(found: tracker.NodeNuma, asked: Asked, node: int) -> str:
    """Return what a NUMA node alone has too little of; empty where it has enough."""
    nodes, request = found.nodes, asked.request
    if request.cpus is not None:
        inside = nodes.topology.nodes.get(node, 0)
        free = (numa_allocation.usable_cpus(nodes, request) & inside).bit_count()
        if free < request.cpus.count:
            return f"{free} CPUs free of {request.cpus.count} asked"
    if asked.policy is hint_merge.Policy.NONE or node not in nodes.zones:
        return ""
    short = [
        f"{quantity.text(name, nodes.free(node, name))} {name} free of "
        f"{quantity.text(name, amount)} asked"
        for name, amount in request.requests
        if name in nodes.zones[node] and nodes.free(node, name) < amount
    ]
    return ", ".join(short)


def _second(found: tracker.NodeNuma, asked: Asked, node: int, chosen: set[int]) -> str:
    """Compare a NUMA node that has enough with what was chosen."""
    nodes, request = found.nodes, asked.request
    if asked.policy is not hint_merge.Policy.NONE and node in nodes.zones:
        scores = [
            numa_allocation.mask_score(nodes, request, cpu_topology.mask_of(ids), asked.scoring)
            for ids in ((node,), tuple(chosen))
        ]
        return f"has enough, scores {scores[0]} and not {scores[1]}"
    free = (nodes.available & nodes.topology.nodes.get(node, 0)).bit_count()
    return f"has enough, {free} CPUs free"


def _amounts(amounts: tuple[tuple[str, int], ...]) -> str:
    texts = quantity.texts(dict(amounts))
    ordered = sorted(texts.items(), key=lambda one: (one[0] != names.CPU, one[0]))
    return ", ".join(f"{name} {text}" for name, text in ordered)
