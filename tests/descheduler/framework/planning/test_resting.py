"""Pods rest after a move, and longer the more often their line has moved."""

import itertools

import pytest

from descheduler.framework.planning import history, resting
from tests.descheduler.builders import NOW, pod

MINUTE, HOUR = 60.0, 3600.0
HALF_AN_HOUR = 1800.0


def moved(minutes_ago, target="n", turn=1, workload="web"):
    return history.Moved(NOW - minutes_ago * MINUTE, "default", "m", workload, target, turn)


@pytest.mark.parametrize(
    ("moves", "created", "left", "turns"),
    [
        pytest.param([], 1, 0, 0, id="nothing has moved"),
        pytest.param([moved(5)], 4, 26, 1, id="successor"),
        pytest.param([moved(40)], 39, 0, 1, id="has rested"),
        pytest.param([moved(5)], 6, 0, 0, id="older than the move"),
        pytest.param([moved(25)], 5, 25, 1, id="created later than a successor would be"),
        pytest.param([moved(90)], 5, 0, 0, id="created long after the move"),
        pytest.param([moved(5, workload="other")], 4, 0, 0, id="of another workload"),
        pytest.param([moved(40, turn=2)], 39, 21, 2, id="the second time rests twice as long"),
        pytest.param([moved(90, turn=3)], 89, 31, 3, id="the third time four times as long"),
        pytest.param([moved(60, turn=9)], 59, 23 * 60 + 1, 9, id="a day at most"),
        pytest.param(
            [moved(5, "n"), moved(5, "other", turn=4)], 4, 26, 1, id="the move to its node counts"
        ),
        pytest.param(
            [moved(5, "other"), moved(5, "", turn=2)], 4, 56, 2, id="the worst where none was to it"
        ),
    ],
)
def test_how_long_a_pod_rests(moves, created, left, turns):
    one = pod(node="n", created=NOW - created * MINUTE)
    found = resting.Lines(moves, HALF_AN_HOUR).rest(one, NOW)
    assert found == (pytest.approx(left * MINUTE), turns)


def test_a_pod_without_a_controller_has_no_line():
    lines = resting.Lines([moved(5), moved(5, workload="")], HALF_AN_HOUR)
    assert lines.rest(pod(node="n", created=NOW, controller=""), NOW) == (0.0, 0)


def test_without_a_cool_down_nothing_rests():
    lines = resting.Lines([moved(5, turn=5)], 0.0)
    assert lines.rest(pod(node="n", created=NOW - 4 * MINUTE), NOW)[0] == 0.0


def follow(path, every, cool_down=HALF_AN_HOUR):
    """Return how often a line came back that has stood on nodes one after another."""
    moves, uid = {}, ""
    for number, (node, after) in enumerate(itertools.pairwise(path)):
        at = NOW + number * every
        one = pod(f"web-{number}", node, created=at - every)
        line = resting.Lines(moves.values(), cool_down).line_of(one)
        uid = f"uid-web-{number}"
        moves[uid] = history.moved(one, at, after, line)
    last = pod("last", path[-1], created=NOW + (len(path) - 2) * every)
    lines = resting.Lines(moves.values(), cool_down)
    assert lines.is_in_a_loop(last) is (lines.line_of(last).returns >= resting.MOST_RETURNS)
    return lines.line_of(last)


@pytest.mark.parametrize(
    ("path", "every", "returns"),
    [
        pytest.param("ab", HALF_AN_HOUR, 0, id="a move"),
        pytest.param("abcdefgh", HALF_AN_HOUR, 0, id="never back"),
        pytest.param("aba", HALF_AN_HOUR, 1, id="back once"),
        pytest.param("abab", HALF_AN_HOUR, 2, id="two nodes in turn"),
        pytest.param("aaa", HALF_AN_HOUR, 2, id="put back twice"),
        pytest.param("abcdabc", HALF_AN_HOUR, 3, id="a round trip over four nodes"),
        pytest.param("abcdefabcdef", HALF_AN_HOUR, 0, id="longer than is remembered"),
        pytest.param("ababab", 7 * HOUR, 0, id="with the load of the day"),
    ],
)
def test_how_often_a_line_came_back(path, every, returns):
    line = follow(path, every)
    assert (line.turns, line.returns) == (len(path) - 1, returns)
    assert len(line.left) <= 4


def test_long_cool_downs_do_not_hide_a_loop():
    assert follow("abab", 8 * HOUR, cool_down=HOUR).returns == 0
    assert follow("abab", 8 * HOUR, cool_down=8 * HOUR).returns == 2
