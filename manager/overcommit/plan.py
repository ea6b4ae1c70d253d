"""What is published on a node, why, and whether that is news enough to write it."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from api import resources as kinds
from api.koordinator import event_reasons
from domain.devices.requests import accelerators, network
from domain.lending import amplification, normalization
from manager.cluster_settings import effective
from manager.overcommit import breakdown as breakdowns
from manager.overcommit import calculation, node_status
from manager.reconcile import actions

Seen = calculation.Seen

STARTED: Final = "LendingStarted"
STOPPED: Final = "LendingStopped"
UNREADABLE: Final = "AnnotationUnreadable"
NOT_NORMALIZED: Final = "NotNormalized"
NOT_AMPLIFIED: Final = "NotAmplified"
_OFFERED: Final = "true"
_DEVICES: Final = frozenset({*accelerators.RESOURCES, *network.RESOURCES})
_LENT: Final = (*names.BATCH_RESOURCES, *names.MID_RESOURCES)


@dataclasses.dataclass(frozen=True, slots=True)
class _Work:
    """What came out, and what is to stand on the node because of it."""

    found: breakdowns.Breakdown
    wanted: node_status.Wanted
    problem: str = ""


def breakdown(seen: Seen) -> breakdowns.Breakdown:
    """Return every term that decides what a node lends now."""
    return _work(seen).found


def planned(seen: Seen) -> actions.Plan:
    """Plan what is published on a node that exists."""
    work = _work(seen)
    found = work.found
    message, wait = found.sentence, _stale_in(seen) if found.lends else None
    if found.written.kept:
        message = f"{message}; {found.written.kept}"
        due = calculation.due_after(seen) - (seen.since_write or 0.0)
        wait = due if wait is None else min(wait, due)
    steps: list[actions.Step] = []
    if found.written.news:
        body = node_status.body(seen.node, work.wanted)
        steps = [actions.PatchStatus(kinds.NODES, seen.node.name, body), *_turned(seen, found)]
    return actions.Plan(message, (*steps, *_problems(seen, work)), again_in=wait)


def _stale_in(seen: Seen) -> float:
    assert seen.report is not None
    return (seen.report.updated_at or 0.0) + seen.rules.degrade_seconds - seen.now + 1


def _lent_before(seen: Seen) -> bool:
    return any(name in part for part in seen.node.published for name in names.BATCH_RESOURCES)


def _turned(seen: Seen, found: breakdowns.Breakdown) -> list[actions.Step]:
    """Tell when a node begins or ends to lend."""
    before = _lent_before(seen)
    if found.lends and not before:
        return [_told(seen, STARTED, found.sentence)]
    if before and not found.lends:
        return [_told(seen, STOPPED, found.sentence, warning=seen.enabled)]
    return []


def _problems(seen: Seen, work: _Work) -> list[actions.Step]:
    found: tuple[tuple[event_reasons.Reason, str], ...] = (
        (UNREADABLE, work.problem),
        (UNREADABLE, effective.unreadable(seen.node.labels, seen.node.annotations)),
        (NOT_NORMALIZED, work.found.normalization.problem),
        (NOT_AMPLIFIED, work.found.amplification.problem),
    )
    return [_told(seen, reason, note, warning=True) for reason, note in found if note]


def _told(
    seen: Seen, reason: event_reasons.Reason, note: str, *, warning: bool = False
) -> actions.Tell:
    return actions.Tell(kinds.NODES, seen.node.name, seen.node.uid, reason, note, warning=warning)


def _work(seen: Seen) -> _Work:
    if seen.node.capacity is None:
        said = "the node has not said yet what it has"
        return _Work(_begun(seen, breakdowns.UNKNOWN, said, said), node_status.NOTHING)
    why, faster = calculation.withheld(seen), calculation.ratio(seen)
    ratio, factors = calculation.normalized(seen), _factors(seen)
    items = () if why or seen.report is None else calculation.resources(seen, seen.report)
    batch = node_status.batch(
        {i.resource: i.calculated for i in items if i.resource in names.BATCH_RESOURCES},
        seen.node.annotations,
        faster,
    )
    items = tuple(_offered(item, batch, faster) for item in items)
    state = breakdowns.WITHDRAWN if why else breakdowns.LENDS
    said = f"lends nothing: {why}" if why else calculation.sentence(items)
    devices = _devices(seen)
    wanted = node_status.Wanted(
        _amounts(seen, items) | devices,
        _annotations(seen, batch, ratio, factors) | _device_mark(devices),
        {} if seen.devices is None else seen.devices.labels,
    )
    found = dataclasses.replace(
        _begun(seen, state, why, said),
        resources=items,
        normalization=ratio,
        amplification=factors,
        devices={k: v for k, v in wanted.amounts.items() if k in _DEVICES},
        written=_written(seen, wanted),
    )
    return _Work(found, wanted, batch.problem)


def _begun(seen: Seen, state: str, why: str, said: str) -> breakdowns.Breakdown:
    rules = seen.rules
    updated = None if seen.report is None else seen.report.updated_at
    return breakdowns.Breakdown(
        node=seen.node.name,
        at=seen.now,
        state=state,
        reason=why,
        report_age=None if updated is None else seen.now - updated,
        sentence=said,
        figures=calculation.figures(seen),
        settings=breakdowns.Settings(
            rules.cpu, rules.memory, rules.degrade_seconds, rules.refresh_seconds, rules.difference
        ),
        written=breakdowns.Written(*seen.node.published, seen.since_write),
    )


def _factors(seen: Seen) -> breakdowns.Said:
    if not seen.enabled:
        return breakdowns.Said("", "colocation is off")
    given = seen.amplification
    if given is None:
        return breakdowns.Said("", problem=f"amplification: {calculation.UNREAD}")
    faster = normalization.ratio_of(calculation.ratio(seen))
    found = amplification.ratios(given.enable, given.ratios, faster)
    return breakdowns.Said(found.text, problem=found.problem)


def _offered(
    item: breakdowns.Resource, batch: node_status.Batch, ratio: str
) -> breakdowns.Resource:
    if item.resource not in batch.values:
        return item
    faster = normalization.ratio_of(ratio) if item.resource == names.BATCH_CPU else 1.0
    return dataclasses.replace(
        item,
        normalized=faster,
        third_party=batch.taken.get(item.resource, 0),
        offered=batch.values[item.resource],
    )


def _amounts(seen: Seen, items: tuple[breakdowns.Resource, ...]) -> dict[str, int | None]:
    amounts: dict[str, int | None] = dict.fromkeys(_LENT)
    amounts |= {item.resource: item.offered for item in items}
    bandwidth: Mapping[str, int | None] = dict.fromkeys(network.RESOURCES)
    if seen.enabled:
        bandwidth = network.offered(seen.node.annotations)
    return {**amounts, **bandwidth}


def _devices(seen: Seen) -> dict[str, int | None]:
    """Return what the Device of a node says, whether cpu and memory are lent or not."""
    if seen.devices is not None or names.ANNOTATION_DEVICES_OFFERED in seen.node.annotations:
        return accelerators.offered(seen.devices, seen.node.published[1], shared=seen.slices)
    # A device plug-in of the kubelet may offer the same names: it would write them again and again.
    return {}


def _device_mark(devices: Mapping[str, int | None]) -> dict[str, str | None]:
    """Return the annotation that outlives the Device and this process."""
    offers = any(amount is not None for amount in devices.values())
    return {names.ANNOTATION_DEVICES_OFFERED: _OFFERED if offers else None}


def _annotations(
    seen: Seen, batch: node_status.Batch, ratio: breakdowns.Said, factors: breakdowns.Said
) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {}
    if batch.values or _lent_before(seen):
        wanted[names.ANNOTATION_ORIGIN_ALLOCATABLE] = batch.origin
    if ratio.text:
        wanted[names.ANNOTATION_CPU_NORMALIZATION] = ratio.text
    if not factors.problem:
        wanted[names.ANNOTATION_AMPLIFICATION] = factors.text or None
    return wanted


def _written(seen: Seen, wanted: node_status.Wanted) -> breakdowns.Written:
    node, rules = seen.node, seen.rules
    news = node_status.news(node, wanted, rules.difference)
    kept = ""
    if not news and node_status.changes(node, wanted):
        if seen.since_write is None or seen.since_write >= calculation.due_after(seen):
            news = ("small changes are due",)
        else:
            kept = "the change is too small to write now"
    return breakdowns.Written(*node.published, seen.since_write, news, kept)
