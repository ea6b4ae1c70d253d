"""One leader at a time, whatever stops, hangs or jumps."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from api import resources
from kube.client import access, client, errors
from kube.controllers import leases
from process.runtime import metrics, supervise
from tests import loopback

PATH = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases/koord-manager"
PODS = "/api/v1/namespaces/shop/pods/a"


class FreezableClock(loopback.LoopbackClock):
    """A clock that can move without waking anybody, as for a process that was stopped."""

    def freeze(self, seconds: float) -> None:
        self._move(self._elapsed + seconds)


class LeaseServer:
    """One Lease with optimistic locking, on the scripted server."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.lease: dict[str, Any] | None = None
        self.hung: set[str] = set()
        self.writes: list[str] = []
        self.is_down = False
        self._version = 0
        server.on("GET", PATH, self._get)
        server.on("PUT", PATH, self._put)
        server.on("POST", PATH.rpartition("/")[0], self._post)
        server.on("DELETE", PODS, server.json({"kind": "Status"}))

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    async def _get(self, request: web.Request) -> Any:
        if self.is_down:
            return await self.server.refuse(500)(request)
        if self.lease is None:
            return await self.server.refuse(404, "NotFound")(request)
        return await self.server.json(self.lease)(request)

    async def _put(self, request: web.Request) -> Any:
        body = await request.json()
        if self.is_down:
            return await self.server.refuse(500)(request)
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return await self.server.refuse(409, "Conflict")(request)
        return await self._store(request, body)

    async def _post(self, request: web.Request) -> Any:
        if self.lease is not None:
            return await self.server.refuse(409, "AlreadyExists")(request)
        return await self._store(request, await request.json())

    async def _store(self, request: web.Request, body: dict[str, Any]) -> Any:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self.lease = body
        self.writes.append(body["spec"]["holderIdentity"])
        return await self.server.json(body)(request)


class Candidate:
    """One process that wants to lead: its own clock, its elector and its work."""

    def __init__(self, lease_server: LeaseServer, identity: str, seed: int) -> None:
        self.identity = identity
        self.clock = FreezableClock(1_700_000_000.0 + 5_000 * seed)
        self.registry = metrics.Registry()
        self.entry = access.Access(lease_server.server.url)
        self.elector = leases.Elector(
            self.entry,
            self.clock,
            leases.Lease("koord-manager", "koordinator-system", identity),
            rng=random.Random(seed),
            registry=self.registry,
        )
        self.terms: list[leases.Fence] = []
        self.stopped_terms = 0
        self.failure: Exception | None = None

    async def work(self, fence: leases.Fence) -> None:
        self.terms.append(fence)
        try:
            if self.failure is not None:
                raise self.failure
            await asyncio.Event().wait()
        finally:
            self.stopped_terms += 1

    async def run(self) -> None:
        await self.elector.run(self.work)

    def gauge(self) -> float | None:
        return self.registry.value("koord_lease_leading", {"lease": "koord-manager"})


@pytest.fixture
def lease_server(server: Any) -> LeaseServer:
    return LeaseServer(server)


@pytest.fixture
async def candidate(
    lease_server: LeaseServer,
) -> AsyncIterator[Callable[[str], tuple[Candidate, supervise.Supervisor]]]:
    """Start candidates, each under a supervisor of its own."""
    supervisors: list[supervise.Supervisor] = []

    def start(identity: str) -> tuple[Candidate, supervise.Supervisor]:
        made = Candidate(lease_server, identity, len(supervisors) + 1)
        supervisor = supervise.Supervisor(identity)
        supervisors.append(supervisor)
        supervisor.start("elect", made.run)
        return made, supervisor

    yield start
    for supervisor in supervisors:
        await supervisor.stop()


async def pass_time(
    seconds: float, *candidates: Candidate, until: Callable[[], bool] | None = None
) -> float:
    """Let the same time pass for all of them, in small steps with real exchanges in between."""
    passed = 0.0
    while passed < seconds and not (until is not None and until()):
        for each in candidates:
            await each.clock.advance(0.25)
        for _ in range(3):
            await asyncio.sleep(0.001)
        passed += 0.25
    return passed


async def test_first_one_takes_the_lease_and_keeps_it(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    second, _ = candidate("second")
    await pass_time(60, first, second)
    assert (first.elector.leading, second.elector.leading) == (True, False)
    assert set(lease_server.writes) == {"first"}
    assert 25 <= len(lease_server.writes) <= 45
    assert (len(first.terms), first.stopped_terms) == (1, 0)
    assert (first.gauge(), second.gauge()) == (1, 0)
    assert second.elector.holder == "first"
    assert lease_server.lease is not None
    spec = lease_server.lease["spec"]
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert spec["renewTime"] > spec["acquireTime"]
    assert spec["acquireTime"].endswith("Z")
    # A holder renews with one request each time, and its deadline follows.
    fence = first.elector.fence
    assert fence is first.terms[0]
    assert 10 < fence.remaining() <= 15


async def test_crashed_leader_is_replaced_within_20_seconds(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    second, _ = candidate("second")
    await pass_time(5, first, second)
    # The first one stands still from here on; only the other's time goes on.
    passed = await pass_time(60, second, until=lambda: second.elector.leading)
    assert 13 <= passed <= 20
    assert lease_server.lease is not None
    assert lease_server.lease["spec"]["leaseTransitions"] == 1


async def test_paused_leader_writes_nothing_after_its_deadline(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    second, _ = candidate("second")
    await pass_time(5, first, second)
    async with client.Client(first.entry, clock=first.clock) as api:
        fenced = api.fenced(first.terms[0])
        await fenced.delete(resources.PODS, "a", "shop")
        await pass_time(30, second, until=lambda: second.elector.leading)
        # It wakes up after 30 s and does not know yet: nothing of it has run in between.
        first.clock.freeze(30)
        assert (first.stopped_terms, second.elector.leading) == (0, True)
        with pytest.raises(errors.Deposed):
            await fenced.delete(resources.PODS, "a", "shop")
        assert not first.elector.leading
        await pass_time(5, first, second)
        assert first.stopped_terms == 1
        with pytest.raises(errors.Deposed):
            await fenced.delete(resources.PODS, "a", "shop")
    assert len(server.calls("DELETE", PODS)) == 1
    assert second.elector.leading
    assert (first.gauge(), second.gauge()) == (0, 1)
    assert lease_server.holder == "second"


async def test_terms_of_two_never_overlap(
    lease_server: LeaseServer, server: Any, candidate: Any, rng: random.Random
) -> None:
    """Random pauses of both: at no time do both fences allow a write."""
    first, _ = candidate("first")
    second, _ = candidate("second")
    both = [first, second]
    leads: set[str] = set()
    for _ in range(14):
        paused = rng.choice([*both, None])
        for _ in range(rng.randrange(4, 70)):
            for each in both:
                if each is paused:
                    each.clock.freeze(0.5)
                else:
                    await each.clock.advance(0.5)
            await asyncio.sleep(0.001)
            leading = [each.identity for each in both if each.elector.leading]
            assert len(leading) <= 1
            leads.update(leading)
    assert leads == {"first", "second"}
    assert len(first.terms) + len(second.terms) >= 3


async def test_leader_without_api_server_steps_down_by_itself(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    lease_server.is_down = True
    passed = await pass_time(30, first, until=lambda: first.stopped_terms == 1)
    assert 9 <= passed <= 12
    assert not first.elector.leading
    with pytest.raises(errors.Deposed):
        first.terms[0].check()
    lease_server.is_down = False
    await pass_time(10, first, until=lambda: first.elector.leading)
    assert len(first.terms) == 2
    # The old term never comes back.
    with pytest.raises(errors.Deposed):
        first.terms[0].check()


async def test_wall_clocks_do_not_matter(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    second, _ = candidate("second")
    for jump in (3600, -7200):
        second.clock.jump(jump)
        first.clock.jump(-jump)
        await pass_time(20, first, second)
        assert (first.elector.leading, second.elector.leading) == (True, False)


async def test_clean_stop_ends_the_work_and_then_gives_the_lease_up(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, supervisor = candidate("first")
    await server.until(lambda: first.elector.leading)
    second, _ = candidate("second")
    await pass_time(5, first, second)
    await supervisor.stop()
    assert (first.stopped_terms, lease_server.holder) == (1, "")
    with pytest.raises(errors.Deposed):
        first.terms[0].check()
    passed = await pass_time(20, second, until=lambda: second.elector.leading)
    assert passed <= 3


async def test_lease_taken_by_somebody_else_ends_the_term_at_once(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    assert lease_server.lease is not None
    lease_server.lease["metadata"]["resourceVersion"] = "777"
    lease_server.lease["spec"]["holderIdentity"] = "thief"
    passed = await pass_time(10, first, until=lambda: first.stopped_terms == 1)
    assert passed <= 3
    assert first.elector.holder == "thief"
    assert "" not in lease_server.writes, "what is not ours is not released"


async def test_failing_work_is_a_failure_of_the_process_and_releases_the_lease(
    lease_server: LeaseServer, candidate: Any
) -> None:
    first, supervisor = candidate("first")
    first.failure = ValueError("bug")
    with pytest.raises(supervise.TaskError, match="ValueError: bug"):
        await supervisor.stopped()
    assert lease_server.holder == ""


async def test_answer_that_got_lost_is_no_loss(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    """A renewal that was written although its answer did not arrive is found again."""
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    real_put = lease_server._put

    async def lose(request: web.Request) -> Any:
        await real_put(request)
        server.on("PUT", PATH, real_put)
        return await server.drop()(request)

    server.on("PUT", PATH, lose)
    await pass_time(20, first)
    assert first.elector.leading
    assert len(first.terms) == 1


async def test_renewal_that_succeeds_after_its_deadline_begins_a_new_term(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    """The process stood still with its renewal on the way, and nobody else came meanwhile."""
    first, _ = candidate("first")
    await server.until(lambda: first.elector.leading)
    real_put = lease_server._put

    async def pause(request: web.Request) -> Any:
        first.clock.freeze(7)
        server.on("PUT", PATH, real_put)
        return await real_put(request)

    lease_server.is_down = True
    await pass_time(8, first)
    lease_server.is_down = False
    server.on("PUT", PATH, pause)
    await pass_time(8, first)
    assert (len(first.terms), first.stopped_terms) == (2, 1)
    assert first.elector.leading
    with pytest.raises(errors.Deposed):
        first.terms[0].check()


async def test_leader_that_stops_within_a_renewal_gives_the_lease_up(
    lease_server: LeaseServer, server: Any, candidate: Any
) -> None:
    first, supervisor = candidate("first")
    await server.until(lambda: first.elector.leading)
    puts = len(server.calls("PUT"))
    server.on("PUT", PATH, server.hold(), lease_server._put)
    await pass_time(8, first, until=lambda: len(server.calls("PUT")) > puts)
    await supervisor.stop()
    assert lease_server.holder == ""


@pytest.mark.parametrize("odd", [{}, {"metadata": {}, "spec": {}}, {"spec": None}], ids=str)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_answer_that_is_no_lease_ends_nothing(
    lease_server: LeaseServer, server: Any, candidate: Any, method: str, odd: Any
) -> None:
    """Something in between may answer, such as a load balancer."""
    usual = {"GET": lease_server._get, "POST": lease_server._post, "PUT": lease_server._put}
    path = PATH.rpartition("/")[0] if method == "POST" else PATH
    first, _ = candidate("first")
    server.on(method, path, server.json(odd), usual[method])
    await pass_time(30, first)
    assert first.elector.leading
    assert len(first.terms) == 1


@pytest.mark.parametrize("times", [(15, 15, 2), (10, 12, 2), (15, 10, 10), (15, 10, 0)])
def test_times_must_fit(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="lease koord-manager: the duration"):
        leases.Lease("koord-manager", "ns", "me", *times)


def test_fence_opens_no_more() -> None:
    clock = FreezableClock()
    fence = leases.Fence(clock, 15)
    fence.extend(20)
    fence.extend(18)
    assert fence.deadline == 20
    clock.freeze(20)
    fence.extend(99)
    assert fence.remaining() <= 0
