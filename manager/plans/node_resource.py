"""What a node lends to batch pods, and whether that is news enough to write it."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from api import annotations as payloads
from api import base, names, node_payloads, qos, quantity
from api import resources as kinds
from domain import colocation, resources
from manager import plan, strategy, views

STARTED: Final = "LendingStarted"
STOPPED: Final = "LendingStopped"
UNREADABLE: Final = "AnnotationUnreadable"
_ALL: Final = frozenset(names.BATCH_RESOURCES)
_NONE: Final = dict.fromkeys(names.BATCH_RESOURCES, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Lent:
    """The two figures that a node lends, with what decided them."""

    cpu: colocation.Lending
    memory: colocation.Lending

    @property
    def amount(self) -> colocation.Amount:
        """Return the values alone."""
        return colocation.Amount(self.cpu.value, self.memory.value)


def lend(
    node: views.Node, report: views.Report, demand: colocation.Demand, rules: strategy.Strategy
) -> Lent:
    """Calculate what a node with a fresh report lends."""
    capacity = node.capacity or colocation.NOTHING
    return Lent(
        cpu=colocation.lend(
            rules.cpu,
            colocation.Holding(
                capacity=capacity.cpu,
                allocatable=node.allocatable.cpu,
                reserved=node.reserved.cpu,
                system=report.system.cpu,
                requested=demand.requested.cpu,
                used=demand.used.cpu,
                peak=demand.peak.cpu,
                firm=demand.firm.cpu,
            ),
        ),
        memory=colocation.lend(
            rules.memory,
            colocation.Holding(
                capacity=capacity.memory,
                allocatable=node.allocatable.memory,
                reserved=node.reserved.memory,
                system=report.system.memory,
                requested=demand.requested.memory,
                used=demand.used.memory,
                peak=demand.peak.memory,
                firm=demand.firm.memory,
            ),
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """What is published on a node: the amounts, and what they were before others took theirs."""

    values: Mapping[str, int]
    """By resource; one that is missing here is taken off the node."""
    origin: str
    """Payload of the annotation with the amounts before third-party allocations."""
    problem: str = ""
    """What could not be taken into account."""


def offer(
    lent: colocation.Amount | None, annotations: Mapping[str, str], wanted: frozenset[str] = _ALL
) -> Offer:
    """Say what to publish; nothing lent takes the resources off the node."""
    values = {}
    if lent is not None:
        ratio = _ratio(annotations.get(names.ANNOTATION_CPU_NORMALIZATION, ""))
        cpu = -(-int(lent.cpu * 1000 * ratio) // 1000)
        values = {names.BATCH_CPU: cpu, names.BATCH_MEMORY: lent.memory}
    values = {name: value for name, value in values.items() if name in wanted}
    origin = payloads.ORIGIN_ALLOCATABLE.text(
        node_payloads.OriginAllocatable(resources=quantity.texts({**_NONE, **values}))
    )
    if len(values) < len(_ALL):
        return Offer(values, origin)
    try:
        taken = _third_party(annotations)
    except base.ReadError as error:
        return Offer(values, origin, str(error))
    left = {name: max(value - taken.get(name, 0), 0) for name, value in values.items()}
    return Offer(left, origin)


def _ratio(written: str) -> float:
    """Read how much faster than the nominal cpu this node is; only more than 1 counts."""
    try:
        ratio = float(written)
    except ValueError:
        return 1.0
    return max(ratio, 1.0) if math.isfinite(ratio) else 1.0


def _third_party(annotations: Mapping[str, str]) -> dict[str, int]:
    written = payloads.THIRD_PARTY.read(annotations)
    taken: dict[str, int] = {}
    for item in written.allocations if written is not None else ():
        if item.priority == qos.Band.BATCH:
            taken = resources.add(taken, quantity.amounts(item.resources))
    return taken


def differs(before: Mapping[str, int], after: Mapping[str, int], threshold: float) -> bool:
    """Whether an offer is news enough to write at once."""
    return any(
        colocation.differs(before.get(name), after.get(name), threshold) for name in sorted(_ALL)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """Everything that decides about one node, at one moment."""

    node: views.Node
    report: views.Report | None
    demand: colocation.Demand
    rules: strategy.Strategy
    enabled: bool
    """Whether colocation is on, for the cluster and for this node."""
    now: float
    since_write: float | None
    """Seconds since the last write by this process; None if there was none yet."""


def planned(seen: Seen) -> plan.Plan:
    """Plan what is published on a node that exists."""
    node = seen.node
    if node.capacity is None:
        return plan.Plan("the node has not said yet what it has")
    if not seen.enabled:
        return _withdrawn(seen, "colocation is off")
    report = seen.report
    if report is None or report.updated_at is None:
        return _withdrawn(seen, "the agent has not reported yet")
    if colocation.is_stale(report.updated_at, seen.now, seen.rules.degrade_seconds):
        minutes = (seen.now - report.updated_at) / 60
        return _withdrawn(seen, f"the agent's last report is {minutes:.0f} minutes old")
    lent = lend(node, report, seen.demand, seen.rules)
    stale_in = report.updated_at + seen.rules.degrade_seconds - seen.now + 1
    offered = offer(lent.amount, node.annotations)
    message = f"lends {_cores(lent.cpu)} and {_gibibytes(lent.memory)}"
    if not _is_news(seen, offered):
        wait = stale_in
        if _is_change(node, offered):
            message = f"{message}; the change is too small to write now"
            wait = min(stale_in, seen.rules.refresh_seconds - (seen.since_write or 0.0))
        return plan.Plan(message, again_in=wait)
    steps: list[plan.Step] = [_write(node, offered)]
    if not node.published[1]:
        steps.append(_told(node, STARTED, message))
    if offered.problem:
        steps.append(_told(node, UNREADABLE, offered.problem, warning=True))
    return plan.Plan(message, tuple(steps), again_in=stale_in)


def _withdrawn(seen: Seen, why: str) -> plan.Plan:
    node = seen.node
    message = f"lends nothing: {why}"
    if not any(node.published):
        return plan.Plan(message)
    steps = (
        _write(node, offer(None, node.annotations)),
        _told(node, STOPPED, message, warning=seen.enabled),
    )
    return plan.Plan(message, steps)


def _is_change(node: views.Node, offered: Offer) -> bool:
    capacity, allocatable = node.published
    written = node.annotations.get(names.ANNOTATION_ORIGIN_ALLOCATABLE)
    return not capacity == allocatable == offered.values or written != offered.origin


def _is_news(seen: Seen, offered: Offer) -> bool:
    if not _is_change(seen.node, offered):
        return False
    due = seen.since_write is None or seen.since_write >= seen.rules.refresh_seconds
    return due or any(
        differs(published, offered.values, seen.rules.difference)
        for published in seen.node.published
    )


def _write(node: views.Node, offered: Offer) -> plan.PatchStatus:
    written = quantity.texts(offered.values)
    # A merge patch takes off what it names with null, and leaves everything else as it is.
    parts = {
        part: {**{name: None for name in there if name not in written}, **written}
        for part, there in zip(("capacity", "allocatable"), node.published, strict=True)
    }
    annotations = {names.ANNOTATION_ORIGIN_ALLOCATABLE: offered.origin}
    body = {"metadata": {"annotations": annotations}, "status": parts}
    return plan.PatchStatus(kinds.NODES, node.name, body)


def _told(node: views.Node, reason: str, note: str, *, warning: bool = False) -> plan.Tell:
    return plan.Tell(kinds.NODES, node.name, node.uid, reason, note, warning=warning)


def _cores(lending: colocation.Lending) -> str:
    return f"{lending.value / 1000:g} cores ({_why(lending, 1000, 'g')})"


def _gibibytes(lending: colocation.Lending) -> str:
    return f"{lending.value / (1 << 30):.1f} GiB ({_why(lending, 1 << 30, '.1f')})"


def _why(lending: colocation.Lending, unit: int, style: str) -> str:
    if lending.cap is not None:
        return f"the cap of {lending.cap / unit:{style}}"
    text = " - ".join(f"{value / unit:{style}} {name}" for name, value in lending.terms)
    return text if lending.percent is None else f"{lending.percent} % of {text}"
