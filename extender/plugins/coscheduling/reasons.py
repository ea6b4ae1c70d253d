"""Why a member of a gang may not be placed or bound now: few reasons, each with its figures."""

from typing import Final

from domain.gangs import sentences
from domain.gangs import table as tables
from extender.framework import verdicts, views

UNKNOWN: Final = verdicts.Status(sentences.UNKNOWN_MEMBER, everywhere=True)
NO_PLAN: Final = verdicts.Status(sentences.NO_PLAN, everywhere=True)
ELSEWHERE: Final = verdicts.Status(
    "gang is planned on another node for this member", everywhere=True
)
GATHERING: Final = "gang is not complete"
GIVEN_UP: Final = "plan of the gang was given up"
LATE: Final = "other members of the gang were not there to be bound in time"
PLANNED: Final = verdicts.Status("its gang is being placed")
_LONGEST: Final = 1024


def gathering(group: tables.Group, gang: str) -> verdicts.Status:
    """Return that gangs of the group do not exist, are not initialised or lack members."""
    said = sentences.gathering(group, gang)
    text = f"gang {gang} {said.message}" if said is not None else GATHERING
    return verdicts.Status(GATHERING, message=_unplanned(text), everywhere=True)


def without_plan(plan: views.GangPlan) -> verdicts.Status:
    """Return why there is no plan any more, until there is another one."""
    return verdicts.Status(GIVEN_UP, message=_unplanned(plan.refusal), everywhere=True)


def given_up(plan: views.GangPlan | None) -> verdicts.Status:
    """Return that the plan of the group was given up, with the sentence that says why."""
    if plan is None or not plan.refusal:
        return verdicts.Status(GIVEN_UP, everywhere=True)
    return verdicts.Status(GIVEN_UP, message=_short(plan.refusal), everywhere=True)


def late(group: tables.Group) -> verdicts.Status:
    """Return that the quorum was not there in time, with the gangs that lack members."""
    counts = [
        f"{entry.gang.id} has {entry.counts.assumed + entry.counts.bound} of "
        f"{entry.gang.min_member}"
        for entry in group.gangs
        if entry.counts.assumed + entry.counts.bound < entry.gang.min_member
    ]
    return verdicts.Status(LATE, message=_short(f"{LATE}: {', '.join(counts)}" if counts else LATE))


def _unplanned(text: str) -> str:
    """Return a reason as kube-scheduler repeats it in the status of the pod, where it is known."""
    return _short(f"{sentences.NO_PLAN}: {text}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
