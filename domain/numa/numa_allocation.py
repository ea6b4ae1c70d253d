"""What a pod gets of the NUMA nodes of one node: amounts of resources, and CPUs of its own. Pure.

CPU is in millicores, every other resource in whole units. Sets of CPUs and of NUMA nodes are bit
masks. A NUMA node is known by its id.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from api import names
from domain.cpus import cpu_accumulator, cpu_topology, cpu_usage
from domain.numa import hint_merge

Amounts = Mapping[str, int]
ZoneAmounts = Mapping[int, Amounts]
"""Amounts by NUMA node id."""
NO_CPUS: Final = "not enough cpus available to satisfy request"
NOT_WHOLE: Final = "insufficient CPUs to satisfy required cpu bind policy {}"
INSUFFICIENT: Final = "Insufficient NUMA {}"
MOST_ZONES: Final = 8
"""As many NUMA nodes as the kubelet's topology manager aligns."""


class Holding(NamedTuple):
    """What one pod holds on a node."""

    cpus: int = 0
    exclusive: cpu_usage.ExclusivePolicy = cpu_usage.ExclusivePolicy.NONE
    zones: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class NumaNodes:
    """The CPUs and NUMA nodes of one node, and what pods hold of them."""

    topology: cpu_topology.CpuTopology
    zones: ZoneAmounts
    """What pods may use of each NUMA node, CPU without the reserved ones."""
    usage: cpu_usage.CpuUsage
    allocated: ZoneAmounts
    occupancy: hint_merge.Occupancy
    reserved: int = 0
    """CPUs that no pod gets."""
    max_ref_count: int = 1
    """How many pods may hold one CPU."""
    cpu_ratio: int = 100
    """Percentage by which the CPU of the zones is amplified."""

    @property
    def available(self) -> int:
        """Return the CPUs that a pod may get."""
        return self.topology.mask & ~self.usage.full(self.max_ref_count) & ~self.reserved

    @property
    def mask(self) -> int:
        """Return the ids of all zones as a mask."""
        return cpu_topology.mask_of(self.zones)

    def free(self, node: int, resource: str) -> int:
        """Return how much of a resource is free on one NUMA node."""
        total = self.zones[node].get(resource, 0)
        used = self.allocated.get(node, {}).get(resource, 0)
        if resource == names.CPU and self.cpu_ratio > 100:
            held = 1000 * (self.usage.held() & self.topology.nodes.get(node, 0)).bit_count()
            used += amplified(held, self.cpu_ratio) - held
        return max(0, total - used)


def within(nodes: NumaNodes, cpus: int, zones: ZoneAmounts) -> NumaNodes:
    """Return the same nodes with nothing else free than some CPUs and amounts.

    CPUs or zones that are not given bound nothing.
    """
    reserved = nodes.reserved | (nodes.topology.mask & ~cpus if cpus else 0)
    if not zones:
        return dataclasses.replace(nodes, reserved=reserved)
    narrowed = {
        node: {
            name: total - max(0, nodes.free(node, name) - zones.get(node, {}).get(name, 0))
            for name, total in amounts.items()
        }
        for node, amounts in nodes.zones.items()
    }
    return dataclasses.replace(nodes, reserved=reserved, zones=narrowed)


@dataclasses.dataclass(frozen=True, slots=True)
class NumaRequest:
    """What a pod wants of a node."""

    requests: tuple[tuple[str, int], ...]
    cpus: cpu_accumulator.CpuRequest | None = None
    """CPUs of its own; None: it runs in the shared pool."""
    required: bool = False
    """Whether the bind policy is required and not only preferred."""
    first: int = 0
    """CPUs that are taken before all others, such as those of a reservation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Allocated:
    """What a pod gets."""

    cpus: int = 0
    zones: Mapping[int, dict[str, int]] = dataclasses.field(default_factory=dict)
    """Amounts by NUMA node id."""


Reasons = tuple[str, ...]


def amplified(amount: int, percent: int) -> int:
    """Return an amount times a ratio above 1, rounded up."""
    return amount if percent <= 100 else -(-amount * percent // 100)


def count(
    topology: cpu_topology.CpuTopology,
    zones: ZoneAmounts,
    holdings: Iterable[Holding],
    *,
    reserved: int = 0,
    cpu_ratio: int = 100,
    max_ref_count: int = 1,
) -> NumaNodes:
    """Count what pods hold of a node."""
    held = list(holdings)
    allocated: dict[int, dict[str, int]] = {}
    single = shared = 0
    for one in held:
        for node, amounts in one.zones:
            there = allocated.setdefault(node, {})
            for resource, value in amounts:
                there[resource] = there.get(resource, 0) + value
        touched = [node for node, mask in topology.nodes.items() if mask & one.cpus]
        if len(touched) == 1:
            single |= 1 << touched[0]
        else:
            shared |= cpu_topology.mask_of(touched)
    return NumaNodes(
        topology,
        zones,
        cpu_usage.count((one.cpus, one.exclusive) for one in held if one.cpus),
        allocated,
        hint_merge.Occupancy(single & ~shared, shared),
        reserved=reserved,
        cpu_ratio=cpu_ratio,
        max_ref_count=max_ref_count,
    )


class Trial:
    """One request on one node; what several sets of NUMA nodes have in common is found once."""

    def __init__(self, nodes: NumaNodes, request: NumaRequest) -> None:
        self.nodes, self.request = nodes, request
        self.usable = usable_cpus(nodes, request)
        self._taken: dict[tuple[int, int], int | None] = {}

    def take(self, free: int, number: int) -> int | None:
        """Take so many CPUs of those that are free."""
        key = free, number
        if key not in self._taken:
            nodes, request = self.nodes, self.request
            assert request.cpus is not None
            cpus = cpu_accumulator.Cpus(nodes.topology, nodes.usage, free, nodes.max_ref_count > 1)
            wanted = dataclasses.replace(request.cpus, count=number)
            self._taken[key] = cpu_accumulator.take(cpus, wanted, request.first)
        return self._taken[key]


def allocate(nodes: NumaNodes, request: NumaRequest, mask: int | None) -> Allocated | Reasons:
    """Allocate from the NUMA nodes of a mask, from the whole node without one."""
    return _allocate(Trial(nodes, request), mask)


def _allocate(trial: Trial, mask: int | None) -> Allocated | Reasons:
    nodes, request = trial.nodes, trial.request
    zones: dict[int, dict[str, int]] = {}
    if mask is not None:
        found = _split(nodes, request, mask, trial.usable)
        if isinstance(found, tuple):
            return found
        zones = found
    if request.cpus is None:
        return Allocated(0, zones)
    taken = _cpus(trial, zones)
    if taken is None:
        return (NO_CPUS,)
    if request.required and not _kept(nodes.topology, request.cpus, taken):
        return (NOT_WHOLE.format(request.cpus.bind.value),)
    return Allocated(taken, zones)


def allocates(trial: Trial, mask: int) -> bool:
    """Whether `allocate` succeeds; where any CPUs will do they are counted and not chosen."""
    nodes, request, usable = trial.nodes, trial.request, trial.usable
    if request.required:
        return isinstance(_allocate(trial, mask), Allocated)
    zones = _split(nodes, request, mask, usable)
    if isinstance(zones, tuple) or request.cpus is None:
        return not isinstance(zones, tuple)
    wanted = request.cpus.count
    if not zones or usable.bit_count() < wanted:
        return usable.bit_count() >= wanted
    found = 0
    for node, amounts in zones.items():
        inside = (usable & nodes.topology.nodes.get(node, 0)).bit_count()
        found += min(inside, amounts.get(names.CPU, 0) // 1000)
    return found == wanted


def usable_cpus(nodes: NumaNodes, request: NumaRequest) -> int:
    """Return the CPUs that a required bind policy leaves: whole cores, or one CPU of each."""
    available = nodes.available
    if request.cpus is None or not request.required:
        return available
    match request.cpus.bind:
        case cpu_accumulator.BindPolicy.FULL_PCPUS:
            return nodes.topology.whole_cores(available)
        case cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS:
            return nodes.topology.one_per_core(available)
        case _:
            return available


def _split(
    nodes: NumaNodes, request: NumaRequest, mask: int, usable: int
) -> dict[int, dict[str, int]] | Reasons:
    """Split every requested resource over NUMA nodes, the one with the least free first."""
    chosen = [node for node in nodes.zones if mask >> node & 1]
    found: dict[int, dict[str, int]] = {}
    lacking: list[str] = []
    for resource, amount in request.requests:
        if not any(resource in zone for zone in nodes.zones.values()):
            continue
        free = {node: _free(nodes, request, usable, node, resource) for node in chosen}
        left = amount
        for place, node in enumerate(sorted(chosen, key=lambda node: (free[node], node))):
            share = _share(nodes, request, resource, left, len(chosen) - place)
            given = min(free[node], share)
            if given:
                found.setdefault(node, {})[resource] = given
                left -= given
        if left:
            lacking.append(INSUFFICIENT.format(resource))
    return tuple(lacking) if lacking else dict(sorted(found.items()))


def _free(nodes: NumaNodes, request: NumaRequest, usable: int, node: int, resource: str) -> int:
    """Return what is free of a resource, CPU only as far as a required bind policy leaves it."""
    free = nodes.free(node, resource)
    if resource == names.CPU and request.cpus is not None and request.required:
        inside = usable & nodes.topology.nodes.get(node, 0)
        return min(free, 1000 * inside.bit_count())
    return free


def _share(nodes: NumaNodes, request: NumaRequest, resource: str, left: int, parts: int) -> int:
    """Return an even share of what is left, in whole CPUs or cores where the pod is bound."""
    if resource != names.CPU or request.cpus is None:
        return left // parts
    full = request.cpus.bind is cpu_accumulator.BindPolicy.FULL_PCPUS and request.required
    unit = 1000 * (nodes.topology.cpus_per_core if full else 1)
    return left // unit // parts * unit


def _cpus(trial: Trial, zones: Mapping[int, Amounts]) -> int | None:
    """Take CPUs, those of each NUMA node as far as the pod got CPU there."""
    wanted, usable = trial.request.cpus, trial.usable
    assert wanted is not None
    if usable.bit_count() < wanted.count:
        return None
    if not zones:
        return trial.take(usable, wanted.count)
    found = 0
    for node, amounts in zones.items():
        inside = usable & trial.nodes.topology.nodes.get(node, 0)
        found |= trial.take(inside, min(inside.bit_count(), amounts.get(names.CPU, 0) // 1000)) or 0
    return found if found.bit_count() == wanted.count else None


def _kept(
    topology: cpu_topology.CpuTopology, wanted: cpu_accumulator.CpuRequest, taken: int
) -> bool:
    """Whether CPUs obey a bind policy."""
    cores = topology.touched_cores(taken)
    match wanted.bind:
        case cpu_accumulator.BindPolicy.FULL_PCPUS:
            return cores * topology.cpus_per_core == taken.bit_count()
        case cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS:
            return cores == taken.bit_count()
        case _:
            return True


# -- hints -----------------------------------------------------------------------------------


class Scoring(NamedTuple):
    """How a set of NUMA nodes is scored."""

    most_allocated: bool = False
    weights: tuple[tuple[str, int], ...] = ((names.CPU, 1), (names.MEMORY, 1))


ALWAYS: Final = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)
"""Resources that count in a score whether a pod asks for them or not."""


def hints(
    nodes: NumaNodes, request: NumaRequest, policy: hint_merge.Policy, scoring: Scoring
) -> dict[str, tuple[hint_merge.NumaHint, ...]]:
    """Return by resource the sets of NUMA nodes that a pod could get it from.

    The narrowest are preferred, and under the policy restricted all of them.
    """
    offered = {name for zone in nodes.zones.values() for name in zone}
    asked = [name for name, _ in request.requests if name in offered]
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in asked}
    trial = Trial(nodes, request)
    weighed = {*asked, *(name for name, _ in scoring.weights)}
    free = {
        node: {name: _free(nodes, request, trial.usable, node, name) for name in weighed}
        for node in nodes.zones
    }
    for mask in _subsets(tuple(nodes.zones)):
        if not allocates(trial, mask):
            continue
        inside = [node for node in nodes.zones if mask >> node & 1]
        total = _score(nodes, request, [(node, free[node]) for node in inside], scoring)
        for name in asked:
            if all(free[node][name] for node in inside):
                found[name].append((mask, total))
    restricted = policy is hint_merge.Policy.RESTRICTED
    result: dict[str, tuple[hint_merge.NumaHint, ...]] = {}
    for name, masks in found.items():
        narrowest = min((mask.bit_count() for mask, _ in masks), default=0)
        result[name] = tuple(
            hint_merge.NumaHint(mask, restricted or mask.bit_count() == narrowest, value)
            for mask, value in masks
        )
    return result


@functools.lru_cache(maxsize=64)
def _subsets(ids: tuple[int, ...]) -> Sequence[int]:
    """Return the masks of all sets of NUMA nodes, the narrowest first."""
    masks = [
        cpu_topology.mask_of(ids[place] for place in cpu_topology.cpus_of(choice))
        for choice in range(1, 1 << len(ids))
    ]
    return sorted(masks, key=lambda mask: (mask.bit_count(), list(cpu_topology.cpus_of(mask))))


def mask_score(nodes: NumaNodes, request: NumaRequest, mask: int, scoring: Scoring) -> int:
    """Score the NUMA nodes of a mask together, 0 to 100, with what a pod requests."""
    usable = usable_cpus(nodes, request)
    inside = [
        (node, {name: _free(nodes, request, usable, node, name) for name, _ in scoring.weights})
        for node in nodes.zones
        if mask >> node & 1
    ]
    return _score(nodes, request, inside, scoring)


def _score(
    nodes: NumaNodes,
    request: NumaRequest,
    inside: Sequence[tuple[int, Amounts]],
    scoring: Scoring,
) -> int:
    requests = dict(request.requests)
    amounts = {}
    for name, _ in scoring.weights:
        capacity = sum(nodes.zones[node].get(name, 0) for node, _ in inside)
        left = sum(free[name] for _, free in inside)
        amounts[name] = (capacity - left + requests.get(name, 0), capacity)
    return score(amounts, requests, scoring)


def score(amounts: Mapping[str, tuple[int, int]], requests: Amounts, scoring: Scoring) -> int:
    """Score what would be requested of a capacity, 0 to 100, by resource: LeastAllocated or Most.

    An extended resource that the pod does not ask for, and one that is not there, do not count.
    """
    total = weights = 0
    for name, weight in scoring.weights:
        requested, capacity = amounts[name]
        if not capacity or (name not in ALWAYS and not requests.get(name)):
            continue
        weights += weight
        if scoring.most_allocated:
            total += weight * (min(requested, capacity) * 100 // capacity)
        elif requested <= capacity:
            total += weight * ((capacity - requested) * 100 // capacity)
    return total // weights if weights else 0
