"""The whole extender preempts for a pod that only a plug-in refuses, in virtual time."""

import asyncio
import json

import pytest

from api import names
from extender.preemption import in_flight
from tests.extender.preemption import own_stage
from tests.extender.sample_plugin import plugin


@pytest.fixture
async def world(make):
    async with own_stage.opened(make) as made:
        yield made


async def test_one_pod_leaves_and_its_place_is_kept_until_the_preemptor_is_bound(world):
    server = world.server
    async with world.extender() as one:
        answer = await world.filter(one)
        assert set(answer["FailedAndUnresolvableNodes"]) == {"n1", "n2"}
        await world.until(lambda: server.evictions)
        assert server.evictions == ["low-2"], "the youngest of the least important"
        await world.until(lambda: server.hinted)
        record = json.loads(world.high()["metadata"]["annotations"][names.ANNOTATION_PREEMPTION])
        assert record["victims"] == ["uid-low-2"]
        assert world.high()["status"]["nominatedNodeName"] == record["node"]
        # While it leaves, no other pod is evicted: not by us, not by the scheduler.
        answer = await world.filter(one)
        assert answer["FailedNodes"] == {record["node"]: in_flight.AWAITED.reason}
        body = {
            "Pod": world.high(),
            "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-low-0"}]}},
        }
        assert (await world.call(one, "preempt", body))["NodeNameToMetaVictims"] == {}
        # A replacement of the victim is not faster than the pod for which it left.
        world.pod("again", priority=10)
        server.leave()
        await world.until(lambda: "high" in server.nudged)
        assert not await world.attempt(one, "again")
        assert await world.attempt(one)
        await world.until(lambda: one.feeds.pods.get("default/high").node)
        assert not await world.attempt(one, "again")
        await world.time.advance(5)
        assert server.evictions == ["low-2"]
        assert not one.books.nominations
        assert not len(one.answers.preemptions)
        value = one.registry.value
        assert value("koord_extender_preemptions_total", {"result": "placed"}) == 1
        assert value("koord_extender_preemption_victims_total", {"result": "evicted"}) == 1
    (note,) = world.said("high", "Preempting")
    assert "evicts 1 of lower priority: default/low-2 (priority 10, 2 example.com/slots)" in note
    assert plugin.CAPPED.reason in note
    (note,) = world.said("low-2", "Preempted")
    assert "evicted for default/high of priority 100, above its own 10" in note


async def test_the_page_says_who_would_leave_and_that_is_who_leaves(world):
    async def page(one):
        address = f"{one.health_url}/debug/explain?pod=default/high"
        async with world.session.get(address) as answer:
            return (await answer.json()).get("preemption")

    metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE, "uid": "c"}
    world.server.put("configmaps", {"metadata": metadata, "data": {"preemption": "off"}})
    async with world.extender() as one:
        await world.filter(one)
        told = await page(one)
        assert (told["planned"], told["victims"]) == (True, ["default/low-2"])
        assert "evicts 1 of lower priority: default/low-2" in told["sentence"]
        assert world.server.tried == [], "saying so has no effect"
        world.server.put("configmaps", {"metadata": metadata, "data": {}})
        key = "koordinator-system/koord-switches"
        await world.until(lambda: not one.feeds.switches.get(key).data)
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        assert world.server.evictions == ["low-2"]
        await world.until(lambda: one.feeds.pods.get("default/low-2").leaves_at > 0)
        told = await page(one)
        assert told["victims"] == []
        assert told["leaving"] == ["default/low-2"]
        assert told["underWay"]["evicted"] == 1


@pytest.mark.parametrize(
    "step",
    [
        "note before", "note after", "hint before", "hint after",
        "dry run before", "dry run after", "evict before", "evict after", "nudge before",
        "nudge after",
    ],
)  # fmt: skip
async def test_a_kill_in_the_middle_evicts_no_pod_twice_and_starves_none(world, step):
    """Two victims, so that a kill may come between them."""
    server = world.server
    world.pod("high", priority=100, slots=4)
    server.stop = step
    async with world.extender() as one:
        await world.filter(one)
        if step.startswith("nudge"):
            await world.until(lambda: len(server.evictions) == 2)
            server.leave()
        await world.until(server.stopped.is_set)
    assert len(server.evictions) <= 2
    server.stop = ""
    server.go_on.set()
    async with world.extender() as again:
        world.pod("quick", priority=10)
        if step != "note before":
            claim = again.books.nominations["uid-high"]
            assert claim.evidence == "preemption", "its place was kept before the first call"
            assert not await world.attempt(again, "quick")
        await world.placed(again)
        await world.time.advance(5)
        assert server.evictions == ["low-2", "low-1"]
        assert world.high()["spec"]["nodeName"]
        assert not again.books.nominations


@pytest.mark.parametrize("both", [True, False], ids=["asked at once", "only one is asked"])
async def test_of_two_extenders_one_evicts(world, both):
    server = world.server
    async with world.extender() as one, world.extender() as other:
        await asyncio.gather(*(world.filter(each) for each in ((one, other) if both else (one,))))
        await world.until(lambda: server.evictions)
        await world.time.advance(8)
        assert server.evictions == ["low-2"]
        await world.until(lambda: "uid-high" in other.books.nominations)
        # The other one is asked from now on, as after a change of leaders.
        server.leave()
        await world.placed(other)
        await world.time.advance(5)
        assert server.evictions == ["low-2"]
        assert not one.books.nominations
        assert not other.books.nominations


async def test_a_budget_stops_it_and_nothing_is_kept(world):
    server = world.server
    server.guarded = {"low-0", "low-1", "low-2"}
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.said("high", "PreemptionFailed"))
        await world.until(
            lambda: names.ANNOTATION_PREEMPTION not in world.high()["metadata"]["annotations"]
        )
        assert not one.books.nominations
        assert "low-2 may not be evicted now: 429" in world.said("high", "PreemptionFailed")[0]
        await world.until(lambda: "nominatedNodeName" not in world.high()["status"])
        tried = len(server.tried)
        await world.filter(one)
        await world.time.advance(5)
        assert len(server.tried) == tried, "it is left alone for a while"
        # Another pod is spared no longer than the budget forbids it.
        server.guarded = {"low-2"}
        for _ in range(8):
            await world.time.advance(5)
            await world.filter(one)
        await world.until(lambda: server.evictions)
        assert server.evictions == ["low-1"]


async def test_a_budget_that_is_known_protects_before_any_eviction_is_tried(world):
    spec = {"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": 1}
    budget = {"name": "kept", "namespace": "default", "uid": "b"}
    world.server.put(
        "poddisruptionbudgets",
        {"metadata": budget, "spec": spec, "status": {"disruptionsAllowed": 0}},
    )
    world.pod("low-2", priority=10, numbers="4,5", node="n1", at="12:00:02", labels={"app": "kept"})
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        assert world.server.tried == [("low-1", False)]


async def test_all_are_tried_before_the_first_of_several_is_evicted(world):
    world.pod("high", priority=100, slots=4)
    world.server.guarded = {"low-1"}
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.said("high", "PreemptionFailed"))
        assert world.server.evictions == []
        assert ("low-1", True) in world.server.tried


async def test_no_pod_leaves_where_a_budget_does_not_allow_all_of_several(world):
    """Each alone may leave, as a dry run says; the second would be refused after the first."""
    spec = {"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": 2}
    budget = {"name": "kept", "namespace": "default", "uid": "b"}
    status = {"disruptionsAllowed": 1}
    world.server.put("poddisruptionbudgets", {"metadata": budget, "spec": spec, "status": status})
    for name, numbers, at in (
        ("low-0", "0,1", "00"),
        ("low-1", "2,3", "01"),
        ("low-2", "4,5", "02"),
    ):
        world.pod(
            name, priority=10, numbers=numbers, node="n1", at=f"12:00:{at}", labels={"app": "kept"}
        )
    world.pod("high", priority=100, slots=4)
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.said("high", "PreemptionFailed"))
        assert world.server.evictions == []
        assert "as many evictions at once" in world.said("high", "PreemptionFailed")[0]


@pytest.mark.parametrize(
    ("chosen", "live"),
    [
        pytest.param({"preemption": {"mode": "observe"}}, {}, id="setting"),
        pytest.param({}, {"preemption": "observe"}, id="switch"),
    ],
)
async def test_what_would_be_done_is_only_told(world, chosen, live):
    if live:
        metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE, "uid": "c"}
        world.server.put("configmaps", {"metadata": metadata, "data": live})
    async with world.extender(**chosen) as one:
        await world.filter(one)
        await world.until(lambda: world.said("high", "WouldPreempt"))
        assert not one.books.nominations
    assert world.server.tried == []
    assert world.server.hinted == []
