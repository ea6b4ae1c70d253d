"""The trace is that of the paper, and runs count what they allocate; none goes on to its end."""

import json

import pytest

from api import names
from benchmarks.openb import real_scheduler, replay, report, trace


@pytest.fixture(scope="module")
def cluster():
    return replay.cluster()


def test_the_trace_has_the_nodes_and_pods_that_were_published(cluster):
    assert sum(shape.count for shape in trace.nodes()) == 1213
    assert cluster.capacity == 6212 * 1000
    assert len(trace.names()) == 17
    assert sum(shape.count for shape in trace.pods("default")) == 8152
    assert trace.published("default")["FGD"] == 95.39


def stepped(cluster, workload, seed, steps=30):
    run = replay.Run(cluster, workload, seed)
    run.prepare()
    for _ in range(steps):
        assert run.step()
    return run.result(workload, seed)


def test_a_run_is_repeated_exactly_and_counted_by_what_pods_hold(cluster):
    one = stepped(cluster, "multigpu20", 42)
    assert one == stepped(cluster, "multigpu20", 42)
    assert one.placed == one.arrived == 30


def test_results_stand_beside_what_was_published():
    results = [replay.Result("default", seed, 95.0 + seed, 10, 9) for seed in (0, 1)]
    results.append(replay.Result("cpu250", 0, 92.0, 10, 9))
    means = replay.means(results)
    assert means == {"default": 95.5, "cpu250": 92.0}
    assert "+0.11" in report.table(means)
    assert report.verdict(means) == (1, ["cpu250"])
    drawn = report.plot(results)
    assert drawn.count("<circle") == 2
    assert drawn.startswith("<svg")


def test_a_smaller_cluster_has_the_proportions_of_the_trace():
    every, few = trace.nodes(), trace.nodes(300)
    assert sum(shape.count for shape in few) == 300
    total = sum(shape.count for shape in every)
    exact = {(s.cpu, s.memory, s.gpus, s.model): s.count * 300 / total for s in every}
    for shape in few:
        key = (shape.cpu, shape.memory, shape.gpus, shape.model)
        assert abs(shape.count - exact[key]) < 1


def test_as_many_pods_arrive_in_the_replay_as_are_created_for_the_scheduler():
    small = replay.cluster(6)
    kinds = replay.Arrivals("default", 42).until(small.capacity)
    assert replay.run_expected(small, "default", 42).arrived == len(kinds)
    created = list(real_scheduler.pods(replay.Arrivals("default", 42), kinds))
    assert len(created) == len(kinds)
    assert all(one["spec"]["schedulingGates"] for one in created)


def bound(node, gpus, *cores):
    given = [{"minor": 0, "resources": {names.GPU_CORE: str(core)}} for core in cores]
    notes = {names.ANNOTATION_DEVICE_ALLOCATED: json.dumps({"gpu": given})} if given else {}
    requests = {names.GPU: str(gpus)} if gpus else {}
    return {
        "metadata": {"annotations": notes},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
        "status": {"conditions": []},
    }


def test_what_the_scheduler_allocated_is_counted_twice():
    """By what pods ask for and by what was recorded on them."""
    items = [bound("a", 200, 100, 100), bound("b", 50, 50), bound("", 100), bound("c", 0)]
    assert real_scheduler.outcome(items) == real_scheduler.Outcome(2500, 3, 2500)
    assert [real_scheduler.is_decided(one) for one in items] == [True, True, False, True]
    for reason, decided in (("SchedulingGated", False), ("Unschedulable", True)):
        items[2]["status"]["conditions"] = [{"type": "PodScheduled", "reason": reason}]
        assert real_scheduler.is_decided(items[2]) is decided
