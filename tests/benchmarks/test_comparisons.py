"""What is compared with what, and under which name: a figure names what is unusual about it."""

import json

import pytest

from benchmarks.plane.layouts import Layout
from benchmarks.plane.rig import Run
from benchmarks.scheduling import comparisons
from benchmarks.scheduling.comparisons import Case


@pytest.mark.parametrize(
    ("row", "case", "layout", "queries", "expected"),
    [
        ("F1", Case(1000, 7, ""), Layout.APART, 5000, "F1"),
        ("F1", Case(1000, 7, ""), Layout.SHARED, 5000, "F1.shared"),
        ("F1", Case(1000, 60, ""), Layout.SHARED, 5000, "F1.shared.60KB"),
        ("F1.busy", Case(1000, 7, ""), Layout.SHARED, 5000, "F1.busy"),
        ("F1.busy", Case(1000, 7, ""), Layout.APART, 5000, "F1.apart.busy"),
        ("F1.go", Case(1000, 7, ""), Layout.SHARED, 5000, "F1.shared.go"),
        ("F1.cost", Case(5000, 7, ""), Layout.SHARED, 5000, "F1.5000.shared.cost"),
        ("K", Case(1000, 7, ""), Layout.SHARED, 5000, "K"),
        ("K.busy", Case(1000, 7, ""), Layout.APART, 5000, "K.apart.busy"),
        ("F1", Case(1000, 7, ""), Layout.APART, 50, "F2"),
    ],
)
def test_names_of_figures(row, case, layout, queries, expected):
    assert comparisons.name(row, case, layout, queries) == expected


def _shown(capsys, runs, layout=Layout.SHARED, queries=5000):
    comparisons.show(runs, layout, queries)
    lines = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    return {line["figure"]: line for line in lines}


def _runs(*rates, extender=1.0):
    return [Run(rate, {"kube-scheduler": 2.0, "extender": extender}) for rate in rates]


def test_variants_of_one_run_are_compared_round_by_round(capsys):
    runs = {
        Case(1000, 7, "stock"): _runs(400, 300),
        Case(1000, 7, "ours"): _runs(200, 210, extender=1.5),
        Case(1000, 7, "koord-scheduler"): _runs(100, 100),
    }
    found = _shown(capsys, runs)
    assert found["F1.shared"]["ratio"] == 0.6
    assert (found["F1.shared"]["min"], found["F1.shared"]["max"]) == (0.5, 0.7)
    assert found["F1.shared"]["against"].endswith("goal 0.62")
    assert found["K"]["ratio"] == 2.05
    assert found["F5.shared"]["value"] == 1.5
    assert "F1.shared.go" not in found


def test_the_cost_of_many_nodes_is_the_time_and_the_work_per_pod_relative_to_few(capsys):
    runs = {
        Case(1000, 7, "ours"): _runs(200, 200, extender=1.0),
        Case(5000, 7, "ours"): _runs(160, 100, extender=2.5),
    }
    found = _shown(capsys, runs)
    assert found["F1.5000.shared.cost"]["ratio"] == 1.625
    assert found["F1.5000.shared.cost.work"]["ratio"] == 1.5


def test_sizes_of_pods_are_compared_with_their_own_size_only(capsys):
    runs = {
        Case(1000, 7, "stock"): _runs(400),
        Case(1000, 60, "stock"): _runs(100),
        Case(1000, 60, "ours"): _runs(80),
    }
    found = _shown(capsys, runs)
    assert found["F1.shared.60KB"]["ratio"] == 0.8
    assert "F1.shared" not in found


def test_the_default_rate_is_compared_with_the_published_baseline(capsys):
    runs = {Case(1000, 7, "stock"): _runs(50), Case(1000, 7, "ours"): _runs(136.8)}
    found = _shown(capsys, runs, Layout.APART, 50)
    assert found["F2.koordinator"]["ratio"] == 3
    assert "F5" not in found


def test_the_table_has_a_line_for_each_case(capsys):
    comparisons.table({Case(1000, 7, "stock"): _runs(400), Case(1000, 7, "ours"): _runs(200)})
    lines = capsys.readouterr().out.splitlines()
    assert "0.50 [0.50-0.50]" in next(line for line in lines if line.startswith("ours, 1000 nodes"))
