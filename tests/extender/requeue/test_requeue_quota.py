"""Freed quota wakes pods that wait for it: at once, in order, as many as it has room for."""

import numpy as np
import pytest

from api import names
from extender.framework import views
from extender.requeue import requeue, unschedulable_pods
from extender.settings import NudgeSettings
from kube.client import errors
from kube.informers import store
from process.runtime import clock, metrics, supervise
from tests.extender.clusters import quota_cluster

NOW = quota_cluster.NOW


class Client:
    """Takes in patches as an API server would, or fails."""

    def __init__(self, waker):
        self.waker, self.patched, self.failing = waker, [], False

    async def patch(self, resource, name, body, *, namespace, **options):
        del resource, options
        if self.failing:
            raise errors.Unreachable("no answer")
        assert names.ANNOTATION_NUDGE in body["metadata"]["annotations"]
        self.patched.append(name)
        self.waker.woken_at[name] = self.waker.clock.now()


class Waker:
    """A requeuer over a cluster with quotas, and the hands of a scheduler."""

    def __init__(self, **changed):
        self.cluster = quota_cluster.QuotaCluster(**changed)
        self.cluster.node()
        self.clock = clock.ManualClock(now=NOW)
        self.client, self.woken_at = Client(self), {}
        self.waits = unschedulable_pods.UnschedulablePods()
        self.pods = store.Store()
        self.version = 0
        parts = requeue.Parts(
            self.client,
            self.clock,
            self.cluster.books,
            self.cluster.pipeline,
            self.waits,
            self.pods,
        )
        self.requeuer = requeue.Requeuer(parts, NudgeSettings(), metrics.Registry())

    def waits_for(self, name, quota="team", **more):
        """A pod that the filter has refused on every node."""
        record = self.cluster.pod(name, quota, **more)
        self.version += 1
        self.pods.put(store.Meta(record.key, record.uid, self.version), record)
        self.refuse(record)
        return record

    def refuse(self, record):
        """The scheduler tries a pod and finds no node."""
        self.waits.tried(record.key, self.clock.now())
        view = self.cluster.state.view()
        attempt = unschedulable_pods.attempt_on(view, np.arange(len(view.names)))
        self.waits.refused(views.PodInfo.of(record), attempt, self.clock.now())

    async def look(self):
        """Look once, and return who was woken."""
        before = len(self.client.patched)
        await self.requeuer.once()
        return self.client.patched[before:]


@pytest.fixture
def waker():
    made = Waker()
    made.cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    yield made
    assert made.cluster.problems() == []


async def test_no_more_are_woken_than_the_quota_has_room_for(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    for number in range(5):
        waker.waits_for(f"p{number}", cpu=4)
    assert await waker.look() == []
    waker.cluster.gone("held")
    assert await waker.look() == ["p0", "p1"]
    assert await waker.look() == [], "what was woken counts until it is tried"


async def test_higher_priority_comes_first_then_who_waits_longer(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    for name, namespace, priority in (
        ("old", "b", 1),
        ("young", "a", 1),
        ("high", "c", 9),
        ("low", "a", 0),
    ):
        await waker.clock.advance(1)
        waker.waits_for(name, namespace=namespace, priority=priority, cpu=3)
    waker.cluster.gone("held")
    assert await waker.look() == ["high", "old", "young"]


async def test_one_that_was_woken_counts_until_it_is_tried_bound_gone_or_late(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    first, _ = waker.waits_for("first", cpu=10), waker.waits_for("second", cpu=10)
    waker.cluster.gone("held")
    assert await waker.look() == ["first"]
    waker.waits.settled(first.key)
    assert await waker.look() == [], "it has passed and is about to be bound"
    assert waker.cluster.bind(first)
    assert await waker.look() == [], "it is bound"
    waker.cluster.books.forget(first.uid)
    await waker.clock.advance(6)
    assert await waker.look() == ["second"], "nobody bound it"


async def test_one_that_was_tried_in_vain_leaves_its_room_to_others(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    first, _ = waker.waits_for("first", cpu=10), waker.waits_for("second", cpu=10)
    waker.cluster.gone("held")
    assert await waker.look() == ["first"]
    await waker.clock.advance(0.1)
    waker.refuse(first)
    assert await waker.look() == ["second"]


async def test_a_pod_that_is_deleted_after_it_was_woken_holds_nothing(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    first, _ = waker.waits_for("first", cpu=10), waker.waits_for("second", cpu=10)
    waker.cluster.gone("held")
    assert await waker.look() == ["first"]
    waker.pods.remove(first.key, 99)
    waker.waits.settled(first.key)
    waker.cluster.gone("first")
    assert await waker.look() == ["second"]


async def test_a_wake_up_that_could_not_be_written_is_written_later(waker):
    waker.waits_for("p", cpu=10)
    waker.client.failing = True
    assert await waker.look() == []
    waker.client.failing = False
    assert await waker.look() == ["p"]


async def test_a_pod_that_was_just_refused_is_woken_without_a_pause(waker):
    waker.cluster.pod("held", "team", node="n1", cpu=10)
    waker.waits_for("p", cpu=1)
    waker.cluster.gone("held")
    assert await waker.look() == ["p"]


async def test_those_that_no_quota_bounds_keep_their_pause(waker):
    record = waker.waits_for("p", quota="", cpu=1)
    assert await waker.look() == []
    await waker.clock.advance(2)
    assert await waker.look() == ["p"]
    assert record.key == "default/p"


@pytest.mark.parametrize(
    "free",
    [
        lambda waker: waker.cluster.gone("held"),
        lambda waker: waker.cluster.quota("team", least={"cpu": "20"}, most={"cpu": "20"}),
        lambda waker: waker.cluster.pod("held", "team", node="n1", cpu=10, phase="Succeeded"),
        lambda waker: waker.cluster.no_node("n2"),
        lambda waker: waker.cluster.no_quota("team"),
    ],
    ids=["pod deleted", "quota raised", "pod finished", "node gone", "quota deleted"],
)
async def test_it_is_looked_at_within_milliseconds_after_quota_is_freed(waker, free):
    waker.cluster.node("n2")
    waker.cluster.pod("held", "team", node="n2", cpu=10)
    waker.waits_for("p", cpu=10)
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(3.5)
        assert waker.client.patched == []
        free(waker)
        at = waker.clock.now()
        await waker.clock.advance(0.05)
        assert waker.client.patched == ["p"]
        assert waker.woken_at["p"] - at <= 0.05


async def test_what_one_quota_no_longer_asks_for_wakes_those_that_may_borrow_it():
    waker = Waker()
    waker.cluster.quota("lender", least={"cpu": "60"}, most={"cpu": "100"})
    waker.cluster.quota("team", least={"cpu": "40"}, most={"cpu": "100"})
    waker.cluster.pod("wish", "lender", cpu=60)
    waker.waits_for("p", cpu=80)
    assert await waker.look() == []
    waker.cluster.gone("wish")
    assert await waker.look() == ["p"]


@pytest.mark.parametrize(("quota", "looks"), [("", 0), ("team", 5)], ids=["no quota", "a quota"])
async def test_only_pods_that_a_quota_bounds_are_looked_at_more_than_once_a_second(
    waker, quota, looks
):
    for number in range(5):
        waker.cluster.pod(f"other{number}", node="n1", cpu=1)
    waker.waits_for("p", quota=quota, cpu=99)
    plugin, seen = waker.cluster.plugin, []
    inner = plugin.line
    plugin.line = lambda pod, view: seen.append(pod.key) or inner(pod, view)
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("nudge", waker.requeuer.run)
        await waker.clock.advance(1.0)
        seen.clear()
        for number in range(5):
            waker.cluster.gone(f"other{number}")
            await waker.clock.advance(0.1)
        assert len(seen) == looks
