"""Victims that kube-scheduler proposes for one node: whether they may leave, and who else has to.

Pure. kube-scheduler tries only its own filters, so plug-ins may need more victims on that node.
It evicts pods of one node only. A gang that is on this node alone leaves as a whole.
"""

import collections
import math
from collections.abc import Collection, Sequence
from typing import Final

from domain.pods import disruption_budgets as disruption
from extender.framework import claim_index, pipeline, views
from extender.framework.eviction import preemption, trial, victims

_PODS: Final = "pods"


def completed(
    what_if: trial.Trial, uids: Sequence[str], budgets: disruption.Budgets
) -> list[views.Claim] | None:
    """Return all claims that have to leave one node, the proposed ones first; None to drop it."""
    there = {claim.id: claim for claim in what_if.live_node().claims}
    fixed: list[views.Claim] = []
    for uid in uids:
        claim = there.get(uid)
        if claim is None:
            return None
        if claim.id not in what_if.gone:
            unit = what_if.unit(claim)
            together = (claim,) if unit is None else unit.claims
            # One after the other: what a quota may lose depends on what it has lost.
            if what_if.first(together, lambda one: _is_spared(what_if, one)) is not None:
                return None
            what_if.remove((claim,))
        fixed.append(claim)
    # Only pods of that node may be named, so no other pod is looked at.
    terms = preemption.Terms(claim_index.ClaimIndex(there), budgets, what_if.node)
    found = preemption.on_node(what_if, terms, fixed)
    if isinstance(found, pipeline.Refusal):
        return None
    if len(found.claims) > len(fixed):
        _spare(what_if, fixed)
        fixed = [claim for claim in fixed if claim.id in what_if.gone]
    named = {claim.id for claim in fixed}
    others = (one for one in found.claims if one.id not in named and one.id in what_if.gone)
    return [*fixed, *others]


def breaks(what_if: trial.Trial, uids: Sequence[str]) -> bool:
    """Whether a proposed victim would leave a gang on other nodes behind, below its minimum."""
    there = {claim.id: claim for claim in what_if.live_node().claims}
    units = (what_if.unit(there[uid]) for uid in uids if uid in there)
    return any(unit is None or unit.nodes != {what_if.node} for unit in units)


def _is_spared(what_if: trial.Trial, claim: views.Claim) -> bool:
    view = what_if.everywhere()
    return victims.spared(what_if.plugins, what_if.pod, view, claim) is not None


def _spare(what_if: trial.Trial, fixed: Sequence[views.Claim]) -> None:
    """Put proposed victims back whose resources the others free as well: none leaves in vain.

    What an owner of a Reservation frees stays there, which kube-scheduler does not know. One that
    it proposed for another reason than resources, such as an affinity, is left in its hands.
    """
    everyone = {claim.id for claim in fixed}
    short = [one for one in fixed if not _fits(what_if, everyone - {one.id})]
    for claim in sorted(short, key=victims.importance):
        what_if.put_back((claim,))
        if not (_fits(what_if, what_if.gone) and what_if.passes()):
            what_if.remove((claim,))


def _fits(what_if: trial.Trial, gone: Collection[str]) -> bool:
    """Whether the node has room as kube-scheduler counts it, without some pods."""
    info = what_if.live_node()
    staying = [claim for claim in info.claims if claim.kind in views.FIRM and claim.id not in gone]
    left = collections.Counter(dict(info.node.allocatable))
    for claim in staying:
        left.subtract(dict(claim.pod.requirements.requests))
    slots = left.get(_PODS, math.inf)
    requests = what_if.pod.requirements.requests
    return len(staying) < slots and all(left[name] >= value for name, value in requests)
