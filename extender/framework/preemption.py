"""Preemption for constraints of ours: who has to leave a node so that a pod passes every filter."""

from collections.abc import Mapping
from typing import Final

from extender.framework import cycle, pipeline, protocols, verdicts, views

NOT_LOWER: Final = verdicts.Status("nobody of lower priority can make room")


def victims(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, row: int, now: float
) -> verdicts.Victims | cycle.Refusal:
    """Return the victims on one node, or the refusal that no victim ends.

    Each plug-in that still refuses names victims on the node as it would be without those named
    before, until every filter passes. A pod that passes already has none.
    """
    leaving: dict[str, None] = {}
    while True:
        after = view.with_claims(row, remove=tuple(leaving))
        asked = plugins.cycle(pod, after)
        refusal = plugins.filter(asked, after, pipeline.ROW, now).refusal(0)
        if refusal is None:
            return verdicts.Victims(tuple(leaving))
        found = _named(plugins.selectors, asked, after, refusal)
        if isinstance(found, cycle.Refusal):
            return found
        if not _all_lower(pod, after, found):
            return cycle.Refusal(refusal.plugin, NOT_LOWER)
        fresh = [claim for claim in found.claims if claim not in leaving]
        if not fresh:
            return refusal
        leaving |= dict.fromkeys(fresh)


def _named(
    selectors: Mapping[str, protocols.VictimSelector],
    asked: cycle.Cycle,
    view: views.View,
    refusal: cycle.Refusal,
) -> verdicts.Victims | cycle.Refusal:
    selector, prepared = selectors.get(refusal.plugin), asked.prepared.get(refusal.plugin)
    if selector is None or prepared is None:
        return refusal
    found = selector.victims(prepared, view, 0)
    return cycle.Refusal(refusal.plugin, found) if isinstance(found, verdicts.Status) else found


def _all_lower(pod: views.PodInfo, view: views.View, found: verdicts.Victims) -> bool:
    """Whether all are claims of this node that such a pod may preempt."""
    priorities = {claim.id: claim.pod.requirements.priority for claim in view.node(0).claims}
    lowest = pod.requirements.priority
    return all(claim in priorities and priorities[claim] < lowest for claim in found.claims)
