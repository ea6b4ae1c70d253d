"""Who keeps what was allocated twice: the same answer for every extender."""

import itertools

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from api.koordinator.metadata import qos
from domain.reservations import model
from extender.overlap import detector
from extender.state import claims, records
from extender.state.reservations import reservation_claims
from tests.extender.clusters import slots

CODECS = (slots.Slots(),)
WANTED = records.PodRequirements((), (), qos.Band.PROD)


def claim(name, slot, at=5.0, *, kind=claims.ClaimKind.BOUND, consumes="", ident=""):
    granted = {slots.NAME: slots.Slot(slot)} if slot is not None else {}
    pod = records.PodRecord(f"ns/{name}", f"uid-{name}", "n1", WANTED, at, allocations=granted)
    return claims.Claim(ident or pod.uid, kind, "n1", pod, granted, consumes=consumes)


def found(*held):
    return [(one.kept.pod.name, one.later.pod.name) for one in detector.overlaps(held, CODECS)]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([claim("a", 0), claim("b", 1)], [], id="each its own"),
        pytest.param([claim("a", 0), claim("b", None)], [], id="one holds nothing"),
        pytest.param([claim("b", 0, 6.0), claim("a", 0, 5.0)], [("a", "b")], id="the earlier"),
        pytest.param([claim("b", 0), claim("a", 0)], [("a", "b")], id="of one second, by uid"),
        pytest.param(
            [claim("a", 0, -1.0), claim("b", 0, 9.0)], [("b", "a")], id="who says when it was"
        ),
        pytest.param(
            [claim("a", 0, 1.0), claim("b", 0, 2.0), claim("c", 0, 3.0)],
            [("a", "b"), ("a", "c")],
            id="one stays",
        ),
        pytest.param(
            [claim("a", 0), claim("b", 0, kind=claims.ClaimKind.ASSUMED)],
            [],
            id="what the watch has not shown is left to its bind",
        ),
        pytest.param(
            [claim("a", 0), claim("b", 0, kind=claims.ClaimKind.NOMINATED)], [], id="nominated"
        ),
        pytest.param([claim("a", 0), claim("b", 0, consumes="uid-a")], [], id="out of the other"),
    ],
)
def test_who_was_bound_first_keeps_it(held, expected):
    assert found(*held) == expected
    assert found(*reversed(held)) == expected


class Ranges:
    """Holds from one number to another, so that overlapping is not transitive."""

    name = slots.NAME
    annotations = ()

    def conflicts(self, one, other):
        return one.number // 2 <= other.number // 2 + 1 and other.number // 2 <= one.number // 2 + 1


def test_who_overlaps_only_with_a_pod_that_leaves_may_stay():
    held = [claim("a", 0, 1.0), claim("b", 2, 2.0), claim("c", 4, 3.0)]
    (overlap,) = detector.overlaps(held, (Ranges(),))
    assert (overlap.kept.pod.name, overlap.later.pod.name) == ("a", "b")


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3), st.sampled_from(list(claims.ClaimKind))),
        max_size=9,
    ),
    st.randoms(use_true_random=False),
    st.sampled_from((slots.Slots(), Ranges())),
)
def test_every_order_of_looking_gives_the_same_and_nothing_is_held_twice(drawn, chance, codec):
    held = [
        claim(f"p{number}", slot, float(at), kind=kind)
        for number, (slot, at, kind) in enumerate(drawn)
    ]
    shuffled = list(held)
    chance.shuffle(shuffled)
    answer = detector.overlaps(held, (codec,))
    assert detector.overlaps(shuffled, (codec,)) == answer
    leaving = {one.later.id for one in answer}
    stays = [one for one in detector.bound(held) if one.id not in leaving]
    for one, other in itertools.combinations(stays, 2):
        assert not detector.conflict(one, other, (codec,))
    for one in answer:
        assert one.kept.id not in leaving
        assert detector.rank(one.kept) < detector.rank(one.later)
        assert detector.conflict(one.kept, one.later, (codec,)) == one.plugin == slots.NAME


def reservation(*, once=False, restricted=False, cpu=4000):
    """The claim of a Reservation."""
    policy = model.Policy.RESTRICTED if restricted else model.Policy.ALIGNED
    offered = model.Reservation(
        "r", "uid-r", "n1", (), policy, {"cpu": cpu}, frozenset({"cpu"}), allocate_once=once
    )
    granted = {reservation_claims.NAME: offered}
    pod = records.PodRecord("default/r", "uid-r", "n1", WANTED, allocations=granted)
    kind = claims.ClaimKind.RESERVATION
    return claims.Claim("reservation/uid-r", kind, "n1", pod, granted)


def user(name, at, cpu=2000):
    """A pod that uses it."""
    one = claim(name, int(at), at, consumes="reservation/uid-r")
    wanted = records.PodRequirements((("cpu", cpu),), (), qos.Band.PROD)
    return msgspec.structs.replace(one, pod=msgspec.structs.replace(one.pod, requirements=wanted))


USED = [
    pytest.param({"once": True}, [2000], [], id="once, by one"),
    pytest.param({"once": True}, [2000, 1000], [("a", "b")], id="once, by two"),
    pytest.param({"restricted": True}, [2000, 2000], [], id="as much as it holds"),
    pytest.param({"restricted": True}, [2000, 3000], [("a", "b")], id="more than it holds"),
    pytest.param(
        {"restricted": True}, [3000, 3000, 1000], [("a", "b")], id="one that fits beside stays"
    ),
    pytest.param({"restricted": True}, [5000], [], id="alone: nobody else is meant by it"),
    pytest.param({}, [3000, 3000], [], id="aligned takes from the node"),
]


@pytest.mark.parametrize(("how", "cpus", "expected"), USED)
def test_who_uses_a_reservation_beyond_what_it_gives_has_to_leave(how, cpus, expected):
    users = [
        user(name, at, cpu) for name, at, cpu in zip("abc", (1.0, 2.0, 3.0), cpus, strict=False)
    ]
    assert found(reservation(**how), *users) == expected
    assert found(*reversed(users), reservation(**how)) == expected
    assert not found(*users)


def keeping(slot, at, *, evidence=claims.SHOWN, over=()):
    """A Reservation that got its node, and something that is its own, at a moment."""
    one = reservation()
    offered = msgspec.structs.replace(
        one.allocations[reservation_claims.NAME], placed_at=at, over=over
    )
    granted = {reservation_claims.NAME: offered, slots.NAME: slots.Slot(slot)}
    return msgspec.structs.replace(one, allocations=granted, evidence=evidence)


def unreadable(name, slot, at):
    """A pod of which it cannot be read which Reservation it uses."""
    one = claim(name, slot, at)
    pod = msgspec.structs.replace(one.pod, unreadable=(reservation_claims.NAME,))
    return msgspec.structs.replace(one, pod=pod)


MINE = {"consumes": "reservation/uid-r"}


@pytest.mark.parametrize(
    ("reserved", "pods", "expected"),
    [
        pytest.param(keeping(0, 5.0), [claim("a", 0, 6.0)], [("r", "a")], id="bound later"),
        pytest.param(keeping(0, 5.0), [claim("a", 1, 6.0)], [], id="something else"),
        pytest.param(keeping(0, 5.0), [claim("a", 0, 6.0, **MINE)], [], id="its owner"),
        pytest.param(
            keeping(0, 5.0),
            [claim("a", 0, 6.0, **MINE), claim("b", 0, 7.0)],
            [("r", "b")],
            id="beside its owner",
        ),
        pytest.param(keeping(0, 5.0), [claim("a", 0, 4.0)], [], id="bound earlier stays"),
        pytest.param(
            keeping(0, 5.0),
            [claim("a", 0, 4.0), claim("b", 0, 6.0, **MINE)],
            [("a", "b")],
            id="bound earlier: its owner has to leave",
        ),
        pytest.param(keeping(0, -1.0), [claim("a", 0, 6.0)], [], id="does not say since when"),
        pytest.param(keeping(0, 5.0), [unreadable("a", 0, 6.0)], [], id="perhaps its owner"),
        pytest.param(
            keeping(0, 5.0, over={"uid-a"}), [claim("a", 0, 6.0)], [], id="it was placed over it"
        ),
        pytest.param(
            keeping(0, 5.0, evidence=""), [claim("a", 0, 6.0)], [], id="the watch has not shown it"
        ),
    ],
)
def test_who_does_not_use_a_reservation_leaves_what_it_keeps(reserved, pods, expected):
    assert found(reserved, *pods) == expected
    assert found(*reversed(pods), reserved) == expected
