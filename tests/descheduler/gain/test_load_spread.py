"""Gain is what loads come closer by, whatever else there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from descheduler.gain import load_spread


def spread(*loads, capacity=100, weights=(1,)):
    """Nodes whose loads are given in percent, by resource."""
    used = np.array([np.atleast_1d(one) for one in loads], dtype=np.int64) * capacity // 100
    used = used.reshape(len(loads), -1) if loads else np.zeros((0, len(weights)), dtype=np.int64)
    rows = {f"n{number}": number for number in range(len(loads))}
    return load_spread.LoadSpread(
        rows, used, np.full(used.shape, capacity), np.array(weights, dtype=np.float64)
    )


def row(*amounts):
    return np.array(amounts, dtype=np.int64)


def test_the_example_of_the_manual():
    found = spread(90, 30)
    assert found.before == found.after == 30
    ahead = found.outlook(row(10), "n0", np.array([1]))
    assert ahead.gain.tolist() == [10.0]
    assert ahead.spread.tolist() == [20.0]
    assert ahead.below.tolist() == [True]
    found.move(row(10), "n0", "n1")
    assert (found.before, found.after) == (30, 20)
    assert (found.load("n0").tolist(), found.load("n1").tolist()) == ([80], [40])


def test_gain_does_not_depend_on_how_many_nodes_there_are():
    few, many = spread(90, 30, 60), spread(90, 30, *[60] * 97)
    at = np.array([1])
    assert few.outlook(row(10), "n0", at).gain == pytest.approx(
        many.outlook(row(10), "n0", at).gain
    )


@pytest.mark.parametrize(
    ("target", "used", "gains", "below"),
    [
        pytest.param(30, 20, True, True, id="apart"),
        pytest.param(30, 40, True, False, id="it-takes-the-load-along"),
        pytest.param(80, 20, False, False, id="as-hot"),
        pytest.param(90, 10, False, False, id="equal"),
        pytest.param(0, 90, False, False, id="they-only-swap"),
    ],
)
def test_what_gains_and_what_stays_below(target, used, gains, below):
    ahead = spread(90, target).outlook(row(used), "n0", np.array([1]))
    assert (ahead.gain[0] > 0, bool(ahead.below[0])) == (gains, below)


def test_resources_count_by_weight_and_use_and_what_is_used_most_decides_who_is_below():
    found = spread((90, 20), (30, 60), weights=(3, 1))
    ahead = found.outlook(row(10, 2), "n0", np.array([1]))
    cpu, memory = 3 * 60, 1 * 40
    assert ahead.gain[0] == pytest.approx((cpu * 10 - memory * 1.68) / (cpu + memory))
    assert ahead.below[0]


def test_a_resource_that_is_hardly_used_keeps_no_hot_node_hot():
    found = spread((90, 4), (30, 6))
    ahead = found.outlook(row(10, 8), "n0", np.array([1]))
    assert ahead.gain[0] == pytest.approx(9.157, abs=0.01)


def test_usage_of_a_pod_that_exceeds_that_of_its_node_leaves_nothing():
    found = spread(5, 30)
    found.move(row(20), "n0", "n1")
    assert (found.load("n0").tolist(), found.load("n1").tolist()) == ([0], [50])


def test_nodes_that_are_not_measured_are_left_out():
    found = spread(90, 30)
    assert found.chosen(["n1", "gone", "n0"], {"n0"}).tolist() == [1]
    assert found.chosen(None, {"n1"}).tolist() == [0]
    assert not found.knows("gone")
    found.move(row(10), "gone", "n1")
    assert found.load("n1").tolist() == [30]
    found.move(row(10), "n0", "gone")
    assert found.load("n0").tolist() == [80]


def test_nothing_is_spread_without_nodes_or_weights():
    assert spread().after == 0
    assert spread(90, 30, weights=(0,)).after == 0
    assert spread(90, 30, capacity=0).after == 0


LOADS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=2, max_size=8)
MOVES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 60), st.integers(0, 60)),
    max_size=12,
)


@given(loads=LOADS, moves=MOVES)
def test_figures_kept_in_step_are_those_computed_anew(loads, moves):
    found = spread(*loads, weights=(2, 1))
    used = [2 * sum(one[0] for one in loads), sum(one[1] for one in loads)]
    shares = [one / max(sum(used), 1e-9) for one in used]
    for source, target, *amounts in moves:
        here, there = source % len(loads), target % len(loads)
        if here == there:
            continue
        ahead = found.outlook(row(*amounts), f"n{here}", np.array([there]))
        found.move(row(*amounts), f"n{here}", f"n{there}")
        assert found.after == pytest.approx(float(ahead.spread[0]), abs=1e-6)
    percents = np.array([found.load(f"n{number}") for number in range(len(loads))])
    assert found.after == pytest.approx(float(percents.std(axis=0) @ shares), abs=1e-5)
