"""A Reservation that gets its node wakes the pods that wait for it, at once and on that node."""

import dataclasses
import json

import numpy as np
import pytest

from api import names
from api.koordinator import scheduling
from extender.explain import explanations
from extender.framework import views
from extender.requeue import requeue, unschedulable_pods
from extender.settings import NudgeSettings
from extender.state.reservations import reservation_claims
from extender.verbs import request_codec, verbs
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock, metrics, supervise
from tests.extender.clusters import reservation_cluster

NOW = reservation_cluster.NOW
AFFINITY_KEY = names.ANNOTATION_RESERVATION_AFFINITY
THEIRS = [{"labelSelector": {"matchLabels": {"app": "theirs"}}}]
AFFINITY = {AFFINITY_KEY: {"name": "r"}}


class BusyClock(clock.ManualClock):
    """A clock on which work takes time."""

    worked = 0.0

    def monotonic(self):
        return super().monotonic() + self.worked


class SlowSort:
    """A plug-in that takes long to say that a pod stands in no line."""

    name = "slow"

    def __init__(self, clock, seconds):
        self._clock, self._seconds = clock, seconds

    def line(self, pod, view):
        del pod, view
        self._clock.worked += self._seconds
        return ""

    def frees(self, delta):
        del delta
        return False


class Waker:
    """A requeuer over a cluster with Reservations, and the hands of a scheduler and its API."""

    def __init__(self, seconds=0.0):
        """`seconds` is how long it takes to look at one of all pods that wait."""
        self.cluster = reservation_cluster.ReservationCluster()
        self.clock = BusyClock(now=NOW)
        self.waits = unschedulable_pods.UnschedulablePods()
        self.pods, self.patched, self.denied = store.Store(), [], ""
        books, sort = self.cluster.books, SlowSort(self.clock, seconds)
        pipeline = dataclasses.replace(self.cluster.pipeline, sorts=(sort,))
        parts = requeue.Parts(self, self.clock, books, pipeline, self.waits, self.pods)
        self.requeuer = requeue.Requeuer(parts, NudgeSettings(), metrics.Registry())

    async def patch(self, resource, name, body, *, namespace, subresource="", **options):
        """Take in a patch as an API server does."""
        del resource, namespace, options
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


async def _woken_by(waker, *changes):
    """Who is woken within 50 ms of the last change, long after the first attempts."""
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(3.5)
        for change in changes:
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


def _capture(waker, name="r", node="n1"):
    """The steps by which the extender places a Reservation itself."""
    written = scheduling.read_reservation(reservation_cluster.written(name, node=node))
    claim = reservation_claims.claim(written, waker.cluster.projector)
    reserved = waker.cluster.books.reservations
    return (
        lambda: reserved.assume(claim),
        lambda: reserved.placed(claim, NOW + 60.0),
        lambda: reserved.watched(None, claim),
    )


async def test_an_owner_is_woken_as_soon_as_the_placement_of_its_reservation_is_answered(waker):
    waker.waits_for("mine", "n1", "n2", annotations=AFFINITY)
    assumed, placed, shown = _capture(waker)
    assert await _woken_by(waker, assumed) == []
    assert await _woken_by(waker, placed) == [("mine", "")]
    waker.patched.clear()
    assert await _woken_by(waker, shown) == [], "once after each attempt"


async def test_an_owner_that_was_refused_a_moment_before_is_woken_at_once(waker):
    def refused():
        # kube-scheduler tries all that wait when a bind call ends with an error.
        waker.waits_for("mine", "n1", "n2", annotations=AFFINITY)
        waker.waits_for("plain", "n1", cpu="5", app="other")

    waker.cluster.reservation("full", node="n1", requests={"cpu": "6"}, owners=THEIRS)

    def reserved():
        waker.cluster.end("full")
        waker.cluster.reservation("r")

    assert await _woken_by(waker, refused, reserved) == [("mine", "")]


async def test_an_owner_is_told_its_node_where_the_scheduler_samples_nodes(waker):
    names = [f"n{number}" for number in range(1, 102)]
    for name in names[2:]:
        waker.cluster.node(name)
    waker.waits_for("mine", *names, annotations=AFFINITY)
    assert await _woken_by(waker, _reserve(waker)) == [("mine", "n1"), ("mine", "")]


async def test_an_owner_whose_attempt_left_out_its_node_is_woken_at_once(waker):
    waker.waits_for("other", "n2", app="other", annotations=AFFINITY)

    def refused():
        waker.cluster.reservation("r")
        waker.waits_for("mine", "n2", annotations=AFFINITY)
        waker.waits.passed_over("default/mine")

    assert await _woken_by(waker, refused) == [("mine", "n1"), ("mine", "")]


async def test_an_owner_is_woken_at_once_however_long_it_takes_to_look_at_all_pods():
    waker = Waker(seconds=0.05)
    waker.cluster.node("n1")
    waker.waits_for("mine", "n1", annotations=AFFINITY)
    for number in range(20):
        waker.waits_for(f"other-{number}", "n1", app="other", annotations=AFFINITY)
    assert await _woken_by(waker, _reserve(waker)) == [("mine", "")]


async def test_pods_that_a_reservation_does_not_concern_are_not_judged(waker):
    for number in range(20):
        notes = {AFFINITY_KEY: {"name": f"other-{number}"}}
        waker.waits_for(f"other-{number}", "n1", annotations=notes)
    waker.waits_for("mine", "n1", annotations=AFFINITY)
    judged = []

    def reserved():
        judged.append(waker.requeuer.judged)
        waker.cluster.reservation("r")

    assert await _woken_by(waker, reserved) == [("mine", "")]
    assert waker.requeuer.judged == judged[0] + 1


async def test_an_owner_that_was_woken_in_vain_is_woken_again_ever_later(waker):
    waker.cluster.reservation("r")

    def refused():
        # The attempt was under way while the pod was told its node.
        waker.patched.clear()
        waker.waits_for("mine", "n2", annotations=AFFINITY)
        waker.waits.passed_over("default/mine")

    told = [("mine", "n1"), ("mine", "")]
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(3.5)
        for before, after in ((0.0, 0.05), (0.1, 0.2), (0.25, 0.3), (0.6, 0.4)):
            refused()
            await waker.clock.advance(before)
            assert waker.patched == []
            await waker.clock.advance(after)
            assert waker.patched == told


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


@pytest.mark.parametrize(
    ("asked", "hears"),
    [
        pytest.param(("n2",), 1, id="another node keeps capacity for it"),
        pytest.param(("n1", "n2"), 0, id="it was asked about that node"),
    ],
)
def test_a_filter_call_that_leaves_out_the_node_of_an_owner_is_heard_of(waker, asked, hears):
    waker.cluster.reservation("r")
    heard = []
    waker.waits.followers[:] = [heard.append]
    answers = verbs.Verbs(
        waker.cluster.books.cluster,
        waker.cluster.pipeline,
        waker.cluster.projector,
        switches.Switches("extender"),
        explanations.Explanations(),
        lambda refused: None,
        request_codec.Reader(waker.cluster.projector),
        waits=waker.waits,
    )
    # Too big for the node with the Reservation as well, so that no node is left.
    cpu = "1" if hears else "11"
    pod = waker.cluster.raw("mine", cpu, annotations=AFFINITY)
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(asked)}).encode()
    assert json.loads(answers.filter(body, NOW))["NodeNames"] == []
    assert heard == ["default/mine"] * hears


ORDERED = {names.LABEL_RESERVATION_ORDER: "7"}


def _filtered(waker, *asked, at=0.0, **more):
    """Which nodes are left to an owner that needs no Reservation, seconds after the start."""
    answers = verbs.Verbs(
        waker.cluster.books.cluster,
        waker.cluster.pipeline,
        waker.cluster.projector,
        switches.Switches("extender"),
        explanations.Explanations(),
        lambda refused: None,
        request_codec.Reader(waker.cluster.projector),
        waits=waker.waits,
    )
    pod = waker.cluster.raw("mine", "1", **more)
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(asked)}).encode()
    return json.loads(answers.filter(body, NOW + at))


async def test_an_owner_that_was_not_shown_the_node_of_an_ordered_reservation_is_sent_there(waker):
    for number in range(3, 102):
        waker.cluster.node(f"n{number}")
    waker.cluster.reservation("r", labels=ORDERED)

    def asks():
        waker.shows(waker.cluster.pod("mine"))
        answer = _filtered(waker, "n2", "n3")
        assert answer["NodeNames"] == []
        assert set(answer["FailedAndUnresolvableNodes"]) == {"n2", "n3"}

    waker.waits_for("other", "n2", app="other", annotations=AFFINITY)
    assert await _woken_by(waker, asks) == [("mine", "n1"), ("mine", "")]
    # After a while it gets what there is: the node may be closed to it.
    assert _filtered(waker, "n2", "n3", at=4.9)["NodeNames"] == []
    assert _filtered(waker, "n2", "n3", at=10)["NodeNames"] == ["n2", "n3"]


async def test_an_owner_is_sent_to_the_first_of_several_ordered_reservations(waker):
    for number in range(3, 102):
        waker.cluster.node(f"n{number}")
    for name, node, order in (("r", "n2", "8"), ("s", "n3", "7"), ("t", "n4", "9")):
        labels = {names.LABEL_RESERVATION_ORDER: order}
        waker.cluster.reservation(name, node=node, labels=labels)
    waker.waits_for("other", "n2", app="other", annotations=AFFINITY)

    def asks():
        waker.shows(waker.cluster.pod("mine"))
        assert _filtered(waker, "n2", "n4", "n5")["NodeNames"] == []

    assert await _woken_by(waker, asks) == [("mine", "n3"), ("mine", "")]


@pytest.mark.parametrize(
    ("labels", "app", "asked"),
    [
        pytest.param({}, "mine", ("n2",), id="the Reservation has no order"),
        pytest.param(ORDERED, "other", ("n2",), id="the pod is no owner"),
        pytest.param(ORDERED, "mine", ("n1", "n2"), id="its node is among them"),
    ],
)
def test_all_others_get_the_nodes_that_were_looked_at(waker, labels, app, asked):
    waker.cluster.reservation("r", labels=labels)
    assert _filtered(waker, *asked, app=app)["NodeNames"] == list(asked)
