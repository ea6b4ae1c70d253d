"""NodeResourcesFit and NodeResourcesBalancedAllocation: worked figures, one by one."""

import numpy as np
import pytest

from domain.scoring import columns, node_resources, pod, profile, releases, totals

GIB = 1024**3
ROWS = np.array([0], dtype=np.int64)
STRATEGY = node_resources.Strategy


def node(
    allocatable: dict[str, int], requested: dict[str, int], nonzero: tuple[int, int]
) -> columns.NodeColumns:
    """Return columns with one node."""
    names = sorted(allocatable.keys() | requested.keys())
    return columns.NodeColumns(
        resources={name: place for place, name in enumerate(names)},
        allocatable=np.array([[allocatable.get(name, 0)] for name in names], dtype=np.int64),
        requested=np.array([[requested.get(name, 0)] for name in names], dtype=np.int64),
        nonzero=np.array([[nonzero[0]], [nonzero[1]]], dtype=np.int64),
    )


def asking(requests: dict[str, int], nonzero: dict[str, int] | None = None) -> pod.PodScoring:
    """Return a pod with these requests."""
    return pod.PodScoring("default", {}, requests, requests if nonzero is None else nonzero)


FIT = {
    "least: (75 + 50) / 2": (node_resources.Fit(), {"cpu": 500, "memory": GIB}, 62),
    "least, more cpu than there is": (node_resources.Fit(), {"cpu": 9000, "memory": GIB}, 25),
    "least, cpu counts three times": (
        node_resources.Fit(weights=(("cpu", 3), ("memory", 1))),
        {"cpu": 500, "memory": GIB},
        68,
    ),
    "most: (25 + 50) / 2": (
        node_resources.Fit(STRATEGY.MOST_ALLOCATED),
        {"cpu": 500, "memory": GIB},
        37,
    ),
    "most, more cpu than there is": (
        node_resources.Fit(STRATEGY.MOST_ALLOCATED),
        {"cpu": 9000, "memory": GIB},
        75,
    ),
    "ratio, rounded up from a half: (25 + 50) / 2": (
        node_resources.Fit(
            STRATEGY.REQUESTED_TO_CAPACITY_RATIO, ramp=node_resources.ramp([(0, 0), (100, 10)])
        ),
        {"cpu": 500, "memory": GIB},
        38,
    ),
    "ratio leaves out a resource that scores nothing": (
        node_resources.Fit(
            STRATEGY.REQUESTED_TO_CAPACITY_RATIO,
            ramp=node_resources.ramp([(0, 0), (40, 0), (100, 6)]),
        ),
        {"cpu": 500, "memory": GIB},
        10,
    ),
    "ratio leaves it out as well where a node lacks another resource": (
        node_resources.Fit(
            STRATEGY.REQUESTED_TO_CAPACITY_RATIO,
            (("cpu", 1), ("memory", 1), ("example.com/nic", 1)),
            node_resources.ramp([(0, 0), (40, 0), (100, 6)]),
        ),
        {"cpu": 500, "memory": GIB, "example.com/nic": 1},
        10,
    ),
    "a scalar that is not requested is left out": (
        node_resources.Fit(weights=(("cpu", 1), ("example.com/gpu", 1))),
        {"cpu": 500},
        75,
    ),
    "a scalar that is requested": (
        node_resources.Fit(weights=(("cpu", 1), ("example.com/gpu", 1))),
        {"cpu": 500, "example.com/gpu": 2},
        62,
    ),
    "a resource that no node has": (
        node_resources.Fit(weights=(("cpu", 1), ("example.com/fpga", 1))),
        {"cpu": 500, "example.com/fpga": 2},
        75,
    ),
    "a resource that this node lacks": (
        node_resources.Fit(weights=(("cpu", 1), ("example.com/nic", 1))),
        {"cpu": 500, "example.com/nic": 2},
        75,
    ),
    "nothing to score": (
        node_resources.Fit(weights=(("example.com/fpga", 1),)),
        {"cpu": 500},
        0,
    ),
}


@pytest.mark.parametrize(("fit", "requests", "expected"), FIT.values(), ids=FIT)
def test_fit(fit: node_resources.Fit, requests: dict[str, int], expected: int) -> None:
    # 500m of 4 cpus and 1Gi of 4Gi are taken; requests of containers without any are not.
    offered = {"cpu": 4000, "memory": 4 * GIB, "example.com/gpu": 8, "example.com/nic": 0}
    nodes = node(offered, {"example.com/gpu": 2}, (500, GIB))
    rows = node_resources.Taken(nodes, ROWS)
    assert node_resources.fit_scores(fit, asking({}, requests), rows).tolist() == [expected]


def test_the_shape_of_a_ratio_truncates_towards_zero() -> None:
    rising_and_falling = node_resources.ramp([(0, 0), (40, 10), (100, 2)])
    assert rising_and_falling[0] == 0
    assert rising_and_falling[13] == 32  # 100 * 13 / 40 = 32.5
    assert rising_and_falling[41] == 99  # 100 - 80 * 1 / 60 = 98.67
    assert rising_and_falling[100] == 20


def test_a_shape_is_flat_before_its_first_point_and_after_its_last() -> None:
    flat = node_resources.ramp([(20, 5), (60, 10)])
    assert set(flat[:21]) == {50}
    assert set(flat[60:]) == {100}


BALANCE = {
    "left behind: 0.75 against 0.25": (False, {"cpu": 2000}, 75),
    "gained: from 0.25 and 0.25 to 0.75 and 0.25": (True, {"cpu": 2000}, 62),
    "left behind, even": (False, {"cpu": 2000, "memory": 2 * GIB}, 100),
    "gained, even as before": (True, {"cpu": 2000, "memory": 2 * GIB}, 75),
    "shares end at 1": (False, {"cpu": 90000}, 62),
    "three resources": (False, {"cpu": 2000, "example.com/gpu": 4}, 76),
}


@pytest.mark.parametrize(("gain", "requests", "expected"), BALANCE.values(), ids=BALANCE)
def test_balance(gain: bool, requests: dict[str, int], expected: int) -> None:
    taken = {"cpu": 1000, "memory": GIB, "example.com/gpu": 2}
    nodes = node({"cpu": 4000, "memory": 4 * GIB, "example.com/gpu": 8}, taken, (0, 0))
    found = node_resources.balance_scores(
        ("cpu", "memory", "example.com/gpu"),
        gain,
        asking(requests),
        node_resources.Taken(nodes, ROWS),
    )
    assert found.tolist() == [expected]


@pytest.mark.parametrize(
    ("minor", "scored"), [(28, True), (32, True), (33, False), (34, False), (37, False)]
)
def test_a_pod_without_requests_is_not_balanced_since_1_33(minor: int, scored: bool) -> None:
    settings = profile.ScoringProfile("default-scheduler", releases.RELEASES[minor])
    nodes = node({"cpu": 4000, "memory": 4 * GIB}, {"cpu": 1000}, (1000, 0))
    found = totals.score(settings, asking({}), nodes, columns.PodColumns(), ROWS)
    assert (profile.BALANCE in [one.plugin for one in found.plugins]) is scored
