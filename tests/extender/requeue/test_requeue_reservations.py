"""A Reservation that gets its node wakes the pods that wait for it, at once and on that node."""

import numpy as np
import pytest

from api import names
from extender.framework import views
from extender.requeue import requeue, unschedulable_pods
from extender.settings import NudgeSettings
from kube.client import errors
from kube.informers import store
from process.runtime import clock, metrics, supervise
from tests.extender import reservation_cluster

NOW = reservation_cluster.NOW
AFFINITY_KEY = names.ANNOTATION_RESERVATION_AFFINITY
THEIRS = [{"labelSelector": {"matchLabels": {"app": "theirs"}}}]
AFFINITY = {AFFINITY_KEY: {"name": "r"}}


class Waker:
    """A requeuer over a cluster with Reservations, and the hands of a scheduler and its API."""

    def __init__(self):
        self.cluster = reservation_cluster.ReservationCluster()
        self.clock = clock.ManualClock(now=NOW)
        self.waits = unschedulable_pods.UnschedulablePods()
        self.pods, self.patched, self.denied = store.Store(), [], ""
        books, pipeline = self.cluster.books, self.cluster.pipeline
        parts = requeue.Parts(self, self.clock, books, pipeline, self.waits, self.pods)
        self.requeuer = requeue.Requeuer(parts, NudgeSettings(), metrics.Registry())

    async def patch(self, resource, name, body, *, namespace, subresource=""):
        """Take in a patch as an API server does."""
        del resource, namespace
        if subresource == self.denied != "":
            raise errors.Forbidden("not allowed")
        assert body["metadata"]["uid"] == f"uid-{name}"
        self.patched.append((name, body.get("status", {}).get("nominatedNodeName", "")))

    def waits_for(self, name, *asked, shown=True, **more):
        """A pod that was refused on the nodes about which the scheduler has asked."""
        record = self.cluster.pod(name, **more)
        if shown:
            self.shows(record)
        view = self.cluster.books.cluster.view()
        rows = np.array([view.rows[node] for node in asked], dtype=np.intp)
        attempt = unschedulable_pods.attempt_on(view, rows)
        self.waits.tried(record.key, self.clock.now())
        self.waits.refused(views.PodInfo.of(record), attempt, self.clock.now())
        return record

    def shows(self, record):
        """The watch shows a pod."""
        self.pods.put(store.Meta(record.key, record.uid, len(self.pods) + 1), record)


@pytest.fixture
def waker():
    made = Waker()
    for name in ("n1", "n2"):
        made.cluster.node(name)
    return made


async def _woken_by(waker, change):
    """Who is woken within 50 ms of a change, long after the last attempt."""
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(3.5)
        assert waker.patched == []
        change()
        await waker.clock.advance(0.05)
        return list(waker.patched)


def _reserve(waker, node="n1", **more):
    return lambda: waker.cluster.reservation("r", node=node, **more)


async def test_an_owner_that_no_reservation_matched_is_woken_at_once(waker):
    waker.waits_for("mine", "n1", "n2", annotations=AFFINITY)
    waker.waits_for("other", "n1", "n2", app="other", annotations=AFFINITY)
    assert await _woken_by(waker, _reserve(waker)) == [("mine", "")]


async def test_an_owner_is_woken_at_once_when_its_reservation_waits_for_no_pod_any_more(waker):
    waker.cluster.reservation("r", phase="Waiting")
    waker.waits_for("mine", "n1", annotations=AFFINITY)
    assert await _woken_by(waker, _reserve(waker)) == [("mine", "")]


async def test_a_pod_is_woken_at_once_when_what_is_free_is_no_longer_kept(waker):
    waker.cluster.reservation("full", node="n1", requests={"cpu": "6"}, owners=THEIRS)
    waker.waits_for("mine", "n1", cpu="5")
    waker.waits_for("big", "n1", cpu="5", annotations=AFFINITY)
    assert await _woken_by(waker, lambda: waker.cluster.end("full")) == [("mine", "")]


async def test_a_pod_that_the_watch_does_not_show_yet_is_woken_when_it_does(waker):
    waker.cluster.reservation("full", node="n1", requests={"cpu": "6"}, owners=THEIRS)
    late = waker.waits_for("mine", "n1", cpu="5", shown=False)
    waker.waits_for("never", "n1", cpu="5", shown=False)
    waker.waits_for("refused", "n1", annotations=AFFINITY, shown=False)
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(3.5)
        waker.cluster.end("full")
        await waker.clock.advance(3.5)
        assert waker.patched == []
        waker.shows(late)
        await waker.clock.advance(1.5)
        assert waker.patched == [("mine", "")]
        await waker.clock.advance(60.0)
    assert [waiter.request.name for waiter in waker.waits] == ["mine"]


async def test_a_pod_is_told_the_node_that_the_scheduler_has_not_asked_about(waker):
    waker.waits_for("mine", "n2", annotations=AFFINITY)
    expected = [("mine", "n1"), ("mine", "")]
    assert await _woken_by(waker, _reserve(waker)) == expected


async def test_a_nomination_that_is_denied_keeps_no_pod_from_being_woken(waker):
    waker.denied = "status"
    waker.waits_for("mine", "n2", annotations=AFFINITY)
    assert await _woken_by(waker, _reserve(waker)) == [("mine", "")]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"app": "other"}, id="no owner"),
        pytest.param({"annotations": {AFFINITY_KEY: {"name": "s"}}}, id="waits for another one"),
        pytest.param({"cpu": "11"}, id="too big for the node"),
    ],
)
async def test_pods_that_it_does_not_help_are_left_alone(waker, more):
    waker.waits_for("p", "n1", "n2", **{"annotations": AFFINITY, **more})
    assert await _woken_by(waker, _reserve(waker)) == []
