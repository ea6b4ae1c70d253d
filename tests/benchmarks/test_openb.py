"""The trace is that of the paper, and runs count what they allocate; none goes on to its end."""

import pytest

from benchmarks.openb import replay, report, trace


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
