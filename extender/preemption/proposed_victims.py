"""Victims that kube-scheduler proposes for one node: whether they may leave, and who else has to.

Pure. kube-scheduler tries only its own filters, so plug-ins may need more victims on that node.
"""

from collections.abc import Sequence

from extender.framework import budgets as disruption
from extender.framework import claim_index, pipeline, preemption, trial, victims, views


def completed(
    what_if: trial.Trial, uids: Sequence[str], budgets: disruption.Budgets
) -> list[views.Claim] | None:
    """Return all claims that have to leave one node, the proposed ones first; None to drop it."""
    there = {claim.id: claim for claim in what_if.live_claims()}
    fixed: list[views.Claim] = []
    for uid in uids:
        claim = there.get(uid)
        if claim is None:
            return None
        if victims.spared(what_if.plugins, what_if.pod, what_if.view, claim) is not None:
            return None
        # One after the other: what a quota may lose depends on what it has lost.
        what_if.remove((claim,))
        fixed.append(claim)
    # Only pods of that node may be named, so nobody else is looked at.
    terms = preemption.Terms(claim_index.ClaimIndex(there), budgets, what_if.node)
    found = preemption.on_node(what_if, terms, fixed)
    if isinstance(found, pipeline.Refusal):
        return None
    named = {claim.id for claim in fixed}
    return [*fixed, *(claim for claim in found.claims if claim.id not in named)]
