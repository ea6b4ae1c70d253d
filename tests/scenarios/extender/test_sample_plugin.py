"""The sample plug-in in a whole extender, called by the scheduler: from filter to the Binding."""

import contextlib

import pytest_asyncio

from extender import app, registry
from extender.settings import Settings
from kube.client import access as accesses
from process.http import ports
from process.runtime import clock as clocks
from tests.extender.sample_plugin import allocation, plugin, tracker
from tests.planes import raw

KNOWN = registry.PLUGINS | {
    "Slots": lambda _: plugin.SlotsPlugin(cap=6),
}
"""The one line by which the plug-in is added."""
FULL = registry.PLUGINS | {"Slots": lambda _: plugin.SlotsPlugin(cap=0)}
PLUGINS = {"enabled": ("Slots",), "weights": {"Slots": 1}}
SINGLE = {"example.com/zones": "2", "example.com/topology-policy": "single-numa-node"}


@contextlib.asynccontextmanager
async def alone(here, port=0, plugins=KNOWN):
    """An extender with the plug-in."""
    plane, anywhere = here.plane, {"port": 0, "linger_seconds": 0, "announce_seconds": 0}
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    chosen = Settings(server={**anywhere, "port": port}, health=anywhere, plugins=PLUGINS)
    async with app.running(
        chosen, access=access, clock=clocks.SystemClock(), plugins=plugins
    ) as made:

        async def ready():
            return made.health.ready

        await raw.eventually(ready, raw.PATIENCE)
        yield made


@contextlib.asynccontextmanager
async def extending(here):
    """An extender with the plug-in, and the scheduler that calls it."""
    async with alone(here) as made:
        await here.plane.start_scheduler(made.url, filter_timeout_seconds=30)
        try:
            yield made
        finally:
            await here.plane.stop_scheduler()


@pytest_asyncio.fixture(loop_scope="session")
async def extended(here, watched):
    async with extending(here) as made:
        yield made


async def asking(here, name, slots, **more):
    """A pod that asks for slots; `team` and `barrier` are as the plug-in reads them."""
    labels = {allocation.TEAM: more["team"]} if "team" in more else {}
    notes = {allocation.BARRIER: more["barrier"]} if "barrier" in more else {}
    requests = {"cpu": "100m", allocation.RESOURCE: str(slots)}
    await here.pod(name, requests=requests, labels=labels, annotations=notes)


async def numbers(here, name):
    """The slots that a pod was given, once it is bound."""
    pod = await here.bound(name)
    return pod["metadata"]["annotations"][allocation.NUMBERS]


async def with_slots(here, count, **labels):
    return await here.node("slots", labels=labels, more={allocation.RESOURCE: str(count)})


async def test_slots_are_recorded_on_pods_and_found_again_after_a_restart(here, watched):
    await with_slots(here, 4, **SINGLE)
    async with extending(here):
        await asking(here, "one", 1)
        assert await numbers(here, "one") == "0"
        await asking(here, "pair", 2)
        assert await numbers(here, "pair") == "2,3", "both of one NUMA node"
    async with extending(here) as again:
        await asking(here, "other", 1)
        assert await numbers(here, "other") == "1", "the only one that is left"
        row = again.books.cluster.view().rows[here.nodes[0]]
        held = {
            claim.pod.name: claim.allocations[allocation.NAME].numbers
            for claim in again.books.cluster.view().node(row).claims
        }
        assert held == {"one": (0,), "pair": (2, 3), "other": (1,)}


async def test_what_only_the_plugin_counts_is_refused_told_and_tried_again(here, extended):
    await with_slots(here, 8)
    await asking(here, "first", 4, team="red")
    assert await numbers(here, "first") == "0,1,2,3"
    await asking(here, "second", 2, team="red")
    assert await numbers(here, "second") == "4,5"
    await asking(here, "third", 1, team="red")
    await here.refused("third", plugin.CAPPED.reason)
    await asking(here, "blue", 1, team="blue")
    assert await numbers(here, "blue") == "6"
    await here.api.delete(here.path("pods", "second"))
    assert await numbers(here, "third") == "4"


async def test_what_was_refused_before_a_restart_is_tried_again(here, watched):
    """kube-scheduler hears of nothing that may help: only the extender's arguments change."""
    await with_slots(here, 4)
    (port,) = ports.take(1)
    async with contextlib.AsyncExitStack() as stack:
        async with alone(here, port, FULL) as made:
            await here.plane.start_scheduler(made.url, filter_timeout_seconds=30)
            stack.push_async_callback(here.plane.stop_scheduler)
            await asking(here, "one", 1, team="red")
            await here.refused("one", plugin.CAPPED.reason)
        async with alone(here, port):
            assert await numbers(here, "one") == "0"


async def test_a_higher_tier_outranks_everything_that_the_scheduler_prefers(here, extended):
    kept = await here.node(
        "kept", labels={tracker.DEDICATED: "red"}, more={allocation.RESOURCE: "4"}, cpu="1"
    )
    await here.node("idle", more={allocation.RESOURCE: "4"}, cpu="64")
    for name in ("one", "two"):
        await asking(here, name, 1, team="red")
        pod = await here.bound(name)
        assert pod["spec"]["nodeName"] == kept


async def test_pods_of_a_barrier_are_bound_together(here, extended):
    await with_slots(here, 4)
    await asking(here, "alone", 1, barrier="gang/2")

    async def arrived():
        view = extended.books.cluster.view()
        return "gang" in view.cluster[allocation.NAME].arrived

    await raw.eventually(arrived, raw.PATIENCE)
    pod = await here.api.get(here.path("pods", "alone"))
    assert "nodeName" not in pod["spec"], "its bind is held"
    await asking(here, "last", 1, barrier="gang/2")
    assert {await numbers(here, "alone"), await numbers(here, "last")} == {"0", "1"}
