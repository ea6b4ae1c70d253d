"""What one node lends, resource by resource, with every figure that decided."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from api import names
from api.koordinator.metadata import node_payloads
from domain import wording
from domain.devices.requests import accelerators
from domain.lending import colocation, midtier, normalization
from manager.cluster_settings import strategy
from manager.model import projections
from manager.overcommit import breakdown

FIXED: Final = "static"
PREDICTED: Final = "predicted"
"""How mid pods get their share."""
UNREAD: Final = "the settings were never readable"
_OFF: Final = strategy.Normalization(enable=False, default=None, models={})
_NONE: Final = strategy.Amplification(enable=False, ratios={})
_PARTS: Final = (0, 1)
"""Cpu and memory, as amounts hold them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """Everything that decides about one node, at one moment."""

    node: projections.Node
    report: projections.Report | None
    demand: colocation.Demand
    rules: strategy.Strategy
    enabled: bool
    """Whether colocation is on, for the cluster and for this node."""
    now: float
    since_write: float | None
    """Seconds since the last write by this process; None if there was none yet."""
    normalization: strategy.Normalization | None = _OFF
    """None while the settings are unknown."""
    amplification: strategy.Amplification | None = _NONE
    processors: node_payloads.CpuBasicInfo | None = None
    """What the agent says that the node's processors are."""
    devices: accelerators.Inventory | None = None
    """None for a node without a Device."""
    slices: bool = False
    """Whether slices of GPUs are offered."""


def due_after(seen: Seen) -> float:
    """Return how long after the last write even small changes are written."""
    return colocation.refresh_after(seen.rules.refresh_seconds, seen.node.name)


def withheld(seen: Seen) -> str:
    """Say why a node lends nothing whatever its figures are; empty where it lends."""
    if not seen.enabled:
        return seen.node.annotations.get(names.ANNOTATION_STRATEGIES) or "colocation is off"
    report = seen.report
    if report is None or report.updated_at is None:
        return "the agent has not reported yet"
    if colocation.is_stale(report.updated_at, seen.now, seen.rules.degrade_seconds):
        minutes = f"{(seen.now - report.updated_at) / 60:.0f}"
        return f"the agent's last report is {wording.count(minutes, 'minute', 'minutes')} old"
    return "" if report.measured else "the agent's last report says nothing about the node"


def normalized(seen: Seen) -> breakdown.Said:
    """Return how much faster than others the node is to say that its cpu is."""
    if not seen.enabled:
        return breakdown.Said("", "colocation is off")
    given = seen.normalization
    if given is None:
        return breakdown.Said("", problem=f"cpu normalization: {UNREAD}")
    found = normalization.settled(
        given.enable, given.default, given.models, seen.node.labels, seen.processors
    )
    return breakdown.Said(found.text, found.why, found.problem)


def ratio(seen: Seen) -> str:
    """Return the ratio that counts: what cannot be worked out stays as the node says it."""
    before = seen.node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION, "")
    return normalized(seen).text or before


def figures(seen: Seen) -> breakdown.Figures:
    """Return what goes into the formulas."""
    report = seen.report or projections.Report(None, colocation.NOTHING, {})
    return breakdown.Figures(
        capacity=seen.node.capacity or colocation.NOTHING,
        allocatable=seen.node.allocatable,
        reserved=seen.node.reserved,
        system=report.system,
        hosts=report.hosts,
        usage=report.usage,
        reclaimable=report.reclaimable,
        **seen.demand._asdict(),
    )


def resources(seen: Seen, report: projections.Report) -> tuple[breakdown.Resource, ...]:
    """Calculate everything that a node with a fresh report lends."""
    rules = (seen.rules.cpu, seen.rules.memory)
    return (
        *(_batch(part, rules[part], _holding(seen, report, part)) for part in _PARTS),
        *(_mid(part, _mid_rule(seen, part), _mid_holding(seen, report, part)) for part in _PARTS),
    )


def _holding(seen: Seen, report: projections.Report, part: int) -> colocation.Holding:
    node, demand = seen.node, seen.demand
    return colocation.Holding(
        capacity=(node.capacity or colocation.NOTHING)[part],
        allocatable=node.allocatable[part],
        reserved=node.reserved[part],
        system=report.outside[part],
        requested=demand.requested[part],
        used=demand.used[part],
        peak=demand.peak[part],
        firm=demand.firm[part],
    )


def _batch(part: int, rule: colocation.Rule, holding: colocation.Holding) -> breakdown.Resource:
    lent = colocation.lend(rule, holding)
    terms = [breakdown.Term(name, -amount) for name, amount in lent.terms]
    terms[0] = breakdown.Term(*lent.terms[0])
    cap = rule.cap_percent
    return breakdown.Resource(
        resource=names.BATCH_RESOURCES[part],
        policy=rule.policy.value,
        terms=tuple(terms),
        calculated=lent.value,
        percent=lent.percent,
        cap=None if cap is None else colocation.share(holding.capacity, cap),
        capped=lent.cap is not None,
        offered=lent.value,
    )


def _mid_rule(seen: Seen, part: int) -> midtier.Rule:
    mid = seen.rules.mid
    return midtier.Rule(
        static=mid.static,
        cap_percent=(mid.cpu_cap, mid.memory_cap)[part],
        static_percent=(mid.static_cpu, mid.static_memory)[part],
        unallocated_percent=mid.unallocated,
    )


def _mid_holding(seen: Seen, report: projections.Report, part: int) -> midtier.Holding:
    capacity = (seen.node.capacity or colocation.NOTHING)[part]
    outside = report.system[part] + report.prod_hosts[part]
    return midtier.Holding(
        capacity=capacity,
        reclaimable=report.reclaimable[part],
        unused=0 if report.usage is None else capacity - report.usage[part],
        outside=max(outside, seen.node.reserved[part]),
        requested=seen.demand.prod[part],
    )


def _mid(part: int, rule: midtier.Rule, holding: midtier.Holding) -> breakdown.Resource:
    lent = midtier.lend(rule, holding)
    return breakdown.Resource(
        resource=names.MID_RESOURCES[part],
        policy=FIXED if rule.static else PREDICTED,
        terms=tuple(breakdown.Term(name, amount) for name, amount in lent.terms),
        calculated=lent.value,
        cap=lent.cap,
        capped=lent.capped,
        offered=lent.value,
    )


def sentence(lent: Sequence[breakdown.Resource]) -> str:
    """Say which resources a node lends and how they were calculated."""
    by_name = {item.resource: item for item in lent}
    batch = [by_name[name] for name in names.BATCH_RESOURCES]
    text = f"lends {_cores(batch[0])} and {_gibibytes(batch[1])}"
    mid = [by_name[name] for name in names.MID_RESOURCES]
    if any(item.offered for item in mid):
        text = f"{text}; to mid pods {_cores(mid[0])} and {_gibibytes(mid[1])}"
    return text


def _cores(item: breakdown.Resource) -> str:
    cores = wording.count(f"{item.calculated / 1000:g}", "core", "cores")
    return f"{cores} ({_why(item, lambda n: f'{n / 1000:g}')})"


def _gibibytes(item: breakdown.Resource) -> str:
    why = _why(item, lambda n: f"{n / (1 << 30):.1f}")
    return f"{item.calculated / (1 << 30):.1f} GiB ({why})"


def _why(item: breakdown.Resource, shown: Callable[[int], str]) -> str:
    if item.capped:
        return f"the cap of {shown(item.cap or 0)}"
    first, *others = item.terms
    text = f"{shown(first.value)} {first.name}"
    for term in others:
        sign = "-" if term.value < 0 or (not term.value and item.percent is None) else "+"
        text = f"{text} {sign} {shown(abs(term.value))} {term.name}"
    return text if item.percent is None else f"{item.percent} % of {text}"
