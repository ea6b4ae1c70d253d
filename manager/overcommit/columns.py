"""What all nodes lend, calculated at once: the same sums as for one node, column by column.

Cpu and memory are the two rows of most arrays; a column is a node, a zone or a pod. Sums are made
in double precision, which is exact up to 8 PiB of memory per node and 8 TiB per zone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from domain.lending import colocation, zones
from manager.cluster_settings import strategy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST: Final = 1 << 50
"""No amount counts for more: beyond any machine, and even thousands of them can be added up."""
_MOST_SUM: Final = float(1 << 60)
_MOST_FIGURE: Final = 1 << 40
MISSING: Final = -1
"""In the place of an amount that a node does not name."""
_NO_CAP: Final = -1
_POLICIES: Final = tuple(colocation.Policy)
_SCALES: Final = np.array([[1], [zones.MEMORY_SCALE]], dtype=np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Pods:
    """Everything that holds a part of a node."""

    node: Ints
    requested: Ints
    usage: Ints
    measured: Bools
    online: Bools
    exclusive: Bools
    firm: Bools
    """Whether it is anything but batch."""
    prod: Bools
    """Whether it is served before mid pods."""
    bound: Ints
    """Rows of pods that are bound to zones, once per zone."""
    zone: Ints
    """The zone of each of them."""
    among: Ints
    """To how many zones it is bound."""


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """What nodes have, what agents measured and what stands in the status."""

    capacity: Ints
    allocatable: Ints
    reserved: Ints
    outside: Ints
    """Measured use outside pods, as batch pods see it."""
    mid_outside: Ints
    reclaimable: Ints
    usage: Ints
    has_usage: Bools
    updated_at: Floats
    """Not a number without a report."""
    refresh_part: Floats
    """After which part of the refresh interval small changes are written."""
    published: Ints
    """What is offered to batch and mid pods, in capacity and in allocatable: eight rows."""
    origin: Ints
    """What was offered before third parties took theirs."""
    taken: Ints
    """What third parties took."""


@dataclasses.dataclass(frozen=True, slots=True)
class Zones:
    """What NUMA zones have and offer."""

    node: Ints
    capacity: Ints
    published: Ints
    """Three sides of cpu, then of memory: six rows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The settings of each node."""

    policy: Ints
    reclaim: Ints
    cap: Ints
    overcommit: Ints
    mid_static: Bools
    mid_cap: Ints
    mid_fixed: Ints
    mid_unallocated: Ints
    degrade: Ints
    refresh: Ints
    difference: Floats


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """What pods hold of each node, or of each zone."""

    requested: Ints
    used: Ints
    peak: Ints
    firm: Ints
    prod: Ints


def rules(distinct: Sequence[strategy.Strategy], index: Ints) -> Rules:
    """Spread a few strategies over the nodes that they hold on."""

    def spread(rows: list[list[Any]], kind: Any = np.int64) -> Any:
        if kind is np.int64:
            # An annotation of a node may say anything.
            rows = [[max(min(cell, _MOST_FIGURE), -_MOST_FIGURE) for cell in row] for row in rows]
        return np.array(rows, dtype=kind).reshape(len(rows), len(distinct))[:, index]

    pairs = [(item.cpu, item.memory) for item in distinct]
    mids = [item.mid for item in distinct]
    both = range(2)
    return Rules(
        policy=spread([[_POLICIES.index(pair[i].policy) for pair in pairs] for i in both]),
        reclaim=spread([[pair[i].reclaim_percent for pair in pairs] for i in both]),
        cap=spread([[_capped(pair[i].cap_percent) for pair in pairs] for i in both]),
        overcommit=spread([[max(pair[i].overcommit_percent, 0) for pair in pairs] for i in both]),
        mid_static=spread([[mid.static for mid in mids]], np.bool_)[0],
        mid_cap=spread([[mid.cpu_cap for mid in mids], [mid.memory_cap for mid in mids]]),
        mid_fixed=spread([[mid.static_cpu for mid in mids], [mid.static_memory for mid in mids]]),
        mid_unallocated=spread([[mid.unallocated for mid in mids]])[0],
        degrade=spread([[item.degrade_seconds for item in distinct]])[0],
        refresh=spread([[item.refresh_seconds for item in distinct]])[0],
        difference=spread([[item.difference for item in distinct]], np.float64)[0],
    )


def _capped(percent: int | None) -> int:
    return _NO_CAP if percent is None else percent


def demand(pods: Pods, count: int, given: Rules) -> Demand:
    """Sum what pods hold of each of so many nodes, as far as their rules look at it."""
    nothing = np.zeros((2, count), dtype=np.int64)

    def summed(policy: colocation.Policy, amounts: Callable[[], Ints]) -> Ints:
        return _summed(amounts(), pods.node, count) if _looked_at(given, policy) else nothing

    def peak() -> Ints:
        return np.maximum(pods.requested, pods.usage) * (pods.online & pods.measured)

    return Demand(
        requested=summed(colocation.Policy.REQUEST, lambda: pods.requested * pods.online),
        used=summed(colocation.Policy.USAGE, lambda: _used(pods) * pods.online),
        peak=summed(colocation.Policy.MAX_USAGE_REQUEST, peak),
        firm=summed(colocation.Policy.OVERCOMMIT_RATIO, lambda: pods.requested * pods.firm),
        prod=_summed(pods.requested * pods.prod, pods.node, count),
    )


def _looked_at(given: Rules, policy: colocation.Policy) -> bool:
    return bool((given.policy == _POLICIES.index(policy)).any())


def _used(pods: Pods) -> Ints:
    used = np.where(pods.measured, pods.usage, pods.requested)
    used[0] = np.where(pods.exclusive, pods.requested[0], used[0])
    return used


def _summed(amounts: Ints, index: Ints, count: int) -> Ints:
    sums = [np.bincount(index, weights=row, minlength=count) for row in amounts]
    return np.clip(np.array(sums), -_MOST_SUM, _MOST_SUM).astype(np.int64)


def batch(nodes: Nodes, held: Demand, given: Rules) -> Ints:
    """Return what each node lends to batch pods, before anything else is looked at."""
    outside = np.maximum(nodes.outside, nodes.reserved)
    margin = _cut(nodes.capacity, (100 - given.reclaim) / 100.0)
    left = nodes.capacity - margin
    free = _percent(np.maximum(nodes.allocatable - held.firm, 0), given.overcommit)
    value = _chosen(
        given.policy,
        usage=left - outside - held.used,
        request=left - nodes.reserved - held.requested,
        peak=left - outside - held.peak,
        ratio=free,
    )
    return _bounded(np.maximum(value, 0), nodes.capacity, given.cap)


def _chosen(policy: Ints, *, usage: Ints, request: Ints, peak: Ints, ratio: Ints) -> Ints:
    known = {
        colocation.Policy.REQUEST: request,
        colocation.Policy.MAX_USAGE_REQUEST: peak,
        colocation.Policy.OVERCOMMIT_RATIO: ratio,
    }
    value = usage
    for name, other in known.items():
        value = np.where(policy == _POLICIES.index(name), other, value)
    return value


def _percent(whole: Ints, percent: Ints) -> Ints:
    """Return a share in whole numbers, whose product need not fit."""
    most = (1 << 61) // np.maximum(percent, 1)
    hundreds = np.minimum(whole // 100, most)
    share: Ints = hundreds * percent + whole % 100 * percent // 100
    return share


def _cut(whole: Ints, share: Floats) -> Ints:
    return np.clip(whole * share, -2.0 * MOST, 2.0 * MOST).astype(np.int64)


def _bounded(value: Ints, capacity: Ints, cap: Ints) -> Ints:
    return np.where(cap == _NO_CAP, value, np.minimum(value, _cut(capacity, cap / 100.0)))


def mid(nodes: Nodes, held: Demand, given: Rules) -> Ints:
    """Return what each node lends to mid pods."""
    unused = np.where(nodes.has_usage, nodes.capacity - nodes.usage, 0)
    reclaimed = np.maximum(np.minimum(nodes.reclaimable, unused), 0)
    outside = np.maximum(nodes.mid_outside, nodes.reserved)
    unallocated = np.maximum(nodes.capacity - outside - held.prod, 0)
    predicted = reclaimed + _cut(unallocated, given.mid_unallocated / 100.0)
    fixed = _cut(nodes.capacity, given.mid_fixed / 100.0)
    value = np.where(given.mid_static, fixed, predicted)
    return np.minimum(value, _cut(nodes.capacity, given.mid_cap / 100.0))


def faster(cpu: Ints, ratio: Floats) -> Ints:
    """Multiply amounts of cpu; parts of a milli-core that remain are rounded up."""
    return -(-(cpu * 1000 * ratio).astype(np.int64) // 1000)


def in_zones(nodes: Nodes, parts: Zones, pods: Pods, given: Rules, ratio: Floats) -> Ints:
    """Return what each zone offers to batch pods."""
    if not parts.node.size:
        return np.zeros((2, 0), dtype=np.int64)
    count = np.bincount(parts.node, minlength=nodes.capacity.shape[1])
    divisor = np.maximum(count, 1)
    held = _held_in_zones(parts, pods, divisor, given)

    def spread(amounts: Ints) -> Ints:
        return (-(-amounts * _SCALES // divisor))[:, parts.node]

    reserved = spread(nodes.reserved)
    outside = np.maximum(spread(nodes.outside), reserved)
    here = {
        part.name: getattr(given, part.name)[..., parts.node]
        for part in dataclasses.fields(given)
        if part.name in {"policy", "reclaim", "cap", "overcommit"}
    }
    left = (parts.capacity - _cut(parts.capacity, (100 - here["reclaim"]) / 100.0)) * _SCALES
    free = _percent(np.maximum(parts.capacity * _SCALES - held.firm, 0), here["overcommit"])
    value = _chosen(
        here["policy"],
        usage=left - outside - held.used,
        request=left - reserved - held.requested,
        peak=left - outside - held.peak,
        ratio=free // _SCALES * _SCALES,
    )
    offered = _bounded(-(-np.maximum(value, 0) // _SCALES), parts.capacity, here["cap"])
    return np.stack((faster(offered[0], ratio[parts.node]), offered[1]))


def _held_in_zones(parts: Zones, pods: Pods, divisor: Ints, given: Rules) -> Demand:
    """Sum what pods hold of each zone: evenly on all, or on those that they are bound to."""
    nothing = np.zeros((2, parts.node.size), dtype=np.int64)
    free = np.ones(pods.node.shape, dtype=np.bool_)
    free[pods.bound] = False
    among = divisor[pods.node]

    def summed(policy: colocation.Policy, amounts: Callable[[], Ints], counts: Bools) -> Ints:
        if not _looked_at(given, policy):
            return nothing
        scaled = amounts() * counts * _SCALES
        nodes = _summed(-(-scaled // among) * free, pods.node, divisor.size)
        mine = -(-scaled[:, pods.bound] // pods.among)
        return nodes[:, parts.node] + _summed(mine, pods.zone, parts.node.size)

    def peak() -> Ints:
        # A pod that was not measured yet weighs with its request here, as its use is 0.
        return np.maximum(pods.requested, pods.usage)

    return Demand(
        requested=summed(colocation.Policy.REQUEST, lambda: pods.requested, pods.online),
        used=summed(colocation.Policy.USAGE, lambda: _used(pods), pods.online),
        peak=summed(colocation.Policy.MAX_USAGE_REQUEST, peak, pods.online),
        firm=summed(colocation.Policy.OVERCOMMIT_RATIO, lambda: pods.requested, pods.firm),
        prod=nothing,
    )


def differs(old: Ints, new: Ints, threshold: Floats | float) -> Bools:
    """Whether amounts changed by more than a share of what they were, or came or went."""
    changed: Bools = np.abs(new - old) > old * threshold
    came_or_went = (old == MISSING) != (new == MISSING)
    return np.where((old == MISSING) | (new == MISSING), came_or_went, changed)
