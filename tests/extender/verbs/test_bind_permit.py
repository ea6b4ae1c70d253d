"""Bind with allocations: all or nothing, waits of Permit, and the look after a wait."""

import asyncio
import json

import msgspec
import pytest

from api import names
from api.kubernetes import extender as wire
from domain.usage import load
from extender.framework import pipeline, verdicts
from extender.settings import BindSettings
from extender.state import cluster_state, deltas, gang_facts, ledger, records
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock
from tests import patience
from tests.extender import slots

CODEC = slots.Slots()
WANTED = {slots.RESOURCE: "1"}


class Server:
    """Keeps what is bound; everything else is known from the watch."""

    def __init__(self):
        self.bound = {}
        self.refuses = False

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        await asyncio.sleep(0)
        guard.check()
        if self.refuses:
            raise errors.Forbidden(403, message="no")
        self.bound[name] = node, annotations


class World:
    """A state with slots, a binder, and pods that the watch has shown."""

    def __init__(self, make, projector, deadline, *plugins):
        self.make, self.projector = make, projector
        self.clock, self.server, self.store = clock.ManualClock(), Server(), store.Store()
        self.books = ledger.Ledger(cluster_state.ClusterState([CODEC], ("cpu",)))
        self.empty = {}
        self.switches = switches.Switches("extender")
        line = pipeline.Pipeline(
            pre_filters=(CODEC, *plugins),
            filters=(CODEC, *(p for p in plugins if hasattr(p, "filter"))),
            reservers=(CODEC, *(p for p in plugins if hasattr(p, "reserve"))),
            permits=tuple(p for p in plugins if hasattr(p, "permit")),
            codecs=(CODEC,),
        )
        parts = bind.Parts(
            self.books, line, self.server, self.store, projector, self.clock, self.switches
        )
        self.binder = bind.Binder(parts, BindSettings(deadline_seconds=deadline))

    def node(self, name, count):
        figures = (("cpu", 64000), (slots.RESOURCE, count))
        record = records.NodeRecord(name, figures, figures, uid=name)
        self.books.node(self.books.cluster.node(name), record)

    def pods(self, *wanted, requests=WANTED):
        for name in wanted:
            asked = self.projector(self.make.pod("p", requests=requests))
            record = records.PodRecord(f"default/{name}", f"uid-{name}", "", asked)
            self.store.put(store.Meta(record.key, record.uid, 7), record)
            self.books.pod(None, record, 0.0)
        self.empty = self.books.cluster.fingerprint()

    async def bind(self, name, node="n1", connected=lambda: True):
        return await self.binder.bind(
            wire.BindingArgs(name, "default", f"uid-{name}", node), connected
        )

    def start(self, name, node="n1", connected=lambda: True):
        return asyncio.gather(self.bind(name, node, connected))

    def nothing_is_held(self):
        return self.books.cluster.fingerprint() == self.empty and not self.books.assumptions


@pytest.fixture
def requirements(picture):
    return lambda raw: picture.record(raw).requirements


@pytest.fixture
def world(make, requirements):
    def made(*plugins, count=2, deadline=25):
        built = World(make, requirements, deadline, *plugins)
        built.node("n1", count)
        built.pods("a", "b", "c")
        return built

    return made


async def test_what_plug_ins_granted_is_counted_at_once_and_written_with_the_node(world):
    here = world()
    answers = [await here.bind(name) for name in "abc"]
    assert answers == ["", "", "no slot is free"]
    assert {name: notes[slots.ANNOTATION] for name, (_, notes) in here.server.bound.items()} == {
        "a": "0",
        "b": "1",
    }
    payload = json.loads(here.server.bound["b"][1][names.PLACEMENT])
    assert payload["granted"] == {slots.NAME: {"number": 1}}


@pytest.mark.parametrize("failure", ["refused", "no slot", "stale change"])
async def test_a_bind_that_fails_leaves_the_same_bytes(world, failure):
    here = world(slots.Tickets())
    if failure == "no slot":
        here.node("n1", 0)
    if failure == "stale change":
        here.books.cluster.apply(
            deltas.ObjectDelta("ticket", "default/a", None, slots.Ticket("someone"))
        )
    here.empty = here.books.cluster.fingerprint()
    here.server.refuses = failure == "refused"
    assert await here.bind("a") != ""
    assert here.nothing_is_held()
    if failure == "refused":
        here.server.refuses = False
        assert await here.bind("a") == ""
        assert here.books.cluster.told("ticket", "default/a").after == slots.Ticket("uid-a")


async def test_what_a_watch_told_of_an_object_meanwhile_is_not_undone(world):
    here = world(slots.Tickets(), slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    present = here.books.cluster.told("ticket", "default/a").after
    newer = slots.Ticket("told by the watch")
    here.books.cluster.apply(deltas.ObjectDelta("ticket", "default/a", present, newer))
    await here.clock.advance(21)
    assert await waiting == ["the others have not come"]
    assert here.books.cluster.told("ticket", "default/a").after == newer


async def test_pods_wait_reserved_until_all_have_come_and_then_are_bound(world):
    here = world(slots.Together(2))
    first = here.start("a")
    await here.clock.settle()
    assert (here.server.bound, len(here.books.assumptions)) == ({}, 1)
    await here.clock.advance(9)
    assert await here.bind("b") == ""
    assert await first == [""]
    assert set(here.server.bound) == {"a", "b"}


async def test_the_first_time_that_permit_named_counts(world):
    """However often others come and go, nobody waits longer than was said at first."""
    here = world(slots.Together(3))
    first = here.start("a")
    await here.clock.advance(15)
    second = here.start("b")
    here.binder.waiting.wake(("all",))
    await here.clock.advance(6)
    assert await first == ["the others have not come"]
    assert not second.done()
    await here.clock.advance(15)
    assert await second == ["the others have not come"]
    assert here.nothing_is_held()


async def test_no_wait_is_longer_than_the_call(world):
    here = world(slots.Together(3), deadline=12)
    waiting = here.start("a")
    await here.clock.advance(13)
    assert await waiting == ["the caller has stopped waiting; nothing was bound"]
    assert here.nothing_is_held()


@pytest.mark.parametrize("cause", ["its time has come", "its caller left", "it was deleted"])
async def test_pods_that_wait_together_are_refused_together(world, cause):
    here, there = world(slots.Together(3, together=True)), {"a": True}
    first = here.start("a", connected=lambda: there["a"])
    await here.clock.advance(15)
    second = here.start("b")
    await here.clock.settle()
    if cause == "its caller left":
        there["a"] = False
    if cause == "it was deleted":
        here.books.pod(here.store.get("default/a"), None, 1.0)
    await here.clock.advance(6)
    [one], [other] = await first, await second
    assert other == f"default/a, which waited with it, was refused: {one}"
    assert not here.books.assumptions


async def test_none_is_bound_with_one_whose_caller_has_just_left(world):
    """Not even for the moment until its own call looks whether anyone waits for the answer."""
    here, there = world(slots.Together(3, together=True), count=3), {"a": True}
    first = here.start("a", connected=lambda: there["a"])
    second = here.start("b")
    await here.clock.settle()
    there["a"] = False
    third = here.start("c")
    await here.clock.settle()
    left = "the caller has stopped waiting; nothing was bound"
    told = f"default/a, which waited with it, was refused: {left}"
    assert [*await first, *await second, *await third] == [left, told, told]
    assert here.nothing_is_held()


class Capped:
    """Refuses in PreFilter while any pod has a slot."""

    name = "Capped"

    def pre_filter(self, pod, view):
        del pod
        return slots.LATE if view.cluster[slots.NAME] else None


async def test_a_pod_that_is_counted_already_is_permitted_by_what_was_prepared_before(world):
    """Else its own claim would make PreFilter refuse it, and no plug-in could let it wait."""
    here = world(Capped(), slots.Together(2))
    waiting = here.start("a")
    await here.clock.advance(5)
    assert here.server.bound == {}
    await here.clock.advance(16)
    assert await waiting == ["the others have not come"]


async def test_a_rejection_wakes_all_that_wait_and_undoes_them(world):
    together = slots.Together(3)
    here = world(together)
    both = [here.start("a"), here.start("b")]
    await here.clock.settle()
    together.broken = True
    here.binder.waiting.wake(("all",))
    assert await asyncio.gather(*both) == [["the others will not come"]] * 2
    assert here.nothing_is_held()


@pytest.mark.parametrize("broken", [False, True], ids=["fulfilled", "broken"])
async def test_what_a_pod_waits_for_may_change_without_another_bind(world, broken):
    together = slots.Together(2)
    here = world(together)
    waiting = here.start("a")
    await here.clock.settle()
    together.count, together.broken = 1, broken
    await here.clock.advance(1.5)
    assert await waiting == ["the others will not come" if broken else ""]
    assert ("a" in here.server.bound) is not broken


async def test_a_caller_that_leaves_while_its_pod_waits_frees_the_place(world):
    here, there = world(slots.Together(3)), {"a": True}
    waiting = here.start("a", connected=lambda: there["a"])
    await here.clock.settle()
    there["a"] = False
    await here.clock.advance(1.5)
    assert await waiting == ["the caller has stopped waiting; nothing was bound"]
    assert here.nothing_is_held()


@pytest.mark.parametrize("change", ["node is gone", "fewer slots", "more of its own"])
async def test_the_node_is_looked_at_again_after_a_wait_without_the_pods_own_claim(world, change):
    here = world(slots.Together(2), count=1)
    here.node("n2", 1)
    here.pods()
    waiting = here.start("a")
    await here.clock.settle()
    if change == "node is gone":
        here.books.node(here.books.cluster.node("n1"), None)
    if change == "fewer slots":
        here.node("n1", 0)
    assert await here.bind("b", "n2") == ""
    expected = {"node is gone": "node n1 is not known", "fewer slots": "no slot is free"}
    assert await waiting == [expected.get(change, "")]
    assert ("a" in here.server.bound) is (change == "more of its own")


async def test_a_pod_that_ends_while_it_waits_is_answered_as_it_is(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    here.books.pod(here.store.get("default/a"), None, 1.0)
    await here.clock.advance(1.5)
    assert "gone" in (await waiting)[0]
    assert not here.books.assumptions


async def test_a_call_that_is_cancelled_while_its_pod_waits_frees_the_place(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert here.nothing_is_held()


async def test_held_binds_are_answered_when_the_extender_stops(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    here.binder.waiting.close("the extender is stopping")
    assert await waiting == ["the extender is stopping"]
    assert await here.bind("b") == "the extender is stopping"
    assert here.nothing_is_held()


class _Together:
    """Lets all pods go at once, when told."""

    name = "Together"

    def __init__(self):
        self.open, self.asked = False, 0

    def pre_filter(self, pod, view):
        return object()

    def permit(self, pod, prepared, view, now):
        self.asked += 1
        return (
            verdicts.Allow(wakes=("all",)) if self.open else verdicts.Wait(1e12, "all", slots.LATE)
        )


async def until(condition):
    async def step():
        await asyncio.sleep(0)

    await patience.until(condition, step, lambda: "")


async def test_binds_that_were_held_are_checked_and_written_in_turns(world):
    """Not all at once: the last would be written long after its check, and calls would wait."""
    plugin = _Together()
    here = world(plugin, count=100)
    under_way, most, gate = 0, 0, asyncio.Event()
    written = here.server.bind

    async def slow(*names_of, **more):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        await written(*names_of, **more)
        under_way -= 1

    here.server.bind = slow
    pods = [f"p{number}" for number in range(40)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await until(lambda: plugin.asked >= len(pods))
    plugin.open = True
    here.binder.waiting.wake(["all"])
    await until(lambda: under_way == 16)
    # Those that wait for their turn find their check fresh, however long the others take.
    await here.clock.advance(4.0)
    gate.set()
    assert await asyncio.gather(*binds) == [[""]] * len(pods)
    assert most == 16
    assert here.server.bound.keys() == set(pods)


async def test_a_bind_whose_turn_comes_too_late_waits_again(world):
    """The quorum may be lost while earlier ones are written."""
    plugin = _Together()
    here = world(plugin, count=100)
    under_way, gate, written = 0, asyncio.Event(), here.server.bind

    async def slow(*names_of, **more):
        nonlocal under_way
        under_way += 1
        await gate.wait()
        await written(*names_of, **more)

    here.server.bind = slow
    pods = [f"p{number}" for number in range(20)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await until(lambda: plugin.asked >= len(pods))
    plugin.open = True
    here.binder.waiting.wake(["all"])
    await until(lambda: under_way == 16)
    plugin.open, before = False, plugin.asked
    gate.set()
    await until(lambda: plugin.asked >= before + 8)
    assert len(here.server.bound) == 16
    plugin.open = True
    here.binder.waiting.wake(["all"])
    assert await asyncio.gather(*binds) == [[""]] * len(pods)


async def test_of_many_held_binds_each_is_asked_about_less_often(world):
    plugin = _Together()
    here = world(plugin, count=400)
    pods = [f"p{number}" for number in range(300)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await until(lambda: plugin.asked >= len(pods))
    for _ in range(9):
        await here.clock.advance(1.0)
    assert plugin.asked <= 4 * len(pods)
    plugin.open = True
    here.binder.waiting.wake(["all"])
    assert await asyncio.gather(*binds) == [[""]] * len(pods)


class Counting:
    """Lets every pod pass by its node alone, and counts how often it is asked."""

    name = "Counting"

    def __init__(self):
        self.asked = 0

    def pre_filter(self, pod, view):
        return object()

    def filter(self, prepared, view, rows, now):
        self.asked += 1


def _change(here, change):
    match change:
        case "another pod there":
            here.pods("other", requests={})
            known = here.store.get("default/other")
            here.books.pod(known, msgspec.structs.replace(known, node="n1"), 1.0)
        case "the node":
            here.node("n1", 7)
        case "its report":
            here.books.report("n1", load.Report(0.0, 60.0, None, (), (), {}))
        case "an object of no node":
            ticket = slots.Ticket("uid-x")
            here.books.cluster.apply(deltas.ObjectDelta("ticket", "default/x", None, ticket))
        case "another node":
            here.node("n2", 7)
        case "a plan of a gang":
            plan = gang_facts.GangPlan("g", "1", 60.0)
            here.books.cluster.apply(deltas.ObjectDelta(deltas.GANG_PLAN, "g", None, plan))


@pytest.mark.parametrize(
    ("change", "seconds", "checks"),
    [
        ("nothing", 4.0, 0),
        ("another node", 1.0, 0),
        ("a plan of a gang", 1.0, 0),
        ("nothing", 6.0, 1),
        ("another pod there", 1.0, 1),
        ("the node", 1.0, 1),
        ("its report", 1.0, 1),
        ("an object of no node", 1.0, 1),
    ],
)
async def test_after_a_wait_a_node_is_judged_again_where_it_may_have_changed(
    world, change, seconds, checks
):
    plugin, together = Counting(), _Together()
    here = world(together, plugin)
    here.pods("d", requests={})
    waiting = here.start("d")
    await here.clock.settle()
    assert plugin.asked == 1
    _change(here, change)
    await here.clock.advance(seconds)
    together.open = True
    here.binder.waiting.wake(["all"])
    assert await waiting == [""]
    assert plugin.asked == 1 + checks
