"""The whole extender preempts for a pod that only a plug-in refuses, in virtual time."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from api import names
from extender import app, registry, settings
from extender.preemption import in_flight, preemption_record
from extender.requeue import unschedulable_pods
from process.runtime import clock as clocks
from tests import patience
from tests.extender.preemption.evicting_server import EvictingServer
from tests.extender.sample_plugin import allocation, plugin

START = 1782907510.0
KNOWN = registry.PLUGINS | {"Slots": lambda _: plugin.SlotsPlugin(cap=6)}
CONDITION = {"type": "PodScheduled", "status": "True"}


class World:
    """An API server, extenders, and the hands of a scheduler and of a kubelet."""

    def __init__(self, server, session, time, make):
        self.server, self.session, self.time, self.make = server, session, time, make
        self.extenders, self.access = [], None

    def slots_node(self, name, count=16):
        self.server.put("nodes", self.make.node(name, **{allocation.RESOURCE: str(count)}))

    def pod(self, name, *, priority=0, numbers="", node="", at="12:00:00", slots=2, **more):
        """A pod of the team whose quota is full; with numbers of slots where it has a node."""
        notes = {allocation.NUMBERS: numbers} if numbers else {}
        requests = {allocation.RESOURCE: str(slots)}
        raw = self.make.pod(name, node=node, requests=requests, annotations=notes)
        raw["metadata"]["labels"] |= {allocation.TEAM: "red"} | more.pop("labels", {})
        raw["spec"] |= {"priority": priority, **more}
        if node:
            since = {"lastTransitionTime": f"2026-07-01T{at}Z"}
            raw["status"]["conditions"] = [CONDITION | since]
        self.server.put("pods", raw)
        return raw

    def fill(self):
        """Three pods of low priority use all that the quota may."""
        for number in range(3):
            numbers = f"{2 * number},{2 * number + 1}"
            self.pod(
                f"low-{number}", priority=10, numbers=numbers, node="n1", at=f"12:00:0{number}"
            )

    @contextlib.asynccontextmanager
    async def extender(self, **chosen):
        anywhere = {"port": 0, "linger_seconds": 0, "drain_seconds": 0.05, "announce_seconds": 0}
        made = settings.Settings(
            server=anywhere, health=anywhere, plugins={"enabled": ("Slots",), "weights": {}},
            preemption=chosen.pop("preemption", {}), **chosen,
        )  # fmt: skip
        async with app.running(made, access=self.access, clock=self.time, plugins=KNOWN) as one:
            self.extenders.append(one)
            await self.until(lambda: one.health.ready)
            yield one
            self.extenders.remove(one)

    async def until(self, condition, step=0.1):
        await patience.until(condition, lambda: self.time.advance(step))

    async def call(self, one, verb, body):
        async with self.session.post(f"{one.url}/{verb}", json=body) as answer:
            return await answer.json(content_type=None)

    async def filter(self, one, name="high", nodes=("n1", "n2")):
        pod = self.server.objects["pods"][f"default/{name}"]
        await self.until(lambda: one.feeds.pods.get(f"default/{name}"))
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
        return await self.call(one, "filter", body)

    async def attempt(self, one, name="high"):
        """What a scheduler does with a pod: whether it was bound."""
        answer = await self.filter(one, name)
        assert "NodeNames" in answer, answer
        if not answer["NodeNames"]:
            return False
        body = {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}"}
        said = await self.call(one, "bind", body | {"Node": answer["NodeNames"][0]})
        return said["Error"] == ""

    async def placed(self, one, name="high"):
        """Attempt whenever the pod was changed, as a scheduler would, until it is bound.

        Every extender has seen the binding then.
        """
        seen = -1
        async with asyncio.timeout(patience.SECONDS):
            while True:
                self.server.leave()
                if len(self.server.nudged) > seen:
                    seen = len(self.server.nudged)
                    if await self.attempt(one, name):
                        break
                await self.time.advance(0.25)
                await asyncio.sleep(0.001)
        for each in self.extenders:
            await self.until(lambda each=each: each.feeds.pods.get(f"default/{name}").node)

    def high(self):
        return self.server.objects["pods"]["default/high"]

    def said(self, name, reason):
        return [
            event["note"]
            for event in self.server.events
            if (event["regarding"]["name"], event["reason"]) == (name, reason)
        ]


@pytest.fixture
async def world(make):
    time = clocks.ManualClock(now=START)
    server = EvictingServer(time)
    async with server.serving() as access, aiohttp.ClientSession() as session:
        made = World(server, session, time, make)
        made.access = access
        made.slots_node("n1")
        made.slots_node("n2")
        made.fill()
        made.pod("high", priority=100)
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
        # While it leaves, nobody else is evicted: not by us, not by the scheduler.
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
async def test_a_kill_in_the_middle_evicts_nobody_twice_and_starves_nobody(world, step):
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
            assert claim.evidence == "preemption", "its place was kept before anybody asked"
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


async def test_a_budget_that_is_known_protects_before_anybody_is_tried(world):
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


async def test_nobody_leaves_where_a_budget_does_not_allow_all_of_several(world):
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


async def test_switched_off_in_the_middle_it_evicts_nobody_and_keeps_nothing(world):
    metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE, "uid": "c"}
    world.server.stop = "hint before"
    async with world.extender() as one:
        await world.filter(one)
        await world.until(world.server.stopped.is_set)
        world.server.put("configmaps", {"metadata": metadata, "data": {"preemption": "off"}})
        await world.until(lambda: one.feeds.switches.get("koordinator-system/koord-switches"))
        world.server.go_on.set()
        await world.until(lambda: not one.books.nominations)
        assert world.server.tried == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"id":"a","node":"n1"}', id="over"),
        pytest.param('{"id":"a","node":"n1","v":2,"until":1782907600}', id="another version"),
        pytest.param('{"id":"a","node":"../n1","until":1782907600}', id="no node name"),
        pytest.param('{"id":"a","node":"n1","until":99999999999}', id="for ever"),
        pytest.param('{"id":"a","node":"n1","until":1e999}', id="no number"),
        pytest.param(
            json.dumps({"id": "a", "node": "n1", "victims": ["u"] * 65, "until": 1}), id="65"
        ),
        pytest.param("x" * 5000, id="too long"),
    ],
)
def test_what_is_written_on_a_pod_is_bounded(text):
    assert preemption_record.decode(text, START, 3600.0) is None


async def test_a_record_evicts_nobody_and_keeps_a_place_for_its_pod_alone(world):
    """A forged record, as without admission policies: it names innocent pods, and too many."""
    record = preemption_record.Record("forged", "n2", ("uid-low-0", "uid-low-1"), START, START + 20)
    raw = world.high()
    raw["metadata"]["annotations"][names.ANNOTATION_PREEMPTION] = preemption_record.encode(record)
    world.server.put("pods", raw)
    async with world.extender() as one:
        assert one.books.nominations["uid-high"].node == "n2"
        world.time.jump(25)
        await world.until(lambda: not one.books.nominations, step=1)
        assert world.server.evictions == []


@pytest.mark.parametrize("end", ["deleted", "bound elsewhere"])
async def test_what_is_kept_ends_with_its_pod(world, end):
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        if end == "deleted":
            world.server.delete("pods", "default/high")
        else:
            world.pod("high", priority=100, numbers="9,10", node="n2")
        await world.until(lambda: not len(one.answers.preemptions))
        assert not one.books.nominations


async def test_an_extender_that_is_not_asked_evicts_nobody(world):
    async with world.extender() as one:
        world.server.stop = "note before"
        await world.filter(one)
        await world.until(world.server.stopped.is_set)
    world.server.stop = ""
    world.server.go_on.set()
    async with world.extender():
        await world.time.advance(10)
        assert world.server.tried == []


async def test_while_kube_scheduler_preempts_for_a_pod_nobody_else_leaves(world):
    """Its own preemption has evicted another pod on the node that it nominated."""
    high = world.high()
    high["status"]["nominatedNodeName"] = "n2"
    gone = "2026-07-01T13:00:00Z"
    other = world.pod("other", priority=5, node="n2", labels={allocation.TEAM: "blue"}, slots=0)
    other["metadata"] |= {"deletionTimestamp": gone, "deletionGracePeriodSeconds": 600}
    world.server.put("pods", high)
    world.server.put("pods", other)
    async with world.extender() as one:
        await world.until(lambda: one.feeds.pods.get("default/other").leaves_at > 0)
        await world.filter(one)
        await world.time.advance(3)
        assert (world.server.tried, world.said("high", "Preempting")) == ([], [])
        world.server.delete("pods", "default/other")
        await world.until(lambda: world.server.evictions)
        assert world.server.evictions == ["low-2"]


@pytest.mark.parametrize(
    ("uid", "ago", "expected"),
    [
        pytest.param("uid-high", 1.0, True, id="its victims are about to be evicted"),
        pytest.param("uid-high", 9.0, False, id="kube-scheduler chose none of them"),
        pytest.param("uid-other", 1.0, False, id="an earlier pod of its name"),
    ],
)
async def test_what_the_preempt_verb_has_confirmed_counts_for_a_while(world, uid, ago, expected):
    confirmed = unschedulable_pods.Preemptor(uid, {"n1": frozenset({"uid-low-0"})}, START - ago)
    async with world.extender() as one:
        pod = one.feeds.pods.get("default/high")
        assert in_flight.in_tree(pod, confirmed, one.books.cluster, START) is expected


async def test_a_victim_that_never_leaves_gives_the_place_back_and_is_not_waited_for_for_ever(
    world,
):
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        world.time.jump(120)
        await world.until(lambda: not one.books.nominations, step=1)
        await world.until(lambda: world.said("high", "PreemptionFailed"))
        assert "it was not placed in time" in world.said("high", "PreemptionFailed")[0]
        assert world.server.evictions == ["low-2"]
