"""A profile drains nodes within the limits of every move; a node that does not fit stays whole."""

import pytest
import yaml

from tests.descheduler import builders, cluster_of_rounds

ORDER = [
    {"name": "old", "nodeSelector": {"matchLabels": {"pool": "old"}}},
    {"name": "new", "nodeSelector": {"matchLabels": {"pool": "new"}}},
]
ALL_AT_ONCE = {
    "maxMigratingPerNode": 0,
    "maxMigratingPerWorkload": "100%",
    "maxUnavailablePerWorkload": "100%",
    "skipCheckExpectedReplicas": True,
}


def configured(migration=None, **fields):
    """Drain the old pool into the new one."""
    drain = {"mode": "DrainNode", "autoCordon": True, "evictionOrder": ORDER}
    evictor = {"defaultJobMode": "EvictDirectly", **(migration or {})}
    return yaml.safe_dump(
        {
            **fields,
            "profiles": [
                {
                    "plugins": {"balance": {"enabled": [{"name": "CustomPriority"}]}},
                    "pluginConfig": [
                        {"name": "MigrationController", "args": evictor},
                        {"name": "CustomPriority", "args": drain},
                    ],
                }
            ],
        }
    )


def cluster(configuration, room="10", **fields):
    """Five pods on an old node, and two new nodes."""
    return cluster_of_rounds.Cluster(
        configuration,
        [
            builders.node("old", cpu="10", labels={"pool": "old"}),
            builders.node("new-1", cpu=room, labels={"pool": "new"}),
            builders.node("new-2", cpu=room, labels={"pool": "new"}),
        ],
        [builders.pod(f"p{at}", "old", cpu="1", **fields) for at in range(5)],
    )


@pytest.mark.parametrize(
    ("fields", "by_round"),
    [
        pytest.param({}, [5, 5], id="no limit"),
        pytest.param({"maxNoOfPodsToEvictPerNode": 2}, [2, 4, 5], id="per node"),
        pytest.param({"maxNoOfPodsToEvictTotal": 3}, [3, 5], id="in all"),
        pytest.param({"maxNoOfPodsToEvictPerHour": {"node": 4}}, [4, 4], id="per hour"),
        pytest.param({"dryRun": True}, [0, 0], id="dry run"),
    ],
)
def test_a_node_is_drained_as_far_as_limits_allow_in_a_round(fields, by_round):
    draining = cluster(configured(ALL_AT_ONCE, **fields))
    moved = []
    for _ in by_round:
        draining.round()
        moved.append(len(draining.moves))
    assert moved == by_round
    assert draining.nodes["old"].is_schedulable is (not moved[0])


def test_pods_that_are_being_moved_count_as_the_migration_controller_says():
    """By default two pods of a node, and of a workload of five."""
    draining = cluster(configured())
    draining.round()
    assert len(draining.moves) == 2


def test_a_node_whose_pods_do_not_all_fit_keeps_them_and_is_not_cordoned():
    draining = cluster(configured(), room="2")
    draining.round()
    assert draining.moves == []
    assert draining.nodes["old"].is_schedulable


def test_a_node_with_a_pod_that_must_stay_is_left_alone():
    draining = cluster(configured())
    draining.pods["local"] = builders.pod("local", "old", has_local_storage=True)
    draining.round()
    assert draining.moves == []
    assert draining.nodes["old"].is_schedulable
    (why,) = draining.kept()
    assert "emptyDir" in why


@pytest.mark.parametrize(
    ("allowed", "by_round"),
    [
        pytest.param(2, [2, 4, 5], id="two at a time"),
        pytest.param(1, [1, 2, 3, 4, 5], id="one at a time"),
        pytest.param(0, [0, 0], id="none at all"),
    ],
)
def test_disruption_budgets_delay_a_drain(allowed, by_round):
    draining = cluster(configured(ALL_AT_ONCE))
    draining.budgets = [builders.budget("web", allowed=allowed)]
    moved = []
    for _ in by_round:
        draining.round()
        moved.append(len(draining.moves))
    assert moved == by_round
    assert draining.nodes["old"].is_schedulable is (not allowed)
