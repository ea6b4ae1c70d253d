"""kube-scheduler clears a nomination right after its victims have left: the place is kept.

It learns that they are gone some milliseconds before this extender does, tries the pod, is refused
by a view that still counts them, and clears `status.nominatedNodeName`.
"""

import contextlib
import copy

import pytest

from extender.framework import nominations
from tests.extender.preemption import own_stage
from tests.extender.sample_plugin import allocation

KEPT_SECONDS = 12.0
WAITING = {"high": 100, "thief": 10, "equal": 100, "above": 101}
LEAVES = "2026-07-01T13:00:00Z"


@pytest.fixture
async def world(make):
    """Six slots with a CPU each on one node, for which pods of several priorities compete."""
    async with own_stage.opened(make) as made:
        for name, count in (("n1", "6"), ("n2", "1")):
            node = make.node(name, cpu=count, **{allocation.RESOURCE: count})
            made.server.put("nodes", node)
        held = [(f"low-{number}", 10, "n1") for number in range(3)]
        for name, priority, node in (*held, *((name, up, "") for name, up in WAITING.items())):
            count = 2 if node else 4
            numbers = ",".join(str(2 * int(name[-1]) + one) for one in (0, 1)) if node else ""
            pod = made.pod(name, priority=priority, slots=count, node=node, numbers=numbers)
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(count)
            # Of no team, so that they stand in no line for its quota.
            del pod["metadata"]["labels"][allocation.TEAM]
            made.server.put("pods", pod)
        yield made


class Scheduler:
    """kube-scheduler that preempts two pods by itself, which the extender sees later than it."""

    def __init__(self, world):
        self.world, self.victims = world, ("low-1", "low-2")

    def put(self, name, node="", **metadata):
        pod = copy.deepcopy(self.world.server.objects["pods"][f"default/{name}"])
        pod["metadata"] |= metadata
        if not pod["spec"]["nodeName"]:
            pod["status"]["nominatedNodeName"] = node
        self.world.server.put("pods", pod)

    async def evict(self, one):
        """Evict for the pod, and nominate it."""
        for name in self.victims:
            self.put(name, deletionTimestamp=LEAVES, deletionGracePeriodSeconds=30)
        self.put("high", "n1")
        await self.world.until(lambda: self.nominated(one) == "n1")

    async def clear(self, one, *, clears=True):
        """The victims leave, and the pod is refused before the extender sees that."""
        assert not await self.world.attempt(one)
        # Whatever waits was looked at before anything has changed.
        await self.world.time.advance(1.0)
        assert "high" not in self.world.server.nudged
        for name in self.victims:
            self.world.server.delete("pods", f"default/{name}")
        if clears:
            self.put("high")
            await self.world.until(lambda: not self.nominated(one))

    @staticmethod
    def nominated(one):
        pod = one.feeds.pods.get("default/high")
        return pod.nominated if pod is not None else ""


@contextlib.asynccontextmanager
async def cleared(world, *, clears=True):
    """An extender that has refused the pod by a view that was late."""
    scheduler = Scheduler(world)
    async with world.extender() as one:
        await scheduler.evict(one)
        await scheduler.clear(one, clears=clears)
        yield one


async def reasons(world, one, name):
    answer = await world.filter(one, name, nodes=("n1",))
    return {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}


@pytest.mark.parametrize("name", ["thief", "equal"])
async def test_no_pod_of_lower_or_equal_priority_takes_the_place_meanwhile(world, name):
    async with cleared(world) as one:
        assert not await world.attempt(one, name)
        assert await reasons(world, one, name) == {"n1": nominations.KEPT.reason}
        assert await world.attempt(one)
        assert world.server.evictions == []


async def test_a_pod_of_higher_priority_is_not_held_back(world):
    async with cleared(world) as one:
        assert await world.attempt(one, "above")
        await world.until(lambda: one.feeds.pods.get("default/above").node)
        assert not await world.attempt(one)


@pytest.mark.parametrize("clears", [True, False], ids=["cleared", "not cleared"])
async def test_the_pod_is_tried_again_at_once(world, clears):
    """kube-scheduler has seen its victims leave: nothing that it watches would wake the pod."""
    async with cleared(world, clears=clears) as one:
        since = world.time.now()
        await world.until(lambda: "high" in world.server.nudged, step=0.05)
        assert world.time.now() - since <= 0.5
        assert one.registry.value("koord_extender_nudges_total", {"because": "fits"}) == 1


async def test_where_it_is_never_tried_again_the_place_is_free_after_some_seconds(world):
    async with cleared(world) as one:
        assert not await world.attempt(one, "thief")
        await world.time.advance(KEPT_SECONDS - 1.5)
        assert not await world.attempt(one, "thief")
        await world.until(lambda: not one.books.nominations)
        assert world.time.now() <= own_stage.START + KEPT_SECONDS + 3
        await world.until(lambda: "thief" in world.server.nudged)
        assert await world.attempt(one, "thief")


async def test_each_of_two_extenders_keeps_the_place(world):
    async with world.extender() as other, cleared(world) as one:
        await world.until(lambda: not Scheduler.nominated(other))
        assert not await world.attempt(other, "thief")
        assert not await world.attempt(one, "thief")
        assert await world.attempt(other)
        await world.until(lambda: not one.books.nominations)


async def test_an_extender_that_starts_while_they_leave_keeps_the_place(world):
    scheduler = Scheduler(world)
    async with world.extender() as one:
        await scheduler.evict(one)
    async with world.extender() as one:
        await scheduler.clear(one)
        assert not await world.attempt(one, "thief")
        assert await world.attempt(one)


@pytest.mark.parametrize("ends", ["deleted", "bound elsewhere", "nominated elsewhere"])
async def test_the_place_is_free_at_once_when_the_pod_needs_it_no_longer(world, ends):
    async with cleared(world) as one:
        world.server.put("nodes", world.make.node("n2", **{allocation.RESOURCE: "6"}))
        if ends == "deleted":
            world.server.delete("pods", "default/high")
        elif ends == "bound elsewhere":
            pod = copy.deepcopy(world.high())
            pod["spec"]["nodeName"] = "n2"
            world.server.put("pods", pod)
        else:
            Scheduler(world).put("high", "n2")
        await world.until(lambda: not keeps(one, "n1"))
        assert (await world.filter(one, "thief", nodes=("n1",)))["NodeNames"] == ["n1"]
        assert world.time.now() < own_stage.START + KEPT_SECONDS


def keeps(one, node):
    return [claim for claim in one.books.nominations.values() if claim.node == node]
