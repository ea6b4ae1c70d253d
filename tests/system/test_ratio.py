"""Overcommit by ratio: 30 % of what 128 cores have left over is lent, and not a core more."""

import aiohttp
import pytest

from cli.dev import pod_load

CORES = 128
REFUSAL = "node may not lend that much cpu to batch work"


@pytest.fixture
async def large(world):
    """One node of 128 cores that lends 30 % of what is not requested."""
    await world.colocation(
        cpuCalculatePolicy="overcommitRatio",
        memoryCalculatePolicy="overcommitRatio",
        overcommitPercent=30,
    )
    await world.add_node("n", cpu=CORES, memory_gib=256)
    await world.until(lambda: world.lent("n") == 38_400, "30 % of the empty node are lent")
    return world


async def online(world, name, cpu):
    """Run an online service that requests much and uses little; it was there before us."""
    pod = await world.create(name, cpu=cpu, memory="10Gi", bound="n")
    world.hosts.fix(pod["metadata"]["uid"], pod_load.Use(2000, 1 << 30))
    uid = pod["metadata"]["uid"]
    await world.until(lambda: world.extender.books.cluster.placed(uid), "the extender sees it")


async def ask(world, name):
    """Call the extender's filter as the scheduler does; returns its answer about the node."""
    question = {"Pod": world.pod(name), "Nodes": None, "NodeNames": ["n"]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{world.extender.url}/filter", json=question) as answer,
    ):
        assert answer.status == 200
        return await answer.json(content_type=None)


async def explained(world, name):
    url = f"{world.extender.health_url}/debug/explain?pod=default/{name}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return (await answer.json())["nodes"]["n"]


async def test_of_100_requested_8_4_are_lent_and_10_are_refused(large):
    await online(large, "web", 100)
    await large.until(lambda: large.lent("n") == 8400, "the manager publishes 8.4 cores")
    await large.create("job", cpu=10, batch=True)
    message = await large.until(lambda: large.refusal("job"), "a batch pod of 10 is refused")
    assert message.startswith("0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu")
    answer = await ask(large, "job")
    assert answer["NodeNames"] == []
    assert {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]} == {"n": REFUSAL}
    figures = "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent"
    assert await explained(large, "job") == f"{REFUSAL}: {figures}"


async def test_of_80_requested_14_4_are_lent_and_10_are_taken(large):
    await online(large, "web", 80)
    await large.until(lambda: large.lent("n") == 14_400, "the manager publishes 14.4 cores")
    await large.create("job", cpu=10, batch=True)
    assert await large.bound("job") == "n"
    # The rest is 4.4.
    await large.create("more", cpu="4.5", batch=True)
    await large.until(lambda: large.refusal("more"), "4.5 more are refused")
    assert (await ask(large, "more"))["NodeNames"] == []
    assert "4.4 may be lent: (128 - 80) * 30 % - 10 lent" in await explained(large, "more")
    await large.create("fits", cpu="4.4", batch=True)
    assert await large.bound("fits") == "n"


async def test_the_extender_looks_at_requests_not_at_what_was_published(large):
    await online(large, "web", 80)
    await large.until(lambda: large.lent("n") == 14_400, "the manager publishes 14.4 cores")
    await large.processes["manager"].kill()
    await online(large, "more", 20)
    await large.create("job", cpu=10, batch=True)
    message = await large.until(lambda: large.refusal("job"), "a batch pod of 10 is refused")
    assert large.lent("n") == 14_400, "nobody could publish anything else"
    assert message.startswith(f"0/1 nodes are available: 1 {REFUSAL}.")
    (event,) = await large.until(
        lambda: large.events("job", "NodesRefused"), "an event tells the figures"
    )
    figures = "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent"
    assert event["message"] == f"0/1 nodes may take it: 1 {REFUSAL}. n: {REFUSAL}: {figures}"
    # As soon as the requests go, the pod that waits is tried again and fits.
    await large.remove("more")
    assert await large.bound("job") == "n"
