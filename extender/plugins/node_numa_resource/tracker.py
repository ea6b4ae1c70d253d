"""CPUs and NUMA nodes of one node: figures for filter and score, and who holds what."""

import functools
from typing import Any, Final

import msgspec

from api import names
from api.wire import untrusted
from domain import identity_memo
from domain.cpus import cpu_accumulator, cpu_topology
from domain.numa import hint_merge, node_topology, numa_allocation
from extender.framework import views
from extender.plugins.node_numa_resource import allocation

SPECIAL, BIND, POLICY, FREE, WHOLE, CORES, PER_CORE, HELD, RATIO, ZONES, IRREGULAR = range(11)
ALIKE: Final = 11
COLUMNS: Final = 12
"""SPECIAL is -1 where a pod that asks for no CPUs of its own may be refused, and 0 elsewhere. ALIKE
is a digest of all that an allocation of any pod depends on."""
BIND_CODES: Final = {
    cpu_accumulator.BindPolicy.NONE: 0,
    cpu_accumulator.BindPolicy.FULL_PCPUS: 1,
    cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS: 2,
}
POLICY_CODES: Final = {policy: code for code, policy in enumerate(hint_merge.Policy)}
_NODE_BIND: Final = {
    "FullPCPUsOnly": cpu_accumulator.BindPolicy.FULL_PCPUS,
    "SpreadByPCPUs": cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS,
}
_LARGEST_RATIO: Final = 10_000
_NO_RATIO: Final[views.Pairs] = ((names.CPU, 0),)


class NodeNuma(msgspec.Struct, frozen=True):
    """What is allocated by on one node."""

    nodes: numa_allocation.NumaNodes
    policy: hint_merge.Policy = hint_merge.Policy.NONE
    bind: cpu_accumulator.BindPolicy = cpu_accumulator.BindPolicy.NONE
    """The bind policy that the node requires of every pod."""
    strategy: str = ""
    """The NUMA allocation strategy that the node's label names."""
    ratio: int = 100
    """Percentage by which its CPU is amplified; 0: the annotation cannot be read."""


NOTHING: Final = NodeNuma(
    numa_allocation.count(cpu_topology.CpuTopology(), {}, ()),
)
_ABSENT: Final = node_topology.NodeTopology()


def held_by(claim: views.Claim) -> allocation.CpuAllocation | None:
    """Return what a claim holds."""
    found = claim.allocations.get(allocation.NAME)
    return found if isinstance(found, allocation.CpuAllocation) else None


def node(info: views.NodeInfo) -> views.Figures:
    """Return the figures of a node, and what they are counted from."""
    found = read(info)
    if found is NOTHING:
        return _FIGURES_OF_NOTHING, None
    return figures(found), found


def read(info: views.NodeInfo) -> NodeNuma:
    """Return what is known of a node."""
    told = info.objects.get((views.NODE_TOPOLOGY, info.node.name))
    topology = told if isinstance(told, node_topology.NodeTopology) else _ABSENT
    labels, ratios = info.node.labels, _ratios(info.node.amplification)
    ratio = dict(ratios).get(names.CPU, 100)
    bind = _NODE_BIND.get(labels.get(names.LABEL_CPU_BIND_POLICY, ""), allocation.NO_POLICY)
    if topology.full_pcpus_only:
        bind = cpu_accumulator.BindPolicy.FULL_PCPUS
    named = allocation.POLICIES.get(labels.get(names.LABEL_NUMA_TOPOLOGY_POLICY, ""))
    policy = named or topology.policy
    if told is None and ratio == 100 and bind is allocation.NO_POLICY and named is None:
        return NOTHING
    return NodeNuma(
        _counted(info, topology, ratios),
        policy,
        bind,
        labels.get(names.LABEL_NUMA_ALLOCATE_STRATEGY, ""),
        ratio,
    )


def _counted(
    info: views.NodeInfo,
    topology: node_topology.NodeTopology,
    ratios: views.Pairs,
) -> numa_allocation.NumaNodes:
    # Without a CPU topology nothing is counted. Claims are sorted: their order of arrival, which a
    # restart changes, has no say.
    held = [
        (claim.id, found.holding())
        for claim in info.claims
        if (found := held_by(claim)) is not None
    ]
    holdings = [holding for _, holding in sorted(held, key=lambda one: one[0])]
    percent = {} if topology.amplified else dict(ratios)
    zones = {
        node: {
            name: numa_allocation.amplified(value, percent.get(name, 100))
            for name, value in amounts
        }
        for node, amounts in topology.zones
    }
    return numa_allocation.count(
        topology.cpus,
        zones,
        holdings if topology.cpus.valid else (),
        reserved=topology.reserved,
        cpu_ratio=max(dict(ratios).get(names.CPU, 100), 100),
    )


@functools.lru_cache(maxsize=256)
def _ratios(text: str) -> views.Pairs:
    """Return amplification by resource, in percent; CPU is 0 where the annotation is unreadable."""
    if not text:
        return ()
    try:
        found = untrusted.decode(text, dict[str, Any], names.ANNOTATION_AMPLIFICATION)
    except untrusted.ReadError:
        return _NO_RATIO
    numbers = [(name, _percent(ratio)) for name, ratio in sorted(found.items())]
    if any(percent is None for _, percent in numbers):
        return _NO_RATIO
    return tuple((name, percent) for name, percent in numbers if percent)


def _percent(ratio: Any) -> int | None:
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or ratio != ratio:
        return None
    return max(100, round(100 * min(float(ratio), _LARGEST_RATIO / 100)))


def figures(found: NodeNuma) -> tuple[int, ...]:
    """Return the figures of a node."""
    nodes = found.nodes
    topology, available = nodes.topology, nodes.available
    none, bind = hint_merge.Policy.NONE, BIND_CODES[found.bind]
    plain = not bind and found.policy is none and found.ratio == 100
    per_core = topology.cpus_per_core
    return (
        0 if plain else -1,
        bind,
        POLICY_CODES[found.policy],
        available.bit_count(),
        topology.whole_cores(available).bit_count(),
        topology.touched_cores(available),
        per_core,
        nodes.usage.held().bit_count(),
        found.ratio,
        len(nodes.zones),
        int(len(topology.cores) * per_core != topology.mask.bit_count()),
        _alike(found),
    )


def _alike(found: NodeNuma) -> int:
    nodes = found.nodes
    amounts = [
        (len(by_node), *((node, *sorted(one.items())) for node, one in by_node.items()))
        for by_node in (nodes.zones, nodes.allocated)
    ]
    counted = (nodes.usage, nodes.occupancy, nodes.reserved, nodes.max_ref_count, nodes.cpu_ratio)
    told = (found.policy, found.bind, found.strategy, found.ratio)
    return hash((_TOPOLOGIES.get(nodes.topology), tuple(amounts), counted, told))


def _topology(found: cpu_topology.CpuTopology) -> int:
    """Return a digest of a topology, from whose cores and masks all else follows."""
    masks = (tuple(found.nodes.items()), tuple(found.sockets.items()))
    return hash((found.mask, found.cores, masks))


_TOPOLOGIES: Final = identity_memo.IdentityMemo(_topology, most=512)


_FIGURES_OF_NOTHING: Final = figures(NOTHING)
