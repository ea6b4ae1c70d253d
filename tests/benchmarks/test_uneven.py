"""The pods of the placement benchmark fit its nodes, and evenness is counted as a reader would."""

import pytest

from benchmarks.plane import feed
from benchmarks.scheduling import placement, uneven


def _placed(number, app="mixed-1", **requests):
    container = {"resources": {"requests": requests}}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"nodeName": feed.node_name(number), "containers": [container]},
    }


REPLICA = {"app": "application-1", "cpu": "1"}


def test_deviation_and_hottest_node_are_shares_of_what_each_node_offers():
    # Nodes of 8 cores with 16 GiB and of 16 cores with 64 GiB.
    placed = [
        _placed(0, cpu="2", memory="4Gi"),
        _placed(0, cpu="2000m", memory="4096Mi"),
        _placed(1, **REPLICA),
        _placed(1, cpu="3", memory="0Mi"),
    ]
    found = uneven.quality(placed, 2)
    assert (found.cpu_hottest, found.memory_hottest) == (50, 50)
    assert found.cpu_deviation == pytest.approx(12.5)
    assert found.memory_deviation == pytest.approx(25)


@pytest.mark.parametrize(
    ("nodes", "on_node", "between_zones"),
    [
        pytest.param([0, 3, 5], 1, 0, id="one in each zone"),
        pytest.param([0, 0, 3, 5], 2, 1, id="two on a node"),
        pytest.param([0, 1, 2], 1, 3, id="all in one zone"),
    ],
)
def test_replicas_are_counted_by_node_and_zone(nodes, on_node, between_zones):
    found = uneven.quality([_placed(number, **REPLICA) for number in nodes], 6)
    assert (found.replicas_on_node, found.replicas_between_zones) == (on_node, between_zones)


def test_batch_pods_request_no_cpu_of_the_node():
    batch = {"kubernetes.io/batch-cpu": "8000", "kubernetes.io/batch-memory": "8Gi"}
    found = uneven.quality([_placed(0, **batch), _placed(0, **REPLICA)], 1)
    assert (found.cpu_hottest, found.memory_hottest) == (12.5, 0)


def test_every_round_has_pods_of_its_own_and_the_same_for_each_variant():
    assert list(uneven.pods(50, 1)) == list(uneven.pods(50, 1))
    assert list(uneven.pods(50, 1)) != list(uneven.pods(50, 2))


def test_a_fourth_of_the_nodes_is_half_full():
    residents = list(uneven.residents(8))
    assert [pod["spec"]["nodeName"] for pod in residents] == [feed.node_name(0), feed.node_name(4)]
    assert uneven.quality([*residents, _placed(1, **REPLICA)], 8).cpu_hottest == 50


def test_counts_that_may_be_none_are_compared_by_difference():
    found = placement.compared("placement.replicas.zones", "replicas", "pods", [1, 0], [0, 0])
    assert (found.figure, found.value, found.max) == ("placement.replicas.zones.more", 0.5, 1)
    assert placement.compared("placement.cpu.hottest", "cpu", "%", [80], [100]).ratio == 0.8
