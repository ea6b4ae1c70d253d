"""When the extender does not preempt, or gives the place back: switches, forged records, time."""

import copy
import json

import pytest

from api import names
from extender.preemption import in_tree, preemption_record
from extender.requeue import unschedulable_pods
from tests.extender.preemption import own_stage
from tests.extender.sample_plugin import allocation


@pytest.fixture
async def world(make):
    async with own_stage.opened(make) as made:
        yield made


async def test_switched_off_in_the_middle_it_evicts_no_pod_and_keeps_no_place(world):
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
    assert preemption_record.decode(text, own_stage.START, 3600.0) is None


async def test_a_record_evicts_no_pod_and_keeps_a_place_for_its_own_pod_alone(world):
    """A forged record, as without admission policies: it names innocent pods, and too many."""
    record = preemption_record.Record(
        "forged", "n2", ("uid-low-0", "uid-low-1"), own_stage.START, own_stage.START + 20
    )
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


async def test_an_extender_that_is_not_asked_evicts_no_pod(world):
    async with world.extender() as one:
        world.server.stop = "note before"
        await world.filter(one)
        await world.until(world.server.stopped.is_set)
    world.server.stop = ""
    world.server.go_on.set()
    async with world.extender():
        await world.time.advance(10)
        assert world.server.tried == []


@pytest.fixture
async def nominated(world):
    """kube-scheduler's own preemption has evicted another pod on the node that it nominated."""
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
        yield one


async def leave(world, one):
    world.server.delete("pods", "default/other")
    await world.until(lambda: one.feeds.pods.get("default/other") is None)


async def test_while_kube_scheduler_preempts_for_a_pod_no_other_pod_leaves(world, nominated):
    assert (world.server.tried, world.said("high", "Preempting")) == ([], [])
    await leave(world, nominated)
    await world.until(lambda: world.server.evictions)
    assert world.server.evictions == ["low-2"]


@pytest.mark.parametrize("asks", ["asks", "never asks"])
async def test_a_node_that_kube_scheduler_still_counts_as_full_is_waited_for(
    world, nominated, asks
):
    """It has not seen yet that its victim is gone, and asks about the other nodes alone."""
    await leave(world, nominated)
    await world.filter(nominated, nodes=("n1",))
    await world.time.advance(3)
    assert world.server.tried == []
    if asks == "asks":
        await world.filter(nominated)
        await world.until(lambda: world.server.evictions)
        assert world.time.now() < own_stage.START + 12
    else:
        await world.until(lambda: world.server.nudged or world.server.evictions, step=1)
        assert world.time.now() > own_stage.START + 12


@pytest.mark.parametrize(
    ("uid", "ago", "expected"),
    [
        pytest.param("uid-high", 1.0, True, id="its victims are about to be evicted"),
        pytest.param("uid-high", 9.0, False, id="kube-scheduler chose none of them"),
        pytest.param("uid-other", 1.0, False, id="an earlier pod of its name"),
    ],
)
async def test_what_the_preempt_verb_has_confirmed_counts_for_a_while(world, uid, ago, expected):
    confirmed = unschedulable_pods.Preemptor(
        uid, {"n1": frozenset({"uid-low-0"})}, own_stage.START - ago
    )
    async with world.extender() as one:
        await world.filter(one)
        pod, waiter = one.feeds.pods.get("default/high"), one.answers.waits.get("default/high")
        view = one.books.cluster.view()
        evicts = in_tree.InTree().evicts(pod, waiter, confirmed, view, own_stage.START)
        assert evicts is expected


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


@pytest.mark.parametrize("sees", ["sees it in time", "never sees it"])
async def test_a_place_that_kube_scheduler_still_counts_as_taken_is_kept_for_a_while(world, sees):
    """It has not seen yet that the victim is gone, and asks about the other nodes alone."""
    world.pod("again", priority=10)
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        node = one.books.nominations["uid-high"].node
        others = tuple({"n1", "n2"} - {node})
        world.server.leave()
        await world.until(lambda: "high" in world.server.nudged)
        assert (await world.filter(one, nodes=others))["NodeNames"] == []
        await world.time.advance(3)
        assert not await world.attempt(one, "again")
        if sees == "sees it in time":
            await world.until(lambda: len(world.server.nudged) > 1)
            assert await world.attempt(one)
        else:
            await world.until(lambda: world.said("high", "PreemptionFailed"), step=1)
            assert world.time.now() > own_stage.START + 30
            assert await world.attempt(one, "again")
        assert world.server.evictions == ["low-2"]


async def test_a_clock_that_is_set_back_keeps_no_place_for_longer(world):
    async with world.extender() as one:
        await world.filter(one)
        await world.until(lambda: world.server.evictions)
        world.time.jump(-7200)
        await world.until(lambda: not one.books.nominations, step=1)
        assert world.time.monotonic() < 120


async def test_a_clock_that_is_set_back_spares_no_pod_for_longer(world):
    server = world.server
    server.guarded = {"low-0", "low-1", "low-2"}
    async with world.extender() as one:
        for _ in range(12):
            await world.filter(one)
            await world.time.advance(5.0)
        assert {name for name, _ in server.tried} == server.guarded
        world.time.jump(-3600)
        server.guarded = set()
        for _ in range(24):
            await world.filter(one)
            await world.time.advance(5.0)
        assert len(server.evictions) == 1


@pytest.mark.parametrize("back", [0.0, 3600.0])
async def test_a_clock_that_is_set_back_keeps_no_pod_from_preempting(world, back):
    for number in range(3):
        world.pod(
            f"low-{number}", priority=1000, numbers=f"{2 * number},{2 * number + 1}", node="n1"
        )
    async with world.extender() as one:
        await world.filter(one)
        result = {"result": "no_victims"}
        await world.until(lambda: one.registry.value("koord_extender_preemptions_total", result))
        world.time.jump(-back)
        world.fill()
        for _ in range(30):
            await world.filter(one)
            await world.time.advance(5.0)
        assert world.server.evictions == ["low-2"]


@pytest.mark.parametrize("before", [None, "uid-before"], ids=["new", "made anew under its name"])
async def test_a_pod_that_the_scheduler_knows_first_preempts_once_the_watch_shows_it(world, before):
    """Watches of two processes tell of a pod at moments of their own."""
    server, early = world.server, copy.deepcopy(world.high())
    early["metadata"] |= {"name": "early", "uid": "uid-early"}
    async with world.extender() as one:
        if before:
            server.put("pods", early | {"metadata": early["metadata"] | {"uid": before}})
            await world.until(lambda: one.feeds.pods.get("default/early"))
        body = {"Pod": early, "Nodes": None, "NodeNames": ["n1", "n2"]}
        assert not (await world.call(one, "filter", body))["NodeNames"]
        await world.time.advance(1.0)
        assert server.evictions == []
        server.put("pods", early)
        await world.until(lambda: server.evictions)
