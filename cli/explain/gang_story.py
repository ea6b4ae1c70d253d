"""The story of a gang: who belongs to it, who has a place, what it waits for, how it ended."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api.wire import durations
from cli import reading
from cli.explain import stories
from cli.explain.pod import pod_facts
from cli.gangs import answer, preview, table
from cli.gangs import cluster as clusters
from domain import wording
from domain.gangs import declaration

Raw = Mapping[str, Any]

_MOST: Final = 10
_POLICIES: Final = {
    declaration.MatchPolicy.ONLY_WAITING: (
        "only members that wait for each other count, so replaced members wait for a whole minimum"
    ),
    declaration.MatchPolicy.WAITING_AND_RUNNING: (
        "members that run and members that wait for them count together"
    ),
    declaration.MatchPolicy.ONCE_SATISFIED: (
        "once the minimum was bound, members that come later are placed one by one"
    ),
}
_MODES: Final = {
    declaration.Mode.STRICT: "when one member finds no node, all give their places back",
    declaration.Mode.NON_STRICT: (
        "when one member finds no node, the others keep their places while the minimum can be met"
    ),
}
_REPAIRS: Final = {
    declaration.Repair.NONE: "nothing is done when members are lost",
    declaration.Repair.REPLACE: "members that its controller creates anew are placed as a whole",
    declaration.Repair.RESTART: "when members are lost, the others are evicted and all start anew",
}
_SOURCES: Final = {
    declaration.Source.ANNOTATIONS: "annotations of its pods",
    declaration.Source.LABELS: "labels of its pods",
    declaration.Source.POD_GROUP: "its PodGroup",
    declaration.Source.NATIVE: "its PodGroup of scheduling.k8s.io",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a gang."""

    cluster: clusters.Cluster
    name: str
    """namespace/name."""
    events: Sequence[Raw] = ()
    """Events about its PodGroup and its members, the oldest first."""
    trial: preview.Preview | None = None
    """Whether it would fit now; None where nothing waits or nothing can be tried."""
    untried: str = ""
    """Why it was not tried."""
    notes: tuple[str, ...] = ()
    """What the trial does not know."""


def told(facts: Facts) -> stories.Story:
    """Return the story of a gang, or which names are near one that does not exist."""
    gang = facts.cluster.named(facts.name)
    subject = f"gang {facts.name}"
    if gang is None:
        return stories.Story(subject, _absent(facts), found=False)
    tell = stories.guarded
    chapters = (
        tell("how it is declared", _declared, gang),
        tell("members", _members, gang),
        tell("what it waits for", _waits, facts, gang),
        tell("as things are now", _tried, facts),
        tell("its group", _group, facts.cluster, gang),
        tell("what happened", _happened, facts, gang),
        tell("problems", _problems, facts, gang),
    )
    return stories.Story(
        subject=subject,
        verdict=reading.either(f"Gang {facts.name} exists.", verdict, facts.cluster, gang),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=reading.either((), lambda: tuple(dict.fromkeys(_helps(facts, gang)))),
    )


def _absent(facts: Facts) -> str:
    known = [one.name for one in facts.cluster.gangs.values()]
    name = facts.name.partition("/")[2]
    near = [one for one in known if name in one or one.partition("/")[2] in name][:5]
    there = f"; there are {', '.join(near)}" if near else ""
    return f"There is no gang {facts.name} among {len(known)}{there}."


def verdict(found: clusters.Cluster, gang: clusters.Gang) -> str:
    """Say in one sentence how a gang is doing."""
    least, name = gang.declared.min_member, f"Gang {gang.name}"
    state = table.state(gang)
    if state == table.EMPTY:
        return f"{name} has a PodGroup with a minimum of {least} and no pods yet."
    if state == table.ENDED:
        ended, failed = gang.count(clusters.SUCCEEDED), gang.count(clusters.FAILED)
        return (
            f"{name} has ended: {wording.count(ended, 'member has', 'members have')} succeeded, "
            f"{wording.count(failed, 'has', 'have')} failed."
        )
    on = table.bound(gang.placed, len(gang.present))
    if state == table.BELOW:
        return f"{name} is below its minimum of {least}: {on}."
    if state == table.PLANNED:
        kept = wording.count(gang.count(clusters.PLANNED), "member has", "members have")
        return f"{name} has a plan: {kept} a place, {on} (minimum {least})."
    if state == table.RUNNING:
        more = table.waits_for(found, gang)
        waits = wording.count(gang.count(clusters.WAITS), "waits", "wait")
        rest = f"; {waits}: {more}" if more else ""
        return stories.ended(f"{name} is bound: {on} (minimum {least}){rest}")
    return stories.ended(f"{name} {_clause(table.waits_for(found, gang))}")


# -- how it is declared, members -------------------------------------------------------------


def _declared(gang: clusters.Gang) -> stories.Chapter:
    declared = gang.declared
    if not declared.initialised:
        text = f"Its settings are in {_SOURCES[declared.source]}, where no minimum can be read."
        return stories.Chapter("how it is declared", (text,))
    sentences = [
        (
            f"Its settings come from {_SOURCES[declared.source]}: at least "
            f"{wording.count(declared.min_member, 'member starts', 'members start')} together."
        ),
        f"Match policy {declared.match_policy.value}: {_POLICIES[declared.match_policy]}.",
        f"Mode {declared.mode.value}: {_MODES[declared.mode]}.",
        f"A member that has a place waits {durations.text(declared.wait_seconds)} for the others.",
        f"Repair {declared.repair.value}: {_REPAIRS[declared.repair]}.",
    ]
    if declared.topology is not None:
        rules = ", ".join(
            f"{'within one' if rule.must else 'if possible within one'} {rule.layer}"
            for rule in declared.topology.rules
        )
        sentences.append(f"In the network: {rules or 'no rule'}.")
    if gang.phase:
        sentences.append(f"Its PodGroup has phase {gang.phase}.")
    return stories.Chapter("how it is declared", tuple(sentences))


def _members(gang: clusters.Gang) -> stories.Chapter:
    sentences = []
    for state in clusters.STATES:
        found = [one for one in gang.members if one.state == state]
        if not found:
            continue
        listed = ", ".join(
            f"{one.key} on {one.node}" if one.node else one.key for one in found[:_MOST]
        )
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        sentences.append(f"{len(found)} {_plural(state, len(found))}: {listed}{more}.")
    if gang.missing:
        sentences.append(f"{wording.count(gang.missing, 'does', 'do')} not exist yet.")
    spread = gang.nodes()
    if spread:
        nodes = ", ".join(f"{node} ({count})" for node, count in list(spread.items())[:_MOST])
        rest = len(spread) - _MOST
        more = f" and {wording.count(rest, 'more node', 'more nodes')}" if rest > 0 else ""
        sentences.append(f"By node: {nodes}{more}.")
    figures = {
        "members": [
            {"pod": one.key, "state": one.state, "node": one.node, "plan": one.generation}
            for one in gang.members
        ],
        "nodes": spread,
    }
    return stories.Chapter("members", tuple(sentences), figures)


def _plural(state: str, count: int) -> str:
    if count == 1:
        return state
    words = {"runs": "run", "waits": "wait"}
    return words.get(state) or state.replace("is ", "are ", 1).replace("has ", "have ", 1)


# -- what it waits for -----------------------------------------------------------------------


def _waits(facts: Facts, gang: clusters.Gang) -> stories.Chapter:
    said = facts.cluster.waits_for(gang)
    sentences: list[str] = []
    figures: dict[str, Any] = {}
    if said is not None:
        sentences.append(stories.ended(f"It {_clause(said.message)}"))
        figures = {"reason": said.reason, "message": said.message}
    line = facts.cluster.line()
    place = next((i for i, ids in enumerate(line, 1) if gang.declared.id in ids), 0)
    if place:
        figures["place"] = place
        figures["waiting"] = len(line)
        before = [facts.cluster.gangs[ids[0]].name for ids in line[: place - 1]]
        more = f" and {len(before) - _MOST} more" if len(before) > _MOST else ""
        if before:
            sentences.append(f"Before it in line: {', '.join(before[:_MOST])}{more}.")
        else:
            sentences.append("No gang is before it in line.")
    if gang.since:
        moment = durations.moment(gang.since)
        passed = table.ago(gang.since, facts.cluster.now)
        sentences.append(f"Its first waiting member was created at {moment}, {passed} ago.")
    until = max((one.until for one in gang.members if one.state == clusters.PLANNED), default=0.0)
    if until:
        left = durations.text(max(0.0, until - facts.cluster.now) // 1)
        sentences.append(f"The places of its plan are kept for {left} more.")
        figures["keptUntil"] = durations.moment(until)
    return stories.Chapter("what it waits for", tuple(sentences), figures)


def _clause(message: str) -> str:
    """Return a message as the rest of a sentence; one that is a sentence stays one."""
    return message if message.startswith(("waits ", "is ")) else f"waits: {message}"


def _tried(facts: Facts) -> stories.Chapter:
    name = "as things are now"
    if facts.trial is None:
        return stories.Chapter(name, (facts.untried,) if facts.untried else ())
    found = facts.trial
    sentences = (
        answer.verdict(found), *answer.sentences(dataclasses.replace(found, before=(), since=0.0),
        facts.cluster.now), *(f"Note: {note}." for note in facts.notes),
    )  # fmt: skip
    return stories.Chapter(name, sentences, answer.group(found))


def _group(found: clusters.Cluster, gang: clusters.Gang) -> stories.Chapter:
    sentences = [
        stories.ended(
            f"Gang {one.name} starts together with it: {table.state(one)}, "
            f"{wording.count(len(one.present), 'member', 'members')}, at least "
            f"{one.declared.min_member}"
        )
        for one in found.group(gang)
        if one.declared.id != gang.declared.id
    ]
    for absent in found.absent(gang):
        if absent in found.gangs:
            sentences.append(f"It waits for gang {absent}, which does not list the same gangs.")
        else:
            sentences.append(f"It waits for gang {absent}, which does not exist.")
    return stories.Chapter("its group", tuple(sentences))


# -- what happened, problems, what would help ------------------------------------------------


def _happened(facts: Facts, gang: clusters.Gang) -> stories.Chapter:
    sentences = []
    if gang.written is not None:
        for one in gang.written.status.conditions:
            about = stories.ended(": ".join(filter(None, (one.reason, one.message))))
            sentences.append(f"Condition {one.type} of its PodGroup is {one.status}: {about}")
    warned = [event for event in facts.events if event.get("type") == "Warning"]
    sentences += [f"Event {event.get('reason')}: {pod_facts.said(event)}" for event in warned[-3:]]
    failed = [one for one in gang.members if one.state == clusters.FAILED and gang.ended]
    sentences += [
        stories.ended(
            f"Member {one.key} has failed: {one.pod.status.reason or 'its containers failed'}"
        )
        for one in failed[:_MOST]
    ]
    return stories.Chapter("what happened", tuple(dict.fromkeys(sentences)))


def _problems(facts: Facts, gang: clusters.Gang) -> stories.Chapter:
    named = [
        f"{stories.ended(text[0].upper() + text[1:])} Remedy: {stories.ended(remedy)}"
        for text, remedy in table.of_gang(gang)
    ]
    return stories.Chapter("problems", (*named, *map(stories.ended, facts.cluster.notes)))


def _helps(facts: Facts, gang: clusters.Gang) -> Iterator[str]:
    if gang.missing and gang.present:
        more = wording.count(gang.missing, "more pod that names", "more pods that name")
        yield f"{more} the gang, or a lower minimum"
    if facts.trial is not None:
        yield from facts.trial.helps
