"""Two schedulers, each with an extender of its own: the leading pair dies or stands still."""

import asyncio

from api import names
from tests.planes import raw
from tests.planes.processes import traffic
from tests.planes.stage import LEASE_PATH, PATIENCE


def block_pods(gate):
    """Keep what the watch of pods tells away from whoever is behind the gate."""
    go = asyncio.Event()

    async def wait(call):
        if call.path == "/api/v1/pods":
            await go.wait()

    gate.told = wait
    return go


async def pairs(here):
    """A leading pair and one that stands by."""
    await here.api.call("DELETE", LEASE_PATH)
    first, second = await asyncio.gather(here.pair("a"), here.pair("b"))
    await first.schedule(elected=True)

    async def leads():
        lease = await here.api.call("GET", LEASE_PATH)
        return lease.status == 200 and lease.body["spec"].get("holderIdentity")

    await raw.eventually(leads, PATIENCE)
    await second.schedule(elected=True)
    return first, second


async def test_the_leading_pair_dies_in_the_middle_of_its_binds(stage):
    """Everything fits exactly: one place counted twice or forgotten, and a pod stays out."""
    await stage.lending("n", "m", cores=4)
    old, new = await pairs(stage)
    told = block_pods(new.uplink)
    unsent, unheard = ("unsent-0", "unsent-1"), ("unheard-0", "unheard-1")
    holding = traffic.Holding(old.uplink, before=unsent, after=unheard)
    await stage.create("done-0", "done-1", *unsent, *unheard)
    await stage.all_bound("done-0", "done-1", *unheard)
    await holding.complete(PATIENCE)
    assert await new.extender.measured("koord_extender_verb_seconds_count") == 0
    asked = len(new.uplink.calls)
    await old.kill()
    holding.lose()
    await stage.create("late-0", "late-1")

    async def refused():
        return await new.extender.figure("koord_extender_failures_total", verb="filter") >= 1

    # Nobody has told it of the pods that the first one bound: it says so instead of guessing.
    await raw.eventually(refused, PATIENCE)
    assert await stage.bindings(new.user) == []
    # Kinds that this API server does not serve are asked for from time to time.
    calls = [one for one in new.uplink.calls[asked:] if not one.path.endswith("/podgroups")]
    first = calls[0]
    own = f"/api/v1/namespaces/{names.NAMESPACE}/pods/{new.user}"
    assert (first.method, first.path) == ("PATCH", own)
    assert not [call for call in calls if call.is_list or "limit=" in call.query]
    told.set()
    everyone = ("done-0", "done-1", *unsent, *unheard, "late-0", "late-1")
    await stage.all_bound(*everyone)
    assert sorted(await stage.bindings(old.user)) == ["done-0", "done-1", *unheard]
    assert sorted(await stage.bindings(new.user)) == ["late-0", "late-1", *unsent]
    await stage.create("whale")
    await stage.refused("whale", f"Insufficient {names.BATCH_CPU}", timeout=PATIENCE)
    await stage.sound(new)


async def test_a_pair_that_stood_still_for_longer_than_its_lease_writes_nothing_that_harms(stage):
    small, _ = await stage.lending("small", "large", cores=1)
    old, new = await pairs(stage)
    holding = traffic.Holding(old.uplink, before=("low", "free"))
    await stage.create("low", nodeSelector={"kubernetes.io/hostname": small})
    await stage.create("free", nodeSelector={"kubernetes.io/hostname": stage.nodes[1]})
    await holding.complete(PATIENCE)
    old.pause()
    # The place that the old pair has chosen for `low` goes to a pod that comes first in the queue.
    # It never preempts: a stock scheduler that wakes up may evict before it misses its lease.
    pinned = {"kubernetes.io/hostname": small}
    async with stage.priority(9, preemptionPolicy="Never") as first:
        await stage.create("high", nodeSelector=pinned, priorityClassName=first)
    await stage.all_bound("high", "free")
    await stage.refused("low", f"Insufficient {names.BATCH_CPU}", timeout=PATIENCE)
    # What was on its way all the time arrives now: the pods are not what they were.
    late = stage.api.as_user(stage.plane.binaries.tokens[old.user])
    for pod in ("low", "free"):
        call = holding.held[pod]
        answer = await late.call(call.method, call.path, call.body)
        assert (answer.status, answer.reason) == (409, "Conflict"), pod
    old.resume()
    holding.lose()

    async def left():
        return old.scheduler not in stage.plane.binaries.pids()

    # A scheduler that has lost its lease ends by itself; a kubelet would start it again.
    await raw.eventually(left, PATIENCE)
    await stage.sound(new)
    assert not (await stage.api.get(stage.path("pods", "low")))["spec"].get("nodeName")
    await stage.remove("high")
    assert await stage.all_bound("low") == [small]
    assert sorted(await stage.bindings(new.user)) == ["free", "high", "low"]
    await stage.sound(new)
