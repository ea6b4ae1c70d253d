"""Refusing nodes are grouped by reason, with the nearest miss and what would help there."""

import numpy as np
import pytest

from extender.explain import refusals

NOW = 1782907200.0
BATCH_10 = {"kubernetes.io/batch-cpu": "10000"}


def _account(picture, raw, *names, now=NOW):
    view = picture.cluster.view()
    rows = np.array([view.rows[name] for name in names], dtype=np.intp)
    return refusals.account(picture.pipeline, picture.request(raw), view, rows, now)


@pytest.fixture
def four(picture, make):
    """Two nodes that have little left to lend, a hot one and one with an old report."""
    picture.lend(30)
    for name, requested in (("a", "100"), ("b", "120")):
        picture.add(make.node(name), make.metric(name))
        picture.add(make.pod(f"on-{name}", node=name, requests={"cpu": requested}))
    picture.add(make.node("hot"), make.metric("hot", cpu="100"))
    picture.add(make.node("old"), make.metric("old", updated="2026-07-01T11:00:00Z"))
    return picture


def test_groups_name_their_nodes_and_the_nearest_miss(four, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    account = _account(four, job, "a", "b", "hot", "old")
    assert (account.asked, account.passed) == (4, 0)
    batch, *others = account.groups
    assert [group.count for group in account.groups] == [2, 1, 1]
    assert (batch.plugin, batch.nodes, batch.nearest) == ("BatchFit", ("a", "b"), "a")
    assert batch.shortage == pytest.approx(0.16)
    assert batch.figures == "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent"
    assert account.helps == batch.helps
    assert {group.reason for group in others} == {
        "node cpu usage exceeds the load-aware threshold",
        "node load report is too old",
    }
    assert account.sentence().startswith(
        "0/4 nodes may take it: 2 node may not lend that much cpu to batch work (nearest miss a: "
        "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent), "
    )
    assert account.sentence().endswith(
        "What would help: 1.6 cores given back by batch pods of a; or a pod that asks 8.4 cores or "
        "less; or fewer requests by services on a, or a higher overcommitPercent."
    )


def test_nodes_that_would_take_it_are_counted(four, make):
    four.add(make.node("cool"), make.metric("cool"), make.node("unreported"))
    account = _account(four, make.pod("p", requests={"cpu": "4"}), "cool", "unreported", "hot")
    assert (account.asked, account.passed) == (3, 2)
    assert [group.nodes for group in account.groups] == [("hot",)]


def test_a_node_that_is_gone_is_not_counted(four, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    view = four.cluster.view()
    rows = np.array([view.rows["a"], view.rows["b"]], dtype=np.intp)
    four.books.node(four.cluster.node("b"), None)
    account = refusals.account(four.pipeline, four.request(job), four.cluster.view(), rows, NOW)
    assert (account.asked, account.groups[0].nodes) == (1, ("a",))


def test_nothing_asked_nothing_refused(four, make):
    account = _account(four, make.pod("p"))
    assert account.sentence() == "0/0 nodes may take it"
    assert account.helps == ()


def test_many_nodes_are_counted_and_the_first_are_named(picture, make):
    names = [f"n{number:03}" for number in range(refusals.MOST_NODES + 5)]
    for name in names:
        picture.add(make.node(name), make.metric(name, cpu="128"))
    (group,) = _account(picture, make.pod("p"), *names).groups
    assert group.count == len(names)
    assert group.nodes == tuple(names[: refusals.MOST_NODES])
    assert group.document()["nearest"]["node"] == "n000"
