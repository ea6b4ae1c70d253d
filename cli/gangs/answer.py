"""Whether gangs would fit, for people and as a document."""

from collections.abc import Iterator
from typing import Any, Final

from api.wire import durations
from cli.gangs import preview, table, victims
from domain import wording

_MOST: Final = 8
"""Nodes that are named in the text; the document names all."""


def lines(found: preview.Answer) -> Iterator[str]:
    """Yield an answer per gang group, then what it does not know."""
    for number, one in enumerate(found.previews):
        if number:
            yield ""
        yield from _group(one, found.now)
    if found.notes:
        yield ""
        yield from (f"note: {note}" for note in found.notes)


def _group(one: preview.Preview, now: float) -> Iterator[str]:
    yield verdict(one)
    yield from sentences(one, now)
    if one.helps:
        yield ""
        yield "What would make it fit, each on its own:"
        yield from (f"  {text}" for text in one.helps)


def subject(one: preview.Preview) -> str:
    """Name the gangs of a group."""
    if len(one.gangs) == 1:
        return f"Gang {one.gangs[0]}"
    return f"The gang group of {', '.join(one.gangs)}"


def verdict(one: preview.Preview) -> str:
    """Say whether a group fits."""
    places, all_of = len(one.places), one.members
    members, find = (
        wording.count(all_of, "member", "members"),
        wording.form(places, "finds", "find"),
    )
    if one.fits and one.needed:
        return (
            f"{subject(one)} fits: {places} of {members} (at least {one.needed} together) "
            f"{find} a node."
        )
    if one.fits:
        return (
            f"{subject(one)} has its minimum; further members are placed one by one: {places} of "
            f"{all_of} {find} a node."
        )
    if one.scattered:
        return (
            f"{subject(one)} does not fit: no part of the network takes "
            f"{wording.count(one.needed, 'member', 'members')}; {places} of {all_of} {find} a node "
            "anywhere."
        )
    return (
        f"{subject(one)} does not fit: {places} of {members} {find} a node on {nodes(one)}, "
        f"{wording.count(one.needed, 'has to', 'have to')}."
    )


def nodes(one: preview.Preview) -> str:
    """Say how many nodes there are."""
    return wording.count(one.nodes, "node", "nodes")


def sentences(one: preview.Preview, now: float) -> Iterator[str]:
    """Yield where members go, what is the tightest, and since when the gang waits."""
    spread = one.spread()
    if spread and not one.scattered:
        listed = ", ".join(f"{node} ({count})" for node, count in list(spread.items())[:_MOST])
        more = f" and {len(spread) - _MOST} more" if len(spread) > _MOST else ""
        yield f"{'Nodes' if one.fits else 'Nodes of those that find one'}: {listed}{more}."
    if one.scattered:
        yield f"{one.sentence[0].upper()}{one.sentence[1:]}."
    elif one.tightest:
        yield f"The tightest member is {one.tightest}:"
        for each in one.refused:
            yield f"  {wording.count(each.nodes, 'node', 'nodes')} by {each.by}: {each.reason}"
    elif one.sentence:
        yield f"{one.sentence[0].upper()}{one.sentence[1:]}."
    if not one.fits:
        yield from leaving(one.leaving)
    if one.before:
        first = "; ".join(one.before[:_MOST])
        yield f"It is number {len(one.before) + 1} in line, behind {first}."
    # A gang of a file came into being with the simulation.
    if one.since and now - one.since >= 1:
        yield f"It has been waiting for {table.ago(one.since, now)}."


def leaving(found: victims.Leaving) -> Iterator[str]:
    """Yield which pods would be evicted for a gang, or why none."""
    if found.reason:
        yield f"It preempts no pod: {found.reason}."
        return
    if found.evicted:
        count = len(found.evicted)
        pods = wording.count(count, "pod", "pods")
        yield f"It would preempt {pods} of lower priority, all or none:"
        for one in found.evicted[:_MOST]:
            yield f"  {one.pod} (priority {one.priority}) on {one.node}"
        if count > _MOST:
            yield f"  and {count - _MOST} more"
    if found.waited:
        pods = wording.count(len(found.waited), "pod that is", "pods that are")
        yield f"It waits for {pods} leaving."


def document(found: preview.Answer) -> dict[str, Any]:
    """Return the answers as a document."""
    return {"groups": [group(one) for one in found.previews], "notes": list(found.notes)}


def group(one: preview.Preview) -> dict[str, Any]:
    """Return the answer for one group as plain data."""
    return {
        "gangs": list(one.gangs),
        "fits": one.fits,
        "needed": one.needed,
        "members": one.members,
        "priority": one.priority,
        "nodes": one.nodes,
        "places": [
            {"pod": place.pod, "node": place.node, "allocatedBy": list(place.allocated)}
            for place in one.places
        ],
        "withoutNode": list(one.left),
        "tightest": one.tightest or None,
        "refused": [
            {"by": each.by, "reason": each.reason, "nodes": each.nodes} for each in one.refused
        ],
        "message": one.sentence,
        "preemption": {
            "evicted": [
                {"pod": each.pod, "priority": each.priority, "node": each.node}
                for each in one.leaving.evicted
            ],
            "waitsFor": list(one.leaving.waited),
            "nodes": list(one.leaving.nodes),
            "reason": one.leaving.reason or None,
        },
        "wouldHelp": list(one.helps),
        "before": list(one.before),
        "waitsSince": durations.moment(one.since) if one.since else None,
    }
