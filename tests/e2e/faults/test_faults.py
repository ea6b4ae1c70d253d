"""What the control plane and the network do to a working scheduler and its extender."""

import asyncio
import json
import random

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from api import names
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.processes import traffic
from tests.planes.stage import FULL, LONG, PATIENCE

SEED = 20260701
KINDS = ("busy", "broken", "slow")
OUTAGE = 60.0 if FULL else 0.0
STALL = 30.0 if FULL else 5.0
# The client keeps as many connections for a while as it had calls in flight, at most 64.
BREATH = 70
NODES = tuple(f"n{number}" for number in range(6))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def working(breakable, tmp_path_factory):
    """A scheduler and its extender at work; the tests of this file break them one by one."""
    folder = tmp_path_factory.mktemp("working")
    async with stages.opened(breakable, folder) as stage:
        await stage.lending(*NODES, cores=64, pods=400)
        pair = await stage.pair("a")
        await pair.schedule(bind_timeout_seconds=3)
        yield stage, pair


@pytest_asyncio.fixture(loop_scope="session")
async def here(working):
    """The working stage, undisturbed, and without pods in the end."""
    stage, pair = working
    pair.uplink.reset()
    pair.front.reset()
    before = await pair.extender.measured("process_open_fds")
    assert before
    yield stage
    pair.uplink.reset()
    pair.front.reset()
    await stage.empty()

    async def as_before():
        return await pair.extender.figure("process_open_fds") <= before + BREATH

    await raw.eventually(as_before, PATIENCE)


@pytest.fixture
def pair(working):
    return working[1]


async def says(pair, word):
    """Wait until the extender's readiness fails and says this."""

    async def told():
        failing = await pair.extender.failing()
        return failing and word in json.dumps(failing)

    return await raw.eventually(told, PATIENCE)


async def asked(pair, here):
    """Ask the extender as its scheduler does; returns the error that it answers."""
    body = {"Pod": here.job("asks"), "Nodes": None, "NodeNames": [here.nodes[0]]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{pair.extender.url}/filter", json=body) as answer,
    ):
        return (await answer.json())["Error"]


@LONG
async def test_the_api_server_dies_under_load_and_has_forgotten_history(here, pair):
    plane = here.plane
    await here.create("leaves", "stays")
    await here.all_bound("leaves", "stays")

    async def outage():
        await here.placed(20)
        # The last that the extender hears; what happens from here on it must find out by itself.
        pair.uplink.swallow()
        await here.remove("leaves")
        await here.remove_node(here.nodes[-1])
        pair.uplink.hang_up()
        await plane.binaries.kill("kube-apiserver")
        pair.uplink.flow()
        await says(pair, "pods not heard of for")
        assert "extender is not ready" in await asked(pair, here)
        await asyncio.sleep(OUTAGE)
        mark = len(pair.uplink.calls)
        await plane.forget_history()
        return mark

    _, mark = await asyncio.gather(traffic.arriving(here, "job", 200, rate=50.0), outage())
    await traffic.all_placed(here, PATIENCE)
    await here.sound(pair)
    lists = [(call.path, call.query) for call in pair.uplink.calls[mark:] if call.is_list]
    answered = {path for path, _ in lists}
    assert {"/api/v1/pods", "/api/v1/nodes"} <= answered
    counted = await pair.extender.measured("koord_kube_lists_total", resource="pods")
    assert counted == 2, "one at the start and one after the gap"


@LONG
async def test_the_store_stands_still_and_goes_on(here, pair):
    """Writes end without an answer and are carried out all at once when it goes on."""
    plane = here.plane.binaries

    async def stall():
        await here.placed(10)
        plane.pause("etcd")
        await asyncio.sleep(STALL)
        plane.resume("etcd")

    await asyncio.gather(traffic.arriving(here, "job", 60, rate=20.0), stall())
    await traffic.all_placed(here, PATIENCE)
    await here.sound(pair)


async def test_an_overloaded_api_server_is_given_time_and_everything_gets_done(here, pair):
    chance = random.Random(SEED)
    # Each kind at least once, then by chance: a fixed order could fall into step with the retries.
    certain = [*KINDS]
    refused = []

    async def trouble(call):
        if call.is_watch:
            return None
        kind = certain.pop() if certain else chance.choice(["fine", "fine", "fine", *KINDS])
        if kind == "slow":
            await asyncio.sleep(1.0)
        if kind in ("busy", "broken"):
            refused.append(call)
            code, headers = (429, {"Retry-After": "1"}) if kind == "busy" else (500, {})
            status = {"kind": "Status", "status": "Failure", "code": code, "message": "trouble"}
            return web.json_response(status, status=code, headers=headers)
        return None

    mark = len(pair.uplink.calls)
    pair.uplink.before = trouble
    jobs = await traffic.arriving(here, "job", 12, rate=20.0)
    await traffic.all_placed(here, PATIENCE)
    pair.uplink.reset()
    assert len(refused) >= 2
    tries = [call for call in pair.uplink.calls[mark:] if call.is_binding]
    assert len(tries) < 4 * len(jobs), "no storm of retries"
    await here.sound(pair)


async def test_answers_are_lost_on_either_side_and_nothing_is_undone(here, pair):
    """The scheduler, or the extender, gives up waiting for what has been done."""
    holding = traffic.Holding(pair.uplink, after=("unheard",))
    go = asyncio.Event()

    async def late(call):
        if call.path == "/bind" and b'"untold"' in call.body:
            await go.wait()

    pair.front.after = late
    await here.create("unheard", "untold")
    await here.all_bound("unheard", "untold")
    await holding.complete(PATIENCE)
    log = here.plane.binaries.workdir / f"{pair.scheduler}.log"

    async def given_up():
        text = log.read_text(errors="replace")
        return "untold" in text and "Client.Timeout exceeded" in text

    await raw.eventually(given_up, PATIENCE)
    go.set()
    holding.lose()
    await here.sound(pair)
    assert len([c for c in pair.uplink.calls if c.is_binding and "/un" in c.path]) == 2


@pytest.mark.parametrize("change", ["deleted", "replaced", "bound elsewhere", "node is gone"])
async def test_the_world_changes_while_a_binding_is_on_its_way(here, pair, change):
    node, other = here.nodes[0], here.nodes[1]
    pod = change.replace(" ", "-")
    chosen = {} if change == "bound elsewhere" else {"nodeSelector": {names.LABEL_HOSTNAME: node}}
    holding = traffic.Holding(pair.uplink, before=(pod,))
    await here.create(pod, **chosen)
    await holding.complete(PATIENCE)

    async def counted():
        # A try that the extender gave up is followed by another one, which is held as well.
        node = json.loads(holding.held[pod].body)["target"]["name"]
        return node if await promised(pair, here) == [node] else ""

    promise = await raw.eventually(counted, PATIENCE)
    if change in ("deleted", "replaced"):
        await here.remove(pod)
    if change == "replaced":
        await here.create(pod, nodeSelector={names.LABEL_HOSTNAME: other})
    if change == "bound elsewhere":
        target = other if promise == node else node
        await here.bind(pod, target)
    if change == "node is gone":
        await here.remove_node(node)
    holding.let_go()

    async def released():
        return not await promised(pair, here)

    await raw.eventually(released, PATIENCE)
    if change == "replaced":
        assert await here.all_bound(pod) == [other]
    if change == "node is gone":
        # As with a stock scheduler the write may be first; the garbage collector of pods is next.
        await here.remove(pod)
        await here.lending(NODES[0], cores=64, pods=400)
    if change == "bound elsewhere":
        await here.remove(pod)
    await here.sound(pair)


async def promised(pair, here):
    """The nodes on which the extender counts pods that the watch has not shown yet."""

    async def shown():
        # A busy extender may not answer at first, which says nothing.
        found = await pair.pictures(here.nodes)
        return found if len(found) == len(here.nodes) else None

    pictures = await raw.eventually(shown, PATIENCE)
    return [p["node"] for p in pictures if any(pod["promised"] for pod in p["pods"])]


async def test_an_extender_that_is_cut_off_refuses_and_recovers(here, pair):
    # Connections stay open and tell nothing: only a proof that fails can notice this so soon. Where
    # the scheduler is slow to ask, the age of the caches is noticed first: then once more.
    for name in ("waits", "again", "at-last"):
        pair.uplink.swallow()
        # Each call renews the trust in the view. Idle for so long, it has to be proven.
        await asyncio.sleep(stages.IDLE_SECONDS)
        await here.create(name)
        said = await here.refused(
            name, "extender is not ready", reason="SchedulerError", timeout=PATIENCE
        )
        pair.uplink.flow()
        await here.all_bound(name)
        if "could not be proven" in said:
            break
    else:
        pytest.fail("no proof has failed")
    await here.sound(pair)


async def test_a_scheduler_that_cannot_reach_its_extender_binds_nothing_without_it(here, pair):
    pair.front.swallow()
    await here.create("waits")
    await here.refused(
        "waits", "Client.Timeout exceeded", reason="SchedulerError", timeout=PATIENCE
    )
    pair.front.flow()
    await here.all_bound("waits")
    await here.sound(pair)


@LONG
async def test_the_extender_dies_at_random_moments_under_load(here, pair):
    chance = random.Random(SEED)
    deaths, pods, rate = (200, 2000, 4.0) if FULL else (2, 60, 20.0)

    async def dying():
        for _ in range(deaths):
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            pair.uplink.hang_up()
            await pair.extender.kill()
            await pair.extender.start()
            await pair.extender.ready()

    await asyncio.gather(traffic.arriving(here, "job", pods, rate), dying())
    await traffic.all_placed(here, PATIENCE)
    await here.sound(pair)


async def test_the_extender_is_replaced_under_load_and_no_call_is_cut_off(here, pair):
    # Straight to the extender: a proxy would hide how its connections end.
    await pair.schedule(pair.extender.url)
    log = here.plane.binaries.workdir / f"{pair.scheduler}.log"
    start = log.stat().st_size
    arriving = asyncio.gather(traffic.arriving(here, "job", 50, rate=20.0))
    await here.placed(10)
    await pair.extender.stop()
    await pair.extender.start()
    await arriving
    await traffic.all_placed(here, PATIENCE)
    said = log.read_text(errors="replace")[start:]
    assert "EOF" not in said
    assert "reset by peer" not in said
    await here.sound(pair)


@LONG
@pytest.mark.skipif(not FULL, reason="waits for minutes; make soak runs it")
@pytest.mark.parametrize("gap", [60, 89, 91, 120])
async def test_a_call_after_a_long_silence_meets_an_open_connection(here, pair, gap):
    await pair.schedule(pair.extender.url)
    log = here.plane.binaries.workdir / f"{pair.scheduler}.log"
    start = log.stat().st_size
    for number in range(3):
        await here.create(f"after-{number}")
        await here.all_bound(f"after-{number}")
        await asyncio.sleep(gap)
    said = log.read_text(errors="replace")[start:]
    assert "EOF" not in said
    assert "reset by peer" not in said
    await here.sound(pair)
