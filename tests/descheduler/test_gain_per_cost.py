"""Where few pods may move, those go first that help most for what their eviction costs."""

import pytest

from tests.descheduler import builders, cluster_of_rounds, test_loops


def hot(**limits):
    """A hot node with pods that use as much, of which the newest takes minutes to start."""
    configured = test_loops.configured([test_loops.HOT], **limits)
    nodes = [builders.node(name, cpu="10") for name in ("a", "b")]
    alike = {"cpu": "2", "memory": "1Mi", "controller": "ReplicaSet/web"}
    day = 86_400.0
    slow = {"created": builders.NOW - 0.5 * day, "restarts_cost_seconds": 240.0}
    pods = [builders.pod("slow", "a", **alike, **slow)]
    pods += [
        builders.pod(f"quick{at}", "a", **alike, created=builders.NOW - at * day)
        for at in (1, 2, 3)
    ]
    return cluster_of_rounds.Cluster(configured, nodes, pods)


@pytest.mark.parametrize(
    ("limits", "first"),
    [
        pytest.param({}, "slow", id="without limits the newest"),
        pytest.param({"maxNoOfPodsToEvictTotal": 1}, "quick1", id="in a round"),
        pytest.param({"maxNoOfPodsToEvictPerHour": {"total": 5}}, "quick1", id="in an hour"),
    ],
)
def test_which_of_equal_pods_leaves(limits, first):
    cluster = hot(**limits)
    cluster.rounds(3)
    assert [one.pod for one in cluster.moves] == [first]
