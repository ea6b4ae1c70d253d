"""A preview for people, and as a document."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from api.wire import quantity
from cli.placement import preview
from domain import wording

_MOST: Final = 5
"""Nodes and pods that are named in the text; the document names all."""


def lines(found: preview.Preview, most: int = _MOST) -> Iterator[str]:
    """Yield the answer, then what it does not know."""
    subject = f"Pod {found.pod} (priority {found.priority})"
    if found.places:
        yield from _fits(subject, found, most)
    else:
        yield f"{subject} fits on none of {_nodes(found.nodes)} as they are."
        if found.leaving is not None:
            yield from _leaves(found.leaving)
        else:
            yield f"No eviction would help: {found.nothing}."
    if found.refused:
        yield ""
        yield "Refused:"
        yield from map(_refusal, found.refused)
    if found.notes:
        yield ""
        yield from (f"note: {note}" for note in found.notes)


def _nodes(count: int) -> str:
    return wording.count(count, "node", "nodes")


def _fits(subject: str, found: preview.Preview, most: int) -> Iterator[str]:
    yield (
        f"{subject} fits on {found.fits} of {_nodes(found.nodes)}. By the scores of the "
        "extender's plug-ins:"
    )
    wide = max(len(place.node) for place in found.places[:most])
    for place in found.places[:most]:
        tier = f", tier {place.tier}" if place.tier else ""
        grounds = "; ".join(one for one in place.grounds if not one.endswith(": passed"))
        yield f"  {place.node:<{wide}}  {place.score}{tier}  {grounds}".rstrip()
    if found.fits > most:
        yield f"  and {found.fits - most} more"


def _leaves(leaving: preview.Leaving) -> Iterator[str]:
    who = "kube-scheduler" if leaving.by == preview.KUBE_SCHEDULER else "The extender"
    victims, awaited = leaving.victims, leaving.awaited
    deeds = [
        *([f"evict {_pods(len(victims))}"] if victims else ()),
        *([f"wait for {wording.count(len(awaited), 'pod that leaves', 'pods that leave')} already"]
          if awaited else ()),
    ]  # fmt: skip
    yield (
        f"{who} would {' and '.join(deeds) or 'take what is kept for lower preemptors'} on node "
        f"{leaving.node}: {leaving.reason}."
    )
    yield from map(_leaver, (*victims, *awaited))
    if leaving.violations:
        yield f"Disruption budgets refuse {leaving.violations} of these evictions now."


def _pods(count: int) -> str:
    return wording.count(count, "pod", "pods")


def _leaver(one: preview.Leaver) -> str:
    amounts = ", ".join(wording.named(key, value) for key, value in one.requests)
    held = f"; allocated by {', '.join(one.allocated)}" if one.allocated else ""
    return f"  {one.key} (priority {one.priority}): {amounts or 'no requests'}{held}"


def _refusal(one: preview.Refused) -> str:
    shown = ", ".join(one.nodes[:_MOST])
    more = f" and {len(one.nodes) - _MOST} more" if len(one.nodes) > _MOST else ""
    figures = f"; {one.figures}" if one.figures else ""
    return f"  {_nodes(len(one.nodes))} by {one.by} ({shown}{more}): {one.reason}{figures}"


def document(found: preview.Preview) -> dict[str, Any]:
    """Return the answer as a document."""
    outcome = "fits" if found.places else "evictions" if found.leaving is not None else "nothing"
    return {
        "pod": found.pod,
        "priority": found.priority,
        "outcome": outcome,
        "nodes": found.nodes,
        "fits": found.fits,
        "places": [
            {"node": one.node, "score": one.score, "tier": one.tier, "grounds": list(one.grounds)}
            for one in found.places
        ],
        "preemption": None if found.leaving is None else _preemption(found.leaving),
        "nothingHelps": found.nothing,
        "refused": [
            {
                "by": one.by,
                "reason": one.reason,
                "nodes": list(one.nodes),
                "figures": one.figures,
            }
            for one in found.refused
        ],
        "notes": list(found.notes),
    }


def _preemption(leaving: preview.Leaving) -> dict[str, Any]:
    return {
        "node": leaving.node,
        "by": leaving.by,
        "reason": leaving.reason,
        "victims": _leavers(leaving.victims),
        "awaited": _leavers(leaving.awaited),
        "violatedBudgets": leaving.violations,
    }


def _leavers(found: Sequence[preview.Leaver]) -> list[dict[str, Any]]:
    return [
        {
            "pod": one.key,
            "priority": one.priority,
            "requests": {key: quantity.text(key, value) for key, value in one.requests},
            "allocatedBy": list(one.allocated),
        }
        for one in found
    ]
