"""What a gang waits for, in one word and one sentence: the condition of all its members. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from api import names
from api.wire import durations
from domain import wording
from domain.gangs import declaration, table

LONGEST: Final = 1024
"""Characters of a message; what is longer ends in an ellipsis."""
NO_PLAN: Final = "gang has no plan yet"
"""How every reason begins for which a member is refused before its gang has a plan."""
UNKNOWN_MEMBER: Final = "pod is not known as a member of its gang yet"
_MOST_GANGS: Final = 3
"""Gangs that are named one by one."""


class Said(NamedTuple):
    """Reason and message of a condition."""

    reason: str
    message: str


def gathering(group: table.Group, gang: str) -> Said | None:
    """Return what a gang waits for before its group is complete, None where nothing is missing.

    `gang` is the id of the gang whose members read it: what that lacks comes first.
    """
    own = next((entry for entry in group.gangs if entry.gang.id == gang), None)
    if own is not None and gang in group.missing:
        return _missing(own)
    if not group.missing:
        return None
    known = {entry.gang.id: entry for entry in group.gangs}
    named = list(_others(group, known))
    rest = len(group.missing) - len(named)
    more = f", and {wording.count(rest, 'more gang', 'more gangs')}" if rest else ""
    return _said("WaitingForGangs", f"waits for its gang group: {'; '.join(named)}{more}")


def is_about_no_plan(message: str) -> bool:
    """Whether a message of kube-scheduler repeats that a member was refused without a plan.

    It says nothing about the plan that was made since: the message comes later than the refusal.
    """
    return NO_PLAN in message or UNKNOWN_MEMBER in message


def in_line(place: int, length: int) -> Said:
    """Return that a complete gang waits for its turn to be planned; the first has place 1."""
    return _said("InLine", f"is complete and has place {place} of {length} in line")


def being_bound() -> Said:
    """Return that a gang without gates has a plan, which is recorded with its Bindings alone."""
    text = "is planned and being bound; its pods have no gates, so each shows its place once bound"
    return _said("Planned", text)


def no_room(
    sentence: str,
    *,
    member: str,
    placed: int,
    wanted: int,
    waiting_seconds: float = 0.0,
    blocked: int = 0,
) -> Said:
    """Return that there is no room for the whole gang at present.

    `placed` of `wanted` members have a place in the best plan, and `sentence` says why `member`
    (namespace/name) has none; where it is empty, that holds for `blocked` members.
    """
    since = f", for {_span(waiting_seconds)} now" if waiting_seconds >= 1 else ""
    gates = "with other scheduling gates"
    gated = wording.count(blocked, f"member {gates} fits", f"members {gates} fit")
    who = f"{member} fits" if member else gated
    return _said(
        "InsufficientRoom",
        f"there is room for {placed} of {wording.count(wanted, 'member', 'members')}{since}; "
        f"{who} nowhere: {sentence}",
    )


def failed(sentence: str, *, retry_seconds: float) -> Said:
    """Return that a plan was given up, why, and after how many seconds the gang is planned anew."""
    return _said("PlanFailed", f"{sentence}; planned again in {_span(retry_seconds)}")


def planned(arrived: int, wanted: int) -> Said:
    """Return that every member has a place and which of them kube-scheduler has brought to it."""
    have = f"{arrived} of {wanted} {wording.form(arrived, 'has', 'have')}"
    return _said("Planned", f"every member has a place; {have} arrived to be bound")


def preempting(victims: int, leaving: int) -> Said:
    """Return that pods of lower priority leave for a gang, with numbers."""
    anyway = wording.count(leaving, "pod that leaves", "pods that leave")
    also = f", and {anyway} anyway" if leaving else ""
    have = wording.form(victims, "has", "have")
    return _said(
        "Preempting",
        f"every member has a place as soon as {wording.count(victims, 'pod', 'pods')} of lower "
        f"priority {have} left{also}",
    )


def _others(group: table.Group, known: dict[str, table.Entry]) -> Iterator[str]:
    for gang in group.missing[:_MOST_GANGS]:
        if gang in known:
            yield f"{gang} {_missing(known[gang]).message}"
        elif gang in group.elsewhere:
            yield f"{gang} is not placed yet, and does not list this gang"
        else:
            yield f"{gang} has neither members nor a PodGroup"


def _missing(entry: table.Entry) -> Said:
    gang = entry.gang
    if gang.initialised:
        lacking = gang.min_member - entry.counts.children
        members = wording.count(gang.min_member, "member", "members")
        return _said("WaitingForMembers", f"waits for {lacking} of {members}")
    if gang.name == declaration.NO_NAME:
        return _said(
            "InvalidGang", "the name of its gang is no name of an object; create the pods anew"
        )
    if gang.source.needs_object:
        kind = "scheduling.k8s.io" if gang.source is declaration.Source.NATIVE else "sigs.k8s.io"
        return _said(
            "WaitingForPodGroup",
            f"waits for the PodGroup {gang.namespace}/{gang.name} of {kind}, which does not exist "
            "or has no minimum",
        )
    key = (
        f"label {names.LABEL_POD_GROUP_MIN_AVAILABLE}"
        if gang.source is declaration.Source.LABELS
        else f"annotation {names.ANNOTATION_GANG_MIN_AVAILABLE}"
    )
    return _said("InvalidGang", f"the {key} is missing or no number; create the pods anew with it")


def _span(seconds: float) -> str:
    return durations.text(max(1.0, float(round(seconds))))


def _said(reason: str, message: str) -> Said:
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - 1]}…"
    return Said(reason, message)
