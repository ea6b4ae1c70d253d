"""Totals over columns equal those of a slow implementation, node by node, however rows lie."""

import random
from collections.abc import Mapping
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from domain.scoring import explanation, totals
from tests.domain.scoring import clusters, naive, worlds

SEEDS = st.integers(0, 2**32)


def built(world: worlds.World, order: list[int]) -> clusters.Cluster:
    """Return the cluster with its nodes in another order."""
    found = clusters.Cluster(world.settings)
    for number in order:
        found.add_node(clusters.read_node(world.cluster["nodes"][number]))
    for workload in world.cluster["workloads"]:
        found.add_workload(workload)
    for placed, node in world.cluster["placed"]:
        found.place(clusters.read_pod(placed), node)
    return found


def by_node(found: clusters.Cluster, scores: totals.Scores) -> dict[str, dict[str, int]]:
    """Return the weighted scores of each plug-in and their sum by node."""
    table: dict[str, dict[str, int]] = {}
    for place, row in enumerate(scores.rows):
        figures = {one.plugin: int(one.weighted[place]) for one in scores.plugins}
        table[found.names[row]] = figures | {"total": int(scores.total[place])}
    return table


@hypothesis.given(SEEDS)
def test_totals_are_those_of_one_node_after_the_other(seed: int) -> None:
    world = worlds.world(seed)
    draw = random.Random(seed + 1)
    order = list(range(len(world.cluster["nodes"])))
    plain, slow = built(world, order), naive.Naive(world.settings, world.cluster)
    shuffled = built(world, draw.sample(order, len(order)))
    for pending in world.pending:
        names = draw.sample(plain.names, draw.randint(1, len(plain.names)))
        due = slow.totals(pending, names)
        pod = clusters.read_pod(pending)
        for found in (plain, shuffled):
            scores = found.scores(pod, names)
            assert by_node(found, scores) == due
            assert list(map(found.names.__getitem__, scores.rows)) == names
            found.place(pod, names[0])
        slow.pods.append((pending, names[0]))


def scores_of(*rows: tuple[int, int]) -> totals.Scores:
    """Return scores with these totals by row."""
    numbers = np.array([row for row, _ in rows], dtype=np.int64)
    sums = np.array([total for _, total in rows], dtype=np.int64)
    plugin = totals.PluginScores("NodeResourcesFit", 2, sums, sums // 2)
    return totals.Scores(numbers, (plugin,), sums)


CHOICES: Mapping[str, tuple[int, frozenset[int], int]] = {
    "the first of three equals": (0, frozenset(), 4),
    "another seed, another equal": (1, frozenset(), 7),
    "seeds wrap": (5, frozenset(), 9),
    "an avoided row loses": (0, frozenset({4}), 7),
    "all equals are avoided": (1, frozenset({4, 7, 9}), 7),
    "a worse row is never chosen": (0, frozenset({4, 7}), 9),
}


@pytest.mark.parametrize(("seed", "avoided", "chosen"), CHOICES.values(), ids=CHOICES)
def test_equals_are_drawn(seed: int, avoided: frozenset[int], chosen: int) -> None:
    scores = scores_of((4, 90), (2, 80), (7, 90), (9, 90))
    place = totals.choose(scores, seed, avoided)
    assert scores.rows[place] == chosen


def test_points_of_an_extender_count_ten_times_its_weight() -> None:
    points = np.array([3, 0], dtype=np.int64)
    found = totals.with_points(scores_of((0, 90), (1, 110)), "koord", points, weight=1)
    assert found.total.tolist() == [120, 110]
    assert found.plugins[-1].weighted.tolist() == [30, 0]


def test_a_choice_is_explained_beside_the_runner_up() -> None:
    names = ["a", "b", "c", "d", "e"]
    scores = scores_of((4, 90), (2, 80), (1, 90), (0, 10))
    found = explanation.explain(scores, names, chosen=2)
    assert (found.chosen.node, found.chosen.total) == ("b", 90)
    assert found.runner_up is not None
    assert (found.runner_up.node, found.runner_up.total) == ("e", 90)
    assert (found.ties, found.candidates) == (2, 4)
    part = found.chosen.contributions[0]
    assert part == explanation.Contribution("NodeResourcesFit", 90, 45, 2, 90)


def test_a_pod_that_fits_on_one_node_has_no_runner_up() -> None:
    found = explanation.explain(scores_of((3, 90)), ["", "", "", "d"], chosen=0)
    assert found.runner_up is None
    assert found.chosen.node == "d"


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=15)
def test_parts_of_an_explanation_add_up(seed: int) -> None:
    world = worlds.world(seed)
    found = built(world, list(range(len(world.cluster["nodes"]))))
    scores = found.scores(clusters.read_pod(world.pending[0]), found.names)
    told: Any = explanation.explain(scores, found.names, totals.choose(scores, seed))
    for one in filter(None, (told.chosen, told.runner_up)):
        assert sum(part.points for part in one.contributions) == one.total
        assert all(part.points == part.normalized * part.weight for part in one.contributions)
    assert told.chosen.total == max(scores.total)
