"""The stand-in scheduler on a bare store; its behaviour against the truth is in the scenarios."""

import asyncio
import contextlib
import itertools

import pytest

from api import resources
from api.kubernetes import scheduler_config
from process.runtime import clock as clocks
from simulator.apiserver.http import api_errors
from simulator.apiserver.storage import object_store
from simulator.scheduler import scheduler
from tests.planes import raw
from tests.planes.scheduler import scripted

REASON = "node is loaded above its threshold"


class Direct:
    """Binds in the store what the scripted extender wants to bind over HTTP."""

    def __init__(self, store):
        self.store = store

    async def call(self, method, path, binding):
        meta = binding["metadata"]

        def change(stored):
            stored["spec"]["nodeName"] = binding["target"]["name"]
            stored["metadata"].setdefault("annotations", {}).update(meta["annotations"])

        try:
            self.store.modify(resources.PODS, meta["name"], meta["namespace"], change)
        except api_errors.FailureError as error:
            return raw.Answer(error.code, error.status(), {})
        return raw.Answer(201, {}, {})


class Lab:
    """A store, a scheduler on it, and shortcuts."""

    def __init__(self, store, clock, pod, node):
        self.store = store
        self.clock = clock
        self._pod = pod
        self._node = node
        self.scheduler = None

    def add_node(self, name="n", **options):
        self.store.create(resources.NODES, self._node(name, **options))

    def add_pod(self, name="x", **options):
        body = self._pod(name, **options)
        return self.store.create(resources.PODS, body, "a")

    def get(self, name="x"):
        return self.store.find(resources.PODS, name, "a")

    def condition(self, name="x"):
        conditions = self.get(name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "PodScheduled"), {})

    async def until(self, check):
        async def answer():
            return check()

        return await raw.eventually(answer)

    async def bound(self, name="x"):
        return await self.until(lambda: self.get(name)["spec"].get("nodeName"))

    async def refused(self, name="x", reason="Unschedulable"):
        await self.until(lambda: self.condition(name).get("reason") == reason)
        return self.condition(name)["message"]

    def notes(self, name, reason):
        found = self.store.list(resources.CORE_EVENTS, "a").items
        return [
            event
            for event in found
            if event["involvedObject"]["name"] == name and event["reason"] == reason
        ]

    def check(self):
        """No node is over-committed and nothing is promised that is not seen."""
        for node in self.scheduler.view.nodes.values():
            for name, amount in node.used.items():
                assert amount <= node.allocatable.get(name, 0), (node.name, name)
        assert not self.scheduler.view.assumed


@pytest.fixture
def store(clock):
    serial = itertools.count()
    made = object_store.Objects(
        now=clock.now, uid=lambda: f"uid-{next(serial)}", suffix=lambda: str(next(serial))
    )
    made.create(resources.NAMESPACES, {"metadata": {"name": "a"}})
    return made


@pytest.fixture
async def extender(store):
    async with scripted.listening(Direct(store)) as listening:
        yield listening


@contextlib.asynccontextmanager
async def at_work(lab, url, **options):
    chosen = scheduler_config.Options(url, **options)
    async with scheduler.running(lab.store, chosen, lab.clock) as running:
        lab.scheduler = running
        yield lab
        await lab.until(lambda: not running.view.assumed)
        lab.check()


@pytest.fixture
async def lab(store, clock, pod, node):
    async with at_work(Lab(store, clock, pod, node), "") as ready:
        yield ready


@pytest.fixture
async def extended(store, clock, pod, node, extender):
    async with at_work(Lab(store, clock, pod, node), extender.url) as ready:
        yield ready


async def test_a_pod_goes_to_a_node_and_everybody_is_told(lab):
    lab.add_node()
    lab.add_pod()
    assert await lab.bound() == "n"
    assert lab.condition()["status"] == "True"
    assert [e["message"] for e in lab.notes("x", "Scheduled")] == ["Successfully assigned a/x to n"]


async def test_what_was_there_before_is_scheduled_too(store, clock, pod, node):
    lab = Lab(store, clock, pod, node)
    lab.add_node()
    lab.add_pod("old", nodeName="n", requests={"cpu": "3"})
    lab.add_pod("x", requests={"cpu": "2"})
    async with at_work(lab, ""):
        assert "Insufficient cpu" in await lab.refused()


async def test_the_emptier_node_is_taken(lab):
    lab.add_node("busy")
    lab.add_pod("y", nodeName="busy", requests={"cpu": "2", "memory": "4Gi"})
    lab.add_node("free")
    lab.add_pod()
    assert await lab.bound() == "free"


async def test_finished_pods_hold_nothing(lab):
    lab.add_node()
    lab.add_pod("y", nodeName="n", requests={"cpu": "4"})
    lab.add_pod("x", requests={"cpu": "4"})
    await lab.refused()
    lab.store.modify(resources.PODS, "y", "a", lambda p: p["status"].update(phase="Succeeded"))
    await lab.bound()


async def test_a_repeated_refusal_is_one_event_with_a_count(lab):
    lab.add_node(cpu="1")
    lab.add_pod(requests={"cpu": "2"})
    await lab.refused()
    lab.store.modify(
        resources.NODES, "n", "", lambda n: n["status"]["allocatable"].update(cpu="1500m")
    )
    await lab.until(lambda: lab.notes("x", "FailedScheduling")[0].get("series"))
    (event,) = lab.notes("x", "FailedScheduling")
    assert event["series"]["count"] == 2


async def test_errors_wait_for_the_clock(extended, extender, clock):
    async def broken(body):
        return {"Error": "the view is stale"}

    extender.filter = broken
    extended.add_node()
    extended.add_pod()
    assert await extended.refused(reason="SchedulerError") == "the view is stale"
    extender.filter = extender.accept
    await clock.advance(0.9)
    assert len(extender.of("filter")) == 1
    await clock.advance(0.1)
    await extended.bound()
    assert len(extender.of("filter")) == 2


async def test_a_refused_pod_is_flushed_after_five_minutes(extended, extender, clock):
    async def refuse(body):
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(body["NodeNames"], REASON)}

    extender.filter = refuse
    extended.add_node()
    extended.add_pod()
    await extended.refused()
    # What it was told has changed its status, which may help as far as the scheduler knows.
    await extended.until(lambda: len(extender.of("filter")) == 2)
    extender.filter = extender.accept
    await clock.advance(299)
    assert len(extender.of("filter")) == 2
    await clock.advance(1)
    await extended.bound()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param({"NodeNames": ["elsewhere"]}, "elsewhere", id="a name nobody asked for"),
        pytest.param([], "cannot unmarshal", id="not an object"),
    ],
)
async def test_a_senseless_filter_answer_is_an_error(extended, extender, answer, words):
    async def senseless(body):
        return answer

    extender.filter = senseless
    extended.add_node()
    extended.add_pod()
    assert words in await extended.refused(reason="SchedulerError")


async def test_an_extender_that_is_down_is_an_error(store, clock, pod, node):
    async with at_work(Lab(store, clock, pod, node), "http://127.0.0.1:1") as lab:
        lab.add_node()
        lab.add_pod()
        assert 'Post "http://127.0.0.1:1/filter"' in await lab.refused(reason="SchedulerError")


async def test_keys_may_be_written_in_any_case(extended, extender):
    async def lower(body):
        return {"nodenames": ["m"], "failednodes": {"n": REASON}}

    extender.filter = lower
    extended.add_node("n")
    extended.add_node("m")
    extended.add_pod()
    assert await extended.bound() == "m"


async def test_scores_that_fail_are_dropped(extended, extender):
    async def broken(body):
        return {"not": "a list"}

    async def nothing(body):
        return None

    extended.add_node("n")
    extended.add_node("m")
    extender.prioritize = nothing
    extended.add_pod("x")
    await extended.bound("x")


async def test_only_a_sample_is_asked_about_and_it_rotates(extended, extender):
    for number in range(150):
        extended.add_node(f"n{number}")
    for name in ("x", "y"):
        extended.add_pod(name)
        await extended.bound(name)
    first, second = (set(call.body["NodeNames"]) for call in extender.of("filter"))
    assert len(first) == len(second) == 100
    assert first != second


async def test_all_nodes_are_asked_about_where_that_is_configured(
    store, clock, pod, node, extender
):
    lab = Lab(store, clock, pod, node)
    async with at_work(lab, extender.url, percentage_of_nodes_to_score=100):
        for number in range(150):
            lab.add_node(f"n{number}")
        lab.add_pod()
        await lab.bound()
        assert len(extender.of("filter")[0].body["NodeNames"]) == 150


async def test_an_answer_that_was_lost_is_not_tried_again(extended, extender):
    async def bound_but_broken(body):
        await extender.write_binding(body)
        return {"Error": "too late"}

    extender.bind = bound_but_broken
    extended.add_node()
    extended.add_pod()
    await extended.bound()
    await extender.called("bind", "x")
    assert not extended.notes("x", "FailedScheduling")


async def test_room_of_a_pod_that_is_deleted_while_binding_is_free(extended, extender):
    async def gone(body):
        if body["PodName"] == "x":
            extended.store.delete(resources.PODS, "x", "a")
            return {"Error": "gone"}
        return await extender.write_binding(body)

    extender.bind = gone
    extended.add_node()
    extended.add_pod("x", requests={"cpu": "4"})
    await extender.called("bind", "x")
    extended.add_pod("y", requests={"cpu": "4"})
    await extended.bound("y")


async def test_a_pod_that_leaves_during_its_filter_is_forgotten(extended, extender):
    async def vanish(body):
        if body["Pod"]["metadata"]["name"] == "x":
            extended.store.delete(resources.PODS, "x", "a")
        return {"NodeNames": body["NodeNames"]}

    extender.filter = vanish
    extended.add_node()
    extended.add_pod("x", requests={"cpu": "4"})
    await extender.called("filter", "x")
    extended.add_pod("y", requests={"cpu": "4"})
    await extended.bound("y")
    assert not extender.of("bind", "x")


async def test_the_extender_may_protect_victims(extended, extender):
    async def protect(body):
        return {"NodeNameToMetaVictims": {}}

    extender.preempt = protect
    extended.add_node()
    extended.add_pod("low", nodeName="n", requests={"cpu": "4"})
    extended.add_pod("high", priority=10, requests={"cpu": "4"})
    await extended.refused("high")
    await extender.called("preempt", "high")
    assert extended.get("low") is not None


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        pytest.param([{"UID": "unknown"}], "is not found on that node", id="unknown victim"),
        pytest.param([], "at least one victim", id="no victim"),
    ],
)
async def test_a_senseless_choice_of_victims_is_refused(extended, extender, pods, words):
    async def senseless(body):
        return {"NodeNameToMetaVictims": {"n": {"Pods": pods, "NumPDBViolations": 0}}}

    extender.preempt = senseless
    extended.add_node()
    extended.add_pod("low", nodeName="n", requests={"cpu": "4"})
    extended.add_pod("high", priority=10, requests={"cpu": "4"})
    assert words in await extended.refused("high")
    assert extended.get("low") is not None


async def test_promised_room_is_not_given_to_the_next(lab):
    lab.add_node()
    lab.add_pod("low", nodeName="n", requests={"cpu": "4"}, terminationGracePeriodSeconds=30)
    lab.add_pod("high", priority=10, requests={"cpu": "4"})
    await lab.until(lambda: lab.get("high")["status"].get("nominatedNodeName") == "n")
    assert lab.get("low")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert lab.notes("low", "Preempted")
    lab.add_pod("small", requests={"cpu": "1"})
    assert "Insufficient cpu" in await lab.refused("small")
    lab.store.delete(resources.PODS, "low", "a", object_store.Deletion(grace=0))
    assert await lab.bound("high") == "n"


async def test_it_ends_while_a_bind_is_held(store, clock, pod, node, extender):
    async def forever(body):
        await asyncio.Event().wait()

    extender.bind = forever
    lab = Lab(store, clock, pod, node)
    async with scheduler.running(store, scheduler_config.Options(extender.url), clock):
        lab.add_node()
        lab.add_pod()
        await extender.called("bind", "x")


async def test_mutual_tls_material_is_used(tmp_path):
    tls = scheduler_config.ClientTls(str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        scheduler.Scheduler(
            None,
            scheduler_config.Options("https://127.0.0.1:1", tls=tls),
            clocks.ManualClock(),
            None,
        )
