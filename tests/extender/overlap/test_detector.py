"""Who keeps what was allocated twice: the same answer for every extender."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from api.koordinator.metadata import qos
from extender.overlap import detector
from extender.state import claims, records
from tests.extender import slots

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
