"""The gangs of a cluster as lines for a terminal, and as a document. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from api.wire import durations
from cli.gangs import cluster as clusters
from cli.output import columns
from domain import wording
from domain.gangs import declaration, option_texts

COLUMNS: Final = (
    *columns.left("NAME", "STATE", "MIN", "MEMBERS", "PLACES", "BOUND", "NODES", "SINCE"),
    *columns.more("PHASE", "NODE NAMES"),
    columns.Column("MESSAGE", narrow=True),
    *columns.more("MESSAGE"),
)
WAITING, PLANNED, RUNNING = "Waiting", "Planned", "Running"
BELOW, ENDED, EMPTY = "BelowMinimum", "Ended", "Empty"
STATES: Final = (WAITING, PLANNED, RUNNING, BELOW, ENDED, EMPTY)
_NONE: Final = "-"
_LONGEST: Final = 80
"""Characters of a message in a line."""


def state(gang: clusters.Gang) -> str:
    """Return in one word how a gang is doing."""
    if not gang.members:
        return EMPTY
    if gang.ended:
        return ENDED
    if gang.below:
        return BELOW
    if gang.count(clusters.PLANNED):
        return PLANNED
    return RUNNING if gang.placed else WAITING


def waits_for(found: clusters.Cluster, gang: clusters.Gang) -> str:
    """Say what a gang waits for; empty where it waits for nothing."""
    said = found.waits_for(gang)
    return said.message if said is not None else ""


def lines(found: clusters.Cluster, *, wide: bool = False) -> Iterator[str]:
    """Yield a line per gang, the totals, and what is wrong with its remedy."""
    rows = (_cells(found, one) for one in found.listed)
    yield from columns.lines(COLUMNS, rows, wide=wide)
    yield totals(found)
    for problem, remedy in problems(found):
        yield f"problem: {problem}"
        yield f"  remedy: {remedy}"


def _cells(found: clusters.Cluster, gang: clusters.Gang) -> tuple[str, ...]:
    nodes, said = gang.nodes(), waits_for(found, gang)
    return (
        gang.name,
        state(gang),
        str(gang.declared.min_member) if gang.declared.initialised else _NONE,
        str(len(gang.present)),
        str(gang.count(clusters.PLANNED)),
        str(gang.placed),
        str(len(nodes)) if nodes else _NONE,
        ago(gang.since, found.now),
        gang.phase or _NONE,
        ",".join(sorted(nodes)) or _NONE,
        columns.cut(said, _LONGEST) or _NONE,
        said or _NONE,
    )


def ago(since: float, now: float) -> str:
    """Write how long ago something was, in whole minutes from an hour on."""
    if since <= 0 or now < since:
        return _NONE
    passed = now - since
    if passed < 3600:
        return durations.text(passed // 1)
    return durations.text(passed // 60 * 60).removesuffix("0s")


def totals(found: clusters.Cluster) -> str:
    """Say in one line how many gangs there are in which state."""
    counts = dict.fromkeys(STATES, 0)
    for one in found.listed:
        counts[state(one)] += 1
    listed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    gangs = wording.count(len(found.listed), "gang", "gangs")
    members = sum(len(one.present) for one in found.listed)
    placed = sum(one.placed for one in found.listed)
    return f"{gangs}: {listed or 'none'}. {bound(placed, members)}."


def bound(placed: int, members: int) -> str:
    """Say how many of some members are bound."""
    of = f"{placed} of {wording.count(members, 'member', 'members')}"
    return f"{of} {wording.form(placed, 'is', 'are')} bound"


def problems(found: clusters.Cluster) -> Iterator[tuple[str, str]]:
    """Yield what cannot stay as it is, with what to do."""
    for gang in found.listed:
        yield from of_gang(gang)


def of_gang(gang: clusters.Gang) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with one gang, with what to do."""
    declared, name = gang.declared, gang.name
    if gang.members and not declared.initialised:
        yield (
            f"gang {name} has no minimum of members that can be read",
            f"create PodGroup {name} with spec.minMember" if declared.source.needs_object
            else "write annotation gang.scheduling.koordinator.sh/min-available on its pods",
        )  # fmt: skip
    if gang.below:
        members = wording.count(declared.min_member, "member", "members")
        yield (
            f"gang {name} ran and has {gang.placed} of {members} left",
            f"koord explain gang {name} says which; koord.sh/gang-repair says what happens then",
        )
    generations = {one.generation for one in gang.members if one.state == clusters.PLANNED}
    if len(generations) > 1:
        yield (
            f"members of gang {name} have places of {len(generations)} plans",
            "the extender completes or withdraws them within 10 s; if they stay, look at its log",
        )
    notes = gang.written.metadata.annotations if gang.written is not None else {}
    if not notes and gang.members:
        notes = gang.members[0].pod.metadata.annotations
    for key, fault in option_texts.faults(declared.namespace, notes):
        yield f"gang {name}: annotation {key} {fault}", "correct the annotation, or remove it"


def document(found: clusters.Cluster) -> dict[str, Any]:
    """Return the gangs as plain data."""
    return {
        "items": [item(found, one) for one in found.listed],
        "problems": [{"message": text, "remedy": remedy} for text, remedy in problems(found)],
        "notes": list(found.notes),
    }


def item(found: clusters.Cluster, gang: clusters.Gang) -> dict[str, Any]:
    """Return one gang as plain data."""
    declared = gang.declared
    return {
        "name": declared.name,
        "namespace": declared.namespace,
        "source": declared.source.value,
        "state": state(gang),
        "phase": gang.phase,
        "initialised": declared.initialised,
        "minMember": declared.min_member,
        "mode": declared.mode.value,
        "matchPolicy": declared.match_policy.value,
        "waitSeconds": declared.wait_seconds,
        "repair": declared.repair.value,
        "group": list(declaration.listed(declared)),
        "priority": gang.priority,
        "waitsFor": waits_for(found, gang),
        "waitsSince": durations.moment(gang.since) if gang.since else None,
        "members": [
            {"pod": one.key, "state": one.state, "node": one.node, "plan": one.generation}
            for one in gang.members
        ],
        "nodes": gang.nodes(),
    }
