"""An extender that nobody called for a while proves its view current, on a real API server."""

import asyncio
import contextlib
import time

import aiohttp

from api import names
from tests.planes import raw
from tests.planes.processes import gate as gates
from tests.planes.stage import IMPATIENT, PATIENCE

PODS = 1000
PROOFS = 100
OWN = f"/api/v1/namespaces/{names.NAMESPACE}/pods/extender-a"


class Idle:
    """An extender for which every call is the first one after a silence."""

    def __init__(self, stage, uplink, process):
        self.stage, self.uplink, self.process = stage, uplink, process

    async def asked(self):
        """Return the error that a filter call is answered with, and how long that took."""
        body = {"Pod": self.stage.job("asks"), "Nodes": None, "NodeNames": [self.stage.nodes[0]]}
        started = time.perf_counter()
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.process.url}/filter", json=body) as answer,
        ):
            return (await answer.json())["Error"], time.perf_counter() - started


@contextlib.asynccontextmanager
async def idle(stage, instance):
    await stage.lending("n")
    await stage.own_pod("extender-a")
    async with gates.opened(stage.plane.server, stage.plane.ca) as uplink:
        flags = (*IMPATIENT, "--freshness.idle_seconds=1e-9", f"--instance={instance}")
        process = stage.process("extender-a", "extender", *flags, server=uplink.url)
        await process.start()
        await process.ready()
        yield Idle(stage, uplink, process)
        await process.kill()


def quiet(it):
    """The calls that a proof made, and none of them reads a list."""
    made = [call for call in it.uplink.calls if call.path.startswith("/api/v1/")]
    assert not [call for call in made if call.method == "GET" and not call.is_watch]
    assert not [call for call in made if call.is_list]
    return [call for call in made if call.method == "PATCH"]


async def test_a_quiet_cluster_with_many_pods_is_proven_current_in_milliseconds(stage):
    names_of = [f"old-{number}" for number in range(PODS)]
    waits = {"schedulerName": "none"}
    for start in range(0, PODS, 50):
        await asyncio.gather(*(stage.create(n, **waits) for n in names_of[start : start + 50]))
    async with idle(stage, "extender-a") as it:
        await it.asked()
        # What is written elsewhere makes a watch of pods, to which nothing happens, look behind.
        await stage.api.patch(
            f"/api/v1/nodes/{stage.nodes[0]}", {"metadata": {"labels": {"x": "y"}}}
        )
        it.uplink.calls.clear()
        took = []
        for _ in range(PROOFS):
            error, seconds = await it.asked()
            assert error == ""
            took.append(seconds)
        assert {call.path for call in quiet(it)} == {OWN}
        # Every call made one; work in the background, which is as idle, may have asked as well.
        assert len(quiet(it)) >= PROOFS
        took.sort()
        print(f"proofs: p50 {1000 * took[50]:.1f} ms, p99 {1000 * took[98]:.1f} ms")
        assert took[98] < 0.5


async def test_a_watch_that_is_behind_answers_with_an_error_until_it_has_caught_up(stage):
    async with idle(stage, "extender-a") as it:
        assert (await it.asked())[0] == ""
        go = asyncio.Event()

        async def late(call):
            if call.path == "/api/v1/pods":
                await go.wait()

        it.uplink.told = late
        await stage.create("theirs", schedulerName="none")
        await stage.bind("theirs", stage.nodes[0])
        error, _ = await it.asked()
        assert "could not be proven current in time" in error
        go.set()

        async def answers():
            return (await it.asked())[0] == ""

        await raw.eventually(answers, PATIENCE)
        status, text = await it.process.page(f"/debug/picture?node={stage.nodes[0]}")
        assert (status, "theirs" in text) == (200, True)
        checks = "koord_extender_consistency_check_seconds_count"
        assert await it.process.measured(checks, outcome="behind") > 0


async def test_without_a_pod_of_its_own_an_extender_waits_for_a_bookmark(stage):
    """Before 1.36 an API server sends none while no pod changes: the scheduler's next try does."""
    async with idle(stage, "nobody") as it:
        await stage.create("changes", schedulerName="none")
        it.uplink.calls.clear()

        async def answers():
            if stage.plane.release < (1, 36):
                await stage.annotate("changes", at=str(time.monotonic()))
            return (await it.asked())[0] == ""

        await raw.eventually(answers, PATIENCE)
        lists = [c for c in it.uplink.calls if c.path == "/api/v1/pods" and not c.is_watch]
        assert {call.query for call in lists} == {"limit=1"}
        short = [c for c in it.uplink.calls if c.is_watch and "timeoutSeconds=3&" in f"{c.query}&"]
        assert {call.path for call in short} <= {"/api/v1/pods"}
