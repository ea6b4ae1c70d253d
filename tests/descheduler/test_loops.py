"""Loops that users report of other deschedulers come to an end, and the round says why."""

import itertools

import pytest
import yaml

from api.kubernetes import core
from descheduler.framework.filtering import safeguards
from tests.descheduler import builders, cluster_of_rounds

HOUR = 60
POOL = "pool __default_node_pool__"
"""Rounds, one a minute."""


def configured(balance=(), deschedule=(), **fields):
    """A file with one profile; plug-ins are pairs of a name and its arguments."""
    named = [*balance, *deschedule]
    return yaml.safe_dump(
        {
            "coolDown": "30m",
            **fields,
            "profiles": [
                {
                    "name": "loops",
                    "plugins": {
                        "balance": {"enabled": [{"name": name} for name, _ in balance]},
                        "deschedule": {"enabled": [{"name": name} for name, _ in deschedule]},
                    },
                    "pluginConfig": [
                        {
                            "name": "MigrationController",
                            "args": {"defaultJobMode": "EvictDirectly"},
                        },
                        *({"name": name, "args": args} for name, args in named),
                    ],
                }
            ],
        }
    )


def nodes(*names, **fields):
    return [builders.node(name, cpu="10", **fields) for name in names]


def pods(name, on, cpu, count=1, **fields):
    fields = {"controller": "ReplicaSet/web", "memory": "1Mi", **fields}
    return [builders.pod(f"{name}{at}", on, cpu=cpu, **fields) for at in range(count)]


HOT = (
    "LowNodeLoad",
    {
        "lowThresholds": {"cpu": 40},
        "highThresholds": {"cpu": 70},
        "anomalyCondition": {"consecutiveAbnormalities": 1},
    },
)
LOW = ("LowNodeUtilization", {"thresholds": {"cpu": 40}, "targetThresholds": {"cpu": 60}})
HIGH = ("HighNodeUtilization", {"thresholds": {"cpu": 40}})
EMPTY = ("ScaleDownBinPack", {"strategy": "EmptyNodes"})
DUPLICATES = ("RemoveDuplicates", {})
TAINT = core.Taint("flaky", effect="PreferNoSchedule")
TAINTS = ("RemovePodsViolatingNodeTaints", {"includePreferNoSchedule": True})
SUCCESSOR = 5
"""Minutes of one round, by which a gap may seem shorter."""


def gaps(cluster):
    """Return the minutes between moves, by line of pods."""
    minutes = {}
    for one in cluster.moves:
        minutes.setdefault(one.pod, []).append(one.minute)
    return {
        line: [later - before for before, later in itertools.pairwise(found)]
        for line, found in minutes.items()
    }


def double(found):
    """Whether every gap is at least twice the one before, and the first at least coolDown."""
    return all(
        gap >= 30 * 2**place - SUCCESSOR
        for gaps in found.values()
        for place, gap in enumerate(gaps)
    )


def test_a_pod_that_overloads_every_node_is_not_passed_around():
    cluster = cluster_of_rounds.Cluster(
        configured([HOT]),
        nodes("a", "b", "c"),
        [*pods("big", "a", "2"), *pods("p", "b", "1", 3), *pods("q", "c", "1", 3)],
        uses={"big0": "9"},
    )
    cluster.rounds(2 * HOUR)
    assert cluster.moves == []
    stays = "no node of low load has room for them, 1 pod of overloaded nodes stays"
    assert cluster.notes() == [f"{POOL}: {stays}"]


def test_a_hot_node_cools_down_once():
    cluster = cluster_of_rounds.Cluster(
        configured([HOT]), nodes("a", "b", "c"), pods("p", "a", "1", 9)
    )
    cluster.rounds(3 * HOUR)
    assert len(cluster.moves) == 2
    assert cluster.requested() == {"a": 7000, "b": 1000, "c": 1000}


def stops(cluster, *, most):
    """See that every line moves so often at most, and not at all from the fourth hour on."""
    assert cluster.moves
    assert all(len(gaps) < most for gaps in gaps(cluster).values())
    assert max(one.minute for one in cluster.moves) < 4 * HOUR
    assert safeguards.LOOP in cluster.kept()
    assert "that moved in a loop" in cluster.plans[-1].summary


def days(cluster):
    """Let three days pass, twice as many as moves of lines without loops are remembered."""
    cluster.rounds(3 * 24 * HOUR // SUCCESSOR, 60.0 * SUCCESSOR)


def test_pods_that_the_scheduler_puts_back_are_evicted_twice():
    """A soft taint that a scheduler does not mind, and no place that is reserved."""
    cluster = cluster_of_rounds.Cluster(
        configured(deschedule=[TAINTS]),
        [*nodes("a", taints=(TAINT,)), *nodes("b", "c")],
        pods("p", "a", "1", 4),
        puts=cluster_of_rounds.back_where_it_was,
    )
    days(cluster)
    found = gaps(cluster)
    assert double(found)
    assert {len(one) for one in found.values()} == {1}
    stops(cluster, most=2)
    assert cluster.kept() == {safeguards.LOOP}


def test_pods_that_land_on_their_targets_stay_there():
    cluster = cluster_of_rounds.Cluster(
        configured(deschedule=[TAINTS]),
        [*nodes("a", taints=(TAINT,)), *nodes("b", "c")],
        pods("p", "a", "1", 4),
    )
    cluster.rounds(2 * HOUR)
    assert len(cluster.moves) == 4
    assert cluster.plans[-1].moves == ()
    assert cluster.requested() == {"a": 0, "b": 2000, "c": 2000}


def test_two_plug_ins_that_undo_each_other_are_warned_of_and_come_to_an_end():
    """HighNodeUtilization empties the node that LowNodeUtilization fills."""
    cluster = cluster_of_rounds.Cluster(
        configured([LOW, HIGH]),
        nodes("a", "b", "c", "d"),
        [
            *pods("p", "a", "1", 9),
            *pods("q", "b", "1", 2, controller="ReplicaSet/q"),
            *pods("r", "c", "1", 5, controller="ReplicaSet/r"),
        ],
    )
    (warning,) = cluster.warnings
    assert "HighNodeUtilization empties nodes that LowNodeUtilization fills" in warning
    days(cluster)
    assert double(gaps(cluster))
    stops(cluster, most=3)
    assert cluster.kept() == {safeguards.LOOP}


@pytest.mark.parametrize(
    "puts",
    [
        pytest.param(cluster_of_rounds.on_its_target, id="reserved"),
        pytest.param(cluster_of_rounds.where_most_is_free, id="evicted directly"),
    ],
)
def test_an_emptied_node_that_is_cordoned_stays_empty(puts):
    cluster = cluster_of_rounds.Cluster(
        configured([(EMPTY[0], {**EMPTY[1], "autoCordon": True})]),
        nodes("a", "b", "c"),
        [
            *pods("p", "a", "1", 4),
            *pods("q", "b", "1", 2, controller="ReplicaSet/q"),
            *pods("r", "c", "1", 3, controller="ReplicaSet/r"),
        ],
        puts=puts,
    )
    cluster.rounds(2 * HOUR)
    assert sorted(cluster.requested().values()) == [0, 0, 9000]
    assert max(one.minute for one in cluster.moves) < 5
    assert cluster.plans[-1].moves == ()


def test_an_emptied_node_that_the_scheduler_fills_again_is_left_alone():
    """`LeastAllocated` prefers the node that was emptied, and no place is reserved."""
    cluster = cluster_of_rounds.Cluster(
        configured([EMPTY]),
        nodes("a", "b", "c"),
        [
            *pods("p", "a", "1", 3),
            *pods("q", "b", "1", 2, controller="ReplicaSet/q"),
            *pods("r", "c", "1", 3, controller="ReplicaSet/r"),
        ],
        puts=cluster_of_rounds.where_most_is_free,
    )
    days(cluster)
    assert double(gaps(cluster))
    stops(cluster, most=3)


def test_nothing_is_moved_while_a_revision_is_rolled_out():
    cluster = cluster_of_rounds.Cluster(
        configured([DUPLICATES]), nodes("a", "b", "c"), pods("p", "a", "1", 6)
    )
    cluster.rolling_out = {"web"}
    cluster.rounds(HOUR)
    assert cluster.moves == []
    assert cluster.kept() == {safeguards.ROLLING_OUT}
    cluster.rolling_out = set()
    cluster.rounds(HOUR)
    assert cluster.requested() == {"a": 2000, "b": 2000, "c": 2000}
    assert len(cluster.moves) == 4
    assert cluster.plans[-1].moves == ()


def test_thresholds_that_all_nodes_exceed_move_nothing():
    cluster = cluster_of_rounds.Cluster(
        configured([HOT, LOW]),
        nodes("a", "b"),
        [*pods("p", "a", "1", 9), *pods("q", "b", "1", 8)],
    )
    cluster.rounds(HOUR)
    assert cluster.moves == []
    why = "2 of 2 nodes exceed thresholds, and no node is below all of them"
    assert cluster.notes() == [
        f"{POOL}: {why}: no pod is moved",
        "0 of 2 nodes are below thresholds, more than 0 have to be",
    ]
