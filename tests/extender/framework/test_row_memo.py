"""Results of trials are kept until the node changes, and never told of another state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.framework import views
from extender.framework.nodes import row_memo
from tests.extender.clusters import numa_cluster
from tests.extender.clusters.numa_cluster import topology

ALIGNED = {"numaTopologyPolicy": "SingleNUMANode"}


@pytest.fixture
def cluster():
    found = numa_cluster.NumaCluster()
    for number in range(3):
        found.node(f"n{number}", topology())
    return found


class Counted:
    """A function of rows that remembers which it was asked about."""

    def __init__(self):
        self.rows = []

    def __call__(self, rows):
        self.rows += rows.tolist()
        return rows.astype(np.int64) * 10


def asked(memo, view, key="a"):
    counted = Counted()
    found = memo.get(key, view, views.every(view.known.size), counted)
    assert found.tolist() == [10 * row for row in range(view.known.size)]
    return counted.rows


def test_a_row_is_worked_out_again_only_after_it_has_changed(cluster):
    memo = row_memo.RowMemo()
    assert asked(memo, cluster.state.view()) == [0, 1, 2]
    assert asked(memo, cluster.state.view()) == []
    cluster.node("n1", topology(), cpu="8")
    assert asked(memo, cluster.state.view()) == [1]
    assert asked(memo, cluster.state.view(), "b") == [0, 1, 2]
    cluster.node("n3", topology())
    assert asked(memo, cluster.state.view()) == [0, 1, 2, 3]


def test_another_state_that_began_as_this_one_has_results_of_its_own(cluster):
    memo = row_memo.RowMemo()
    asked(memo, cluster.state.view())
    fork = cluster.state.fork()
    assert asked(memo, fork.view()) == []
    cluster.node("n0", topology(), cpu="8")
    asked(memo, cluster.state.view())
    assert asked(memo, fork.view()) == [0]


def test_nodes_that_are_shown_as_they_are_not_are_never_kept(cluster):
    memo, view = row_memo.RowMemo(), cluster.state.view()
    for _ in range(2):
        assert asked(memo, view.with_claims(0)) == [0]


def test_the_kinds_asked_about_last_are_kept(cluster):
    memo, view = row_memo.RowMemo(most=2), cluster.state.view()
    for key in ("a", "b", "a", "c"):
        asked(memo, view, key)
    assert asked(memo, view, "a") == []
    assert asked(memo, view, "b") == [0, 1, 2]


@settings(max_examples=15)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["2", "4", "8"]), st.sampled_from([None, ALIGNED]), st.integers(0, 2)
        ),
        max_size=8,
    )
)
def test_a_pipeline_that_keeps_trials_judges_as_a_fresh_one(steps):
    found = numa_cluster.NumaCluster()
    for number in range(3):
        labels = {"node.koordinator.sh/numa-topology-policy": "Restricted"} if number else {}
        found.node(f"n{number}", topology(), labels=labels)
    for number, (cpu, numa, where) in enumerate(steps):
        pod = found.pod(f"p{number}", cpu, numa=numa)
        view = found.state.view()
        rows = views.every(view.known.size)
        info = views.PodInfo.of(pod)
        judged = []
        for line in (found.pipeline, numa_cluster.NumaCluster().pipeline):
            cycle = line.cycle(info, view)
            outcome = line.filter(cycle, view, rows, 0.0)
            refusals = [outcome.refusal(place) for place in range(rows.size)]
            judged.append((refusals, line.score(cycle, view, rows, 0.0).tolist()))
        assert judged[0] == judged[1]
        if judged[0][0][where] is None:
            found.place(f"p{number}", cpu, numa=numa, node=view.names[where])
