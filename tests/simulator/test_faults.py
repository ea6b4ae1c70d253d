"""Injected trouble as a client meets it."""

import asyncio

import aiohttp
import pytest

from api import resources
from process.runtime import clock as clocks
from simulator import cluster, faults
from tests.planes import raw


@pytest.fixture
async def bare():
    options = cluster.Options(with_kubelets=False, with_workloads=False)
    async with (
        cluster.running(options) as running,
        raw.connected(running.server, running.ca, running.token) as client,
    ):
        yield running, client


NODES = "/api/v1/nodes"


async def test_a_refusal_is_told_so_often_and_no_more(bare):
    plane, api = bare
    rule = plane.faults.add(
        faults.Rule(faults.Refuse(429, retry_after=3), verb="list", resource="nodes", times=2)
    )
    answers = [await api.call("GET", NODES) for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"
    assert answers[0].reason == "TooManyRequests"
    assert rule.met == 2


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        pytest.param({"verb": "list"}, True, id="verb"),
        pytest.param({"verb": "create"}, False, id="another verb"),
        pytest.param({"resource": "nodes"}, True, id="resource"),
        pytest.param({"resource": "leases.*"}, False, id="another resource"),
        pytest.param({"agent": "Python*"}, True, id="agent"),
        pytest.param({"agent": "koord-manager"}, False, id="another agent"),
        pytest.param({"skip": 1}, False, id="not yet"),
    ],
)
async def test_a_rule_is_about_some_requests(bare, rule, met):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Refuse(500), **rule))
    assert ((await api.call("GET", NODES)).status == 500) is met


async def test_a_dropped_request_has_no_answer_and_no_effect(bare):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Drop(), verb="create", times=1))
    with pytest.raises(aiohttp.ClientError):
        await api.call("POST", NODES, {"metadata": {"name": "n"}})
    assert plane.objects.find(resources.NODES, "n") is None
    assert (await api.call("POST", NODES, {"metadata": {"name": "n"}})).status == 201


async def test_an_expired_watch_says_so_first(bare):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Expire(), times=1))
    assert (await api.call("GET", NODES)).status == 200
    async with api.watch(NODES) as stream:
        event = await stream.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await stream.next() is None


async def test_a_silent_watch_stays_open_and_says_nothing(bare):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Silence(), resource="nodes"))
    async with api.watch(NODES) as stream:
        await api.post(NODES, {"metadata": {"name": "n"}})
        with pytest.raises(TimeoutError):
            await stream.next(timeout=0.1)


async def test_a_broken_watch_ends_after_so_many_events(bare):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Break(after=1), times=1))
    for name in ("a", "b"):
        await api.post(NODES, {"metadata": {"name": name}})
    async with api.watch(NODES) as stream:
        assert (await stream.next())["type"] == "ADDED"
        with pytest.raises(aiohttp.ClientError):
            await stream.next()


async def test_a_delay_waits_by_the_clock():
    clock = clocks.ManualClock()
    delayed = faults.Faults(clock)
    delayed.add(faults.Rule(faults.Delay(10.0), times=1))

    class Info:
        verb, group, plural, subresource, name, agent = "get", "", "nodes", "", "n", "x"

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(delayed.before(Info()))
        await clock.settle()
        assert not waiting.done()
        await clock.advance(10.0)
    assert waiting.result() is None


async def test_cleared_rules_are_over(bare):
    plane, api = bare
    plane.faults.add(faults.Rule(faults.Refuse(500)))
    plane.faults.clear()
    assert (await api.call("GET", NODES)).status == 200
