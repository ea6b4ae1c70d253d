"""What a move has brought, measured once the new pod has settled. Pure.

The load of nodes changes all day, so that before and after tell little. What is compared is the
present with the present as it would be if the pod had stayed: a move has paid if moving the pod
back would set loads further apart, or break what was healed.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from descheduler.framework import protocols
from descheduler.framework.nodes import emptying
from descheduler.gain import healing, measured_load
from descheduler.model import fragments, objects, picture, podinfo
from descheduler.receipts import expectation, receipt
from domain import wording

Verdict = receipt.Verdict
Purpose = protocols.Purpose
_EVICTION: Final = "Eviction"
_SUCCEEDED: Final = "Succeeded"
_PATIENCE: Final = 3.0
"""Times the settling time after which nothing more is waited for."""
_FRESH: Final = 0.5
"""Share of the settling time that has to have passed when loads were measured."""
_LONGEST: Final = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One move that has ended, and what is measured now."""

    receipt: receipt.Receipt
    job: objects.Job
    seen: picture.Picture
    loads: measured_load.Loads
    settle_seconds: float

    @property
    def waits(self) -> float:
        """Return for how long the new pod has settled."""
        return self.seen.now - ended_at(self.job)

    def is_current(self, node: str) -> bool:
        """Whether the load of a node was measured after the new pod had begun to settle."""
        report = self.seen.usage.get(node)
        least = ended_at(self.job) + _FRESH * self.settle_seconds
        return report is not None and report.updated_at >= least


def ended_at(job: objects.Job) -> float:
    """Return when a job changed last."""
    changed = (one.last_transition_time or 0.0 for one in job.status.conditions)
    return max(changed, default=job.created)


def is_due(job: objects.Job, now: float, settle_seconds: float) -> bool:
    """Whether it is time to look at what a job has brought."""
    if job.is_open:
        return False
    has_moved = job.phase == _SUCCEEDED or _is_evicted(job)
    return not has_moved or now - ended_at(job) >= settle_seconds


def outcome(case: Case) -> receipt.Outcome | None:
    """Return what a move has brought; None while that cannot be told yet."""
    if not is_due(case.job, case.seen.now, case.settle_seconds):
        return None
    if case.job.phase != _SUCCEEDED and not _is_evicted(case.job):
        return _of(case, Verdict.NOT_MOVED, _failure(case.job))
    new = _successor(case)
    if new is None:
        return _of(case, Verdict.UNKNOWN, "no pod is known to replace it")
    if not new.is_active or not new.node:
        return _of(case, Verdict.UNKNOWN, "the pod that replaced it has ended")
    if new.node == case.receipt.source:
        return _of(case, Verdict.NOT_PAID, "it is back on the node that it left", new)
    return _measured(case, new)


def _measured(case: Case, new: podinfo.Pod) -> receipt.Outcome | None:
    if why := _worse(case, new):
        return _of(case, Verdict.NOT_PAID, why, new)
    match case.receipt.purpose:
        case Purpose.BALANCE:
            return _balanced(case, new)
        case Purpose.DEFRAGMENT:
            return _healed(case, new)
        case Purpose.EMPTY:
            return _emptied(case, new)
        case _:
            verdict = Verdict.PAID if new.ready else Verdict.NOT_PAID
            return _of(case, verdict, "" if new.ready else "the new pod is not ready", new)


def _is_evicted(job: objects.Job) -> bool:
    return any(one.type == _EVICTION and one.status == "True" for one in job.status.conditions)


def _failure(job: objects.Job) -> str:
    told = job.status.message or job.status.reason or job.phase
    return f"the pod stayed: {told}"[:_LONGEST]


def _successor(case: Case) -> podinfo.Pod | None:
    named = case.job.status.pod_ref
    return case.seen.pods.get(named.uid) if named is not None else None


def _worse(case: Case, new: podinfo.Pod) -> str:
    """Return why a pod fares worse than before; empty where nothing says so."""
    before, now = case.receipt.quality, expectation.quality(new, case.seen)
    if now.restarts:
        times = wording.count(now.restarts, "time", "times")
        return f"the new pod has restarted {times}"
    fresh = {name: value for name, value in now.slowed.items() if name not in before.slowed}
    if fresh:
        told = ", ".join(f"{name} {value:.3g}" for name, value in sorted(fresh.items()))
        return f"the new pod is slowed down by its neighbours: {told}"
    return ""


def _balanced(case: Case, new: podinfo.Pod) -> receipt.Outcome | None:
    """Compare loads with what they would be with the pod on its old node."""
    spread, source = case.loads.of(prod=False), case.receipt.source
    amounts = case.loads.used_by(new)
    current = case.is_current(source) and case.is_current(new.node)
    if amounts is None or not current or not (spread.knows(source) and spread.knows(new.node)):
        if case.waits < _PATIENCE * case.settle_seconds:
            return None
        return _of(case, Verdict.UNKNOWN, "there is no NodeMetric that is new enough", new)
    back = spread.outlook(amounts, new.node, np.array([spread.row(source)], dtype=np.intp))
    gain = -float(back.gain[0])
    paid = gain > 0
    reason = "" if paid else "loads would be closer if it had stayed"
    return _of(case, Verdict.PAID if paid else Verdict.NOT_PAID, reason, new, gain)


def _healed(case: Case, new: podinfo.Pod) -> receipt.Outcome:
    """Compare fragments with what they would be with the pod on its old node."""
    left, source = case.seen.fragments, case.receipt.source
    here = left.get(new.node, fragments.NOTHING)
    held = here.held.get(new.uid, fragments.HOLDS_NOTHING)
    known = healing.Fragmentation(case.seen, case.loads.resources)
    stuck = known.heals(new, source, _back(left.get(source, fragments.NOTHING), held))
    if stuck is None:
        return _of(case, Verdict.UNKNOWN, "the node that it left has gone", new)
    gain = stuck[1].total - stuck[0].total
    reason = "" if gain > 0 else "no fragment would be larger if it had stayed"
    return _of(case, Verdict.PAID if gain > 0 else Verdict.NOT_PAID, reason, new, gain)


def _back(left: fragments.Fragments, held: fragments.Held) -> fragments.Held:
    """Return what a pod would hold on its old node: of each kind what is most free there."""
    devices = {
        kind: dict(zip(_freest(left.devices.get(kind, {})), shares.values(), strict=False))
        for kind, shares in held.devices.items()
    }
    return fragments.Held(devices, dict(zip(_freest(left.cpus), held.cpus.values(), strict=False)))


def _freest(free: Mapping[int, int]) -> list[int]:
    return sorted(free, key=lambda place: (-free[place], place))


def _emptied(case: Case, new: podinfo.Pod) -> receipt.Outcome | None:
    """Look whether the node has become empty, or is gone."""
    source = case.receipt.source
    left = len(list(emptying.occupants(case.seen, source)))
    if source not in case.seen.nodes or not left:
        return _of(case, Verdict.PAID, "", new)
    if case.waits < _PATIENCE * case.settle_seconds:
        return None
    pods = wording.count(left, "pod is", "pods are")
    return _of(case, Verdict.NOT_PAID, f"{pods} on its old node still", new)


def _of(
    case: Case,
    verdict: Verdict,
    reason: str,
    new: podinfo.Pod | None = None,
    gain: float | None = None,
) -> receipt.Outcome:
    node = new.node if new is not None else ""
    now = receipt.Ends(case.loads.percents(case.receipt.source), case.loads.percents(node))
    return receipt.Outcome(
        verdict,
        case.seen.now,
        reason,
        None if gain is None else round(gain, 2),
        new.key if new is not None else "",
        node,
        now,
        expectation.quality(new, case.seen) if new is not None else receipt.Quality(),
    )


_SAID: Final = {
    Verdict.PAID: "paid",
    Verdict.NOT_PAID: "did not pay",
    Verdict.UNKNOWN: "not known whether it paid",
    Verdict.NOT_MOVED: "not moved",
}


def settled(one: receipt.Receipt, found: receipt.Outcome) -> receipt.Receipt:
    """Return the receipt with what came of the move, and its sentence."""
    parts = [receipt.change(one.source, one.before.source, found.now.source)]
    if found.node and found.node == one.target:
        parts.append(receipt.change(found.node, one.before.target, found.now.target))
    elif found.node:
        parts.append(f"{found.node} {receipt.loads(found.now.target)}")
    if found.gain is not None:
        parts.append(f"{found.gain:.1f} points gained of {one.gain:.1f} that were expected")
    before, now = one.quality.throttled, found.quality.throttled
    if before is not None and now is not None:
        parts.append(f"throttled in {before:.0f} % → {now:.0f} % of periods")
    reason = f" ({found.reason})" if found.reason else ""
    ends = "" if found.verdict is Verdict.NOT_MOVED else f": {'; '.join(parts)}"
    sentence = f"{_SAID[found.verdict]}{reason}{ends}"
    return msgspec.structs.replace(one, sentence=sentence, outcome=found)
