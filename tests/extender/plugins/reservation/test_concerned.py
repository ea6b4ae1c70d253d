"""On which nodes a pod has Reservations, whatever is kept of earlier looks."""

import numpy as np
import pytest

from extender.framework import views
from extender.plugins.reservation import concerned, tracker
from tests.extender.clusters import reservation_cluster

THEIRS = [{"labelSelector": {"matchLabels": {"app": "theirs"}}}]


@pytest.fixture
def cluster():
    made = reservation_cluster.ReservationCluster()
    for name in ("n1", "n2", "n3"):
        made.node(name)
    return made


def _nodes(cluster, kept, app="mine"):
    """Where a pod is concerned; every way of asking says the same."""
    view = cluster.books.cluster.view()
    pod = views.PodInfo.of(cluster.pod("p", app=app))
    prepared = cluster.pipeline.cycle(pod, view).prepared["Reservation"]
    rows = np.flatnonzero(view.known)
    flags = kept.among(prepared, view, rows)
    assert flags.tolist() == concerned.Concerned().among(prepared, view, rows).tolist()
    assert flags[::-1].tolist() == kept.among(prepared, view, rows[::-1]).tolist()
    each = [kept.among(prepared, view, np.array([row])).item() for row in rows.tolist()]
    assert each == flags.tolist()
    return sorted(view.names[row] for row in rows[flags].tolist())


def test_nodes_follow_reservations_that_come_and_go(cluster):
    kept = concerned.Concerned()
    cluster.reservation("a", node="n1")
    cluster.reservation("b", node="n2", owners=THEIRS)
    assert _nodes(cluster, kept) == ["n1"]
    assert _nodes(cluster, kept, "theirs") == ["n2"]
    cluster.reservation("c", node="n3")
    assert _nodes(cluster, kept) == ["n1", "n3"]
    cluster.end("a")
    assert _nodes(cluster, kept) == ["n3"]
    assert _nodes(cluster, kept, "theirs") == ["n2"]
    assert _nodes(cluster, kept, "other") == []


def test_nodes_that_come_later_are_concerned(cluster):
    kept = concerned.Concerned()
    cluster.reservation("a", node="n1")
    cluster.reservation("late", node="n9")
    assert _nodes(cluster, kept) == ["n1"]
    cluster.node("n9")
    assert _nodes(cluster, kept) == ["n1", "n9"]


def test_it_is_counted_how_many_reservations_hold_cpus_or_devices(cluster):
    def counted():
        return tracker.cluster(cluster.books.cluster.view()).allocating

    cluster.reservation("plain")
    assert counted() == 0
    status = '{"cpuset": "0-3"}'
    note = "scheduling.koordinator.sh/resource-status"
    cluster.reservation("pinned", node="n2", annotations={note: status})
    assert counted() == 1
    cluster.reservation("pinned", node="n2")
    assert counted() == 0
