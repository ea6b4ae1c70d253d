"""Fragmentation of GPUs, compared with the definition written out node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.devices.allocation import fragmentation
from domain.devices.allocation.fragmentation import Task

SHARES = st.sampled_from([10, 30, 50, 80, 100])
TASKS = st.builds(
    lambda cpu, memory, gpus, share: Task(cpu, memory, gpus, share if gpus == 1 else 100),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 3),
    SHARES,
)
FREE = st.lists(st.sampled_from([0, 20, 50, 70, 100]), min_size=3, max_size=3)
NODES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), FREE), min_size=1, max_size=4)


def arrays(nodes):
    return fragmentation.Nodes(
        np.array([cpu for cpu, _, _ in nodes]),
        np.array([memory for _, memory, _ in nodes]),
        np.array([gpus for _, _, gpus in nodes]).T,
    )


def by_definition(tasks, weights, node):
    """What is free and cannot be used, in the mean over the classes."""
    cpu, memory, gpus = node
    total = 0.0
    for task, weight in zip(tasks, weights, strict=True):
        enough = [free for free in gpus if free >= task.share]
        fits = cpu >= task.cpu and memory >= task.memory and len(enough) >= task.gpus
        total += weight * (sum(gpus) - (sum(enough) if fits else 0))
    return total


@given(st.lists(TASKS, min_size=1, max_size=4, unique=True), NODES, TASKS)
def test_the_increment_is_the_least_over_all_ways_to_place_a_task(tasks, nodes, task):
    weights = np.full(len(tasks), 1 / len(tasks))
    workload = fragmentation.Workload(tuple(tasks), weights)
    eligible = np.ones((len(tasks), len(nodes)), dtype=bool)
    found = fragmentation.increments(workload, arrays(nodes), eligible, task)
    told = fragmentation.fragmentation(workload, arrays(nodes), eligible)
    for number, (cpu, memory, gpus) in enumerate(nodes):
        before = by_definition(tasks, weights, nodes[number])
        assert told[number] == pytest.approx(before)
        fitting = [place for place, free in enumerate(gpus) if free >= task.share]
        chosen = [fitting[: task.gpus]] if task.share == 100 else [[one] for one in fitting]
        ways = {}
        for places in chosen:
            if len(places) == task.gpus:
                left = [free - task.share * (at in places) for at, free in enumerate(gpus)]
                after = by_definition(tasks, weights, (cpu - task.cpu, memory - task.memory, left))
                ways[places[0]] = after - before
        if not ways:
            assert found.added[number] == np.inf
            continue
        assert found.added[number] == pytest.approx(min(ways.values()))
        assert ways[int(found.gpu[number])] == pytest.approx(min(ways.values()))


def test_pods_without_gpus_rather_leave_cpu_beside_free_gpus():
    """The first node loses the CPU that its GPU needs, the second has none of either."""
    workload = fragmentation.Workload((Task(4, 0, 1, 100),), np.ones(1))
    nodes = arrays([(4, 1, [100, 0, 0]), (4, 1, [0, 0, 0])])
    found = fragmentation.increments(workload, nodes, np.ones((1, 2), dtype=bool), Task(2, 1))
    assert found.added.tolist() == [100.0, 0.0]


def test_tasks_that_may_not_use_the_gpus_of_a_node_find_all_of_it_fragmented():
    workload = fragmentation.Workload((Task(0, 0, 1, 50),), np.ones(1))
    nodes = arrays([(1, 1, [100, 50, 20])] * 2)
    eligible = np.array([[True, False]])
    assert fragmentation.fragmentation(workload, nodes, eligible).tolist() == [20.0, 170.0]


def test_classes_without_gpus_count_among_the_pods_and_are_left_out():
    half = Task(1, 1, 1, 50)
    found, selectors = fragmentation.workload([((half, "a100"), 6), ((Task(8, 8), ""), 2)])
    assert (found.tasks, found.weights.tolist(), selectors) == ((half,), [0.75], ("a100",))
    empty, _ = fragmentation.workload([])
    nodes = arrays([(1, 1, [100, 0, 0])])
    found = fragmentation.increments(empty, nodes, np.ones((0, 1), dtype=bool), half)
    assert found.added.tolist() == [-50.0]
