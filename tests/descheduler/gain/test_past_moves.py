"""A pod that has moved rests, and so does what replaces it; nodes do not exchange pods."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from descheduler.gain import past_moves
from tests.descheduler import builders

NOW, HOUR = builders.NOW, 3600.0
MOVE = past_moves.PastMove(
    NOW - 600, "default/web-1", "uid-1", "web", source="a", target="b", successor=""
)


def recent(*moves, now=NOW, seconds=HOUR):
    return past_moves.RecentMoves(moves, now, seconds)


def pod(name="web-9", uid="uid-9", created=NOW - 86_400, **fields):
    return builders.pod(name, "b", uid=uid, created=created, **fields)


@pytest.mark.parametrize(
    ("move", "asked", "rests"),
    [
        pytest.param(MOVE, pod("web-1", "uid-1"), True, id="the-pod-itself"),
        pytest.param(MOVE, pod("web-1", "uid-2"), True, id="a-pod-of-its-name"),
        pytest.param(MOVE, pod(created=NOW - 500), True, id="a-later-pod-of-its-controller"),
        pytest.param(MOVE, pod(), False, id="an-older-sibling"),
        pytest.param(
            MOVE, pod(created=NOW - 500, controller="ReplicaSet/other"), False, id="another-one"
        ),
        pytest.param(MOVE, pod(created=NOW - 500, controller=""), False, id="without-controller"),
        pytest.param(
            msgspec.structs.replace(MOVE, successor="uid-9"), pod(), True, id="its-successor"
        ),
        pytest.param(
            msgspec.structs.replace(MOVE, successor="uid-8"),
            pod(created=NOW - 500),
            False,
            id="a-later-pod-once-the-successor-is-known",
        ),
        pytest.param(
            msgspec.structs.replace(MOVE, at=NOW - HOUR), pod("web-1", "uid-1"), False, id="over"
        ),
    ],
)
def test_who_rests(move, asked, rests):
    assert (recent(move).of(asked) is not None) is rests


def test_nodes_that_pods_have_left_for_a_node_are_no_targets_from_there():
    found = recent(MOVE, msgspec.structs.replace(MOVE, source="c", uid="uid-2"))
    assert found.sources_of("b") == {"a", "c"}
    assert found.sources_of("a") == frozenset()
    found.add(past_moves.PastMove(NOW, "default/x", source="b", target="a"))
    assert found.sources_of("a") == {"b"}
    assert found.minutes_since(MOVE) == 10


def test_a_move_without_a_target_is_nowhere():
    found = recent(msgspec.structs.replace(MOVE, target=""))
    assert found.sources_of("") == frozenset()


def test_what_jobs_say_now_comes_before_what_is_remembered():
    newer = msgspec.structs.replace(MOVE, at=NOW - 60, successor="uid-9")
    assert past_moves.joined([MOVE], [newer], NOW, HOUR) == (newer,)
    assert past_moves.joined([newer], [MOVE], NOW, HOUR) == (newer,)
    same = msgspec.structs.replace(MOVE, successor="uid-9")
    assert past_moves.joined([MOVE], [same], NOW, HOUR) == (same,)


AGES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 9)), max_size=30)


@given(kept=AGES, seen=AGES)
def test_what_is_remembered_is_recent_and_each_pod_is_in_it_once(kept, seen):
    def moves(ages):
        return [past_moves.PastMove(NOW - age, f"d/p{n}", f"u{n}") for age, n in ages]

    found = past_moves.joined(moves(kept), moves(seen), NOW, HOUR)
    assert [one.at for one in found] == sorted(one.at for one in found)
    newest = {n: min(a for a, m in (*kept, *seen) if m == n) for _, n in (*kept, *seen)}
    assert {one.uid: one.at for one in found} == {
        f"u{n}": NOW - age for n, age in newest.items() if age < HOUR
    }


def test_the_oldest_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(past_moves, "MOST", 3)
    moves = [past_moves.PastMove(NOW - n, f"d/p{n}") for n in range(5)]
    assert [one.pod for one in past_moves.joined(moves, (), NOW, HOUR)] == ["d/p2", "d/p1", "d/p0"]
