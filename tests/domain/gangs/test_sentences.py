"""What members of gangs are told they wait for."""

import msgspec
import pytest

from api import names
from domain.gangs import declaration, sentences, table

Source = declaration.Source


def gang(name="g", least=3, group=(), source=Source.ANNOTATIONS, **rest):
    found = declaration.unknown("ns", name, source)
    return msgspec.structs.replace(
        found, min_member=least, initialised=True, group=tuple(group) or found.group, **rest
    )


def filled(*gangs):
    found = table.Table()
    for number, one in enumerate(gangs):
        found = found.with_member(table.Member(one, f"u{number}", f"ns/p{number}"))
    return found


def said(found, name="ns/g"):
    return sentences.gathering(found.group_of(name), name)


unknown = declaration.unknown
NO_NUMBER = "is missing or no number; create the pods anew with it"
WAITS = {
    "members": (gang(), "WaitingForMembers", "waits for 2 of 3 members"),
    "a PodGroup": (
        gang(source=Source.POD_GROUP), "WaitingForPodGroup",
        "waits for the PodGroup ns/g of sigs.k8s.io, which does not exist or has no minimum",
    ),
    "a native PodGroup": (
        unknown("ns", "g", Source.NATIVE), "WaitingForPodGroup",
        "waits for the PodGroup ns/g of scheduling.k8s.io, which does not exist or has no minimum",
    ),
    "a minimum": (
        unknown("ns", "g", Source.ANNOTATIONS), "InvalidGang",
        f"the annotation {names.ANNOTATION_GANG_MIN_AVAILABLE} {NO_NUMBER}",
    ),
    "a minimum of labels": (
        unknown("ns", "g", Source.LABELS), "InvalidGang",
        f"the label {names.LABEL_POD_GROUP_MIN_AVAILABLE} {NO_NUMBER}",
    ),
    "a name": (
        unknown("ns", declaration.NO_NAME, Source.ANNOTATIONS), "InvalidGang",
        "the name of its gang is no name of an object; create the pods anew",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("of", "reason", "message"), WAITS.values(), ids=WAITS)
def test_a_gang_alone(of, reason, message):
    assert said(filled(of), of.id) == (reason, message)


def test_a_complete_gang_waits_for_nothing_of_its_own():
    assert said(filled(gang(least=1))) is None


LISTED = ("ns/a", "ns/b", "ns/c", "ns/d", "ns/e", "ns/g")


def test_a_gang_that_is_complete_waits_for_the_others_of_its_group():
    found = filled(
        gang(least=1, group=LISTED), gang("a", 2, LISTED), gang("b", 9), gang("e", 1, LISTED)
    )
    reason, message = said(found)
    assert reason == "WaitingForGangs"
    assert message.split("; ") == [
        "waits for its gang group: ns/a waits for 1 of 2 members",
        "ns/b is not placed yet, and does not list this gang",
        "ns/c has neither members nor a PodGroup, and 1 more gang",
    ]
    assert said(found, "ns/a") == ("WaitingForMembers", "waits for 1 of 2 members")


GATED = "with other scheduling gates"
NUMBERS = {
    "one has arrived": (
        sentences.planned(1, 4),
        "every member has a place; 1 of 4 has arrived to be bound",
    ),
    "several have arrived": (
        sentences.planned(2, 4),
        "every member has a place; 2 of 4 have arrived to be bound",
    ),
    "one victim": (
        sentences.preempting(1, 0),
        "every member has a place as soon as 1 pod of lower priority has left",
    ),
    "several victims": (
        sentences.preempting(3, 0),
        "every member has a place as soon as 3 pods of lower priority have left",
    ),
    "one gated member": (
        sentences.no_room("no node", member="", placed=1, wanted=2, blocked=1),
        f"there is room for 1 of 2 members; 1 member {GATED} fits nowhere: no node",
    ),
    "gated members": (
        sentences.no_room("no node", member="", placed=1, wanted=3, blocked=2),
        f"there is room for 1 of 3 members; 2 members {GATED} fit nowhere: no node",
    ),
    "a gang of one": (
        sentences.no_room("no node", member="ns/p0", placed=0, wanted=1),
        "there is room for 0 of 1 member; ns/p0 fits nowhere: no node",
    ),
}


@pytest.mark.parametrize(("told", "message"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_agree(told, message):
    assert told.message == message


@pytest.mark.parametrize(
    ("leaving", "also"),
    [(1, "1 pod that leaves anyway"), (2, "2 pods that leave anyway")],
)
def test_pods_that_leave_anyway(leaving, also):
    assert sentences.preempting(2, leaving).message.endswith(f"have left, and {also}")


def test_other_reasons():
    assert sentences.in_line(2, 5) == ("InLine", "is complete and has place 2 of 5 in line")
    assert sentences.planned(6, 8) == (
        "Planned",
        "every member has a place; 6 of 8 have arrived to be bound",
    )
    assert sentences.failed("ns/p0 was deleted", retry_seconds=4.2) == (
        "PlanFailed",
        "ns/p0 was deleted; planned again in 4s",
    )
    full = sentences.no_room(
        "8 nodes lack cpu", member="ns/p7", placed=7, wanted=8, waiting_seconds=90.0
    )
    assert full == (
        "InsufficientRoom",
        "there is room for 7 of 8 members, for 1m30s now; ns/p7 fits nowhere: 8 nodes lack cpu",
    )
    assert " now;" not in sentences.no_room("", member="p", placed=0, wanted=1).message


def test_messages_are_bounded():
    message = sentences.failed("x" * 5000, retry_seconds=1.0).message
    assert (len(message), message[-1]) == (sentences.LONGEST, "…")
